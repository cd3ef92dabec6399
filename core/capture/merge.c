/*
 * merge.c - merge captures: dictionaries by content, what happened appended.
 *
 * Tables are taken in the schema's order, which is that of dependency: when a row is taken, the
 * rows it points to have their merged ids.  A table that is not listed here is appended.
 */
#include "capture/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/merge_inside.h"

enum { LONG_GAP_NS = 1000000000 }; /* to cut one segment from the next takes milliseconds */

static uint64_t all_ones(uint32_t column) {
  return UINT64_MAX >> (64 - 8 * mic_schema_columns[column].width);
}

static bool is_none(uint32_t column, uint64_t value) {
  return (mic_schema_columns[column].flags & MIC_COL_OPTIONAL) && value == all_ones(column);
}

static bool is_point(uint32_t column) {
  const char *name = mic_schema_columns[column].name;
  return mic_schema_columns[column].unit == MIC_COLUMN_UNIT_NS &&
         (!strcmp(name, "time_ns") || !strcmp(name, "start_ns") || !strcmp(name, "end_ns"));
}

static uint64_t load(const void *data, uint64_t row, uint32_t width) {
  uint64_t value = 0;
  memcpy(&value, (const uint8_t *)data + row * width, width);
  return value;
}

uint64_t mic_merge_read(const struct mic_merge *m, uint32_t column, uint64_t row) {
  const void *data = m->cap->columns[column].data;
  if (data) return load(data, row, mic_schema_columns[column].width);
  return mic_schema_columns[column].flags & MIC_COL_OPTIONAL ? all_ones(column) : 0;
}

/* Later than any time is none's neighbour, never none. */
static uint64_t shifted(const struct mic_merge *m, uint64_t time_ns) {
  return time_ns < UINT64_MAX - 1 - m->shift_ns ? time_ns + m->shift_ns : UINT64_MAX - 1;
}

static uint64_t mapped(struct mic_merge *m, uint32_t column, uint64_t value) {
  const struct mic_schema_column *s = &mic_schema_columns[column];
  if (is_none(column, value)) return value;
  if (s->unit == MIC_COLUMN_UNIT_ID) {
    uint64_t id = m->ids[s->target] ? m->ids[s->target][value] : value;
    if (id >= all_ones(column)) m->over = true;
    return id;
  }
  return is_point(column) ? shifted(m, value) : value;
}

uint64_t mic_merge_value(struct mic_merge *m, uint32_t column, uint64_t row) {
  uint64_t value = mapped(m, column, mic_merge_read(m, column, row));
  /* A named location's offset is a string's id. */
  if (column == MIC_COLUMN_locations_offset &&
      mic_merge_read(m, MIC_COLUMN_locations_kind, row) == MIC_LOCATION_NAMED)
    value = m->ids[MIC_TABLE_strings][value];
  return value;
}

uint64_t mic_merge_get(const struct mic_merge *m, uint32_t column, uint64_t row) {
  return load(m->columns[column].at, row, mic_schema_columns[column].width);
}

void mic_merge_set(struct mic_merge *m, uint32_t column, uint64_t row, uint64_t value) {
  uint32_t width = mic_schema_columns[column].width;
  memcpy(m->columns[column].at + row * width, &value, width);
}

static void put(struct mic_merge *m, uint32_t column, uint64_t value) {
  uint32_t width = mic_schema_columns[column].width;
  size_t need = m->columns[column].count + width;
  if (need > m->columns[column].room) mic_vec_reserve(&m->columns[column], need);
  memcpy(m->columns[column].at + m->columns[column].count, &value, width);
  m->columns[column].count = need;
}

uint32_t mic_merge_append(struct mic_merge *m, uint32_t table, uint64_t row) {
  for (uint32_t c = mic_schema_tables[table].first; c < mic_schema_tables[table].past; c++)
    put(m, c, mic_merge_value(m, c, row));
  return (uint32_t)m->rows[table]++;
}

