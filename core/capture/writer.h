/*
 * writer.h - write a capture: append rows, then finish; the file appears whole or not at all.
 *
 * Full blocks of a column are compressed and spilled to the temporary file as they fill, so
 * memory does not grow with the rows of samples.  The same rows in the same order give the
 * same bytes.
 *
 * Owns:    the writer owns its temporary file (PATH.tmp.PID, beside the final name) and what it
 *          was given: rows and strings are copied.
 * Fails:   appends cannot fail; a failed write (disk full) is kept and comes out of finish.
 *          mic_writer_failed tells early.  After a failure nothing is left under the final name
 *          and the temporary file is removed.
 * Threads: one user at a time.
 */
#ifndef MIC_CAPTURE_WRITER_H
#define MIC_CAPTURE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/schema.h"

/* ffi:begin */
struct mic_writer;

int mic_writer_open(const char *path, struct mic_writer **out, struct mic_error *err);
/* The id of a string: the same bytes give the same id.  Any bytes, also NULs. */
uint32_t mic_writer_string(struct mic_writer *w, const char *bytes, uint64_t size);
/* Append rows to a table by its name: columns[i] is an array of `rows` values of the width of
 * the table's i-th column (mic_schema_column), or NULL: none where none is allowed, else 0. */
int mic_writer_append(struct mic_writer *w, const char *table, uint64_t rows,
                      const void *const *columns, struct mic_error *err);
/* How many rows were appended; 0 for no such table. */
uint64_t mic_writer_count(const struct mic_writer *w, const char *table);
/* As mic_writer_finish, for rows that others decided: before the file gets its name it is read
 * back and every rule of docs/format.md is checked.  MIC_EFORMAT names the row at fault. */
int mic_writer_finish_checked(struct mic_writer *w, uint32_t keep_old, struct mic_error *err);
void mic_writer_discard(struct mic_writer *w); /* frees it and leaves no file; NULL is fine */
/* ffi:end */

uint32_t mic_writer_text(struct mic_writer *w, const char *text); /* NUL-terminated; NULL is "" */

/* uint32_t mic_writer_TABLE(w, const struct mic_TABLE_row *row): appends a row, gives its id. */
#define MIC_TABLE_BEGIN(table, doc) \
  uint32_t mic_writer_##table(struct mic_writer *w, const struct mic_##table##_row *row);
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc)
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END

/* The bytes of a string that was given, borrowed until the writer ends; "" for no such id, and in a
 * writer that mic_rewrite_open began, whose strings the capture has. */
const char *mic_writer_bytes_of(const struct mic_writer *w, uint32_t id, uint64_t *size);
uint64_t mic_writer_rows(const struct mic_writer *w, enum mic_table_id table);
uint64_t mic_writer_bytes(const struct mic_writer *w); /* spilled so far, for a live line */
bool mic_writer_failed(const struct mic_writer *w);    /* a write failed: finish will say why */
/* Write what is left, checksum, fsync, rename the old file to PATH.old when keep_old, rename to
 * the final name.  Frees the writer, also when it fails. */
int mic_writer_finish(struct mic_writer *w, bool keep_old, struct mic_error *err);

#endif
