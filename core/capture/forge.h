/*
 * forge.h - captures made byte by byte, right or wrong, for the tests and the fuzzer.
 *
 * A forge holds a capture's columns as plain arrays.  A test takes those of a right capture,
 * spoils one thing, and has the bytes written with checksums that agree, so that what is wrong
 * is seen by the check for it.  All blocks are stored raw.
 */
#ifndef MIC_CAPTURE_FORGE_H
#define MIC_CAPTURE_FORGE_H

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/map.h"
#include "capture/format.h"
#include "capture/reader.h"

struct forge {
  struct mic_format_header header;
  uint64_t rows[MIC_TABLE_COUNT];
  uint8_t *data[MIC_COLUMN_COUNT];
  bool no_table[MIC_TABLE_COUNT], no_column[MIC_COLUMN_COUNT];
  bool strange; /* add a table and, to samples, a column that no version has */
  uint32_t block_rows;
  MIC_VEC(uint8_t) out;
  MIC_VEC(uint8_t) directory;
};

static inline void forge_take(struct forge *f, const struct mic_capture *cap) {
  memset(f, 0, sizeof *f);
  f->header = (struct mic_format_header){.major = MIC_FORMAT_MAJOR, .minor = MIC_FORMAT_MINOR};
  f->block_rows = MIC_BLOCK_ROWS;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    const char *table = mic_schema_tables[s->table].name;
    uint64_t rows;
    const void *data = mic_capture_array(cap, table, s->name, &rows);
    f->rows[s->table] = rows;
    f->data[c] = mic_alloc(rows * s->width + 64 * 8); /* room for rows that a test adds */
    if (rows) memcpy(f->data[c], data, rows * s->width);
  }
}

static inline void forge_free(struct forge *f) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) free(f->data[c]);
  mic_vec_free(&f->out);
  mic_vec_free(&f->directory);
}

static inline void forge_set(struct forge *f, uint32_t column, uint64_t row, uint64_t value) {
  uint32_t width = mic_schema_columns[column].width;
  memcpy(f->data[column] + row * width, &value, width);
}

static inline uint64_t forge_get(const struct forge *f, uint32_t column, uint64_t row) {
  uint32_t width = mic_schema_columns[column].width;
  uint64_t value = 0;
  memcpy(&value, f->data[column] + row * width, width);
  return value;
}

/* One more row of zeros; gives its number. */
static inline uint64_t forge_add(struct forge *f, uint32_t table) {
  uint64_t row = f->rows[table]++;
  for (uint32_t c = mic_schema_tables[table].first; c < mic_schema_tables[table].past; c++)
    forge_set(f, c, row, 0);
  return row;
}

#define FORGE_PUT(vec, bytes, size)                                                                \
  (mic_vec_reserve(vec, (vec)->count + (size)), memcpy((vec)->at + (vec)->count, (bytes), (size)), \
   (vec)->count += (size))

static inline void forge_align(struct forge *f) {
  while (f->out.count % MIC_FORMAT_ALIGN) *mic_vec_push(&f->out) = 0;
}

static inline void forge_name(struct forge *f, const char *name) {
  uint8_t size = (uint8_t)strlen(name);
  FORGE_PUT(&f->directory, &size, 1);
  FORGE_PUT(&f->directory, name, size);
}

static inline void forge_column(struct forge *f, const char *name,
                                const struct mic_schema_column *s, const uint8_t *data,
                                uint64_t rows) {
  uint8_t fixed[4] = {s->width, s->unit, s->flags, 0};
  uint32_t blocks = (uint32_t)((rows + f->block_rows - 1) / f->block_rows);
  forge_name(f, name);
  forge_name(f, s->ref);
  FORGE_PUT(&f->directory, fixed, sizeof fixed);
  FORGE_PUT(&f->directory, &blocks, sizeof blocks);
  for (uint64_t row = 0; row < rows; row += f->block_rows) {
    uint32_t part = rows - row < f->block_rows ? (uint32_t)(rows - row) : f->block_rows;
    const uint8_t *at = data + row * s->width;
    forge_align(f);
    struct mic_format_block block = {
      .offset = f->out.count,
      .size = part * s->width,
      .rows = part,
      .checksum = mic_hash(at, (size_t)part * s->width),
    };
    FORGE_PUT(&f->out, at, (size_t)part * s->width);
    FORGE_PUT(&f->directory, &block, sizeof block);
  }
}

