/*
 * validate.c - the rules of a capture that need whole columns: across blocks and columns.
 *
 * What one block can tell (ids, enums, order within it) load.c has checked.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "capture/inside.h"
#include "capture/names.h"

int mic_capture_bad_row(const struct mic_capture *cap, uint32_t column, uint64_t row,
                        struct mic_error *err, const char *fmt, ...) {
  const struct mic_schema_column *s = &mic_schema_columns[column];
  const struct mic_capture_table *table = &cap->tables[s->table];
  uint32_t block = 0;
  while (block + 1 < table->blocks && table->starts[block + 1] <= row) block++;
  uint64_t offset = cap->columns[column].entries[block].offset;
  char what[128];
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  return mic_fail_at(err, offset, "%s.%s, row %llu, block at byte %llu: %s" MIC_MEND,
                     mic_schema_tables[s->table].name, s->name, (unsigned long long)row,
                     (unsigned long long)offset, what);
}

#define ROWS(cap, table) ((cap)->tables[MIC_TABLE_##table].rows)
#define COLUMN(cap, table, name) (cap)->columns[MIC_COLUMN_##table##_##name].data
#define BAD(cap, table, name, row, err, ...) \
  mic_capture_bad_row(cap, MIC_COLUMN_##table##_##name, row, err, __VA_ARGS__)

/* Order where one block meets the next. */
static int check_seams(const struct mic_capture *cap, uint32_t c, struct mic_error *err) {
  const struct mic_schema_column *s = &mic_schema_columns[c];
  const struct mic_capture_table *table = &cap->tables[s->table];
  const uint8_t *data = cap->columns[c].data;
  for (uint32_t b = 1; b < table->blocks && data; b++) {
    uint64_t before = 0, after = 0;
    memcpy(&before, data + (table->starts[b] - 1) * s->width, s->width);
    memcpy(&after, data + table->starts[b] * s->width, s->width);
    if (after < before)
      return mic_capture_bad_row(cap, c, table->starts[b], err, "it is less than the row before");
  }
  return 0;
}

static int check_strings(const struct mic_capture *cap, struct mic_error *err) {
  const uint64_t *end = COLUMN(cap, strings, end);
  uint64_t rows = ROWS(cap, strings), bytes = ROWS(cap, string_bytes);
  if (rows == 0)
    return bytes == 0 ? 0 : BAD(cap, string_bytes, byte, 0, err, "there are bytes but no strings");
  if (end[rows - 1] != bytes)
    return BAD(cap, strings, end, rows - 1, err, "strings end at byte %llu of %llu",
               (unsigned long long)end[rows - 1], (unsigned long long)bytes);
  for (uint64_t i = 0, start = 0; i < rows; start = end[i++])
    if (end[i] - start > UINT32_MAX)
      return BAD(cap, strings, end, i, err, "a string of more than 4 GiB");
  return 0;
}

/* Parts of images: all kept bytes are some part's, and each part lies in a file that can be. */
static int check_parts(const struct mic_capture *cap, struct mic_error *err) {
  const uint64_t *end = COLUMN(cap, image_parts, end), *offset = COLUMN(cap, image_parts, offset);
  uint64_t rows = ROWS(cap, image_parts), bytes = ROWS(cap, image_bytes);
  if (rows == 0)
    return bytes == 0 ? 0 : BAD(cap, image_bytes, byte, 0, err, "there are bytes but no parts");
  if (end[rows - 1] != bytes)
    return BAD(cap, image_parts, end, rows - 1, err, "parts end at byte %llu of %llu",
               (unsigned long long)end[rows - 1], (unsigned long long)bytes);
  for (uint64_t i = 0, start = 0; i < rows; start = end[i++])
    if (offset[i] > INT64_MAX || end[i] - start > INT64_MAX - offset[i])
      return BAD(cap, image_parts, offset, i, err, "no file reaches that far");
  return 0;
}

/* Ids are u32 and the last value is none. */
static int check_dense(const struct mic_capture *cap, struct mic_error *err) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    if (s->unit == MIC_COLUMN_UNIT_ID && cap->tables[s->target].rows >= MIC_NONE)
      return mic_fail(err, MIC_EFORMAT, "table %s has more rows than ids can count" MIC_MEND,
                      s->ref);
  }
  return 0;
}

