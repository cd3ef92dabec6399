/* file_places_test.c - places in mapped files, against looking at each mapping. */
#include "import/file_places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROWS = 200, MODULES = 5, OFFSETS = 70 };

struct mapped {
  uint32_t module[ROWS];
  uint64_t offset[ROWS], size[ROWS];
};

static uint32_t next(uint32_t *seed) {
  *seed = *seed * 1664525 + 1013904223;
  return *seed >> 16;
}

static struct mic_tables tables_of(const struct mapped *m, uint64_t rows) {
  struct mic_tables t = {.mappings = {.rows = rows}};
  t.mappings.module = m->module;
  t.mappings.file_offset = m->offset;
  t.mappings.size = m->size;
  return t;
}

static uint32_t look(const struct mapped *m, uint64_t rows, uint32_t module, uint64_t offset) {
  for (uint32_t i = 0; i < rows; i++)
    if (m->module[i] == module && offset >= m->offset[i] && offset - m->offset[i] < m->size[i])
      return i;
  return MIC_NONE;
}

static void the_first_mapping_is_found(void **state) {
  static const bool asked[MODULES] = {true, true, false, true, true};
  uint32_t seed = 1;
  (void)state;
  for (uint64_t round = 0; round < 300; round++) {
    static struct mapped m;
    uint64_t rows = round % ROWS;
    for (uint64_t i = 0; i < rows; i++) {
      m.module[i] = next(&seed) % 9 == 0 ? MIC_NONE : next(&seed) % MODULES;
      m.offset[i] = next(&seed) % OFFSETS;
      m.size[i] = next(&seed) % (round % 3 ? 6 : 40);
    }
    struct mic_tables t = tables_of(&m, rows);
    struct mic_file_places places;
    mic_file_places_of(&t, asked, &places);
    for (uint32_t module = 0; module < MODULES; module++)
      for (uint64_t offset = 0; offset < OFFSETS + 50 && asked[module]; offset++)
        assert_int_equal(mic_file_places_find(&places, module, offset),
                         look(&m, rows, module, offset));
    mic_file_places_free(&places);
  }
}

static void a_mapping_reaches_the_end_of_all_offsets(void **state) {
  static const bool asked[] = {true};
  const struct mapped m = {.offset = {UINT64_MAX - 9, UINT64_MAX - 4, 0},
                           .size = {5, UINT64_MAX, UINT64_MAX}};
  (void)state;
  struct mic_tables t = tables_of(&m, 3);
  struct mic_file_places places;
  mic_file_places_of(&t, asked, &places);
  for (uint64_t offset = UINT64_MAX - 20; offset; offset++) /* to the last */
    assert_int_equal(mic_file_places_find(&places, 0, offset), look(&m, 3, 0, offset));
  assert_int_equal(mic_file_places_find(&places, 0, 0), 2);
  mic_file_places_free(&places);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_mapping_is_found),
    cmocka_unit_test(a_mapping_reaches_the_end_of_all_offsets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
