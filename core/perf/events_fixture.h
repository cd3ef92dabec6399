/*
 * events_fixture.h - what the tests of real perf events share: children, rings, waits.
 *
 * Every wait is for a condition, with a deadline that only ends a hopeless run.
 */
#ifndef MIC_PERF_EVENTS_FIXTURE_H
#define MIC_PERF_EVENTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "perf/events.h"

#define UNUSED __attribute__((unused)) /* each of the tests takes what it needs */

enum { SECONDS = 60, BUFFER = 1 << 20, NOBODY = 65534 };

static uint8_t *buffer;

static UNUSED uint64_t deadline(void) { return mic_clock_ns() + SECONDS * 1000000000ull; }

/* ---- children ---- */

/* Run body in a child; it dies with the test. */
static UNUSED pid_t child_of(void (*body)(void)) {
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  return pid;
}
static UNUSED void end_child(pid_t pid) {
  int status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}
static UNUSED void wait_stopped(pid_t pid) {
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
}
static UNUSED void spin(void) {
  for (volatile uint64_t i = 0;; i++) {
  }
}
static UNUSED void stop_then_spin(void) {
  raise(SIGSTOP);
  spin();
}

/* ---- recording ---- */

static UNUSED struct mic_perf_options options_of(uint32_t stack_bytes) {
  return (struct mic_perf_options){.size = sizeof(struct mic_perf_options),
                                   .period = 1000000,
                                   .stack_bytes = stack_bytes,
                                   .ring_bytes = 1 << 20,
                                   .side_ring_bytes = 256 << 10};
}
static UNUSED struct mic_perf *perf_new(struct mic_perf_options options) {
  struct mic_perf *perf;
  struct mic_error err = {0};
  if (mic_perf_new(&options, &perf, &err)) fail_msg("%s", err.msg);
  return perf;
}
static UNUSED void add(struct mic_perf *perf, pid_t pid, uint32_t when) {
  struct mic_error err = {0};
  if (mic_perf_add_task(perf, (uint32_t)pid, when, &err)) fail_msg("%s", err.msg);
}
static UNUSED void enable(struct mic_perf *perf) {
  struct mic_error err = {0};
  if (mic_perf_enable(perf, &err)) fail_msg("%s", err.msg);
}

typedef bool (*visit)(void *data, const struct mic_record *record);

/* Records as they are in the rings, for the fuzzer's corpus: its first byte chooses the layout. */
static UNUSED void write_corpus(const uint8_t *bytes, size_t size) {
  static unsigned number;
  const char *folder = getenv("MIC_WRITE_CORPUS");
  char path[512];
  if (!folder || size == 0 || size > 8192 || number >= 24) return;
  snprintf(path, sizeof path, "%s/ring-%02u", folder, number++);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputc(number % 2 ? 8 : 4, file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

/* Decode all that is in the rings; true when visit said so of a record. */
static UNUSED bool drain(struct mic_perf *perf, visit each, void *data) {
  bool done = false;
  for (size_t i = 0; i < mic_perf_rings(perf); i++) {
    size_t want = 1;
    while (want) {
      size_t used = mic_perf_ring_copy(perf, i, buffer, BUFFER, &want);
      write_corpus(buffer, used);
      for (size_t at = 0; at < used;) {
        struct mic_record record;
        struct mic_error err;
        if (mic_perf_decode(mic_perf_layout(perf), buffer + at, used - at, &record, &err))
          fail_msg("%s", err.msg);
        if (each(data, &record)) done = true;
        at += record.size;
      }
    }
  }
  return done;
}
static UNUSED void drain_until(struct mic_perf *perf, visit each, void *data) {
  uint64_t end = deadline();
  while (!drain(perf, each, data)) {
    assert_true(mic_clock_ns() < end);
    mic_perf_poll(perf, 10);
  }
}

struct tally {
  uint32_t tid;
  uint64_t samples, of_tid, enough;
  uint64_t last_ns, period;
};
static UNUSED bool count_samples(void *data, const struct mic_record *record) {
  struct tally *tally = data;
  if (record->kind != MIC_RECORD_SAMPLE) return false;
  tally->samples++;
  if (tally->tid == 0 || record->tid == tally->tid) tally->of_tid++;
  if (record->time_ns > tally->last_ns) tally->last_ns = record->time_ns;
  tally->period = record->period;
  return tally->of_tid >= tally->enough;
}

static UNUSED int setup(void **state) {
  (void)state;
  struct mic_perf_options options = options_of(0);
  struct mic_perf *perf;
  struct mic_error err = {0};
  buffer = malloc(BUFFER);
  int code = mic_perf_new(&options, &perf, &err);
  if (code == MIC_EPERM || code == MIC_EUNSUPPORTED) {
    print_message("skipped: %s\n", err.msg);
    exit(77);
  }
  mic_perf_free(perf);
  return code;
}
static UNUSED int teardown(void **state) {
  (void)state;
  free(buffer);
  return 0;
}
#endif
