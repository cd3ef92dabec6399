/*
 * session_test.c - whole recordings of real programs, in one process: also what TSan looks at.
 *
 * Needs the right to sample its own programs (kernel.perf_event_paranoid 2 or less).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "capture/reader.h"
#include "record/session.h"
#include "record/tape.h"

static char output[64], tape[64];

static struct mic_record_options options_for(const char *const *argv) {
  return (struct mic_record_options){
    .size = sizeof(struct mic_record_options),
    .period = 1000000,
    .stack_bytes = 16384,
    .children = 1,
    .output = output,
    .argv = argv,
  };
}

static struct mic_session *start(const struct mic_record_options *options) {
  struct mic_error err = {0};
  struct mic_session *session;
  if (mic_session_new(options, &session, &err) != 0) fail_msg("new: %s", err.msg);
  if (mic_session_start(session, &err) != 0) fail_msg("start: %s", err.msg);
  return session;
}

/* Polls until an event of the kind; others are passed over. */
static int32_t wait_for(struct mic_session *session, uint32_t kind) {
  struct mic_session_event event;
  struct mic_error err = {0};
  for (uint64_t end_ns = mic_clock_ns() + 120000000000ULL; mic_clock_ns() < end_ns;) {
    assert_int_equal(mic_session_poll(session, 500, &event, NULL), 0);
    if (event.kind == kind) return event.value;
    if (event.kind == MIC_SESSION_FAILED) mic_session_error(session, &err);
    if (event.kind == MIC_SESSION_FAILED) fail_msg("failed: %s", err.msg);
  }
  fail_msg("no event %u in two minutes", kind);
  return -1;
}

static uint64_t rows(const char *path, const char *table) {
  struct mic_error err = {0};
  struct mic_capture *cap;
  if (mic_capture_open(path, &cap, &err) != 0) fail_msg("open: %s", err.msg);
  uint64_t count = mic_capture_rows(cap, table);
  mic_capture_close(cap);
  return count;
}

/* The value of a fact, or "" when the capture does not have it. */
static void fact(const char *path, const char *key, char value[64]) {
  struct mic_capture *cap;
  struct mic_column keys, values;
  uint64_t size;
  assert_int_equal(mic_capture_open(path, &cap, NULL), 0);
  assert_int_equal(mic_capture_column(cap, "meta", "key", &keys, NULL), 0);
  assert_int_equal(mic_capture_column(cap, "meta", "value", &values, NULL), 0);
  value[0] = '\0';
  for (uint64_t i = 0; i < keys.rows; i++) {
    const char *name = mic_capture_string(cap, ((const uint32_t *)keys.data)[i], &size);
    if (size != strlen(key) || memcmp(name, key, size) != 0) continue;
    const char *text = mic_capture_string(cap, ((const uint32_t *)values.data)[i], &size);
    snprintf(value, 64, "%.*s", (int)size, text);
  }
  mic_capture_close(cap);
}

static void a_program_is_recorded_to_its_end(void **state) {
  (void)state;
  static const char *const argv[] = {
    "/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 7", NULL};
  struct mic_record_options options = options_for(argv);
  struct mic_session *session = start(&options);
  assert_int_equal(wait_for(session, MIC_SESSION_EXITED), 7);
  wait_for(session, MIC_SESSION_DONE);
  struct mic_session_numbers numbers;
  mic_session_numbers(session, &numbers);
  mic_session_free(session);
  assert_true(numbers.samples > 20);
  assert_int_equal(numbers.lost_samples, 0);
  assert_true(numbers.startup_cpu_ns > 0 && numbers.running_cpu_ns > 0);
  struct stat file;
  assert_int_equal(stat(output, &file), 0);
  assert_int_equal(numbers.bytes, file.st_size);
  assert_int_equal(rows(output, "samples"), numbers.samples);
  assert_int_equal(rows(output, "processes"), 1);
  char status[64];
  fact(output, "exit_status", status);
  assert_string_equal(status, "7");
}

