/*
 * chrome_samples.h - what a trace has beside its events: "samples" with "stackFrames", "otherData".
 *
 * A frame is known by its key and has a name, a category (its module) and its caller's key; a
 * sample has a time in microseconds, a thread's id, a CPU, the name of what was measured, and a
 * weight of unknown unit.  They are read by themselves, before zones are written, as all times
 * count from the first one.
 *
 * Fails:   MIC_EFORMAT for a number that is none, a negative weight, callers that go round.
 */
#ifndef MIC_IMPORT_CHROME_SAMPLES_H
#define MIC_IMPORT_CHROME_SAMPLES_H

#include "base/map.h"
#include "import/build.h"
#include "import/json.h"
#include "import/numbers.h"
#include "import/path.h"

/* Of frames. */
enum mic_chrome_frame {
  MIC_FRAME_NAME, /* strings; none: the frame is not defined */
  MIC_FRAME_CATEGORY,
  MIC_FRAME_PARENT, /* a frame's number */
  MIC_FRAME_NODE,   /* none: not made */
  MIC_FRAME_COLUMNS
};
/* Of samples. */
enum mic_chrome_sample {
  MIC_SAMPLE_TS, /* none: the sample has no time */
  MIC_SAMPLE_TID,
  MIC_SAMPLE_WEIGHT,
  MIC_SAMPLE_NAME,
  MIC_SAMPLE_FRAME,
  MIC_SAMPLE_CPU,
  MIC_SAMPLE_COLUMNS
};

struct mic_chrome_samples {
  struct mic_writer *w;
  struct mic_build *build;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  struct mic_interner keys; /* of frames: their numbers */
  struct mic_numbers frames[MIC_FRAME_COLUMNS], samples[MIC_SAMPLE_COLUMNS];
  MIC_VEC(uint32_t) pending;
  uint32_t number;  /* of the frame being read */
  uint64_t rounded; /* weights with parts of units */
  bool ours, zeroed;
  int64_t zero_ns; /* the capture's time zero, in files of ours */
};

/* Read them all; the input is rewound first. */
int mic_chrome_samples_read(struct mic_chrome_samples *s, struct mic_input *input);
static inline size_t mic_chrome_samples_count(const struct mic_chrome_samples *s) {
  return s->samples[MIC_SAMPLE_FRAME].count;
}
/* A value of a sample, or MIC_NUMBER_NULL. */
static inline int64_t mic_chrome_samples_get(const struct mic_chrome_samples *s, size_t sample,
                                             enum mic_chrome_sample column) {
  return mic_numbers_get(&s->samples[column], sample);
}
/* A sample's node; MIC_NONE where its stack has a frame that is not there. */
int mic_chrome_samples_node(struct mic_chrome_samples *s, size_t sample, uint32_t *node);
void mic_chrome_samples_free(struct mic_chrome_samples *s);

#endif
