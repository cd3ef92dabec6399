/* reader_test.c - what was written is read; damaged, cut and hostile files are one error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/forge.h"
#include "capture/generate.h"
#include "capture/writer.h"

static char path[64];
static uint8_t *bytes; /* a small right capture */
static size_t size;
static struct forge forge;

static void read_file(void) {
  struct stat st;
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fstat(fileno(file), &st), 0);
  size = (size_t)st.st_size;
  bytes = mic_alloc(size);
  assert_int_equal(fread(bytes, 1, size, file), size);
  fclose(file);
}

static struct mic_capture *open_right(void) {
  struct mic_error err = {0};
  struct mic_capture *cap;
  if (mic_capture_open_memory(bytes, size, 0, &cap, &err) != 0) fail_msg("%s", err.msg);
  return cap;
}

static int set_up(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/mic_reader_XXXXXX");
  close(mkstemp(path));
  struct mic_generate_options o = {
    .size = sizeof o, .functions = 3, .modules = 2, .threads = 2, .stacks = 6, .samples = 20};
  struct mic_error err;
  if (mic_capture_generate(&o, path, &err) != 0) return -1;
  read_file();
  struct mic_capture *cap = open_right();
  forge_take(&forge, cap);
  mic_capture_close(cap);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  forge_free(&forge);
  free(bytes);
  return unlink(path);
}

static bool same_rows(const struct mic_capture *a, const struct mic_capture *b) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    const char *table = mic_schema_tables[s->table].name;
    uint64_t rows[2];
    const void *left = mic_capture_array(a, table, s->name, &rows[0]);
    const void *right = mic_capture_array(b, table, s->name, &rows[1]);
    if (rows[0] != rows[1] || (rows[0] && memcmp(left, right, rows[0] * s->width) != 0))
      return false;
  }
  return true;
}

static void reads_what_was_written(void **state) {
  (void)state;
  struct mic_writer *w;
  struct mic_error err = {0};
  struct mic_capture *cap;
  enum { ROWS = 2 * MIC_BLOCK_ROWS + 5 };
  assert_int_equal(mic_writer_open(path, &w, &err), 0);
  uint32_t name = mic_writer_string(w, "a\0b", 3);
  mic_writer_sources(w,
                     &(struct mic_sources_row){.name = name, .unit = MIC_UNIT_COUNT, .period = 7});
  mic_writer_processes(w, &(struct mic_processes_row){.parent = MIC_NONE, .end_ns = UINT64_MAX});
  mic_writer_threads(w, &(struct mic_threads_row){.tid = 3, .end_ns = UINT64_MAX});
  mic_writer_stacks(w, &(struct mic_stacks_row){MIC_NONE, MIC_NONE, MIC_END_OUTERMOST});
  for (uint64_t i = 0; i < ROWS; i++)
    mic_writer_samples(w, &(struct mic_samples_row){i * i, 0, 0, ~i, (uint16_t)i, 0});
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  assert_int_equal(mic_capture_open(path, &cap, &err), 0);

  struct mic_column time, weight, cpu;
  assert_int_equal(mic_capture_column(cap, "samples", "time_ns", &time, &err), 0);
  assert_int_equal(mic_capture_column(cap, "samples", "weight", &weight, &err), 0);
  assert_int_equal(mic_capture_column(cap, "samples", "cpu", &cpu, &err), 0);
  assert_int_equal(time.rows, ROWS);
  assert_int_equal(time.blocks, 3);
  uint64_t row = 0;
  for (uint32_t b = 0; b < time.blocks; b++) {
    struct mic_block t, v, c;
    assert_int_equal(mic_capture_block(&time, b, &t), 0);
    assert_int_equal(mic_capture_block(&weight, b, &v), 0);
    assert_int_equal(mic_capture_block(&cpu, b, &c), 0);
    assert_int_equal(t.row, row);
    assert_true(t.rows == v.rows && t.rows == c.rows);
    for (uint64_t i = 0; i < t.rows; i++, row++)
      if (((const uint64_t *)t.data)[i] != row * row || ((const uint64_t *)v.data)[i] != ~row ||
          ((const uint16_t *)c.data)[i] != (uint16_t)row)
        fail_msg("row %llu differs", (unsigned long long)row);
  }
  assert_int_equal(row, ROWS);
  struct mic_block none;
  assert_int_equal(mic_capture_block(&time, 3, &none), MIC_ENOENT);

  uint64_t length;
  const char *text = mic_capture_string(cap, name, &length);
  assert_int_equal(length, 3);
  assert_memory_equal(text, "a\0b", 3);
  assert_null(mic_capture_string(cap, name + 1, &length));
  mic_capture_close(cap);
}

