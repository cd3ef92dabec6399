/*
 * writing.h - an unfinished capture as the files of the writer share it.
 *
 * writer.c appends rows and makes the file appear whole, entry.c makes the directory's entries,
 * rewrite.c begins a capture with what another one holds.
 */
#ifndef MIC_CAPTURE_WRITING_H
#define MIC_CAPTURE_WRITING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/publish.h"
#include "capture/format.h"
#include "capture/schema.h"

struct mic_writer_column {
  uint8_t *rows; /* the table's room of them */
  uint32_t steps;
  MIC_VEC(struct mic_format_block) blocks;
};
struct mic_writer_table {
  uint64_t rows;       /* in all, those of the base too */
  uint32_t fill, room; /* rows in the columns' memory */
};

struct mic_base; /* rewrite.c */

struct mic_writer {
  struct mic_publish file;
  uint64_t at; /* bytes put, also those still in output */
  uint8_t *output;
  size_t pending;
  struct mic_error failure; /* the first; code 0: none */
  struct mic_encoder *encoder;
  struct mic_interner strings;
  struct mic_writer_table tables[MIC_TABLE_COUNT];
  struct mic_writer_column columns[MIC_COLUMN_COUNT];
  struct mic_base *base; /* what it began with; NULL: nothing */
  /* With a base, the row of each interned string: a capture of others may hold one twice. */
  MIC_VEC(uint32_t) string_rows;
};

void mic_writer_put(struct mic_writer *w, const void *bytes, size_t size);
void mic_writer_align(struct mic_writer *w);

/* A directory, gathered before it is put: its checksum and size go into the header. */
typedef MIC_VEC(uint8_t) mic_bytes;
void mic_bytes_add(mic_bytes *bytes, const void *from, size_t size);
void mic_bytes_name(mic_bytes *bytes, const char *name);
/* The entry of a table whose rows are all the writer's own. */
void mic_writer_entry(const struct mic_writer *w, uint32_t table, mic_bytes *out);

/* Rows were appended to known tables only: else a failure of the writer. */
void mic_base_check(struct mic_writer *w);
/* The directory of a capture that began with another's blocks. */
void mic_base_directory(const struct mic_writer *w, mic_bytes *out);
uint16_t mic_base_minor(const struct mic_base *base);
void mic_base_free(struct mic_base *base); /* NULL is fine */

#endif
