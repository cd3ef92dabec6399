/*
 * directory.c - the directory of a capture: which columns lie where.
 *
 * Checks all that can be known without a block's bytes: names, types and references against
 * the schema, rows against blocks, equal blocks in all columns of a table, and that no two
 * segments share a byte.
 */
#include <string.h>

#include "base/cursor.h"
#include "capture/inside.h"

/* A segment's place, for the check that none overlap. */
struct span {
  uint64_t offset, size;
  uint32_t column; /* MIC_COLUMN_COUNT: of an unknown one */
};
struct reading {
  struct mic_capture *cap;
  struct mic_cursor cursor;
  uint64_t offset; /* of the directory in the file; segments end before it */
  MIC_VEC(struct span) spans;
  struct mic_error *err;
};
struct name {
  char text[MIC_NAME_SIZE + 1];
};

static int fail(struct reading *r, const char *what) {
  return mic_fail_at(r->err, r->offset + mic_cursor_offset(&r->cursor), "directory: %s" MIC_MEND,
                     what);
}

/* Names are lower case, digits and underscores: they stand in messages and in Lua. */
static bool read_name(struct mic_cursor *c, struct name *out) {
  uint8_t size = mic_cursor_u8(c);
  const char *bytes = size <= MIC_NAME_SIZE ? mic_cursor_take(c, size) : NULL;
  memset(out, 0, sizeof *out);
  if (!bytes) return false;
  for (uint8_t i = 0; i < size; i++) {
    char ch = bytes[i];
    if (!((ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_')) return false;
    out->text[i] = ch;
  }
  return true;
}

static uint32_t find_table(const char *name) {
  uint32_t t = 0;
  while (t < MIC_TABLE_COUNT && strcmp(mic_schema_tables[t].name, name) != 0) t++;
  return t;
}

static uint32_t find_column(uint32_t table, const char *name) {
  if (table == MIC_TABLE_COUNT) return MIC_COLUMN_COUNT;
  for (uint32_t c = mic_schema_tables[table].first; c < mic_schema_tables[table].past; c++)
    if (strcmp(mic_schema_columns[c].name, name) == 0) return c;
  return MIC_COLUMN_COUNT;
}

/* One block's entry: inside the segments' part of the file, aligned, of a size its rows can have.
 */
static const char *entry_fault(const struct reading *r, const struct mic_format_block *b,
                               uint32_t width) {
  uint64_t raw = (uint64_t)b->rows * width;
  if (b->rows == 0 || b->rows > MIC_BLOCK_ROWS) return "a block has no rows or too many";
  if (b->offset % MIC_FORMAT_ALIGN || b->offset < sizeof(struct mic_format_header))
    return "a block lies at an offset that no block can have";
  if (b->offset > r->offset || b->size > r->offset - b->offset)
    return "a block runs past the end of the segments";
  if (b->size == 0 || b->size > raw) return "a block's stored size does not fit its rows";
  if (!(b->encoding & MIC_ENCODING_ZSTD) && b->size != raw)
    return "a block's stored size does not fit its rows";
  if (b->reserved || (b->encoding & ~(uint32_t)MIC_ENCODING_KNOWN))
    return "a block has an unknown encoding";
  return NULL;
}

static int column_fail(struct reading *r, const char *table, const char *name, const char *what) {
  uint64_t at = r->offset + mic_cursor_offset(&r->cursor);
  return mic_fail_at(r->err, at, "%s.%s, directory entry at byte %llu: %s" MIC_MEND, table, name,
                     (unsigned long long)at, what);
}

/* Meaning never changes within a major version; DELTA is only a hint. */
static const char *schema_fault(const struct mic_schema_column *s, const uint8_t fixed[4],
                                const char *ref) {
  enum { MEANING = MIC_COL_OPTIONAL | MIC_COL_ASCENDING | MIC_COL_BEFORE };
  if (fixed[0] != s->width) return "its type is not the schema's";
  if (fixed[1] != s->unit || strcmp(ref, s->ref) != 0) return "its unit is not the schema's";
  if ((fixed[2] ^ s->flags) & MEANING) return "its flags are not the schema's";
  return NULL;
}

/* The blocks of a column: every column of a table has the same rows in each. */
static const char *same_blocks(struct mic_capture_table *table,
                               const struct mic_format_block *entries, uint32_t count) {
  if (!table->starts) { /* the first column */
    table->blocks = count;
    table->starts = mic_try_alloc((size_t)count + 1, sizeof *table->starts);
    if (!table->starts) return "there is no memory for its blocks";
    for (uint32_t i = 0; i < count; i++) table->starts[i + 1] = table->starts[i] + entries[i].rows;
  }
  if (count != table->blocks) return "it has other blocks than the table's first column";
  for (uint32_t i = 0; i < count; i++)
    if (entries[i].rows != table->starts[i + 1] - table->starts[i])
      return "its blocks have other rows than those of the table's first column";
  return table->starts[count] == table->rows ? NULL
                                             : "its blocks do not add up to the table's rows";
}

/* What is read of a column before its blocks. */
struct heading {
  struct name name, ref;
  uint8_t fixed[4]; /* width, unit, flags, 0 */
  uint32_t blocks;
};

static bool read_heading(struct mic_cursor *c, struct heading *h) {
  if (!read_name(c, &h->name) || !h->name.text[0] || !read_name(c, &h->ref)) return false;
  const uint8_t *fixed = mic_cursor_take(c, sizeof h->fixed);
  if (fixed) memcpy(h->fixed, fixed, sizeof h->fixed);
  h->blocks = mic_cursor_u32(c);
  return !c->bad && h->blocks <= mic_cursor_left(c) / sizeof(struct mic_format_block);
}

static int keep_column(struct reading *r, struct mic_capture_table *table, uint32_t number,
                       const struct heading *h, const struct mic_format_block *entries) {
  const struct mic_schema_column *schema = &mic_schema_columns[number];
  struct mic_capture_column *column = &r->cap->columns[number];
  const char *name = mic_schema_tables[schema->table].name;
  if (column->present) return column_fail(r, name, schema->name, "it is there twice");
  const char *fault = schema_fault(schema, h->fixed, h->ref.text);
  if (!fault) fault = same_blocks(table, entries, h->blocks);
  if (fault) return column_fail(r, name, schema->name, fault);
  column->present = true;
  column->entries = mic_try_alloc(h->blocks, sizeof *entries);
  if (!column->entries) return mic_fail(r->err, MIC_ELIMIT, "no memory for the directory");
  if (h->blocks) memcpy(column->entries, entries, h->blocks * sizeof *entries);
  return 0;
}

static int read_blocks(struct reading *r, const char *table, const struct heading *h,
                       uint32_t number, struct mic_format_block **out) {
  uint32_t width = h->fixed[0];
  if (width != 1 && width != 2 && width != 4 && width != 8)
    return column_fail(r, table, h->name.text, "its type is none");
  struct mic_format_block *entries = mic_try_alloc(h->blocks, sizeof *entries);
  if (!entries) return mic_fail(r->err, MIC_ELIMIT, "no memory for the directory");
  *out = entries;
  for (uint32_t i = 0; i < h->blocks; i++) {
    const void *from = mic_cursor_take(&r->cursor, sizeof *entries);
    if (!from) return fail(r, "it ends within a column's blocks");
    memcpy(&entries[i], from, sizeof *entries);
    const char *fault = entry_fault(r, &entries[i], width);
    if (fault) return column_fail(r, table, h->name.text, fault);
    *mic_vec_push(&r->spans) = (struct span){entries[i].offset, entries[i].size, number};
  }
  return 0;
}

static int read_column(struct reading *r, uint32_t t, const char *table) {
  struct heading h;
  struct mic_format_block *entries = NULL;
  if (!read_heading(&r->cursor, &h)) return fail(r, "a column's entry is malformed");
  uint32_t number = find_column(t, h.name.text);
  int code = read_blocks(r, table, &h, number, &entries);
  if (!code && number == MIC_COLUMN_COUNT) {
    r->cap->skipped += t != MIC_TABLE_COUNT;
  } else if (!code && entries) {
    code = keep_column(r, &r->cap->tables[t], number, &h, entries);
  }
  free(entries);
  return code;
}

/* Columns that the file's version has must be there; later ones may be absent. */
static int check_columns(struct reading *r, uint32_t t) {
  for (uint32_t c = mic_schema_tables[t].first; c < mic_schema_tables[t].past; c++)
    if (!r->cap->columns[c].present && mic_schema_columns[c].since <= r->cap->minor)
      return column_fail(r, mic_schema_tables[t].name, mic_schema_columns[c].name,
                         "the column is missing");
  return 0;
}

static int read_table(struct reading *r) {
  struct name name;
  if (!read_name(&r->cursor, &name) || !name.text[0]) return fail(r, "a table's name is malformed");
  uint64_t rows = mic_cursor_u64(&r->cursor);
  uint32_t columns = mic_cursor_u32(&r->cursor);
  if (r->cursor.bad) return fail(r, "it ends within a table's entry");
  uint32_t t = find_table(name.text);
  if (t == MIC_TABLE_COUNT) {
    r->cap->skipped++;
  } else if (r->cap->tables[t].present) {
    return mic_fail_at(r->err, r->offset, "directory: table %s is there twice" MIC_MEND, name.text);
  } else {
    r->cap->tables[t].present = true;
    r->cap->tables[t].rows = rows;
  }
  for (uint32_t i = 0; i < columns; i++) {
    int code = read_column(r, t, name.text);
    if (code) return code;
  }
  return t == MIC_TABLE_COUNT ? 0 : check_columns(r, t);
}

static int by_offset(const void *left, const void *right) {
  const struct span *a = left, *b = right;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int check_spans(struct reading *r) {
  if (r->spans.count) qsort(r->spans.at, r->spans.count, sizeof *r->spans.at, by_offset);
  for (size_t i = 1; i < r->spans.count; i++) {
    const struct span *a = &r->spans.at[i - 1], *b = &r->spans.at[i];
    if (a->offset + a->size <= b->offset) continue;
    uint32_t known = b->column < MIC_COLUMN_COUNT ? b->column : a->column;
    bool named = known < MIC_COLUMN_COUNT;
    const struct mic_schema_column *column = &mic_schema_columns[named ? known : 0];
    return mic_fail_at(r->err, b->offset, "%s.%s, block at byte %llu: overlaps another" MIC_MEND,
                       named ? mic_schema_tables[column->table].name : "?",
                       named ? column->name : "?", (unsigned long long)b->offset);
  }
  return 0;
}

int mic_capture_directory(struct mic_capture *cap, const uint8_t *bytes, size_t size,
                          uint64_t offset, struct mic_error *err) {
  struct reading r = {.cap = cap, .cursor = mic_cursor(bytes, size), .offset = offset, .err = err};
  uint32_t tables = mic_cursor_u32(&r.cursor);
  int code = r.cursor.bad ? fail(&r, "it is empty") : 0;
  for (uint32_t i = 0; i < tables && !code; i++) code = read_table(&r);
  if (!code && mic_cursor_left(&r.cursor)) code = fail(&r, "something follows the last table");
  if (!code) code = check_spans(&r);
  mic_vec_free(&r.spans);
  return code;
}
