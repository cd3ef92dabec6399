/* lanes_test.c - many zones in any order: sorted in place, and matched by their ids. */
#include "import/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "import/chrome_async.h"

enum { COUNT = 200000 };

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return *state >> 33;
}

static int by_start(const void *a, const void *b) {
  const struct mic_lane_zone *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

static int by_start_and_order(const void *a, const void *b) {
  const struct mic_lane_zone *x = a, *y = b;
  int first = by_start(a, b);
  return first ? first : x->order < y->order ? -1 : x->order > y->order;
}

/* As qsort orders them, where so many starts are different. */
static void sort_starts(uint64_t different, mic_lane_order *order) {
  mic_lane_zones zones = {0}, want = {0};
  uint64_t random = different;
  for (uint32_t i = 0; i < COUNT; i++) {
    int64_t start = (int64_t)(next_random(&random) % different);
    *mic_vec_push(&zones) = *mic_vec_push(&want) = (struct mic_lane_zone){start, start, 0, i};
  }
  qsort(want.at, want.count, sizeof *want.at, by_start_and_order);
  mic_lane_zones_sort(&zones, order);
  for (size_t i = 0; i < COUNT; i++) {
    assert_int_equal(zones.at[i].start, want.at[i].start);
    if (order == by_start_and_order) assert_int_equal(zones.at[i].order, want.at[i].order);
  }
  mic_vec_free(&zones);
  mic_vec_free(&want);
}

static void sorts_as_qsort_does(void **state) {
  (void)state;
  sort_starts(UINT32_MAX, by_start_and_order);
  sort_starts(1000, by_start_and_order);
  sort_starts(2, by_start); /* nearly all are equal */
  sort_starts(1, by_start_and_order);
}

static void sorts_what_is_in_order_or_backwards(void **state) {
  (void)state;
  for (int backwards = 0; backwards < 2; backwards++) {
    mic_lane_zones zones = {0};
    for (uint32_t i = 0; i < COUNT; i++)
      *mic_vec_push(&zones) = (struct mic_lane_zone){backwards ? COUNT - 1 - i : i, 0, 0, 0};
    mic_lane_zones_sort(&zones, by_start);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(zones.at[i].start, i);
    mic_vec_free(&zones);
  }
  mic_lane_zones none = {0};
  mic_lane_zones_sort(&none, by_start);
}

/* Zone i lasts from 2 i to 2 i + LAST, begins in thread i % 5 and is of id i % ids. */
enum { LAST = 2001 };
static struct mic_digest id_of(uint32_t id) {
  char text[64];
  int size = snprintf(text, sizeof text, "a long name of an asynchronous operation: %u", id);
  return mic_digest(text, (size_t)size);
}

static void add(struct mic_async *async, uint32_t event, uint32_t ids) {
  uint32_t i = event / 2;
  if (event % 2)
    mic_async_end(async, id_of(i % ids), 2 * i + LAST, i);
  else
    mic_async_begin(async, id_of(i % ids), 2 * i, i, i % 5);
}

static void on_zone(void *data, uint32_t thread, const struct mic_lane_zone *zone) {
  uint8_t *seen = data;
  uint32_t i = zone->site;
  assert_int_equal(zone->start, 2 * i);
  assert_int_equal(zone->end, 2 * i + LAST);
  assert_int_equal(thread, i % 5);
  assert_true(zone->order & MIC_LANE_APART);
  assert_int_equal(seen[i]++, 0);
}

static void matches_ids_in_any_order(void **state) {
  static const uint32_t ids[] = {1, 3, 4099, COUNT};
  uint32_t *events = mic_alloc(2 * COUNT * sizeof *events);
  uint32_t *names = mic_alloc(COUNT * sizeof *names);
  uint8_t *seen = mic_alloc(COUNT);
  (void)state;
  for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
    struct mic_async async = {0};
    struct mic_edge_counts counts = {0};
    uint64_t random = ids[k];
    for (uint32_t i = 0; i < 2 * COUNT; i++) events[i] = i;
    for (uint32_t i = 2 * COUNT; i-- > 1;) {
      uint64_t other = next_random(&random) % (i + 1);
      uint32_t event = events[i];
      events[i] = events[other];
      events[other] = event;
    }
    for (uint32_t i = 0; i < COUNT; i++) names[i] = i; /* an end says which it closes */
    for (uint32_t i = 0; i < 2 * COUNT; i++) add(&async, events[i], ids[k]);
    memset(seen, 0, COUNT);
    mic_async_match(&async, names, on_zone, seen, &counts);
    assert_int_equal(counts.unmatched_ends, 0);
    assert_int_equal(counts.unfinished, 0);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(seen[i], 1);
  }
  free(events);
  free(names);
  free(seen);
}

static void counts_what_has_no_other_half(void **state) {
  struct mic_async async = {0};
  struct mic_edge_counts counts = {0};
  uint8_t seen[4] = {0};
  uint32_t names[4] = {0};
  (void)state;
  mic_async_match(&async, names, on_zone, seen, &counts);
  mic_async_end(&async, id_of(1), 5, MIC_NONE);
  mic_async_end(&async, id_of(2), 6, MIC_NONE);
  mic_async_match(&async, names, on_zone, seen, &counts);
  assert_int_equal(counts.unmatched_ends, 2);
  mic_async_end(&async, id_of(1), 7, MIC_NONE);
  mic_async_free(&async);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sorts_as_qsort_does),
    cmocka_unit_test(sorts_what_is_in_order_or_backwards),
    cmocka_unit_test(matches_ids_in_any_order),
    cmocka_unit_test(counts_what_has_no_other_half),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