static void a_signal_is_an_event_and_free_ends_the_program(void **state) {
  (void)state;
  static const char *const argv[] = {"/bin/sh", "-c", "while :; do :; done", NULL};
  struct mic_record_options options = options_for(argv);
  struct mic_session *session = start(&options);
  struct mic_session_numbers numbers = {0};
  while (numbers.samples < 10) {
    struct mic_session_event event;
    mic_session_poll(session, 10, &event, NULL);
    mic_session_numbers(session, &numbers);
  }
  kill(getpid(), SIGTERM);
  assert_int_equal(wait_for(session, MIC_SESSION_INTERRUPTED), SIGTERM);
  mic_session_stop(session);
  wait_for(session, MIC_SESSION_DONE);
  int32_t status;
  assert_int_equal(mic_session_end_program(session, &status), 0);
  assert_int_equal(status, 128 + SIGTERM);
  kill(getpid(), SIGTERM); /* one that no poll takes goes with the session */
  mic_session_free(session);
  assert_int_equal(kill((pid_t)numbers.pid, 0), -1);
  assert_int_equal(errno, ESRCH);
  assert_true(rows(output, "samples") >= 10);
  char value[64];
  fact(output, "exit_status", value); /* it still ran */
  assert_string_equal(value, "");
}

static void what_cannot_start_leaves_nothing(void **state) {
  (void)state;
  static const char *const argv[] = {"/no/such/program", NULL};
  struct mic_record_options options = options_for(argv);
  struct mic_error err = {0};
  struct mic_session *session;
  unlink(output);
  assert_int_equal(mic_session_new(&options, &session, &err), 0);
  assert_int_equal(mic_session_start(session, &err), MIC_ENOENT);
  assert_non_null(strstr(err.msg, "/no/such/program"));
  mic_session_stop(session);
  assert_int_equal(mic_session_start(session, &err), MIC_ESTATE);
  mic_session_free(session);
  assert_int_equal(access(output, F_OK), -1);
  uint32_t nobody = 4194304; /* PID_MAX_LIMIT: never a pid */
  options.argv = NULL;
  options.pids = &nobody;
  options.pid_count = 1;
  assert_int_equal(mic_session_new(&options, &session, &err), 0);
  assert_int_not_equal(mic_session_start(session, &err), 0);
  mic_session_free(session);
  options.pid_count = 0;
  assert_int_equal(mic_session_new(&options, &session, &err), MIC_EARG);
  options.pid_count = 1;
  options.stack_bytes = 12;
  assert_int_equal(mic_session_new(&options, &session, &err), MIC_EARG);
}

/* The same functions at the same number of samples: what replay is for. */
static void a_tape_gives_the_same_capture(void **state) {
  (void)state;
  static const char *const argv[] = {
    "/bin/sh", "-c", "for i in 1 2 3; do ls -lR /usr/lib/x86_64-linux-gnu >/dev/null; done", NULL};
  struct mic_record_options options = options_for(argv);
  options.period = 200000;
  options.tape = tape;
  struct mic_session *session = start(&options);
  wait_for(session, MIC_SESSION_DONE);
  mic_session_free(session);
  char replayed[80];
  snprintf(replayed, sizeof replayed, "%s.replayed", output);
  struct mic_replay_options replay = {
    .size = sizeof replay, .passes = 1, .tape = tape, .output = replayed};
  struct mic_replay_result result;
  struct mic_error err = {0};
  if (mic_tape_replay(&replay, &result, &err) != 0) fail_msg("replay: %s", err.msg);
  static const char *const tables[] = {"samples",   "stacks",       "locations", "processes",
                                       "threads",   "thread_names", "mappings",  "modules",
                                       "functions", "lines"};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (rows(output, tables[i]) != rows(replayed, tables[i]))
      fail_msg("%s: %llu rows, %llu replayed", tables[i],
               (unsigned long long)rows(output, tables[i]),
               (unsigned long long)rows(replayed, tables[i]));
  assert_int_equal(result.samples, rows(output, "samples"));
  /* A cut tape is one error, not a shorter recording. */
  assert_int_equal(truncate(tape, 5000), 0);
  assert_int_equal(mic_tape_replay(&replay, &result, &err), MIC_EFORMAT);
  assert_non_null(strstr(err.msg, tape));
  unlink(replayed);
  unlink(tape);
}

static int name_files(void **state) {
  (void)state;
  snprintf(output, sizeof output, "/tmp/session-test-%d.usprof", (int)getpid());
  snprintf(tape, sizeof tape, "/tmp/session-test-%d.tape", (int)getpid());
  return 0;
}

static int remove_files(void **state) {
  (void)state;
  unlink(output);
  unlink(tape);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_program_is_recorded_to_its_end),
    cmocka_unit_test(a_signal_is_an_event_and_free_ends_the_program),
    cmocka_unit_test(what_cannot_start_leaves_nothing),
    cmocka_unit_test(a_tape_gives_the_same_capture),
  };
  return cmocka_run_group_tests_name("session", tests, name_files, remove_files);
}
