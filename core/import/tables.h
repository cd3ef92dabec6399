/* tables.h - a capture's columns as plain pointers, for writers in C. */
#ifndef MIC_IMPORT_TABLES_H
#define MIC_IMPORT_TABLES_H

#include "base/map.h"
#include "capture/reader.h"

/* struct mic_tables: mic_tables.samples.stack, mic_tables.samples.rows.  A column that the
 * capture does not have is NULL, and so are all of a table without rows. */
struct mic_tables {
#define MIC_TABLE_BEGIN(table, doc) \
  struct {                          \
    uint64_t rows;
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) const mic_##type *name;
#define MIC_TABLE_END(table) \
  }                          \
  table;
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
};

/* clang-format off */
static inline struct mic_tables mic_tables_of(const struct mic_capture *cap) {
  struct mic_tables t;
#define MIC_TABLE_BEGIN(table, doc) t.table.rows = mic_capture_rows(cap, #table);
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) \
  t.table.name = mic_capture_array(cap, #table, #name, NULL);
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
  return t;
}
/* clang-format on */

/* ffi:begin */
/* 1: no two threads have the same names and ids, by which alone some formats tell them apart. */
int mic_tables_threads_differ(const struct mic_capture *cap);
/* ffi:end */

/* The first row of lines of each location, UINT64_MAX for none; lines of one lie together.  The
 * caller frees it. */
uint64_t *mic_tables_first_lines(const struct mic_tables *t);
/* How many rows of lines, from its first on, a location has. */
uint64_t mic_tables_line_count(const struct mic_tables *t, uint64_t first);
/* Where a sample's rows of sample_labels begin, or would. */
uint64_t mic_tables_first_label(const struct mic_tables *t, uint64_t sample);
/* A place in a module by name, "MODULE+0xOFFSET"; the caller frees it. */
char *mic_tables_place_name(const struct mic_capture *cap, const struct mic_tables *t,
                            uint64_t location, size_t *size);
enum { MIC_END_NAME_SIZE = 128 };
/* What a frame is called that stands for the end of a stack, "[depth limit]". */
void mic_tables_end_name(uint8_t end, char out[MIC_END_NAME_SIZE]);

#endif