static void lists_tables_and_columns(void **state) {
  (void)state;
  struct mic_capture *cap = open_right();
  struct mic_error err;
  struct mic_column column;
  uint32_t tables = 0, columns = 0;
  for (; mic_capture_table(tables); tables++) {
    const char *table = mic_capture_table(tables);
    assert_non_null(mic_capture_table_doc(table));
    for (uint32_t i = 0; mic_capture_column_at(cap, table, i, &column, &err) == 0; i++, columns++)
      assert_string_equal(column.table, table);
  }
  assert_int_equal(tables, MIC_TABLE_COUNT);
  assert_int_equal(columns, MIC_COLUMN_COUNT);
  assert_int_equal(mic_capture_column(cap, "samples", "nothing", &column, &err), MIC_ENOENT);
  assert_int_equal(mic_capture_column(cap, "nothing", "stack", &column, &err), MIC_ENOENT);
  assert_int_equal(mic_capture_column_at(cap, "nothing", 0, &column, &err), MIC_ENOENT);
  assert_int_equal(mic_capture_rows(cap, "nothing"), 0);
  assert_int_equal(mic_capture_column(cap, "stacks", "parent", &column, &err), 0);
  assert_string_equal(column.ref, "stacks");
  assert_int_equal(column.unit, MIC_COLUMN_UNIT_ID);
  assert_int_equal(column.optional, 1);
  mic_capture_close(cap);
}

static void a_flipped_bit_is_an_error_or_harmless(void **state) {
  (void)state;
  struct mic_capture *right = open_right(), *cap;
  size_t harmless = 0;
  for (size_t i = 0; i < size; i++) {
    struct mic_error err = {0};
    bytes[i] ^= (uint8_t)(1 << (i % 8));
    int code = mic_capture_open_memory(bytes, size, 0, &cap, &err);
    bytes[i] ^= (uint8_t)(1 << (i % 8));
    assert_int_equal(code, err.code);
    harmless += code == 0;
    if (code == 0 && !same_rows(right, cap)) fail_msg("byte %zu changed rows in silence", i);
    if (code && !err.msg[0]) fail_msg("byte %zu: an error without words", i);
    mic_capture_close(cap);
  }
  assert_true(harmless < size / 2); /* padding between segments only */
  mic_capture_close(right);
}

/* The same with checksums that agree: any outcome but a crash. */
static void a_flipped_bit_under_right_checksums(void **state) {
  (void)state;
  uint8_t *copy = mic_alloc(size);
  for (size_t i = 0; i < size * 2; i++) {
    struct mic_capture *cap;
    struct mic_error err = {0};
    memcpy(copy, bytes, size);
    copy[i / 2] ^= (uint8_t)(i % 2 ? 1 : 128);
    forge_seal(copy, size);
    int code = mic_capture_open_memory(copy, size, 1 << 26, &cap, &err);
    assert_int_equal(code, err.code);
    mic_capture_close(cap);
  }
  free(copy);
}

static void a_cut_file_is_an_error(void **state) {
  (void)state;
  for (size_t i = 0; i < size; i++) {
    struct mic_capture *cap;
    struct mic_error err;
    uint8_t *exact = mic_alloc(i); /* of its own size, so that a sanitizer sees its end */
    memcpy(exact, bytes, i);
    assert_int_equal(mic_capture_open_memory(exact, i, 0, &cap, &err), MIC_EFORMAT);
    assert_null(cap);
    free(exact);
  }
  FILE *file = fopen(path, "ab");
  fputc(0, file);
  fclose(file);
  struct mic_capture *cap;
  struct mic_error err;
  assert_int_equal(mic_capture_open(path, &cap, &err), MIC_EFORMAT);
  assert_non_null(strstr(err.msg, "where"));
  assert_int_equal(truncate(path, (off_t)size / 2), 0);
  assert_int_equal(mic_capture_open(path, &cap, &err), MIC_EFORMAT);
  assert_int_equal(err.offset, size / 2);
}

