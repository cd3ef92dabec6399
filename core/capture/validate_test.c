/* validate_test.c - every rule of a capture, broken once: one error that says where and what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/forge.h"
#include "capture/generate.h"

static struct forge forge;

static int set_up(void **state) {
  (void)state;
  char path[] = "/tmp/mic_validate_XXXXXX";
  close(mkstemp(path));
  struct mic_generate_options o = {.size = sizeof o,
                                   .processes = 2,
                                   .functions = 3,
                                   .modules = 2,
                                   .threads = 2,
                                   .stacks = 6,
                                   .samples = 20};
  struct mic_capture *cap;
  struct mic_error err;
  if (mic_capture_generate(&o, path, &err) != 0) return -1;
  if (mic_capture_open(path, &cap, &err) != 0) return -1;
  forge_take(&forge, cap);
  mic_capture_close(cap);
  return unlink(path);
}

static int tear_down(void **state) {
  (void)state;
  forge_free(&forge);
  return 0;
}

/* The forged capture is refused with an error that names the column, the row and the words. */
static void refused(uint32_t column, uint64_t row, const char *words) {
  const struct mic_schema_column *s = &mic_schema_columns[column];
  struct mic_capture *cap;
  struct mic_error err = {0};
  char place[128];
  int code = forge_open(&forge, &cap, &err);
  snprintf(place, sizeof place,
           "%s.%s, row %llu, block at byte %llu: ", mic_schema_tables[s->table].name, s->name,
           (unsigned long long)row, (unsigned long long)err.offset);
  if (code != MIC_EFORMAT || strncmp(err.msg, place, strlen(place)) != 0 ||
      !strstr(err.msg, words) || !strstr(err.msg, "record again or copy it again"))
    fail_msg("%d: %s (wanted: %s%s)", code, err.msg, place, words);
  assert_true(err.offset >= sizeof(struct mic_format_header));
}

static void accepted(void) {
  struct mic_capture *cap;
  struct mic_error err = {0};
  if (forge_open(&forge, &cap, &err) != 0) fail_msg("%s", err.msg);
  mic_capture_close(cap);
}

/* Set one value, see it refused, and put the old one back. */
static void spoil(uint32_t column, uint64_t row, uint64_t value, const char *words) {
  uint64_t old = forge_get(&forge, column, row);
  forge_set(&forge, column, row, value);
  refused(column, row, words);
  forge_set(&forge, column, row, old);
}

/* Every ID column of the schema, in its last row, one past its table and none where it may not. */
static void every_reference(void **state) {
  (void)state;
  uint32_t checked = 0;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    uint64_t rows = forge.rows[s->table];
    if (s->unit != MIC_COLUMN_UNIT_ID) continue;
    if (!rows) fail_msg("%s has no rows to spoil", mic_schema_tables[s->table].name);
    spoil(c, rows - 1, forge.rows[s->target], "is no row of");
    if (!(s->flags & MIC_COL_OPTIONAL)) spoil(c, rows - 1, UINT64_MAX, "is no row of");
    checked++;
  }
  assert_true(checked > 20);
  accepted();
}

static void every_enum(void **state) {
  (void)state;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    if (s->unit != MIC_COLUMN_UNIT_ENUM) continue;
    spoil(c, forge.rows[s->table] - 1, mic_enum_past(s->target), "is no value of");
  }
}

static void parents_come_before(void **state) {
  (void)state;
  uint64_t row = forge.rows[MIC_TABLE_stacks] - 2;
  spoil(MIC_COLUMN_stacks_parent, row, row, "not a row before its own");
  spoil(MIC_COLUMN_stacks_parent, row, row + 1, "not a row before its own");
  spoil(MIC_COLUMN_processes_parent, 1, 1, "not a row before its own");
}

/* In one block and where two meet: blocks of two rows have a seam at each even row. */
static void what_ascends_never_falls(void **state) {
  (void)state;
  forge.block_rows = 2;
  accepted();
  for (uint64_t row = 4; row < 6; row++) {
    spoil(MIC_COLUMN_lines_location, row, 0, "less than the row before");
    spoil(MIC_COLUMN_strings_end, row, 0, "less than the row before");
  }
}

static void strings_fill_their_bytes(void **state) {
  (void)state;
  uint64_t last = forge.rows[MIC_TABLE_strings] - 1;
  uint64_t bytes = forge.rows[MIC_TABLE_string_bytes];
  spoil(MIC_COLUMN_strings_end, last, bytes + 1, "strings end at byte");
  spoil(MIC_COLUMN_strings_end, last, bytes - 1, "strings end at byte");
  spoil(MIC_COLUMN_strings_end, last, UINT64_MAX, "strings end at byte");
}

