/*
 * writer.c - rows to columns to blocks to a file that appears whole.
 *
 * A table's columns fill together.  When they hold a block each, the blocks are encoded and
 * written, and the same memory is filled again.  Segments therefore lie in the file in the
 * order in which blocks filled, and the directory at the end says where.
 */
#include "capture/writer.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/publish.h"
#include "capture/block.h"
#include "capture/format.h"
#include "capture/inside.h"
#include "capture/reader.h"
#include "capture/rewrite.h"
#include "capture/writing.h"

enum {
  FIRST_ROOM = 64,     /* rows; most tables of most captures stay small */
  OUTPUT = 256 * 1024, /* bytes gathered for one write */
  /* A capture tells of others' programs, their paths and arguments; perf's files are so too. */
  OWNER_ONLY = 0600
};

/* Keep the first failure; the space that a half file takes is given back at once. */
static void fail(struct mic_writer *w, const char *doing) {
  if (w->failure.code) return;
  int sys = errno;
  mic_publish_remove(&w->file);
  if (ftruncate(w->file.fd, 0) != 0) errno = 0; /* it goes with the descriptor in any case */
  errno = sys;
  const char *mend =
    sys == ENOSPC || sys == EDQUOT ? " (free some space or choose another place)" : "";
  mic_fail_sys(&w->failure, "%s %.150s%s", doing, w->file.path, mend);
}

static void drain(struct mic_writer *w) {
  const uint8_t *at = w->output;
  while (w->pending && !w->failure.code) {
    ssize_t done = write(w->file.fd, at, w->pending);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      fail(w, "writing");
      break;
    }
    at += done;
    w->pending -= (size_t)done;
  }
  w->pending = 0;
}

void mic_writer_put(struct mic_writer *w, const void *bytes, size_t size) {
  const uint8_t *from = bytes;
  w->at += size;
  while (size) {
    size_t part = OUTPUT - w->pending < size ? OUTPUT - w->pending : size;
    memcpy(w->output + w->pending, from, part);
    w->pending += part;
    from += part;
    size -= part;
    if (w->pending == OUTPUT) drain(w);
  }
}

void mic_writer_align(struct mic_writer *w) {
  static const uint8_t zeros[MIC_FORMAT_ALIGN];
  mic_writer_put(w, zeros, (size_t)(-w->at % MIC_FORMAT_ALIGN));
}

/* The steps are chosen anew at blocks 0, 1, 2, 4, 8...: a recording's start is unlike the rest,
 * and to try all at every block would cost four times the compressing. */
static void put_block(struct mic_writer *w, struct mic_writer_column *column, uint32_t rows,
                      uint32_t width) {
  size_t number = column->blocks.count;
  if ((number & (number - 1)) == 0)
    column->steps = mic_encode_choose(w->encoder, column->rows, rows, width);
  struct mic_encoded got = mic_encode(w->encoder, column->rows, rows, width, column->steps);
  mic_writer_align(w);
  *mic_vec_push(&column->blocks) = (struct mic_format_block){
    .offset = w->at,
    .size = got.size,
    .rows = rows,
    .checksum = mic_hash(got.bytes, got.size),
    .encoding = got.encoding,
  };
  mic_writer_put(w, got.bytes, got.size);
}

static void flush(struct mic_writer *w, uint32_t number) {
  const struct mic_schema_table *schema = &mic_schema_tables[number];
  struct mic_writer_table *table = &w->tables[number];
  if (table->fill && !w->failure.code)
    for (uint32_t c = schema->first; c < schema->past; c++)
      put_block(w, &w->columns[c], table->fill, mic_schema_columns[c].width);
  table->fill = 0;
}

/* Called when a table's memory is full: more of it, or its rows to the file. */
static void make_room(struct mic_writer *w, uint32_t number) {
  const struct mic_schema_table *schema = &mic_schema_tables[number];
  struct mic_writer_table *table = &w->tables[number];
  if (table->room == MIC_BLOCK_ROWS) {
    flush(w, number);
    return;
  }
  table->room = table->room ? table->room * 4 : FIRST_ROOM;
  if (table->room > MIC_BLOCK_ROWS) table->room = MIC_BLOCK_ROWS;
  for (uint32_t c = schema->first; c < schema->past; c++)
    w->columns[c].rows =
      mic_realloc(w->columns[c].rows, (size_t)table->room * mic_schema_columns[c].width);
}