static int check_locations(const struct mic_capture *cap, struct mic_error *err) {
  const uint8_t *kind = COLUMN(cap, locations, kind);
  const uint32_t *module = COLUMN(cap, locations, module);
  const uint64_t *offset = COLUMN(cap, locations, offset);
  for (uint64_t i = 0; i < ROWS(cap, locations); i++) {
    bool placed = module[i] != MIC_NONE;
    if (mic_location_in_module(kind[i]) && !placed)
      return BAD(cap, locations, module, i, err, "a native location without a module");
    if ((kind[i] == MIC_LOCATION_ANON || kind[i] == MIC_LOCATION_UNMAPPED) && placed)
      return BAD(cap, locations, module, i, err, "a module for code outside of all modules");
    if (kind[i] == MIC_LOCATION_NAMED && offset[i] >= ROWS(cap, strings))
      return BAD(cap, locations, offset, i, err, "%llu is no row of strings, which has %llu",
                 (unsigned long long)offset[i], (unsigned long long)ROWS(cap, strings));
  }
  return 0;
}

/* Of a location's lines the first has depth 0 and each following one more. */
static int check_lines(const struct mic_capture *cap, struct mic_error *err) {
  const uint32_t *location = COLUMN(cap, lines, location);
  const uint32_t *depth = COLUMN(cap, lines, depth);
  for (uint64_t i = 0; i < ROWS(cap, lines); i++) {
    uint32_t want = i && location[i] == location[i - 1] ? depth[i - 1] + 1 : 0;
    if (depth[i] != want)
      return BAD(cap, lines, depth, i, err, "depth %u where %u is next", depth[i], want);
  }
  return 0;
}

/* A root has neither parent nor location but an end; every other node has both and no end. */
static int check_stacks(const struct mic_capture *cap, struct mic_error *err) {
  const uint32_t *parent = COLUMN(cap, stacks, parent);
  const uint32_t *location = COLUMN(cap, stacks, location);
  const uint8_t *end = COLUMN(cap, stacks, end);
  for (uint64_t i = 0; i < ROWS(cap, stacks); i++) {
    bool root = parent[i] == MIC_NONE;
    if (root != (location[i] == MIC_NONE))
      return BAD(cap, stacks, location, i, err,
                 root ? "a root with a location" : "a frame without a location");
    if (root != (end[i] != MIC_END_NONE))
      return BAD(cap, stacks, end, i, err, root ? "a root without an end" : "a frame with an end");
  }
  return 0;
}

/* What began ends no earlier; UINT64_MAX is none, and no time is less than it. */
static int check_span(const struct mic_capture *cap, uint32_t start, uint32_t end,
                      struct mic_error *err) {
  const uint64_t *from = cap->columns[start].data, *to = cap->columns[end].data;
  uint64_t rows = cap->tables[mic_schema_columns[end].table].rows;
  for (uint64_t i = 0; i < rows; i++)
    if (to[i] < from[i]) return mic_capture_bad_row(cap, end, i, err, "it ends before its start");
  return 0;
}

static int check_mappings(const struct mic_capture *cap, struct mic_error *err) {
  const uint64_t *address = COLUMN(cap, mappings, address), *size = COLUMN(cap, mappings, size);
  for (uint64_t i = 0; i < ROWS(cap, mappings); i++)
    if (size[i] > UINT64_MAX - address[i])
      return BAD(cap, mappings, size, i, err, "it runs past the end of memory");
  return 0;
}

static int check_single(const struct mic_capture *cap, struct mic_error *err) {
  const uint32_t *permille = COLUMN(cap, duty, permille);
  for (uint64_t i = 0; i < ROWS(cap, duty); i++)
    if (permille[i] > 1000) return BAD(cap, duty, permille, i, err, "a share of more than 1000");
  if (ROWS(cap, clocks) > 1)
    return BAD(cap, clocks, monotonic_ns, 1, err, "a capture has one row of clocks");
  return 0;
}

int mic_capture_validate(const struct mic_capture *cap, struct mic_error *err) {
  int code = check_dense(cap, err);
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT && !code; c++)
    if (mic_schema_columns[c].flags & MIC_COL_ASCENDING) code = check_seams(cap, c, err);
  if (!code) code = check_strings(cap, err);
  if (!code) code = check_parts(cap, err);
  if (!code) code = check_locations(cap, err);
  if (!code) code = check_lines(cap, err);
  if (!code) code = check_stacks(cap, err);
  if (!code) code = check_mappings(cap, err);
  if (!code) code = check_single(cap, err);
#define SPAN(table) \
  if (!code) code = check_span(cap, MIC_COLUMN_##table##_start_ns, MIC_COLUMN_##table##_end_ns, err)
  SPAN(processes);
  SPAN(threads);
  SPAN(mappings);
  SPAN(zones);
  SPAN(off_spans);
#undef SPAN
  return code;
}