uint32_t mic_merge_string(struct mic_merge *m, const char *bytes, size_t size) {
  return mic_intern(&m->unique[MIC_TABLE_strings], bytes, size);
}

static void add_strings(struct mic_merge *m) {
  uint64_t rows = m->cap->tables[MIC_TABLE_strings].rows;
  for (uint64_t i = 0; i < rows; i++) {
    uint64_t size;
    const char *bytes = mic_capture_string(m->cap, (uint32_t)i, &size);
    m->ids[MIC_TABLE_strings][i] = mic_merge_string(m, bytes, size);
  }
}

/* A row by all its values: the same values are the same row. */
static void add_unique(struct mic_merge *m, uint32_t table) {
  uint64_t values[16];
  uint32_t first = mic_schema_tables[table].first, past = mic_schema_tables[table].past;
  for (uint64_t row = 0; row < m->cap->tables[table].rows; row++) {
    for (uint32_t c = first; c < past; c++) values[c - first] = mic_merge_value(m, c, row);
    uint32_t id = mic_intern(&m->unique[table], (const char *)values, (past - first) * 8);
    m->ids[table][row] = id;
    if (id < m->rows[table]) continue;
    for (uint32_t c = first; c < past; c++) put(m, c, values[c - first]);
    m->rows[table]++;
  }
}

/* What a value of a column is in the merged capture does not change: it is neither an id nor a
 * point in time. */
static bool is_plain(uint32_t column) {
  return mic_schema_columns[column].unit != MIC_COLUMN_UNIT_ID && !is_point(column);
}

/* A column of many rows: as it is, ids of u32 through their map, others one by one. */
static void add_column(struct mic_merge *m, uint32_t c, uint64_t rows) {
  const struct mic_schema_column *s = &mic_schema_columns[c];
  const void *data = m->cap->columns[c].data;
  size_t before = m->columns[c].count;
  mic_vec_reserve(&m->columns[c], before + rows * s->width);
  uint8_t *out = m->columns[c].at + before;
  bool maps = s->unit == MIC_COLUMN_UNIT_ID && s->width == 4 && !(s->flags & MIC_COL_OPTIONAL);
  if (data && is_plain(c)) {
    memcpy(out, data, rows * s->width);
  } else if (data && maps && m->ids[s->target]) {
    const uint32_t *ids = m->ids[s->target], *from = data;
    uint32_t *to = (uint32_t *)(void *)out; /* columns of u32 begin and end at multiples of it */
    for (uint64_t i = 0; i < rows; i++) to[i] = ids[from[i]];
  } else if (data && is_point(c) && !(s->flags & MIC_COL_OPTIONAL)) {
    const uint64_t *from = data;
    for (uint64_t i = 0; i < rows; i++) {
      uint64_t time_ns = shifted(m, from[i]);
      memcpy(out + i * sizeof time_ns, &time_ns, sizeof time_ns);
    }
  } else {
    for (uint64_t i = 0; i < rows; i++) put(m, c, mic_merge_value(m, c, i));
  }
  m->columns[c].count = before + rows * s->width;
}

static void add_rows(struct mic_merge *m, uint32_t table) {
  uint64_t rows = m->cap->tables[table].rows;
  for (uint32_t c = mic_schema_tables[table].first; c < mic_schema_tables[table].past && rows; c++)
    add_column(m, c, rows);
  for (uint64_t i = 0; i < rows && m->ids[table]; i++)
    m->ids[table][i] = (uint32_t)(m->rows[table] + i);
  m->rows[table] += rows;
}

