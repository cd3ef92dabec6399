/* budget_test.c - the budget's duty, and the queue's bound. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/budget.h"
#include "record/queue.h"

#define SECOND 1000000000ULL

static void no_bound_is_full_duty(void **state) {
  (void)state;
  struct mic_budget budget;
  mic_budget_start(&budget, 0);
  assert_int_equal(mic_budget_step(&budget, SECOND, SECOND, SECOND), 1000);
}

/* A recorder whose cost follows the time sampling is on settles under its share. */
static void cost_settles_under_the_share(void **state) {
  (void)state;
  static const double prices[] = {0.005, 0.02, 0.3, 1.7};
  for (size_t p = 0; p < sizeof prices / sizeof *prices; p++) {
    struct mic_budget budget;
    mic_budget_start(&budget, 10);
    uint32_t duty = 1000;
    double spent = 0;
    for (int window = 0; window < 300; window++) {
      double on = (double)SECOND * duty / 1000;
      double cost = on * prices[p];
      if (window >= 100) spent += cost;
      duty = mic_budget_step(&budget, SECOND, (uint64_t)cost, (uint64_t)on);
      assert_in_range(duty, 1, 1000);
    }
    double share = spent / (200.0 * (double)SECOND);
    /* The least duty, 1 %, is what a price over 1 CPU ends at. */
    assert_true(share <= (prices[p] > 1 ? prices[p] / 100 + 0.0001 : 0.0105));
    if (prices[p] < 0.01) assert_int_equal(duty, 1000);
  }
}

/* What is paid once, at the start, does not switch sampling off; what goes on does. */
static void a_start_is_paid_from_credit(void **state) {
  (void)state;
  struct mic_budget budget;
  mic_budget_start(&budget, 10);
  assert_int_equal(mic_budget_step(&budget, SECOND, 80000000, SECOND), 1000);
  for (int window = 0; window < 20; window++)
    assert_int_equal(mic_budget_step(&budget, SECOND, 5000000, SECOND), 1000);
  uint32_t duty = 1000;
  for (int window = 0; window < 20; window++)
    duty = mic_budget_step(&budget, SECOND, 80000000 / 1000 * duty, SECOND / 1000 * duty);
  assert_true(duty <= 150);
}

static void the_same_observations_give_the_same_duty(void **state) {
  (void)state;
  struct mic_budget a, b;
  mic_budget_start(&a, 10);
  mic_budget_start(&b, 10);
  uint32_t seed = 3;
  for (int i = 0; i < 1000; i++) {
    seed = seed * 1664525 + 1013904223;
    uint64_t cpu = seed % 50000000, on = seed % SECOND;
    assert_int_equal(mic_budget_step(&a, SECOND, cpu, on), mic_budget_step(&b, SECOND, cpu, on));
  }
  /* Nothing to divide by. */
  assert_in_range(mic_budget_step(&a, SECOND, SECOND, 0), 1, 1000);
  assert_int_equal(mic_budget_step(&a, 0, 5, 5), 1000);
}

static void the_queue_keeps_room_for_other_records(void **state) {
  (void)state;
  struct mic_queue *queue = mic_queue_new(16 * MIC_CHUNK_BYTES);
  struct mic_chunk *taken[16];
  for (int i = 0; i < 14; i++) {
    taken[i] = mic_queue_take(queue, true);
    assert_non_null(taken[i]);
  }
  assert_null(mic_queue_take(queue, true));
  for (int i = 14; i < 16; i++) {
    taken[i] = mic_queue_take(queue, false);
    assert_non_null(taken[i]);
  }
  assert_null(mic_queue_take(queue, false));
  assert_int_equal(mic_queue_used(queue), mic_queue_bound(queue));
  for (int i = 0; i < 16; i++) {
    taken[i]->watermark_ns = (uint64_t)i;
    mic_queue_push(queue, taken[i]);
  }
  mic_queue_close(queue);
  for (int i = 0; i < 16; i++) {
    struct mic_chunk *chunk = mic_queue_pop(queue);
    assert_int_equal(chunk->watermark_ns, i);
    mic_queue_release(queue, chunk);
  }
  assert_null(mic_queue_pop(queue));
  assert_int_equal(mic_queue_used(queue), 0);
  assert_int_equal(mic_queue_peak(queue), 16 * MIC_CHUNK_BYTES);
  struct mic_chunk *again = mic_queue_take(queue, true);
  assert_int_equal(again->watermark_ns, 0);
  mic_queue_release(queue, again);
  mic_queue_free(queue);
}

static void *pop_one(void *queue) { return mic_queue_pop(queue); }

/* All chunks wait for a watermark that only a further chunk can bring. */
static void a_starved_processor_gets_past_the_bound(void **state) {
  (void)state;
  enum { BOUND = 8 };
  struct mic_queue *queue = mic_queue_new(BOUND * MIC_CHUNK_BYTES);
  struct mic_chunk *held[BOUND], *more;
  for (int i = 0; i < BOUND; i++) {
    mic_queue_push(queue, mic_queue_take(queue, false));
    held[i] = mic_queue_pop(queue);
  }
  assert_null(mic_queue_take(queue, false)); /* it is busy: it may yet release one */
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, pop_one, queue), 0);
  while (!(more = mic_queue_take(queue, true))) sched_yield();
  mic_queue_push(queue, more);
  void *popped;
  assert_int_equal(pthread_join(thread, &popped), 0);
  assert_ptr_equal(popped, more);
  assert_null(mic_queue_take(queue, false));
  mic_queue_release(queue, more);
  for (int i = 0; i < BOUND; i++) mic_queue_release(queue, held[i]);
  assert_int_equal(mic_queue_used(queue), 0);
  mic_queue_free(queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_bound_is_full_duty),
    cmocka_unit_test(cost_settles_under_the_share),
    cmocka_unit_test(a_start_is_paid_from_credit),
    cmocka_unit_test(the_same_observations_give_the_same_duty),
    cmocka_unit_test(the_queue_keeps_room_for_other_records),
    cmocka_unit_test(a_starved_processor_gets_past_the_bound),
  };
  return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
