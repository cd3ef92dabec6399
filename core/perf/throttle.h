/*
 * throttle.h - the spans in which the kernel held events off, from its THROTTLE records.
 *
 * Events are told apart by CPU and stream: inherited ones are throttled each by itself
 * (kernel/events/core.c, perf_log_throttle).
 *
 * Owns:    its tables.  Zero-initialised is empty.
 * Threads: one user at a time.
 */
#ifndef MIC_PERF_THROTTLE_H
#define MIC_PERF_THROTTLE_H

#include "base/map.h"
#include "perf/record.h"

struct mic_throttle {
  struct mic_map events;   /* (cpu, stream) -> index of start */
  MIC_VEC(uint64_t) start; /* 0: it runs */
};

struct mic_throttle_span {
  uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
  uint32_t cpu;
};

/* Takes a THROTTLE or UNTHROTTLE; true when a span ended. */
bool mic_throttle_take(struct mic_throttle *throttle, const struct mic_record *record,
                       struct mic_throttle_span *out);
/* Ends a span that is open, if one is: true until there is none. */
bool mic_throttle_end(struct mic_throttle *throttle, uint64_t end_ns,
                      struct mic_throttle_span *out);
void mic_throttle_free(struct mic_throttle *throttle);

#endif