/* Kept parts of images: the same bytes at the same place of the same module are kept once. */
static void add_parts(struct mic_merge *m) {
  const uint8_t *bytes = m->cap->columns[MIC_COLUMN_image_bytes_byte].data;
  uint64_t rows = m->cap->tables[MIC_TABLE_image_parts].rows, start = 0;
  for (uint64_t row = 0; row < rows; row++) {
    uint64_t end = mic_merge_read(m, MIC_COLUMN_image_parts_end, row), size = end - start;
    uint64_t key[4] = {
      mic_merge_value(m, MIC_COLUMN_image_parts_module, row),
      mic_merge_read(m, MIC_COLUMN_image_parts_offset, row),
      size,
      size ? mic_hash(bytes + start, size) : 0,
    };
    uint32_t id = mic_intern(&m->unique[MIC_TABLE_image_parts], (const char *)key, sizeof key);
    if (id == m->rows[MIC_TABLE_image_parts]) {
      size_t before = m->columns[MIC_COLUMN_image_bytes_byte].count;
      mic_vec_reserve(&m->columns[MIC_COLUMN_image_bytes_byte], before + size);
      if (size) memcpy(m->columns[MIC_COLUMN_image_bytes_byte].at + before, bytes + start, size);
      m->columns[MIC_COLUMN_image_bytes_byte].count = before + size;
      m->rows[MIC_TABLE_image_bytes] += size;
      put(m, MIC_COLUMN_image_parts_module, key[0]);
      put(m, MIC_COLUMN_image_parts_offset, key[1]);
      put(m, MIC_COLUMN_image_parts_end, before + size);
      m->rows[MIC_TABLE_image_parts]++;
    }
    start = end;
  }
}

/* Facts by name: the last segment's word holds. */
static void add_facts(struct mic_merge *m, uint32_t table) {
  uint32_t key = mic_schema_tables[table].first, value = key + 1;
  for (uint64_t row = 0; row < m->cap->tables[table].rows; row++) {
    uint32_t id = (uint32_t)m->rows[table];
    uint32_t at = mic_map_intern(&m->keyed[table], mic_merge_value(m, key, row), 0, id, NULL);
    if (at == id)
      mic_merge_append(m, table, row);
    else
      mic_merge_set(m, value, at, mic_merge_value(m, value, row));
    m->ids[table][row] = at;
  }
}

static uint32_t count_problem(struct mic_merge *m, uint32_t text, uint64_t count) {
  uint32_t id = (uint32_t)m->rows[MIC_TABLE_problems];
  uint32_t at = mic_map_intern(&m->keyed[MIC_TABLE_problems], text, 0, id, NULL);
  if (at == id) {
    put(m, MIC_COLUMN_problems_text, text);
    put(m, MIC_COLUMN_problems_count, count);
    m->rows[MIC_TABLE_problems]++;
  } else {
    uint64_t before = mic_merge_get(m, MIC_COLUMN_problems_count, at);
    mic_merge_set(m, MIC_COLUMN_problems_count, at,
                  before + count < before ? UINT64_MAX : before + count);
  }
  return at;
}

static void add_problems(struct mic_merge *m) {
  for (uint64_t row = 0; row < m->cap->tables[MIC_TABLE_problems].rows; row++)
    m->ids[MIC_TABLE_problems][row] =
      count_problem(m, (uint32_t)mic_merge_value(m, MIC_COLUMN_problems_text, row),
                    mic_merge_read(m, MIC_COLUMN_problems_count, row));
}

/* Lines stand in their location's order: they wait for the end.  Of segments that know the same
 * location the first that has lines for it is taken. */
static void add_lines(struct mic_merge *m) {
  uint64_t rows = m->cap->tables[MIC_TABLE_lines].rows;
  while (m->lines_of.count < m->rows[MIC_TABLE_locations])
    *mic_vec_push(&m->lines_of) = (struct mic_merge_lines){0};
  for (uint64_t row = 0; row < rows;) {
    uint64_t location = mic_merge_read(m, MIC_COLUMN_lines_location, row);
    uint32_t id = m->ids[MIC_TABLE_locations][location];
    struct mic_merge_lines *of = &m->lines_of.at[id];
    bool take = of->count == 0;
    if (take) of->first = (uint32_t)m->lines.count;
    for (; row < rows && mic_merge_read(m, MIC_COLUMN_lines_location, row) == location; row++) {
      if (!take) continue;
      *mic_vec_push(&m->lines) = (struct mic_lines_row){
        .location = id,
        .function = (uint32_t)mic_merge_value(m, MIC_COLUMN_lines_function, row),
        .file = (uint32_t)mic_merge_value(m, MIC_COLUMN_lines_file, row),
        .line = (uint32_t)mic_merge_read(m, MIC_COLUMN_lines_line, row),
        .depth = (uint32_t)mic_merge_read(m, MIC_COLUMN_lines_depth, row),
      };
      of->count++;
    }
  }
}

