/*
 * legacy_inside.h - what the readings of old profiles share: mappings, places, stacks.
 *
 * legacy_cpu.c takes binary CPU profiles, legacy_text.c the texts, both by way of legacy.c.
 */
#ifndef MIC_IMPORT_LEGACY_INSIDE_H
#define MIC_IMPORT_LEGACY_INSIDE_H

#include "base/alloc.h"
#include "base/index.h"
#include "import/build.h"
#include "import/legacy.h"
#include "import/lines.h"

struct mic_legacy_map {
  uint64_t start, end, offset;
  uint32_t module; /* MIC_NONE: anonymous memory */
};
/* A function that a text names at an address. */
struct mic_legacy_name {
  uint64_t address;
  uint32_t function, file, line;
};

struct mic_legacy {
  struct mic_input *input;
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_legacy_result *result;
  struct mic_error *err;
  MIC_VEC(struct mic_legacy_map) maps; /* in order of addresses, once all are known */
  uint32_t main_path;                  /* what "$build" in paths stands for */
  MIC_VEC(struct mic_legacy_name) names;
  /* Addresses that have names: where in names those of each begin, which follow one another. */
  struct mic_index named;
  MIC_VEC(uint32_t) first_name;
  /* Locations by their addresses. */
  struct mic_index places;
  MIC_VEC(uint64_t) place_at;
  MIC_VEC(uint64_t) addresses; /* of a stack, the innermost first */
  uint32_t thread;
};

/* Where names of an address begin, or MIC_NONE; and make those that come next the first of it. */
uint32_t mic_legacy_first_name(const struct mic_legacy *r, uint64_t address);
void mic_legacy_begin_names(struct mic_legacy *r, uint64_t address);
/* Hexadecimal digits, of at most 64 bits; false when there are none, or more. */
bool mic_legacy_hex(const char **at, const char *end, uint64_t *value);
/* A line of the list of mappings, as in /proc/PID/maps; others are nothing. */
void mic_legacy_map_line(struct mic_legacy *r, const char *line, size_t size);
/* Once all mappings are known: put them in order and write them. */
void mic_legacy_maps_done(struct mic_legacy *r);
/* A row for each source's value that is not 0, of the stack in r->addresses. */
void mic_legacy_put(struct mic_legacy *r, const uint32_t *sources, const uint64_t *values,
                    size_t count, uint32_t label);

bool mic_legacy_is_cpu(const uint8_t *head, size_t size, size_t *word);
int mic_legacy_cpu(struct mic_legacy *r, size_t word);
int mic_legacy_text(struct mic_legacy *r);

#endif