static void refuses_what_is_no_file(void **state) {
  (void)state;
  struct mic_capture *cap;
  struct mic_error err;
  assert_int_equal(mic_capture_open("/tmp", &cap, &err), MIC_EARG);
  assert_int_equal(mic_capture_open("/nothing/here", &cap, &err), MIC_ESYS);
  assert_int_equal(err.sys, ENOENT);
  assert_int_equal(mic_capture_open("/proc/self/exe", &cap, &err), MIC_EFORMAT);
  assert_non_null(strstr(err.msg, "not a capture"));
  assert_int_equal(mic_capture_open("/proc/self/exe", &cap, NULL), MIC_EFORMAT);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(mic_capture_open(path, &cap, &err), MIC_EARG);
}

static struct mic_error open_forged(int want) {
  struct mic_capture *cap;
  struct mic_error err = {0};
  int code = forge_open(&forge, &cap, &err);
  if (code != want) fail_msg("code %d, not %d: %s", code, want, err.msg);
  mic_capture_close(cap);
  return err;
}

static void knows_its_versions(void **state) {
  (void)state;
  open_forged(0);
  forge.header.major = MIC_FORMAT_MAJOR + 1;
  assert_non_null(strstr(open_forged(MIC_EVERSION).msg, "use a newer one"));
  forge.header.major = 0;
  open_forged(MIC_EFORMAT);
  forge.header.major = MIC_FORMAT_MAJOR;
  forge.header.features = 1;
  open_forged(MIC_EVERSION);
  forge.header.features = 0;

  /* A value that only a later minor version can know. */
  forge_set(&forge, MIC_COLUMN_losses_kind, 0, 77);
  assert_non_null(strstr(open_forged(MIC_EFORMAT).msg, "losses.kind"));
  forge.header.minor = MIC_FORMAT_MINOR + 1;
  open_forged(0);
}

static void skips_what_it_does_not_know(void **state) {
  (void)state;
  struct mic_capture *right = open_right(), *cap;
  struct mic_capture_info info;
  forge.strange = true;
  assert_int_equal(forge_open(&forge, &cap, NULL), 0);
  mic_capture_info(cap, &info);
  assert_int_equal(info.skipped, 2);
  assert_true(same_rows(right, cap));
  mic_capture_close(cap);
  mic_capture_close(right);
}

static void a_missing_table_is_empty_a_missing_column_an_error(void **state) {
  (void)state;
  struct mic_capture *cap;
  struct mic_column column;
  forge.no_table[MIC_TABLE_samples] = true;
  forge.no_table[MIC_TABLE_sample_labels] = true; /* it points into samples */
  assert_int_equal(forge_open(&forge, &cap, NULL), 0);
  assert_int_equal(mic_capture_rows(cap, "samples"), 0);
  assert_int_equal(mic_capture_column(cap, "samples", "stack", &column, NULL), 0);
  assert_int_equal(column.blocks, 0);
  mic_capture_close(cap);
  forge.no_table[MIC_TABLE_samples] = false;
  forge.no_table[MIC_TABLE_sample_labels] = false;
  forge.no_column[MIC_COLUMN_samples_stack] = true;
  assert_non_null(strstr(open_forged(MIC_EFORMAT).msg, "samples.stack"));
}

/* sources.unit_name came with version 1.1: absent before, required since. */
static void a_later_column_may_be_absent_before(void **state) {
  (void)state;
  struct mic_capture *cap;
  struct mic_column column;
  forge.no_column[MIC_COLUMN_sources_unit_name] = true;
  assert_non_null(strstr(open_forged(MIC_EFORMAT).msg, "sources.unit_name"));
  forge.header.minor = 0;
  assert_int_equal(forge_open(&forge, &cap, NULL), 0);
  assert_int_equal(mic_capture_column(cap, "sources", "unit_name", &column, NULL), MIC_ENOENT);
  assert_int_equal(mic_capture_column(cap, "sources", "unit", &column, NULL), 0);
  mic_capture_close(cap);
}