static void put_lines(struct mic_merge *m) {
  for (size_t l = 0; l < m->lines_of.count; l++)
    for (uint32_t i = 0; i < m->lines_of.at[l].count; i++) {
      const struct mic_lines_row *row = &m->lines.at[m->lines_of.at[l].first + i];
      put(m, MIC_COLUMN_lines_location, row->location);
      put(m, MIC_COLUMN_lines_function, row->function);
      put(m, MIC_COLUMN_lines_file, row->file);
      put(m, MIC_COLUMN_lines_line, row->line);
      put(m, MIC_COLUMN_lines_depth, row->depth);
      m->rows[MIC_TABLE_lines]++;
    }
}

static void add_clocks(struct mic_merge *m) {
  if (!m->cap->tables[MIC_TABLE_clocks].rows) return;
  uint64_t boot = mic_merge_value(m, MIC_COLUMN_clocks_boot_id, 0);
  uint64_t end = m->shift_ns + mic_merge_read(m, MIC_COLUMN_clocks_duration_ns, 0);
  if (m->segment == 1) {
    /* Time zero is the folder's, also when its first segment went before it could be read. */
    m->clocks[0] = mic_merge_read(m, MIC_COLUMN_clocks_monotonic_ns, 0) - m->shift_ns;
    m->clocks[1] = mic_merge_read(m, MIC_COLUMN_clocks_realtime_ns, 0) - m->shift_ns;
    m->clocks[2] = boot;
  }
  if (end > m->end_ns) m->end_ns = end;
}

/* The same thing measured at two periods is two sources, and reports are of one. */
static void check_sources(struct mic_merge *m) {
  for (uint64_t a = 0; a < m->rows[MIC_TABLE_sources]; a++)
    for (uint64_t b = 0; b < a; b++)
      m->other_period |= mic_merge_get(m, MIC_COLUMN_sources_name, a) ==
                         mic_merge_get(m, MIC_COLUMN_sources_name, b);
}

static void add_table(struct mic_merge *m, uint32_t table) {
  switch (table) {
  case MIC_TABLE_string_bytes: return; /* with strings, at the end */
  case MIC_TABLE_image_bytes: return;  /* with image_parts */
  case MIC_TABLE_image_parts: add_parts(m); return;
  case MIC_TABLE_strings: add_strings(m); return;
  case MIC_TABLE_meta:
  case MIC_TABLE_settings: add_facts(m, table); return;
  case MIC_TABLE_clocks: add_clocks(m); return;
  case MIC_TABLE_sources:
    add_unique(m, table);
    check_sources(m);
    return;
  case MIC_TABLE_processes: mic_merge_add_processes(m); return;
  case MIC_TABLE_process_execs: mic_merge_add_process_execs(m); return;
  case MIC_TABLE_threads: mic_merge_add_threads(m); return;
  case MIC_TABLE_thread_names: mic_merge_add_thread_names(m); return;
  case MIC_TABLE_mappings: mic_merge_add_mappings(m); return;
  case MIC_TABLE_files:
  case MIC_TABLE_modules:
  case MIC_TABLE_locations:
  case MIC_TABLE_functions:
  case MIC_TABLE_labels:
  case MIC_TABLE_sites:
  case MIC_TABLE_stacks: add_unique(m, table); return;
  case MIC_TABLE_lines: add_lines(m); return;
  case MIC_TABLE_problems: add_problems(m); return;
  default: add_rows(m, table);
  }
}

