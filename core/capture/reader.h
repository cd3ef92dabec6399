/*
 * reader.h - read a capture: opening checks all of it, after that columns are plain arrays.
 *
 * Opening reads the file once into the reader's own memory, checks every checksum, decodes every
 * block and validates every rule of docs/format.md: counts, orders, enum ranges and each id
 * against the table it points into.  Row loops may therefore use ids as indexes unchecked, and
 * a file that is changed or removed later changes nothing.
 *
 * A table that the file does not have is empty.  Tables and columns that this version does not
 * know are skipped.  A column that came with a later minor version than the file's is absent.
 *
 * Owns:    the capture owns all memory; what the functions give is borrowed from it and dies
 *          with mic_capture_close.  Names and docs are static.
 * Fails:   MIC_EFORMAT with the file offset for a damaged file, MIC_EVERSION for a newer major
 *          version, MIC_ELIMIT for more rows than memory, MIC_ENOENT for no such table or column.
 *          On failure *out is NULL and nothing is left open.
 * Threads: an open capture is immutable; share it freely.
 */
#ifndef MIC_CAPTURE_READER_H
#define MIC_CAPTURE_READER_H

#include <stdint.h>

#include "base/error.h"
#include "capture/schema.h"

/* ffi:begin */
struct mic_capture;

struct mic_capture_info {
  uint32_t major; /* the file's format version */
  uint32_t minor;
  uint64_t file_bytes;   /* the file's size */
  uint64_t memory_bytes; /* what its rows take in memory */
  uint32_t tables;       /* tables this version knows */
  uint32_t skipped;      /* tables and columns in the file that it does not */
};

struct mic_column {
  const char *table;
  const char *name;
  const char *ref; /* the table an ID points into or the enum of an ENUM; else "" */
  const char *doc;
  uint32_t width;    /* bytes a row: 1, 2, 4 or 8, unsigned */
  uint32_t unit;     /* enum mic_column_unit */
  uint32_t optional; /* 1: a row of all ones is "none" */
  uint32_t blocks;   /* every column of a table has blocks of the same rows */
  uint64_t rows;
  const void *data;       /* all rows in one piece, aligned to 64 bytes; NULL when there are none */
  const uint64_t *starts; /* blocks + 1 row numbers: where blocks begin, then rows */
};

struct mic_block {
  const void *data;
  uint64_t rows;
  uint64_t row; /* its first row's number */
};

int mic_capture_open(const char *path, struct mic_capture **out, struct mic_error *err);
/* As mic_capture_open over an open regular file, borrowed for the call. */
int mic_capture_open_fd(int32_t fd, struct mic_capture **out, struct mic_error *err);
/* As mic_capture_open over bytes, which are not used after it returns.  memory_limit: rows that
 * take more bytes than this are refused; 0 for three quarters of the machine's memory. */
int mic_capture_open_memory(const void *bytes, uint64_t size, uint64_t memory_limit,
                            struct mic_capture **out, struct mic_error *err);
void mic_capture_close(struct mic_capture *cap); /* NULL is fine */

void mic_capture_info(const struct mic_capture *cap, struct mic_capture_info *out);
/* The name of table 0, 1...; NULL past the last.  In order of dependency. */
const char *mic_capture_table(uint32_t index);
/* What a row of the table is; NULL for no such table. */
const char *mic_capture_table_doc(const char *table);
/* What a table's column 0, 1... is, without any rows, in the order that mic_writer_append takes;
 * MIC_ENOENT past the last. */
int mic_schema_column(const char *table, uint32_t index, struct mic_column *out,
                      struct mic_error *err);
uint64_t mic_capture_rows(const struct mic_capture *cap, const char *table); /* 0 for no such */
/* A table's columns by number, 0 to where it fails with MIC_ENOENT; absent ones are left out. */
int mic_capture_column_at(const struct mic_capture *cap, const char *table, uint32_t index,
                          struct mic_column *out, struct mic_error *err);
int mic_capture_column(const struct mic_capture *cap, const char *table, const char *name,
                       struct mic_column *out, struct mic_error *err);
/* Block index (below column->blocks).  Row loops over samples take a block at a time. */
int mic_capture_block(const struct mic_column *column, uint32_t index, struct mic_block *out);
/* A column in one piece, for a table that is indexed by ids; NULL when it has no rows or is no
 * such column.  *rows gets how many (may be NULL). */
const void *mic_capture_array(const struct mic_capture *cap, const char *table, const char *name,
                              uint64_t *rows);
/* The bytes of a string, not NUL-terminated; NULL for an id that is none. */
const char *mic_capture_string(const struct mic_capture *cap, uint32_t id, uint64_t *size);
/* ffi:end */

#endif
