/* numbers_test.c - columns as narrow as their numbers. */
#include "import/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers_widen(void **state) {
  static const struct {
    int64_t value;
    uint32_t width;
  } given[] = {
    {0, 1},
    {127, 1},
    {-127, 1},
    {MIC_NUMBER_NULL, 1},
    {-128, 2},
    {128, 2},
    {INT16_MAX, 2},
    {MIC_NUMBER_NULL, 2},
    {INT16_MIN, 4},
    {INT32_MAX, 4},
    {-INT32_MAX, 4},
    {INT32_MIN, 8},
    {INT64_MAX, 8},
    {-INT64_MAX, 8},
    {MIC_NUMBER_NULL, 8},
  };
  enum { COUNT = sizeof given / sizeof *given };
  struct mic_numbers numbers = {0};
  (void)state;
  for (size_t i = 0; i < COUNT; i++) {
    mic_numbers_push(&numbers, given[i].value);
    assert_int_equal(given[i].width, numbers.width);
    for (size_t k = 0; k <= i; k++) assert_true(mic_numbers_get(&numbers, k) == given[k].value);
  }
  assert_true(mic_numbers_get(&numbers, COUNT) == MIC_NUMBER_NULL);
  mic_numbers_clear(&numbers);
  mic_numbers_push(&numbers, MIC_NUMBER_NULL);
  assert_int_equal(1, numbers.width);
  assert_true(mic_numbers_get(&numbers, 0) == MIC_NUMBER_NULL);
  mic_numbers_free(&numbers);
}

static void a_number_is_set_again(void **state) {
  enum { COUNT = 1000 };
  struct mic_numbers numbers = {0};
  (void)state;
  for (int64_t i = 0; i < COUNT; i++) mic_numbers_push(&numbers, i % 100);
  mic_numbers_set(&numbers, 7, 1LL << 40);
  mic_numbers_set_last(&numbers, MIC_NUMBER_NULL);
  for (int64_t i = 0; i < COUNT - 1; i++)
    assert_true(mic_numbers_get(&numbers, (uint64_t)i) == (i == 7 ? 1LL << 40 : i % 100));
  assert_true(mic_numbers_get(&numbers, COUNT - 1) == MIC_NUMBER_NULL);
  mic_numbers_free(&numbers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_widen),
    cmocka_unit_test(a_number_is_set_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