/* Ids of a table's rows are needed where a later column points into it. */
static bool is_target(uint32_t table) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++)
    if (mic_schema_columns[c].unit == MIC_COLUMN_UNIT_ID && mic_schema_columns[c].target == table)
      return true;
  return false;
}

struct mic_merge *mic_merge_new(void) {
  struct mic_merge *m = mic_alloc(sizeof *m);
  mic_merge_string(m, "", 0); /* string 0, as in each capture, whatever comes first */
  return m;
}

void mic_merge_add(struct mic_merge *m, const struct mic_capture *cap, uint64_t shift_ns,
                   uint64_t gap_ns) {
  m->cap = cap;
  m->shift_ns = shift_ns;
  m->gap_ns = m->segment ? gap_ns : 0;
  m->segment++;
  m->file_size += cap->file_size;
  if (cap->skipped > m->skipped) m->skipped = cap->skipped;
  if (m->gap_ns == MIC_MERGE_OTHER_BOOT)
    m->other_boot = true;
  else if (m->gap_ns)
    m->gaps_ns += m->gap_ns, m->long_gap |= m->gap_ns >= LONG_GAP_NS;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) {
    uint64_t rows = cap->tables[t].rows;
    bool small = t == MIC_TABLE_meta || t == MIC_TABLE_settings || t == MIC_TABLE_problems ||
                 t == MIC_TABLE_mappings || t == MIC_TABLE_process_execs ||
                 t == MIC_TABLE_thread_names;
    if (small || is_target(t)) m->ids[t] = mic_alloc(rows * sizeof(uint32_t) + 1);
    uint64_t before = m->rows[t];
    add_table(m, t);
    if (m->rows[t] > before) *mic_vec_push(&m->starts[t]) = before;
  }
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) {
    free(m->ids[t]);
    m->ids[t] = NULL;
  }
  m->cap = NULL;
}

void mic_merge_problem(struct mic_merge *m, const char *text) {
  count_problem(m, mic_merge_string(m, text, strlen(text)), 1);
}

void mic_merge_meta(struct mic_merge *m, const char *key, const char *value) {
  put(m, MIC_COLUMN_meta_key, mic_merge_string(m, key, strlen(key)));
  put(m, MIC_COLUMN_meta_value, mic_merge_string(m, value, strlen(value)));
  m->rows[MIC_TABLE_meta]++;
}

static void put_strings(struct mic_merge *m) {
  const struct mic_interner *strings = &m->unique[MIC_TABLE_strings];
  uint64_t end = 0;
  for (uint32_t i = 0; i < strings->strings.count; i++) {
    struct mic_string s = mic_interner_at(strings, i);
    for (uint32_t b = 0; b < s.size; b++) put(m, MIC_COLUMN_string_bytes_byte, (uint8_t)s.bytes[b]);
    end += s.size;
    put(m, MIC_COLUMN_strings_end, end);
  }
  m->rows[MIC_TABLE_string_bytes] = end;
  m->rows[MIC_TABLE_strings] = strings->strings.count;
}

static void put_summary(struct mic_merge *m) {
  char text[32];
  if (m->other_boot) mic_merge_problem(m, "segments of several boots: placed by the wall clock");
  if (m->other_period)
    mic_merge_problem(m, "segments were recorded at several periods, which are sources of their"
                         " own: reports are of one");
  if (m->long_gap)
    mic_merge_problem(m, "there are gaps of a second and more between segments (meta gap_ns)");
  snprintf(text, sizeof text, "%" PRIu32, m->segment);
  mic_merge_meta(m, "segments", text);
  snprintf(text, sizeof text, "%" PRIu64, m->gaps_ns);
  mic_merge_meta(m, "gap_ns", text);
  put(m, MIC_COLUMN_clocks_monotonic_ns, m->clocks[0]);
  put(m, MIC_COLUMN_clocks_realtime_ns, m->clocks[1]);
  put(m, MIC_COLUMN_clocks_duration_ns, m->end_ns);
  put(m, MIC_COLUMN_clocks_boot_id, m->clocks[2]);
  m->rows[MIC_TABLE_clocks] = 1;
  mic_merge_end_threads(m);
  put_lines(m);
  put_strings(m); /* the last: what stands above makes strings */
}