static void bytes_without_strings(void **state) {
  (void)state;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) forge.rows[t] = t == MIC_TABLE_string_bytes;
  refused(MIC_COLUMN_string_bytes_byte, 0, "bytes but no strings");
  forge.rows[MIC_TABLE_string_bytes] = 0;
  accepted(); /* a capture of nothing */
}

static void nothing_points_into_an_empty_table(void **state) {
  (void)state;
  forge.rows[MIC_TABLE_sources] = 0;
  refused(MIC_COLUMN_samples_source, 0, "is no row of sources, which has 0");
}

static void stacks_have_roots(void **state) {
  (void)state;
  uint64_t row = forge.rows[MIC_TABLE_stacks] - 1;
  spoil(MIC_COLUMN_stacks_location, 0, 0, "a root with a location");
  spoil(MIC_COLUMN_stacks_location, row, UINT64_MAX, "a frame without a location");
  spoil(MIC_COLUMN_stacks_end, 0, MIC_END_NONE, "a root without an end");
  spoil(MIC_COLUMN_stacks_end, row, MIC_END_OUTERMOST, "a frame with an end");
}

static void locations_are_somewhere(void **state) {
  (void)state;
  spoil(MIC_COLUMN_locations_module, 1, UINT64_MAX, "a native location without a module");
  forge_set(&forge, MIC_COLUMN_locations_kind, 1, MIC_LOCATION_ANON);
  refused(MIC_COLUMN_locations_module, 1, "outside of all modules");
  forge_set(&forge, MIC_COLUMN_locations_module, 1, UINT64_MAX);
  accepted();
  forge_set(&forge, MIC_COLUMN_locations_kind, 1, MIC_LOCATION_NAMED);
  spoil(MIC_COLUMN_locations_offset, 1, forge.rows[MIC_TABLE_strings], "is no row of strings");
  forge_set(&forge, MIC_COLUMN_locations_offset, 1, 0);
  accepted();
}

static void lines_count_up(void **state) {
  (void)state;
  spoil(MIC_COLUMN_lines_depth, 0, 1, "depth 1 where 0 is next");
  spoil(MIC_COLUMN_lines_depth, forge.rows[MIC_TABLE_lines] - 1, 9, "depth 9 where");
}

static void spans_end_after_they_start(void **state) {
  (void)state;
  forge_set(&forge, MIC_COLUMN_processes_start_ns, 1, 50);
  spoil(MIC_COLUMN_processes_end_ns, 1, 49, "ends before its start");
  forge_set(&forge, MIC_COLUMN_threads_start_ns, 1, 50);
  spoil(MIC_COLUMN_threads_end_ns, 1, 49, "ends before its start");
  forge_set(&forge, MIC_COLUMN_mappings_start_ns, 1, 50);
  spoil(MIC_COLUMN_mappings_end_ns, 1, 49, "ends before its start");
  spoil(MIC_COLUMN_off_spans_end_ns, 0, 0, "ends before its start");
  spoil(MIC_COLUMN_zones_end_ns, 2, 1, "ends before its start");
  accepted();
}

static void single_rules(void **state) {
  (void)state;
  spoil(MIC_COLUMN_mappings_size, 0, UINT64_MAX, "past the end of memory");
  spoil(MIC_COLUMN_duty_permille, 0, 1001, "more than 1000");
  forge_add(&forge, MIC_TABLE_clocks);
  refused(MIC_COLUMN_clocks_monotonic_ns, 1, "one row of clocks");
}

/* BEFORE is checked as u32, so no other width may have it. */
static void the_schema_keeps_to_what_is_checked(void **state) {
  (void)state;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    if (s->flags & MIC_COL_BEFORE) {
      assert_int_equal(s->width, 4);
      assert_int_equal(s->unit, MIC_COLUMN_UNIT_ID);
      assert_int_equal(s->target, s->table);
    } else if (s->unit == MIC_COLUMN_UNIT_ID) {
      assert_true(s->target < s->table); /* tables stand in order of dependency */
    }
    assert_true(strlen(s->name) <= MIC_NAME_SIZE);
  }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    CASE(every_reference),
    CASE(every_enum),
    CASE(parents_come_before),
    CASE(what_ascends_never_falls),
    CASE(strings_fill_their_bytes),
    CASE(bytes_without_strings),
    CASE(nothing_points_into_an_empty_table),
    CASE(stacks_have_roots),
    CASE(locations_are_somewhere),
    CASE(lines_count_up),
    CASE(spans_end_after_they_start),
    CASE(single_rules),
    CASE(the_schema_keeps_to_what_is_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
