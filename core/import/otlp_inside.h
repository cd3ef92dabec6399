/*
 * otlp_inside.h - the dictionary of OpenTelemetry profiles, between the two readings of a file.
 *
 * otlp_dictionary.c takes it from the file, otlp_read.c makes rows of it and of the samples.
 */
#ifndef MIC_IMPORT_OTLP_INSIDE_H
#define MIC_IMPORT_OTLP_INSIDE_H

#include "base/alloc.h"
#include "base/map.h"
#include "import/build.h"
#include "import/otlp_read.h"
#include "import/wire.h"

/* A run of a vector's values. */
struct mic_otlp_run {
  uint32_t first, count;
};
struct mic_otlp_mapping {
  uint64_t start, limit, offset;
  uint32_t file; /* texts are indexes of the file's strings */
  struct mic_otlp_run attributes;
};
struct mic_otlp_function {
  uint32_t name, system_name, file, line;
};
struct mic_otlp_location {
  uint64_t address;
  uint32_t mapping;
  struct mic_otlp_run lines;
};
struct mic_otlp_line {
  uint32_t function, line;
};
struct mic_otlp_attribute {
  uint32_t key, text, unit; /* key, unit: indexes; text: the writer's id */
  uint32_t own_key;         /* the writer's id, in place of a key; 0: none */
  uint32_t indexed;         /* text's index + 1, in place of text; 0: none */
  uint8_t kind;             /* mic_label; MIC_OTLP_OTHER */
  uint64_t number;
};
enum { MIC_OTLP_OTHER = 255 };

struct mic_otlp {
  struct mic_wire wire;
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_otlp_result *result;
  struct mic_error *err;
  MIC_VEC(uint32_t) strings; /* the writer's id of each */
  MIC_VEC(struct mic_otlp_mapping) mappings;
  MIC_VEC(struct mic_otlp_location) locations;
  MIC_VEC(struct mic_otlp_line) lines;
  MIC_VEC(struct mic_otlp_function) functions;
  MIC_VEC(struct mic_otlp_attribute) attributes;
  MIC_VEC(struct mic_otlp_run) stacks;
  MIC_VEC(uint32_t) indexes; /* of locations in stacks, of attributes in mappings */
};

/* The dictionary, when the wire stands in it. */
int mic_otlp_dictionary(struct mic_otlp *p);
/* A key and a value of the form of common.v1.KeyValue, or of an entry of the table. */
int mic_otlp_attribute(struct mic_otlp *p, bool in_table, struct mic_otlp_attribute *out);
/* An error of the record that begins at a byte. */
int mic_otlp_bad(const struct mic_otlp *p, uint64_t offset, const char *fmt, ...)
  __attribute__((format(printf, 3, 4)));
void mic_otlp_free(struct mic_otlp *p);

#endif
