/*
 * open.h - perf_event_open with the attributes of a recording, and errors by their cause.
 *
 * Internal to core/perf.
 * Owns:    descriptors are the caller's; all are close-on-exec.
 * Fails:   as events.h says.
 * Threads: no state.
 */
#ifndef MIC_PERF_OPEN_H
#define MIC_PERF_OPEN_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "perf/events.h"

/* What this kernel can, found by opening idle events on ourselves. */
struct mic_perf_features {
  bool counts_lost;    /* PERF_FORMAT_LOST, Linux 6.0 */
  bool inherit_thread; /* Linux 5.13 */
};
/* watermark: bytes in a ring that wake its reader. */
void mic_perf_owner_attr(struct perf_event_attr *attr, uint32_t watermark);
void mic_perf_sample_attr(struct perf_event_attr *attr, const struct mic_perf_options *options,
                          const struct mic_perf_features *features);
void mic_perf_side_attr(struct perf_event_attr *attr, const struct mic_perf_options *options,
                        const struct mic_perf_features *features);
int mic_perf_probe(const struct mic_perf_options *options, struct mic_perf_features *out,
                   struct mic_error *err);

/* tid 0: the calling thread.  -1 and errno. */
int mic_perf_open(const struct perf_event_attr *attr, uint32_t tid, uint32_t cpu);
/* The error for an errno of mic_perf_open; `needed` descriptors in all, for EMFILE. */
int mic_perf_open_failed(int sys, const struct perf_event_attr *attr, uint32_t tid, size_t needed,
                         struct mic_error *err);

/* A number from /proc/sys or the like; false when it cannot be read. */
bool mic_perf_read_number(const char *path, int64_t *out);

struct mic_cpus {
  uint32_t *at; /* owned; ascending, may have gaps */
  size_t count, room;
};
int mic_perf_online_cpus(struct mic_cpus *out, struct mic_error *err);
/* The kernel's list format: "0-3,8,10-11\n".  False when it is none. */
bool mic_perf_parse_cpus(const char *text, struct mic_cpus *out);

#endif
