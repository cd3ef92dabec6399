/*
 * claims_test.c - who is covered by inheritance, and which record is a second copy: told by made-up
 * FORK, EXIT and exec records, as the real races are too rare to wait for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perf/claims.h"
#include "perf/cover.h"

static void fork_of(struct mic_perf_cover *cover, uint32_t maker, uint32_t tid, uint64_t time_ns) {
  struct mic_record r = {
    .kind = MIC_RECORD_FORK, .pid = 1, .ppid = 1, .tid = tid, .ptid = maker, .time_ns = time_ns};
  mic_perf_cover_note(cover, &r, false);
}
static void exit_of(struct mic_perf_cover *cover, uint32_t tid, uint64_t time_ns) {
  struct mic_record r = {.kind = MIC_RECORD_EXIT, .pid = 1, .tid = tid, .time_ns = time_ns};
  mic_perf_cover_note(cover, &r, false);
}

static void only_a_later_fork_is_proof(void **state) {
  (void)state;
  struct mic_perf_cover cover = {0};
  assert_false(mic_perf_cover_has(&cover, 10));
  mic_perf_cover_opened(&cover, 10, 100, 200);
  assert_true(mic_perf_cover_has(&cover, 10));
  fork_of(&cover, 10, 11, 150); /* while 10 was being opened */
  fork_of(&cover, 10, 12, 250); /* may have begun before 200 */
  assert_false(mic_perf_cover_has(&cover, 11));
  assert_false(mic_perf_cover_has(&cover, 12));
  fork_of(&cover, 10, 13, 300);
  assert_true(mic_perf_cover_has(&cover, 13));
  assert_false(mic_perf_cover_has(&cover, 12));
  /* What a proven one makes is proven, what another makes is not. */
  fork_of(&cover, 13, 14, 310);
  fork_of(&cover, 14, 15, 320);
  fork_of(&cover, 12, 16, 330);
  fork_of(&cover, 99, 17, 340);
  assert_true(mic_perf_cover_has(&cover, 14));
  assert_true(mic_perf_cover_has(&cover, 15));
  assert_false(mic_perf_cover_has(&cover, 16));
  assert_false(mic_perf_cover_has(&cover, 17));
  /* 12 is opened now; it has to prove itself by a fork of its own. */
  mic_perf_cover_opened(&cover, 12, 400, 410);
  fork_of(&cover, 12, 18, 420);
  fork_of(&cover, 12, 19, 430);
  assert_true(mic_perf_cover_has(&cover, 12));
  assert_false(mic_perf_cover_has(&cover, 16));
  assert_false(mic_perf_cover_has(&cover, 18));
  assert_true(mic_perf_cover_has(&cover, 19));
  mic_perf_cover_free(&cover);
}

static void order_of_rings_does_not_matter(void **state) {
  (void)state;
  struct mic_perf_cover cover = {0};
  mic_perf_cover_opened(&cover, 10, 100, 200);
  fork_of(&cover, 10, 13, 300);
  assert_false(mic_perf_cover_has(&cover, 13)); /* as far as is known */
  fork_of(&cover, 10, 12, 250);
  assert_true(mic_perf_cover_has(&cover, 13));
  fork_of(&cover, 13, 14, 299); /* older than its maker: not this one's */
  assert_false(mic_perf_cover_has(&cover, 14));
  mic_perf_cover_free(&cover);
}

static void a_fork_told_twice_proves_nothing(void **state) {
  (void)state;
  for (int later_first = 0; later_first < 2; later_first++) {
    struct mic_perf_cover cover = {0};
    mic_perf_cover_opened(&cover, 10, 100, 200);
    fork_of(&cover, 10, 11, later_first ? 251 : 250);
    fork_of(&cover, 10, 11, later_first ? 250 : 251);
    assert_false(mic_perf_cover_has(&cover, 11));
    mic_perf_cover_free(&cover);
  }
}

static void knows_reused_tids(void **state) {
  (void)state;
  struct mic_perf_cover cover = {0};
  mic_perf_cover_opened(&cover, 10, 100, 200);
  mic_perf_cover_opened(&cover, 20, 100, 200);
  fork_of(&cover, 10, 11, 210);
  fork_of(&cover, 10, 12, 220);
  assert_true(mic_perf_cover_has(&cover, 12));
  exit_of(&cover, 12, 230);
  assert_false(mic_perf_cover_has(&cover, 12));
  fork_of(&cover, 99, 12, 240); /* of one that is not followed */
  assert_false(mic_perf_cover_has(&cover, 12));
  fork_of(&cover, 99, 20, 250); /* 20 had ended */
  assert_false(mic_perf_cover_has(&cover, 20));
  fork_of(&cover, 10, 20, 260);
  assert_true(mic_perf_cover_has(&cover, 20));
  mic_perf_cover_forget_forks(&cover);
  assert_false(mic_perf_cover_has(&cover, 12));
  mic_perf_cover_free(&cover);
}

