/* tables.h - a capture's columns as plain pointers, for writers in C. */
#ifndef MIC_IMPORT_TABLES_H
#define MIC_IMPORT_TABLES_H

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

#endif