static inline void forge_table(struct forge *f, const char *name, uint64_t rows, uint32_t columns) {
  forge_name(f, name);
  FORGE_PUT(&f->directory, &rows, sizeof rows);
  FORGE_PUT(&f->directory, &columns, sizeof columns);
}

static inline void forge_known_table(struct forge *f, uint32_t t) {
  const struct mic_schema_table *s = &mic_schema_tables[t];
  bool more = f->strange && t == MIC_TABLE_samples;
  uint32_t columns = more;
  for (uint32_t c = s->first; c < s->past; c++) columns += !f->no_column[c];
  forge_table(f, s->name, f->rows[t], columns);
  for (uint32_t c = s->first; c < s->past; c++)
    if (!f->no_column[c])
      forge_column(f, mic_schema_columns[c].name, &mic_schema_columns[c], f->data[c], f->rows[t]);
  if (more)
    forge_column(f, "strange", &mic_schema_columns[s->first], f->data[s->first], f->rows[t]);
}

/* Make header and checksums agree with the bytes, as far as they can be followed. */
static inline void forge_seal(uint8_t *bytes, size_t size) {
  struct mic_format_header h;
  if (size < sizeof h) return;
  memcpy(&h, bytes, sizeof h);
  if (h.directory_offset <= size) {
    struct mic_cursor c = mic_cursor(bytes, size);
    mic_cursor_seek(&c, h.directory_offset);
    for (uint32_t tables = mic_cursor_u32(&c); tables && !c.bad; tables--) {
      mic_cursor_take(&c, mic_cursor_u8(&c));
      mic_cursor_u64(&c);
      for (uint32_t columns = mic_cursor_u32(&c); columns && !c.bad; columns--) {
        mic_cursor_take(&c, mic_cursor_u8(&c));
        mic_cursor_take(&c, mic_cursor_u8(&c));
        mic_cursor_take(&c, 4);
        for (uint32_t blocks = mic_cursor_u32(&c); blocks && !c.bad; blocks--) {
          struct mic_format_block b;
          const uint8_t *entry = mic_cursor_take(&c, sizeof b);
          if (!entry) break;
          memcpy(&b, entry, sizeof b);
          if (b.offset <= size && b.size <= size - b.offset)
            b.checksum = mic_hash(bytes + b.offset, b.size);
          memcpy(bytes + (entry - bytes), &b, sizeof b);
        }
      }
    }
    h.directory_size = size - h.directory_offset;
    h.directory_checksum = mic_hash(bytes + h.directory_offset, h.directory_size);
  }
  memcpy(h.magic, MIC_FORMAT_MAGIC, sizeof h.magic);
  h.header_size = sizeof h;
  h.file_size = size;
  h.header_checksum = mic_hash(&h, offsetof(struct mic_format_header, header_checksum));
  memcpy(bytes, &h, sizeof h);
}

/* The bytes: f->out. */
static inline void forge_make(struct forge *f) {
  f->out.count = f->directory.count = 0;
  FORGE_PUT(&f->out, &f->header, sizeof f->header);
  uint32_t tables = f->strange;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) tables += !f->no_table[t];
  FORGE_PUT(&f->directory, &tables, sizeof tables);
  if (f->strange) {
    forge_table(f, "strange", f->rows[MIC_TABLE_samples], 1);
    uint32_t c = MIC_COLUMN_samples_weight;
    forge_column(f, "w", &mic_schema_columns[c], f->data[c], f->rows[MIC_TABLE_samples]);
  }
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++)
    if (!f->no_table[t]) forge_known_table(f, t);
  forge_align(f);
  f->header.directory_offset = f->out.count;
  memcpy(f->out.at, &f->header, sizeof f->header);
  FORGE_PUT(&f->out, f->directory.at, f->directory.count);
  forge_seal(f->out.at, f->out.count);
}

static inline int forge_open(struct forge *f, struct mic_capture **cap, struct mic_error *err) {
  forge_make(f);
  return mic_capture_open_memory(f->out.at, f->out.count, 1 << 30, cap, err);
}

#endif
