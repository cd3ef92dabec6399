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
#include "import/path.h"

struct mic_chrome_frame {
  uint32_t name, category; /* strings */
  uint32_t parent;         /* a frame's number + 1; 0: none */
  uint32_t node;           /* MIC_NONE: not made */
  bool defined;
};
struct mic_chrome_sample {
  int64_t ts;
  uint64_t tid, weight;
  uint32_t name, frame; /* frame: its number + 1; 0: none */
  uint16_t cpu;
  bool timed;
};

struct mic_chrome_samples {
  struct mic_writer *w;
  struct mic_build *build;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  struct mic_interner keys; /* of frames: their numbers */
  MIC_VEC(struct mic_chrome_frame) frames;
  MIC_VEC(struct mic_chrome_sample) samples;
  MIC_VEC(uint32_t) pending;
  uint32_t number;  /* of the frame being read */
  uint64_t rounded; /* weights with parts of units */
  bool ours, zeroed;
  int64_t zero_ns; /* the capture's time zero, in files of ours */
};

/* Read them all; the input is rewound first. */
int mic_chrome_samples_read(struct mic_chrome_samples *s, struct mic_input *input);
/* A sample's node; MIC_NONE where its stack has a frame that is not there. */
int mic_chrome_samples_node(struct mic_chrome_samples *s, size_t sample, uint32_t *node);
void mic_chrome_samples_free(struct mic_chrome_samples *s);

#endif
