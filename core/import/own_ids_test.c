/* own_ids_test.c - ids that rows have many times. */
#include "import/own_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FREE = 1 << 22 };

static void ids_that_differ_stay(void **state) {
  uint32_t ids[] = {7, 0, 3, FREE, UINT32_MAX};
  const uint32_t want[] = {7, 0, 3, FREE, UINT32_MAX};
  (void)state;
  mic_own_ids(ids, 5);
  assert_memory_equal(ids, want, sizeof ids);
  mic_own_ids(ids, 0);
}

/* One that a later row has is not free. */
static void a_repeated_id_becomes_one_that_none_has(void **state) {
  uint32_t ids[] = {1, 1, 0, FREE, 1, 0, FREE + 2, FREE};
  const uint32_t want[] = {1, FREE + 1, 0, FREE, FREE + 3, FREE + 4, FREE + 2, FREE + 5};
  (void)state;
  mic_own_ids(ids, 8);
  assert_memory_equal(ids, want, sizeof ids);
}

/* By looking on from the one before for each, this would take minutes. */
static void an_id_of_all_rows_is_no_matter(void **state) {
  enum { ROWS = 300000 };
  static uint32_t ids[ROWS], repeats[ROWS];
  (void)state;
  for (uint32_t i = 0; i < ROWS; i++) ids[i] = 1;
  mic_own_ids_repeats(ids, ROWS, repeats);
  mic_own_ids(ids, ROWS);
  assert_int_equal(ids[0], 1);
  for (uint32_t i = 1; i < ROWS; i++) assert_int_equal(ids[i], FREE + i - 1);
  for (uint32_t i = 0; i < ROWS; i++) assert_int_equal(repeats[i], i);
}

static void repeats_are_counted(void **state) {
  const uint32_t ids[] = {5, 6, 5, 0, 0, 5, 6}, want[] = {0, 0, 1, 0, 1, 2, 1};
  uint32_t repeats[7];
  (void)state;
  mic_own_ids_repeats(ids, 7, repeats);
  assert_memory_equal(repeats, want, sizeof want);
}

static void all_differ_where_none_is_missing(void **state) {
  static const struct {
    uint32_t ids[3];
    int differ;
  } given[] = {{{1, 2, 3}, 1}, {{1, 2, 1}, 0}, {{1, 0, 2}, 0}, {{0, 0, 0}, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    assert_int_equal(mic_own_ids_differ(given[i].ids, 3), given[i].differ);
  assert_int_equal(mic_own_ids_differ(given[0].ids, 0), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(ids_that_differ_stay),
    cmocka_unit_test(a_repeated_id_becomes_one_that_none_has),
    cmocka_unit_test(an_id_of_all_rows_is_no_matter),
    cmocka_unit_test(repeats_are_counted),
    cmocka_unit_test(all_differ_where_none_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
