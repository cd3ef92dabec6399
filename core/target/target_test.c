/* target_test.c - processes and threads over time, where records are missing or ids come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/reader.h"
#include "target/target.h"

enum { PID = 4000 };

struct world {
  char path[64];
  struct mic_writer *writer;
  struct mic_target *target;
};

static void begin(struct world *w, bool elsewhere) {
  snprintf(w->path, sizeof w->path, "/tmp/target-test-%d.usprof", (int)getpid());
  assert_int_equal(mic_writer_open(w->path, &w->writer, NULL), 0);
  struct mic_target_options options = {.writer = w->writer, .elsewhere = elsewhere};
  w->target = mic_target_new(&options);
}

static struct mic_capture *finish(struct world *w) {
  struct mic_error err = {0};
  struct mic_capture *cap;
  mic_target_finish(w->target);
  mic_target_free(w->target);
  if (mic_writer_finish(w->writer, false, &err) != 0) fail_msg("%s", err.msg);
  if (mic_capture_open(w->path, &cap, &err) != 0) fail_msg("%s", err.msg);
  unlink(w->path);
  return cap;
}

static const void *column(struct mic_capture *cap, const char *table, const char *name,
                          uint64_t rows) {
  struct mic_column column;
  assert_int_equal(mic_capture_column(cap, table, name, &column, NULL), 0);
  assert_int_equal(column.rows, rows);
  return column.data;
}

/* exec leaves the leader; of other processes nobody. */
static void exec_ends_the_other_threads(void **state) {
  (void)state;
  struct world w;
  begin(&w, true);
  mic_target_name(w.target, 10, PID, PID, "a", false);
  mic_target_name(w.target, 11, PID + 10, PID + 10, "b", false);
  for (uint32_t i = 1; i < 4; i++) mic_target_fork(w.target, 11 + i, PID, PID + i, PID, PID);
  mic_target_fork(w.target, 15, PID + 10, PID + 11, PID + 10, PID + 10);
  mic_target_exit(w.target, 16, PID, PID + 2);
  mic_target_name(w.target, 20, PID, PID, "c", true);
  struct mic_capture *cap = finish(&w);
  const uint32_t *tids = column(cap, "threads", "tid", 6);
  const uint64_t *ends = column(cap, "threads", "end_ns", 6);
  for (size_t i = 0; i < 6; i++) {
    bool other = tids[i] == PID + 1 || tids[i] == PID + 3;
    assert_int_equal(ends[i], tids[i] == PID + 2 ? 16 : other ? 20 : UINT64_MAX);
  }
  mic_capture_close(cap);
}

/* The leader can be gone while others run; the last one ends the process. */
static void the_last_thread_ends_the_process(void **state) {
  (void)state;
  struct world w;
  begin(&w, true);
  mic_target_name(w.target, 10, PID, PID, "a", false);
  mic_target_fork(w.target, 11, PID, PID + 1, PID, PID);
  mic_target_exit(w.target, 12, PID, PID);
  mic_target_fork(w.target, 13, PID, PID + 2, PID, PID + 1);
  mic_target_exit(w.target, 14, PID, PID + 2);
  mic_target_exit(w.target, 15, PID, PID + 1);
  struct mic_capture *cap = finish(&w);
  assert_int_equal(*(const uint64_t *)column(cap, "processes", "end_ns", 1), 15);
  mic_capture_close(cap);
}

/* A fork that gives a known id: the exits of that process were lost, of all its threads. */
static void a_process_id_that_comes_again_is_another_process(void **state) {
  (void)state;
  struct world w;
  begin(&w, true);
  mic_target_name(w.target, 10, PID, PID, "a", false);
  mic_target_fork(w.target, 11, PID + 5, PID + 5, PID, PID);
  mic_target_fork(w.target, 12, PID + 5, PID + 6, PID + 5, PID + 5);
  mic_target_fork(w.target, 20, PID + 5, PID + 5, PID, PID);
  struct mic_capture *cap = finish(&w);
  const uint64_t *ends = column(cap, "processes", "end_ns", 3);
  assert_int_equal(ends[1], 20);
  assert_int_equal(ends[2], UINT64_MAX);
  const uint32_t *owners = column(cap, "threads", "process", 4);
  const uint64_t *thread_ends = column(cap, "threads", "end_ns", 4);
  for (size_t i = 0; i < 4; i++) assert_int_equal(thread_ends[i], owners[i] == 1 ? 20 : UINT64_MAX);
  mic_capture_close(cap);
}

/* Its exit was lost, and its last thread's id is one of another process now. */
static void a_thread_id_that_comes_again_ends_its_process(void **state) {
  (void)state;
  struct world w;
  begin(&w, true);
  mic_target_name(w.target, 10, PID, PID, "a", false);
  mic_target_fork(w.target, 11, PID + 5, PID + 5, PID, PID);
  mic_target_name(w.target, 20, PID, PID + 5, "b", false);
  struct mic_capture *cap = finish(&w);
  const uint64_t *ends = column(cap, "processes", "end_ns", 2);
  assert_int_equal(ends[0], UINT64_MAX);
  assert_int_equal(ends[1], 20);
  mic_capture_close(cap);
}

/* Without its fork's record, and those of its mappings: they are read. */
static void a_process_first_seen_after_a_loss_has_its_mappings(void **state) {
  (void)state;
  struct world w;
  uint32_t pid = (uint32_t)getpid();
  begin(&w, false);
  mic_target_lost(w.target);
  mic_target_name(w.target, 10, pid, pid, "me", false);
  struct mic_capture *cap = finish(&w);
  assert_true(mic_capture_rows(cap, "mappings") > 0);
  assert_true(mic_capture_rows(cap, "modules") > 0);
  mic_capture_close(cap);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(exec_ends_the_other_threads),
    cmocka_unit_test(the_last_thread_ends_the_process),
    cmocka_unit_test(a_process_id_that_comes_again_is_another_process),
    cmocka_unit_test(a_thread_id_that_comes_again_ends_its_process),
    cmocka_unit_test(a_process_first_seen_after_a_loss_has_its_mappings),
  };
  return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
