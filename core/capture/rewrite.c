/* rewrite.c - begin a capture with the blocks of another. */
#include "capture/rewrite.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "capture/inside.h"
#include "capture/writing.h"

#define UNKNOWN_COLUMN \
  "the capture's table %s has a column %s that this microscope does not know: use a newer one"
#define MISSING_COLUMN                                                                            \
  "the capture's table %s is of an older version without the column %s: no rows can be added to " \
  "it"

struct base_column {
  char name[MIC_NAME_SIZE + 1], ref[MIC_NAME_SIZE + 1];
  uint8_t fixed[4];
  uint32_t number; /* MIC_COLUMN_COUNT: not known here */
  MIC_VEC(struct mic_format_block) blocks;
};
struct base_table {
  char name[MIC_NAME_SIZE + 1];
  uint64_t rows;
  uint32_t number; /* MIC_TABLE_COUNT: not known here */
  bool replaced;
  MIC_VEC(struct base_column) columns;
};
struct mic_base {
  uint16_t minor;
  MIC_VEC(struct base_table) tables;
};

void mic_base_free(struct mic_base *base) {
  if (!base) return;
  for (size_t t = 0; t < base->tables.count; t++) {
    struct base_table *table = &base->tables.at[t];
    for (size_t c = 0; c < table->columns.count; c++) mic_vec_free(&table->columns.at[c].blocks);
    mic_vec_free(&table->columns);
  }
  mic_vec_free(&base->tables);
  free(base);
}

uint16_t mic_base_minor(const struct mic_base *base) { return base->minor; }

static bool read_name(struct mic_cursor *c, char *out) {
  uint8_t size = mic_cursor_u8(c);
  const void *bytes = size <= MIC_NAME_SIZE ? mic_cursor_take(c, size) : NULL;
  memset(out, 0, MIC_NAME_SIZE + 1);
  if (bytes) memcpy(out, bytes, size);
  return bytes || (!c->bad && size == 0);
}

static uint32_t column_number(uint32_t table, const char *name) {
  if (table == MIC_TABLE_COUNT) return MIC_COLUMN_COUNT;
  for (uint32_t c = mic_schema_tables[table].first; c < mic_schema_tables[table].past; c++)
    if (strcmp(mic_schema_columns[c].name, name) == 0) return c;
  return MIC_COLUMN_COUNT;
}

static bool read_column(struct mic_cursor *c, uint32_t table, struct base_column *column) {
  if (!read_name(c, column->name) || !read_name(c, column->ref)) return false;
  const uint8_t *fixed = mic_cursor_take(c, sizeof column->fixed);
  uint32_t blocks = mic_cursor_u32(c);
  if (!fixed || blocks > mic_cursor_left(c) / sizeof(struct mic_format_block)) return false;
  memcpy(column->fixed, fixed, sizeof column->fixed);
  column->number = column_number(table, column->name);
  for (uint32_t i = 0; i < blocks; i++) {
    const void *block = mic_cursor_take(c, sizeof(struct mic_format_block));
    if (!block) return false;
    memcpy(mic_vec_push(&column->blocks), block, sizeof(struct mic_format_block));
  }
  return true;
}

static bool read_table(struct mic_cursor *c, struct base_table *table) {
  if (!read_name(c, table->name)) return false;
  table->rows = mic_cursor_u64(c);
  uint32_t columns = mic_cursor_u32(c);
  table->number = 0;
  while (table->number < MIC_TABLE_COUNT &&
         strcmp(mic_schema_tables[table->number].name, table->name) != 0)
    table->number++;
  for (uint32_t i = 0; i < columns && !c->bad; i++) {
    struct base_column *column = mic_vec_push(&table->columns);
    memset(column, 0, sizeof *column);
    if (!read_column(c, table->number, column)) return false;
  }
  return !c->bad;
}

/* The directory has been checked when the capture was opened; that it is still the same shows in
 * its checksum. */