/* A few bytes may not claim more rows than there is memory for. */
static void bounds_what_a_file_claims(void **state) {
  (void)state;
  struct mic_writer *w;
  struct mic_error err = {0};
  struct mic_capture *cap;
  assert_int_equal(mic_writer_open(path, &w, &err), 0);
  for (uint32_t i = 0; i < 40 * MIC_BLOCK_ROWS; i++)
    mic_writer_duty(w, &(struct mic_duty_row){0, 0, 0});
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  free(bytes);
  read_file();
  assert_true(size < 64 * 1024);
  assert_int_equal(mic_capture_open_memory(bytes, size, 1 << 20, &cap, &err), MIC_ELIMIT);
  assert_int_equal(mic_capture_open_memory(bytes, size, 0, &cap, &err), 0);
  mic_capture_close(cap);
}

/* Where in the forged bytes the first block entry of a column stands. */
static struct mic_format_block *entry_of(uint32_t column) {
  forge_make(&forge);
  struct mic_format_header h;
  memcpy(&h, forge.out.at, sizeof h);
  const char *name = mic_schema_columns[column].name;
  size_t skip = 1 + strlen(mic_schema_columns[column].ref) + 4 + 4;
  const char *table = mic_schema_tables[mic_schema_columns[column].table].name;
  uint8_t *end = forge.out.at + forge.out.count;
  uint8_t *at = memmem(forge.out.at + h.directory_offset, h.directory_size, table, strlen(table));
  at = memmem(at, (size_t)(end - at), name, strlen(name));
  return (void *)(at + strlen(name) + skip);
}

static void check_entry(uint32_t column, struct mic_format_block entry, const char *words) {
  struct mic_format_block *at = entry_of(column);
  struct mic_capture *cap;
  struct mic_error err = {0};
  memcpy(at, &entry, sizeof entry);
  forge_seal(forge.out.at, forge.out.count);
  int code = mic_capture_open_memory(forge.out.at, forge.out.count, 1 << 30, &cap, &err);
  if (code != MIC_EFORMAT || !strstr(err.msg, words) || !strstr(err.msg, "samples."))
    fail_msg("%d: %s (wanted: %s)", code, err.msg, words);
}

static void refuses_hostile_blocks(void **state) {
  (void)state;
  uint32_t c = MIC_COLUMN_samples_thread;
  struct mic_format_block right, other, b;
  memcpy(&right, entry_of(c), sizeof right);
  memcpy(&other, entry_of(MIC_COLUMN_samples_stack), sizeof other);
#define ENTRY(field, value, words) \
  b = right;                       \
  b.field = value;                 \
  check_entry(c, b, words)
  ENTRY(offset, other.offset, "overlaps");
  ENTRY(offset, 0, "offset that no block");
  ENTRY(offset, right.offset + 1, "offset that no block");
  ENTRY(offset, UINT64_MAX - 63, "past the end");
  ENTRY(offset, (forge.out.count + 63) / 64 * 64, "past the end");
  ENTRY(size, 0, "stored size");
  ENTRY(size, right.size - 1, "stored size");
  ENTRY(size, UINT32_MAX, "past the end");
  ENTRY(rows, 0, "no rows");
  ENTRY(rows, MIC_BLOCK_ROWS + 1, "too many");
  ENTRY(rows, right.rows - 1, "stored size");
  ENTRY(encoding, 8, "unknown encoding");
  ENTRY(reserved, 1, "unknown encoding");
  ENTRY(encoding, MIC_ENCODING_ZSTD, "does not decode");
#undef ENTRY
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    CASE(reads_what_was_written),
    CASE(lists_tables_and_columns),
    CASE(a_flipped_bit_is_an_error_or_harmless),
    CASE(a_flipped_bit_under_right_checksums),
    CASE(a_cut_file_is_an_error),
    CASE(refuses_what_is_no_file),
    CASE(knows_its_versions),
    CASE(skips_what_it_does_not_know),
    CASE(a_missing_table_is_empty_a_missing_column_an_error),
    CASE(a_later_column_may_be_absent_before),
    CASE(bounds_what_a_file_claims),
    CASE(refuses_hostile_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
