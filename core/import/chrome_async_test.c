/* chrome_async_test.c - many asynchronous zones in any order, matched by their ids. */
#include "import/chrome_async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 200000 };

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return *state >> 33;
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
    cmocka_unit_test(matches_ids_in_any_order),
    cmocka_unit_test(counts_what_has_no_other_half),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
