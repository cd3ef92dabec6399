/*
 * inside.h - an open capture as the files of the reader share it.
 *
 * reader.c opens and gives access, directory.c reads what the file holds, load.c decodes and
 * checks blocks on a few threads, validate.c checks what needs whole columns.
 */
#ifndef MIC_CAPTURE_INSIDE_H
#define MIC_CAPTURE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "capture/format.h"
#include "capture/schema.h"

#define MIC_MEND "; the file is damaged: record again or copy it again"

struct mic_capture_table {
  bool present;
  uint64_t rows;
  uint32_t blocks;
  uint64_t *starts; /* owned; blocks + 1 rows */
};
struct mic_capture_column {
  bool present;
  void *data;                       /* owned; the table's rows */
  struct mic_format_block *entries; /* owned; the table's blocks, for offsets in messages */
};
struct mic_capture {
  uint16_t major, minor;
  uint64_t file_size;
  uint64_t memory;  /* bytes of all columns */
  uint32_t skipped; /* unknown tables and columns */
  struct mic_capture_table tables[MIC_TABLE_COUNT];
  struct mic_capture_column columns[MIC_COLUMN_COUNT];
};

/* Where bytes come from: a file, or memory when fd is -1. */
struct mic_capture_source {
  int fd;
  const uint8_t *bytes;
  uint64_t size;
};
/* Bytes at an offset, which has been checked against the size: in place, or read into room. */
const uint8_t *mic_capture_read(const struct mic_capture_source *source, uint64_t offset,
                                size_t size, void *room, struct mic_error *err);

/* The directory's bytes, which lie at a file offset. */
int mic_capture_directory(struct mic_capture *cap, const uint8_t *bytes, size_t size,
                          uint64_t offset, struct mic_error *err);
int mic_capture_load(struct mic_capture *cap, const struct mic_capture_source *source,
                     struct mic_error *err);
int mic_capture_validate(const struct mic_capture *cap, struct mic_error *err);

/* The error for a row: names the table, column, row and the offset of its block. */
int mic_capture_bad_row(const struct mic_capture *cap, uint32_t column, uint64_t row,
                        struct mic_error *err, const char *fmt, ...)
  __attribute__((format(printf, 5, 6)));

#endif