/* append_TABLE: one store a column. */
#define MIC_TABLE_BEGIN(name, doc)                                                          \
  static uint32_t append_##name(struct mic_writer *w, const struct mic_##name##_row *row) { \
    struct mic_writer_table *table = &w->tables[MIC_TABLE_##name];                          \
    if (table->fill == table->room) make_room(w, MIC_TABLE_##name);                         \
    uint32_t at = table->fill++;
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) \
  ((mic_##type *)(void *)w->columns[MIC_COLUMN_##table##_##name].rows)[at] = row->name;
#define MIC_TABLE_END(name)       \
  return (uint32_t)table->rows++; \
  }
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END

static bool is_strings(uint32_t table) {
  return table == MIC_TABLE_strings || table == MIC_TABLE_string_bytes;
}

/* The tables of strings are the interner's alone: other rows in them would break its ids. */
static uint32_t refuse(struct mic_writer *w) {
  if (!w->failure.code)
    mic_fail(&w->failure, MIC_ESTATE, "strings are added with mic_writer_string, not as rows");
  return MIC_NONE;
}

#define MIC_TABLE_BEGIN(name, doc)                                                       \
  uint32_t mic_writer_##name(struct mic_writer *w, const struct mic_##name##_row *row) { \
    return is_strings(MIC_TABLE_##name) ? refuse(w) : append_##name(w, row);             \
  }
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc)
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END

static uint32_t table_of(const char *name) {
  uint32_t t = 0;
  while (t < MIC_TABLE_COUNT && strcmp(mic_schema_tables[t].name, name) != 0) t++;
  return t;
}

/* Into the columns' memory, which has room; NULL: what stands for nothing. */
static void copy_rows(struct mic_writer *w, uint32_t number, const void *from, uint64_t done,
                      uint32_t rows) {
  const struct mic_schema_column *s = &mic_schema_columns[number];
  uint8_t *to = w->columns[number].rows + (size_t)w->tables[s->table].fill * s->width;
  if (from)
    memcpy(to, (const uint8_t *)from + done * s->width, (size_t)rows * s->width);
  else
    memset(to, s->flags & MIC_COL_OPTIONAL ? 0xff : 0, (size_t)rows * s->width);
}

MIC_EXPORT int mic_writer_append(struct mic_writer *w, const char *table, uint64_t rows,
                                 const void *const *columns, struct mic_error *err) {
  uint32_t number = table_of(table);
  if (number == MIC_TABLE_COUNT) return mic_fail(err, MIC_ENOENT, "there is no table %.60s", table);
  if (is_strings(number))
    return mic_fail(err, MIC_EARG, "strings are added one by one, not as rows of %s", table);
  const struct mic_schema_table *schema = &mic_schema_tables[number];
  struct mic_writer_table *t = &w->tables[number];
  for (uint64_t done = 0; done < rows;) {
    if (t->fill == t->room) make_room(w, number);
    uint32_t room = t->room - t->fill;
    uint32_t part = rows - done < room ? (uint32_t)(rows - done) : room;
    for (uint32_t c = schema->first; c < schema->past; c++)
      copy_rows(w, c, columns[c - schema->first], done, part);
    t->fill += part;
    t->rows += part;
    done += part;
  }
  return 0;
}

MIC_EXPORT uint64_t mic_writer_count(const struct mic_writer *w, const char *table) {
  uint32_t number = table_of(table);
  return number < MIC_TABLE_COUNT ? w->tables[number].rows : 0;
}

MIC_EXPORT uint32_t mic_writer_string(struct mic_writer *w, const char *bytes, uint64_t size) {
  uint64_t known = w->strings.strings.count;
  uint32_t id = mic_intern(&w->strings, bytes, size);
  if (id < known) return w->base ? w->string_rows.at[id] : id;
  for (size_t i = 0; i < size; i++)
    append_string_bytes(w, &(struct mic_string_bytes_row){(uint8_t)bytes[i]});
  uint32_t row =
    append_strings(w, &(struct mic_strings_row){.end = w->tables[MIC_TABLE_string_bytes].rows});
  if (w->base) *mic_vec_push(&w->string_rows) = row;
  return row;
}

uint32_t mic_writer_text(struct mic_writer *w, const char *text) {
  return mic_writer_string(w, text ? text : "", text ? strlen(text) : 0);
}

const char *mic_writer_bytes_of(const struct mic_writer *w, uint32_t id, uint64_t *size) {
  bool known = !w->base && id < w->strings.strings.count;
  struct mic_string s = known ? mic_interner_at(&w->strings, id) : (struct mic_string){"", 0};
  *size = s.size;
  return s.bytes;
}
uint64_t mic_writer_rows(const struct mic_writer *w, enum mic_table_id table) {
  return w->tables[table].rows;
}
uint64_t mic_writer_bytes(const struct mic_writer *w) { return w->at; }
bool mic_writer_failed(const struct mic_writer *w) { return w->failure.code != 0; }

/* All that appending rows needs. */
static void release_rows(struct mic_writer *w) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    free(w->columns[c].rows);
    w->columns[c].rows = NULL;
    mic_vec_free(&w->columns[c].blocks);
  }
  mic_interner_free(&w->strings);
  mic_vec_free(&w->string_rows);
  mic_base_free(w->base);
  w->base = NULL;
  mic_encoder_free(w->encoder);
  w->encoder = NULL;
  free(w->output);
  w->output = NULL;
}

