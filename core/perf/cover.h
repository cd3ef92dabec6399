/*
 * cover.h - which tasks inherited every event of their maker, proven by FORK records.
 *
 * A task inherits at the start of copy_process (kernel/fork.c) and its FORK record is written at
 * its end.  Between the two its maker's last event may have been opened, so the first FORK of a
 * maker after that proves nothing; a maker is in one fork at a time, so each later one does.
 * What a proven task makes is proven.
 *
 * Internal to core/perf.  Owns: its tables.  Threads: one user at a time.
 */
#ifndef MIC_PERF_COVER_H
#define MIC_PERF_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/map.h"
#include "perf/record.h"

/* A task that was opened. */
struct mic_perf_cover_task {
  uint64_t opening_ns;  /* before its first event was opened */
  uint64_t complete_ns; /* after the last */
  uint64_t proven_ns;   /* its first FORK after complete_ns; UINT64_MAX: none yet */
};
struct mic_perf_cover_fork {
  uint32_t tid, maker;
  uint64_t time_ns, exit_ns; /* UINT64_MAX: lives */
  bool inherits;             /* not of a kind that the events do not follow */
};
struct mic_perf_cover {
  struct mic_map task_of; /* tid -> tasks */
  struct mic_map fork_of; /* tid -> forks, the latest */
  MIC_VEC(struct mic_perf_cover_task) tasks;
  MIC_VEC(struct mic_perf_cover_fork) forks;
};

void mic_perf_cover_opened(struct mic_perf_cover *cover, uint32_t tid, uint64_t opening_ns,
                           uint64_t complete_ns);
/* A FORK or EXIT record, in any order.  threads_only: new processes inherit nothing. */
void mic_perf_cover_note(struct mic_perf_cover *cover, const struct mic_record *record,
                         bool threads_only);
bool mic_perf_cover_has(const struct mic_perf_cover *cover, uint32_t tid);
void mic_perf_cover_forget_forks(struct mic_perf_cover *cover);
void mic_perf_cover_free(struct mic_perf_cover *cover);

#endif