static void processes_are_not_threads(void **state) {
  (void)state;
  struct mic_perf_cover cover = {0};
  mic_perf_cover_opened(&cover, 10, 100, 200);
  fork_of(&cover, 10, 11, 210);
  struct mic_record r = {
    .kind = MIC_RECORD_FORK, .pid = 12, .tid = 12, .ppid = 1, .ptid = 10, .time_ns = 220};
  mic_perf_cover_note(&cover, &r, true);
  assert_false(mic_perf_cover_has(&cover, 12));
  mic_perf_cover_note(&cover, &r, false);
  assert_false(mic_perf_cover_has(&cover, 12)); /* told once already */
  mic_perf_cover_free(&cover);
}

/* Events: id 100 + t was opened for tid t. */
static struct mic_claims *claims_of(uint32_t tids) {
  struct mic_claims *claims = mic_claims_new();
  for (uint32_t t = 1; t <= tids; t++) mic_claims_event(claims, 100 + t, t);
  return claims;
}
static bool sees(struct mic_claims *claims, uint32_t kind, uint32_t owner, uint32_t tid,
                 uint64_t time_ns) {
  struct mic_record r = {.kind = kind,
                         .id = 100 + owner,
                         .tid = tid,
                         .by_tid = tid,
                         .time_ns = time_ns,
                         .exec = kind == MIC_RECORD_COMM};
  return mic_claims_accept(claims, &r);
}
static bool sees_fork(struct mic_claims *claims, uint32_t owner, uint32_t maker, uint32_t tid,
                      uint64_t time_ns) {
  struct mic_record r = {.kind = MIC_RECORD_FORK,
                         .id = 100 + owner,
                         .tid = tid,
                         .ptid = maker,
                         .by_tid = maker,
                         .time_ns = time_ns};
  return mic_claims_accept(claims, &r);
}

static void takes_each_record_once(void **state) {
  (void)state;
  struct mic_claims *claims = claims_of(3);
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 2, 10)); /* nothing is claimed */
  mic_claims_task(claims, 2, 100);
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 2, 99)); /* before its own events were opened */
  assert_false(sees(claims, MIC_RECORD_SAMPLE, 1, 2, 101));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 2, 2, 101));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 1, 101));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 9, 101));
  assert_true(sees(claims, MIC_RECORD_LOST, 1, 2, 102));    /* is of the ring */
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 77, 2, 102)); /* a foreign event */
  assert_int_equal(mic_claims_dropped(claims), 1);
  mic_claims_free(claims);
  mic_claims_free(NULL);
}

static void what_a_claimed_one_makes_is_claimed(void **state) {
  (void)state;
  struct mic_claims *claims = claims_of(3);
  mic_claims_task(claims, 2, 100);
  assert_false(sees_fork(claims, 1, 2, 50, 200));
  assert_true(sees_fork(claims, 2, 2, 50, 200));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 2, 50, 210));
  assert_false(sees(claims, MIC_RECORD_SAMPLE, 1, 50, 210));
  assert_true(sees_fork(claims, 2, 50, 51, 220));
  assert_false(sees(claims, MIC_RECORD_SAMPLE, 1, 51, 230));
  mic_claims_free(claims);
}

static void a_reused_tid_is_another_task(void **state) {
  (void)state;
  struct mic_claims *claims = claims_of(3);
  mic_claims_task(claims, 2, 100);
  mic_claims_task(claims, 3, 100);
  assert_true(sees(claims, MIC_RECORD_EXIT, 2, 2, 200));
  assert_false(sees(claims, MIC_RECORD_EXIT, 1, 2, 201)); /* the same end, told again */
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 2, 300));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 2, 301));
  /* Its end was lost, but not its successor's beginning. */
  assert_true(sees_fork(claims, 1, 1, 3, 400));
  assert_true(sees(claims, MIC_RECORD_SAMPLE, 1, 3, 410));
  mic_claims_free(claims);
}

/* Thread 2, opened late, execs: it goes on as its leader 1, with its events. */
static void a_claim_follows_an_exec(void **state) {
  (void)state;
  for (int inherited_first = 0; inherited_first < 2; inherited_first++) {
    struct mic_claims *claims = claims_of(3);
    mic_claims_task(claims, 1, 50);
    mic_claims_task(claims, 2, 100);
    assert_true(sees(claims, MIC_RECORD_EXIT, 1, 1, 200));
    if (inherited_first) sees(claims, MIC_RECORD_COMM, 3, 1, 209);
    assert_true(sees(claims, MIC_RECORD_COMM, 2, 1, 210));
    assert_false(sees(claims, MIC_RECORD_COMM, 3, 1, 211));
    assert_true(sees(claims, MIC_RECORD_SAMPLE, 2, 1, 220));
    assert_false(sees(claims, MIC_RECORD_SAMPLE, 3, 1, 220));
    /* A new thread by the old tid owes nothing to it. */
    assert_true(sees_fork(claims, 2, 1, 2, 300));
    assert_true(sees(claims, MIC_RECORD_SAMPLE, 2, 2, 310));
    mic_claims_free(claims);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_a_later_fork_is_proof),
    cmocka_unit_test(order_of_rings_does_not_matter),
    cmocka_unit_test(a_fork_told_twice_proves_nothing),
    cmocka_unit_test(knows_reused_tids),
    cmocka_unit_test(processes_are_not_threads),
    cmocka_unit_test(takes_each_record_once),
    cmocka_unit_test(what_a_claimed_one_makes_is_claimed),
    cmocka_unit_test(a_reused_tid_is_another_task),
    cmocka_unit_test(a_claim_follows_an_exec),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
