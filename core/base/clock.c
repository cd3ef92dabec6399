/* clock.c - clock_gettime in nanoseconds. */
#include "base/clock.h"

#include <time.h>

static uint64_t now(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t mic_clock_ns(void) { return now(CLOCK_MONOTONIC); }
uint64_t mic_clock_realtime_ns(void) { return now(CLOCK_REALTIME); }
uint64_t mic_clock_process_cpu_ns(void) { return now(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t mic_clock_thread_cpu_ns(void) { return now(CLOCK_THREAD_CPUTIME_ID); }
