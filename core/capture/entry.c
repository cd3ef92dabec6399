/* entry.c - entries of a capture's directory. */
#include <string.h>

#include "capture/writing.h"

void mic_bytes_add(mic_bytes *bytes, const void *from, size_t size) {
  mic_vec_reserve(bytes, bytes->count + size);
  if (size) memcpy(bytes->at + bytes->count, from, size);
  bytes->count += size;
}

void mic_bytes_name(mic_bytes *bytes, const char *name) {
  uint8_t size = (uint8_t)strlen(name);
  mic_bytes_add(bytes, &size, 1);
  mic_bytes_add(bytes, name, size);
}

static void add_column(mic_bytes *b, const struct mic_writer *w, uint32_t number) {
  const struct mic_schema_column *schema = &mic_schema_columns[number];
  const struct mic_writer_column *column = &w->columns[number];
  uint8_t fixed[4] = {schema->width, schema->unit, schema->flags, 0};
  uint32_t blocks = (uint32_t)column->blocks.count;
  mic_bytes_name(b, schema->name);
  mic_bytes_name(b, schema->ref);
  mic_bytes_add(b, fixed, sizeof fixed);
  mic_bytes_add(b, &blocks, sizeof blocks);
  mic_bytes_add(b, column->blocks.at, blocks * sizeof(struct mic_format_block));
}

void mic_writer_entry(const struct mic_writer *w, uint32_t table, mic_bytes *out) {
  const struct mic_schema_table *schema = &mic_schema_tables[table];
  uint32_t columns = schema->past - schema->first;
  mic_bytes_name(out, schema->name);
  mic_bytes_add(out, &w->tables[table].rows, sizeof w->tables[table].rows);
  mic_bytes_add(out, &columns, sizeof columns);
  for (uint32_t c = schema->first; c < schema->past; c++) add_column(out, w, c);
}
