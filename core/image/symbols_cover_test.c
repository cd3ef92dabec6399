/* symbols_cover_test.c - flattened ranges against asking every range. */
#include "image/symbols_cover.h"

#include "base/map.h"
#include "image/symbols_fixture.h"

static uint32_t by_asking_all(const struct mic_cover_range *ranges, size_t count, uint64_t at) {
  const struct mic_cover_range *best = NULL;
  for (size_t i = 0; i < count; i++) {
    const struct mic_cover_range *r = &ranges[i];
    if (at < r->start || at >= r->end) continue;
    uint64_t size = r->end - r->start, best_size = best ? best->end - best->start : 0;
    if (!best || r->rank > best->rank || (r->rank == best->rank && size < best_size) ||
        (r->rank == best->rank && size == best_size && r->id < best->id))
      best = r;
  }
  return best ? best->id : MIC_NONE;
}

static void random_ranges(void **state) {
  (void)state;
  for (int round = 0; round < 2000; round++) {
    struct mic_cover_range ranges[40];
    size_t count = next_random() % 40;
    for (size_t i = 0; i < count; i++) {
      uint64_t start = next_random() % 100;
      ranges[i] = (struct mic_cover_range){start, start + next_random() % 30, (uint32_t)i,
                                           (uint32_t)(next_random() % 3)};
    }
    struct mic_cover cover = {0};
    mic_cover_build(&cover, ranges, count);
    for (uint64_t at = 0; at < 140; at++)
      assert_int_equal(mic_cover_find(&cover, at), by_asking_all(ranges, count, at));
    mic_cover_free(&cover);
  }
}

static void ends_of_the_address_space(void **state) {
  (void)state;
  struct mic_cover_range ranges[] = {{0, 10, 1, 0}, {UINT64_MAX - 5, UINT64_MAX, 2, 0}};
  struct mic_cover cover = {0};
  assert_int_equal(mic_cover_find(&cover, 0), MIC_NONE);
  mic_cover_build(&cover, ranges, 2);
  assert_int_equal(mic_cover_find(&cover, 0), 1);
  assert_int_equal(mic_cover_find(&cover, 10), MIC_NONE);
  assert_int_equal(mic_cover_find(&cover, UINT64_MAX - 1), 2);
  assert_int_equal(mic_cover_find(&cover, UINT64_MAX), MIC_NONE);
  mic_cover_free(&cover);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_ranges),
    cmocka_unit_test(ends_of_the_address_space),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