static int read_base(const struct mic_rewrite *rewrite, struct mic_base *base,
                     struct mic_error *err) {
  struct mic_format_header header;
  if (pread(rewrite->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
      header.directory_size > rewrite->capture->file_size)
    return mic_fail(err, MIC_EFORMAT, "the capture changed while it was read");
  base->minor = header.minor;
  uint8_t *bytes = mic_try_alloc(1, header.directory_size);
  if (!bytes) return mic_fail(err, MIC_ELIMIT, "no memory for the directory");
  bool ok = pread(rewrite->fd, bytes, header.directory_size, (off_t)header.directory_offset) ==
              (ssize_t)header.directory_size &&
            mic_hash(bytes, header.directory_size) == header.directory_checksum;
  struct mic_cursor c = mic_cursor(bytes, ok ? header.directory_size : 0);
  uint32_t tables = mic_cursor_u32(&c);
  for (uint32_t t = 0; ok && t < tables; t++) {
    struct base_table *table = mic_vec_push(&base->tables);
    memset(table, 0, sizeof *table);
    ok = read_table(&c, table);
  }
  free(bytes);
  return ok ? MIC_OK : mic_fail(err, MIC_EFORMAT, "the capture changed while it was read");
}

static int mark_replaced(const struct mic_rewrite *rewrite, struct mic_base *base,
                         struct mic_error *err) {
  for (size_t t = 0; t < base->tables.count; t++) {
    struct base_table *table = &base->tables.at[t];
    for (uint32_t i = 0; i < rewrite->replaced_count; i++)
      table->replaced |= table->number == rewrite->replaced[i];
    for (size_t c = 0; table->replaced && c < table->columns.count; c++)
      if (table->columns.at[c].number == MIC_COLUMN_COUNT)
        return mic_fail(err, MIC_EVERSION, UNKNOWN_COLUMN, table->name, table->columns.at[c].name);
  }
  return MIC_OK;
}

static int copy_block(struct mic_writer *w, int fd, struct mic_format_block *block, uint8_t *room,
                      struct mic_error *err) {
  if (block->size > MIC_BLOCK_BYTES ||
      pread(fd, room, block->size, (off_t)block->offset) != (ssize_t)block->size ||
      mic_hash(room, block->size) != block->checksum)
    return mic_fail_at(err, block->offset, "the capture changed while it was read");
  mic_writer_align(w);
  block->offset = w->at;
  mic_writer_put(w, room, block->size);
  return MIC_OK;
}

static int copy_table(const struct mic_rewrite *rewrite, struct mic_writer *w,
                      struct base_table *table, uint8_t *room, struct mic_error *err) {
  for (size_t c = 0; c < table->columns.count; c++) {
    struct base_column *column = &table->columns.at[c];
    for (size_t b = 0; b < column->blocks.count; b++) {
      if (rewrite->cancel && atomic_load(rewrite->cancel))
        return mic_fail(err, MIC_ESTATE, "interrupted");
      int code = copy_block(w, rewrite->fd, &column->blocks.at[b], room, err);
      if (code != MIC_OK) return code;
      if (w->failure.code) {
        *err = w->failure;
        return err->code;
      }
    }
  }
  if (table->number < MIC_TABLE_COUNT) w->tables[table->number].rows = table->rows;
  return MIC_OK;
}

/* Strings keep their ids; new ones follow. */
static void take_strings(const struct mic_rewrite *rewrite, struct mic_writer *w) {
  uint64_t rows = mic_capture_rows(rewrite->capture, "strings");
  if (rows == 0) { /* the writer's own first string stays */
    *mic_vec_push(&w->string_rows) = 0;
    return;
  }
  mic_interner_free(&w->strings);
  w->tables[MIC_TABLE_strings] = w->tables[MIC_TABLE_string_bytes] =
    (struct mic_writer_table){.rows = 0};
  for (uint32_t i = 0; i < rows; i++) {
    uint64_t size;
    const char *bytes = mic_capture_string(rewrite->capture, i, &size);
    size_t known = w->strings.strings.count;
    if (mic_intern(&w->strings, bytes, size) == known) *mic_vec_push(&w->string_rows) = i;
  }
}

static int fill(const struct mic_rewrite *rewrite, struct mic_writer *w, struct mic_error *err) {
  int code = read_base(rewrite, w->base, err);
  if (code == MIC_OK) code = mark_replaced(rewrite, w->base, err);
  if (code != MIC_OK) return code;
  take_strings(rewrite, w);
  uint8_t *room = mic_alloc(MIC_BLOCK_BYTES);
  for (size_t t = 0; t < w->base->tables.count && code == MIC_OK; t++)
    if (!w->base->tables.at[t].replaced)
      code = copy_table(rewrite, w, &w->base->tables.at[t], room, err);
  free(room);
  return code;
}

/* Who may read the capture may read its successor. */
static void keep_access(const struct mic_rewrite *rewrite, const struct mic_writer *w) {
  struct stat st;
  if (fstat(rewrite->fd, &st) != 0) return;
  /* Only root can give a file away; whoever cannot, has it. */
  if (fchown(w->file.fd, st.st_uid, st.st_gid) == 0 || st.st_uid == geteuid())
    fchmod(w->file.fd, st.st_mode & 0777);
}

int mic_rewrite_open(const struct mic_rewrite *rewrite, const char *path, struct mic_writer **out,
                     struct mic_error *err) {
  struct mic_error unseen = {0};
  if (!err) err = &unseen;
  int code = mic_writer_open(path, out, err);
  if (code != MIC_OK) return code;
  struct mic_writer *w = *out;
  w->base = mic_alloc(sizeof *w->base);
  keep_access(rewrite, w);
  code = fill(rewrite, w, err);
  if (code == MIC_OK) return MIC_OK;
  mic_writer_discard(w);
  *out = NULL;
  return code;
}

static bool has_column(const struct base_table *table, uint32_t number) {
  for (size_t c = 0; c < table->columns.count; c++)
    if (table->columns.at[c].number == number) return true;
  return false;
}

/* Rows can be added to a table only where it has the columns that they have. */
static void check_columns(struct mic_writer *w, const struct base_table *table) {
  const struct mic_schema_table *schema = &mic_schema_tables[table->number];
  for (size_t c = 0; c < table->columns.count; c++)
    if (table->columns.at[c].number == MIC_COLUMN_COUNT)
      mic_fail(&w->failure, MIC_EVERSION, UNKNOWN_COLUMN, table->name, table->columns.at[c].name);
  for (uint32_t c = schema->first; c < schema->past && !w->failure.code; c++)
    if (!has_column(table, c))
      mic_fail(&w->failure, MIC_EVERSION, MISSING_COLUMN, table->name, mic_schema_columns[c].name);
}

void mic_base_check(struct mic_writer *w) {
  for (size_t t = 0; t < w->base->tables.count && !w->failure.code; t++) {
    const struct base_table *table = &w->base->tables.at[t];
    if (!table->replaced && table->number < MIC_TABLE_COUNT &&
        w->tables[table->number].rows != table->rows)
      check_columns(w, table);
  }
}

static void add_column(const struct mic_writer *w, const struct base_column *column,
                       mic_bytes *out) {
  const struct mic_format_block *added = NULL;
  uint32_t added_count = 0, count = (uint32_t)column->blocks.count;
  if (column->number < MIC_COLUMN_COUNT) {
    added = w->columns[column->number].blocks.at;
    added_count = (uint32_t)w->columns[column->number].blocks.count;
  }
  uint32_t blocks = count + added_count;
  mic_bytes_name(out, column->name);
  mic_bytes_name(out, column->ref);
  mic_bytes_add(out, column->fixed, sizeof column->fixed);
  mic_bytes_add(out, &blocks, sizeof blocks);
  mic_bytes_add(out, column->blocks.at, count * sizeof *added);
  mic_bytes_add(out, added, added_count * sizeof *added);
}

static void add_table(const struct mic_writer *w, const struct base_table *table, mic_bytes *out) {
  uint32_t columns = (uint32_t)table->columns.count;
  uint64_t rows = table->number < MIC_TABLE_COUNT ? w->tables[table->number].rows : table->rows;
  mic_bytes_name(out, table->name);
  mic_bytes_add(out, &rows, sizeof rows);
  mic_bytes_add(out, &columns, sizeof columns);
  for (size_t c = 0; c < table->columns.count; c++) add_column(w, &table->columns.at[c], out);
}

void mic_base_directory(const struct mic_writer *w, mic_bytes *out) {
  bool there[MIC_TABLE_COUNT] = {false};
  uint32_t tables = 0;
  mic_bytes_add(out, &tables, sizeof tables);
  for (size_t t = 0; t < w->base->tables.count; t++, tables++) {
    const struct base_table *table = &w->base->tables.at[t];
    if (table->number < MIC_TABLE_COUNT) there[table->number] = true;
    if (table->replaced)
      mic_writer_entry(w, table->number, out);
    else
      add_table(w, table, out);
  }
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) {
    if (there[t]) continue;
    mic_writer_entry(w, t, out);
    tables++;
  }
  memcpy(out->at, &tables, sizeof tables);
}
