/* sort_test.c - arrays in any order, as qsort(3) sorts them. */
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { COUNT = 200000 };

struct item {
  int64_t start;
  uint32_t number;
};

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return *state >> 33;
}

static int by_start(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

static int by_start_and_number(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  int first = by_start(a, b);
  return first ? first : x->number < y->number ? -1 : x->number > y->number;
}

/* So many starts are different. */
static void sort_starts(uint64_t different, mic_sort_order *order) {
  struct item *items = mic_alloc(COUNT * sizeof *items), *want = mic_alloc(COUNT * sizeof *want);
  uint64_t random = different;
  for (uint32_t i = 0; i < COUNT; i++)
    items[i] = want[i] = (struct item){(int64_t)(next_random(&random) % different), i};
  qsort(want, COUNT, sizeof *want, by_start_and_number);
  mic_sort(items, COUNT, sizeof *items, order);
  for (size_t i = 0; i < COUNT; i++) {
    assert_int_equal(items[i].start, want[i].start);
    if (order == by_start_and_number) assert_int_equal(items[i].number, want[i].number);
  }
  free(items);
  free(want);
}

static void sorts_as_qsort_does(void **state) {
  (void)state;
  sort_starts(UINT32_MAX, by_start_and_number);
  sort_starts(1000, by_start_and_number);
  sort_starts(2, by_start); /* nearly all are equal */
  sort_starts(1, by_start_and_number);
}

static void sorts_what_is_in_order_or_backwards(void **state) {
  (void)state;
  for (int backwards = 0; backwards < 2; backwards++) {
    struct item *items = mic_alloc(COUNT * sizeof *items);
    for (uint32_t i = 0; i < COUNT; i++) items[i].start = backwards ? COUNT - 1 - i : i;
    mic_sort(items, COUNT, sizeof *items, by_start);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(items[i].start, i);
    free(items);
  }
  mic_sort(NULL, 0, sizeof(struct item), by_start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sorts_as_qsort_does),
    cmocka_unit_test(sorts_what_is_in_order_or_backwards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