static void release(struct mic_writer *w) {
  release_rows(w);
  mic_publish_close(&w->file);
  free(w);
}

MIC_EXPORT int mic_writer_open(const char *path, struct mic_writer **out, struct mic_error *err) {
  struct mic_writer *w = mic_alloc(sizeof *w);
  *out = NULL;
  int code = mic_publish_open(&w->file, path, OWNER_ONLY, err);
  if (code) {
    free(w);
    return code;
  }
  w->output = mic_alloc(OUTPUT);
  w->encoder = mic_encoder_new();
  mic_writer_put(w, &(struct mic_format_header){.major = 0}, sizeof(struct mic_format_header));
  mic_writer_string(w, "", 0); /* string 0: what is not known is the empty string in most rows */
  *out = w;
  return 0;
}

MIC_EXPORT void mic_writer_discard(struct mic_writer *w) {
  if (w) release(w);
}

static void add_directory(mic_bytes *b, const struct mic_writer *w) {
  uint32_t tables = MIC_TABLE_COUNT;
  mic_bytes_add(b, &tables, sizeof tables);
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) mic_writer_entry(w, t, b);
}

/* Ids are u32 with the last value for none, so no table that ids point into may be longer. */
static void check_rows(struct mic_writer *w) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *column = &mic_schema_columns[c];
    if (column->unit == MIC_COLUMN_UNIT_ID && w->tables[column->target].rows >= MIC_NONE &&
        !w->failure.code)
      mic_fail(&w->failure, MIC_ELIMIT, "more than 4,294,967,294 rows in table %s", column->ref);
  }
}

static void put_header(struct mic_writer *w, uint64_t directory, const mic_bytes *bytes) {
  struct mic_format_header header = {
    .major = MIC_FORMAT_MAJOR,
    .minor = w->base ? mic_base_minor(w->base) : MIC_FORMAT_MINOR,
    .header_size = sizeof header,
    .file_size = w->at,
    .directory_offset = directory,
    .directory_size = bytes->count,
    .directory_checksum = mic_hash(bytes->at, bytes->count),
  };
  memcpy(header.magic, MIC_FORMAT_MAGIC, sizeof header.magic);
  header.header_checksum = mic_hash(&header, offsetof(struct mic_format_header, header_checksum));
  drain(w);
  if (!w->failure.code && pwrite(w->file.fd, &header, sizeof header, 0) != sizeof header)
    fail(w, "writing");
}

static void put_rest(struct mic_writer *w) {
  mic_bytes directory = {0};
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) flush(w, t);
  check_rows(w);
  if (w->base) mic_base_check(w);
  mic_writer_align(w);
  uint64_t offset = w->at;
  if (w->base)
    mic_base_directory(w, &directory);
  else
    add_directory(&directory, w);
  mic_writer_put(w, directory.at, directory.count);
  put_header(w, offset, &directory);
  mic_vec_free(&directory);
}

/* The file as readers will see it.  What is wrong was given so, it is not damaged. */
static void check_written(struct mic_writer *w) {
  struct mic_capture *cap;
  struct mic_error err = {0};
  if (w->failure.code) return;
  /* What was needed to write makes room for what is read. */
  release_rows(w);
  malloc_trim(0);
  if (mic_capture_open(w->file.temp, &cap, &err) == 0) {
    mic_capture_close(cap);
    return;
  }
  char *mend = strstr(err.msg, MIC_MEND);
  if (mend) *mend = 0;
  mic_fail(&w->failure, err.code, "the rows make no valid capture: %.190s", err.msg);
}

static int finish(struct mic_writer *w, bool check, bool keep_old, struct mic_error *err) {
  if (!w->failure.code) put_rest(w);
  if (check) check_written(w);
  if (!w->failure.code) mic_publish_finish(&w->file, keep_old, &w->failure);
  int code = w->failure.code;
  if (code && err) *err = w->failure;
  release(w);
  return code;
}

int mic_writer_finish(struct mic_writer *w, bool keep_old, struct mic_error *err) {
  return finish(w, false, keep_old, err);
}

MIC_EXPORT int mic_writer_finish_checked(struct mic_writer *w, uint32_t keep_old,
                                         struct mic_error *err) {
  return finish(w, true, keep_old != 0, err);
}