/* A table's blocks: each segment's rows, where rows were appended. */
static int move_blocks(struct mic_merge *m, struct mic_capture *cap, uint32_t t) {
  struct mic_capture_table *table = &cap->tables[t];
  bool whole = m->starts[t].count == 0 || t == MIC_TABLE_lines || t == MIC_TABLE_strings ||
               t == MIC_TABLE_image_bytes;
  table->present = true;
  table->rows = m->rows[t];
  table->blocks = table->rows == 0 ? 0 : whole ? 1 : (uint32_t)m->starts[t].count;
  table->starts = mic_try_alloc((size_t)table->blocks + 1, sizeof *table->starts);
  if (!table->starts) return MIC_ELIMIT;
  for (uint32_t b = 1; b < table->blocks; b++) table->starts[b] = m->starts[t].at[b];
  table->starts[table->blocks] = table->rows;
  return 0;
}

/* Columns are aligned as those of a file are. */
static int move_column(struct mic_merge *m, struct mic_capture *cap, uint32_t c) {
  uint32_t t = mic_schema_columns[c].table;
  size_t bytes = m->rows[t] * mic_schema_columns[c].width;
  struct mic_capture_column *column = &cap->columns[c];
  column->present = true;
  column->entries = mic_try_alloc((size_t)cap->tables[t].blocks + 1, sizeof *column->entries);
  if (!column->entries) return MIC_ELIMIT;
  if (bytes) {
    column->data = aligned_alloc(MIC_FORMAT_ALIGN, (bytes + MIC_FORMAT_ALIGN - 1) /
                                                     MIC_FORMAT_ALIGN * MIC_FORMAT_ALIGN);
    if (!column->data) return MIC_ELIMIT;
    memcpy(column->data, m->columns[c].at, bytes);
  }
  mic_vec_free(&m->columns[c]);
  cap->memory += bytes;
  return 0;
}

static int move_all(struct mic_merge *m, struct mic_capture *cap, struct mic_error *err) {
  int code = 0;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT && !code; t++) {
    if (m->rows[t] >= MIC_NONE && is_target(t)) code = MIC_ELIMIT;
    if (!code) code = move_blocks(m, cap, t);
  }
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT && !code; c++) code = move_column(m, cap, c);
  if (m->over) code = MIC_ELIMIT;
  if (code) return mic_fail(err, code, "the segments have more rows than one capture can hold");
  return mic_capture_validate(cap, err);
}

int mic_merge_finish(struct mic_merge *m, struct mic_capture **out, struct mic_error *err) {
  struct mic_capture *cap = mic_alloc(sizeof *cap);
  put_summary(m);
  cap->major = MIC_FORMAT_MAJOR;
  cap->minor = MIC_FORMAT_MINOR;
  cap->file_size = m->file_size;
  cap->skipped = m->skipped;
  int code = move_all(m, cap, err);
  if (code) {
    mic_capture_close(cap);
    cap = NULL;
  }
  mic_merge_free(m);
  *out = cap;
  return code;
}

void mic_merge_free(struct mic_merge *m) {
  if (!m) return;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) {
    mic_interner_free(&m->unique[t]);
    mic_map_free(&m->keyed[t]);
    mic_vec_free(&m->starts[t]);
    free(m->ids[t]);
  }
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) mic_vec_free(&m->columns[c]);
  mic_interner_free(&m->mappings);
  mic_vec_free(&m->mapping_rows);
  mic_vec_free(&m->processes);
  mic_vec_free(&m->threads);
  mic_vec_free(&m->lines);
  mic_vec_free(&m->lines_of);
  free(m);
}
