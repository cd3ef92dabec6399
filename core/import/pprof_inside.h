/*
 * pprof_inside.h - a profile's records between the two readings of its file.
 *
 * pprof_records.c takes them from the file, pprof_read.c makes rows of them and of the samples.
 */
#ifndef MIC_IMPORT_PPROF_INSIDE_H
#define MIC_IMPORT_PPROF_INSIDE_H

#include "base/alloc.h"
#include "capture/writer.h"
#include "import/ids.h"
#include "import/wire.h"

/* The numbers of a profile's fields. */
enum {
  MIC_PPROF_SAMPLE_TYPE = 1,
  MIC_PPROF_SAMPLE = 2,
  MIC_PPROF_MAPPING = 3,
  MIC_PPROF_LOCATION = 4,
  MIC_PPROF_FUNCTION = 5,
  MIC_PPROF_STRING = 6,
  MIC_PPROF_DROP_FRAMES = 7,
  MIC_PPROF_KEEP_FRAMES = 8,
  MIC_PPROF_TIME = 9,
  MIC_PPROF_DURATION = 10,
  MIC_PPROF_PERIOD_TYPE = 11,
  MIC_PPROF_PERIOD = 12,
  MIC_PPROF_COMMENT = 13,
  MIC_PPROF_DEFAULT_TYPE = 14
};

/* Texts are indexes of the file's strings until mic_pprof_records has checked them; then they are
 * the writer's ids. */
struct mic_pprof_type {
  uint32_t type, unit;
};
struct mic_pprof_mapping {
  uint64_t start, limit, file_offset;
  uint32_t file, build_id;
};
struct mic_pprof_function {
  uint32_t name, system_name, file;
  uint32_t start_line; /* 0: none that a table can hold */
};
/* As small as they can be: a profile has a great many of these two. */
struct mic_pprof_line {
  uint32_t function[2]; /* its id, low word first; then its index */
  uint32_t line;
};
struct mic_pprof_location {
  uint32_t address[2]; /* low word first */
  uint32_t mapping;    /* the number of its mapping + 1; 0: none */
  uint32_t line_count;
};

struct mic_pprof {
  struct mic_wire wire;
  struct mic_writer *w;
  struct mic_error *err;
  uint32_t string_count;
  MIC_VEC(uint32_t) strings; /* the writer's id of each of the file's; none: each has its index */
  MIC_VEC(struct mic_pprof_type) types;
  MIC_VEC(struct mic_pprof_mapping) mappings;
  MIC_VEC(struct mic_pprof_function) functions;
  MIC_VEC(struct mic_pprof_location) locations;
  MIC_VEC(struct mic_pprof_line) lines; /* of all locations, in their order */
  MIC_VEC(uint32_t) comments;
  struct mic_ids mapping_ids, function_ids, location_ids;
  struct mic_ids wanted; /* mappings that locations name, in the order they do */
  struct mic_pprof_type period_type;
  uint32_t drop_frames, keep_frames, default_type;
  int64_t time_ns, duration_ns, period;
};

/* Take all records but samples, and check all they name. */
int mic_pprof_records(struct mic_pprof *p);
/* An error of the record that begins at a byte: "function 7: ...". */
int mic_pprof_bad(const struct mic_pprof *p, uint64_t offset, const char *fmt, ...)
  __attribute__((format(printf, 3, 4)));
/* The writer's id of a string of the file; false when the file has none such. */
bool mic_pprof_string(const struct mic_pprof *p, uint64_t index, uint32_t *id);
/* Free what only locations and what they are made of need. */
void mic_pprof_forget(struct mic_pprof *p);
void mic_pprof_free(struct mic_pprof *p);

#endif
