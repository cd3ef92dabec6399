/*
 * events.h - perf events of a set of tasks, written to rings of their CPU.
 *
 * For each task and each online CPU there are two events: a sample event (registers and a copy
 * of the stack) and a dummy one that tells of mappings, names, forks and exits.  The second is
 * never disabled, since a disabled event tells nothing.  They write to two rings a CPU, which
 * belong to an idle event of the recorder, so that no task's exit takes a ring away.
 *
 * New threads of a task are followed by the kernel, new processes when options.children is set.
 *
 * Attaching to running tasks, exactly: events are opened one CPU after the other, so a thread
 * made meanwhile may have inherited all, some or none of its maker's.  So:
 *
 *     mic_perf_new
 *     repeat: list the tids; mic_perf_add_tasks for those that mic_perf_has does not have
 *     until there are none
 *     mic_perf_enable
 *
 * mic_perf_has is true for a task that was opened, or whose FORK record proves that its maker
 * had every event open before.  All else is opened; a task that had inherited some is then
 * measured twice on those CPUs, and mic_claims_accept drops the second copy by its identifier:
 * none is missed, none counts twice.
 *
 * Owns:    mic_perf owns its descriptors and rings.
 * Fails:   MIC_EPERM (names kernel.perf_event_paranoid and CAP_PERFMON), MIC_EGONE (no such
 *          task), MIC_ELIMIT (descriptors, locked memory: with what to raise), MIC_EUNSUPPORTED
 *          (no such event or feature here), MIC_EARG.
 * Threads: one user at a time (the collector).  A mic_claims is apart: its user may be another.
 */
#ifndef MIC_PERF_EVENTS_H
#define MIC_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "perf/record.h"
#include "perf/ring.h"

enum mic_perf_event {
  MIC_PERF_CPU_CLOCK = 0, /* a timer of the CPU; period in nanoseconds */
  MIC_PERF_CYCLES = 1     /* hardware cycles; period in cycles */
};

struct mic_perf_options {
  uint32_t size;            /* sizeof this struct */
  uint32_t event;           /* enum mic_perf_event */
  uint64_t period;          /* fixed, never a frequency; a clock's is at least 10,000 ns */
  uint32_t stack_bytes;     /* copy of the stack: 0 to 65528, a multiple of 8; 0: none */
  uint32_t children;        /* not 0: processes a task makes are followed too */
  uint64_t ring_bytes;      /* asked for samples, a CPU; a power of two.  0: 4 MiB */
  uint64_t side_ring_bytes; /* asked for mappings, names, forks.  0: 512 KiB */
  /* Not 0: the kernel wakes the reader only once a whole ring of samples, and the reader looks
   * every mic_perf_look_ms.  A wake-up walks every event that writes to the ring, in the interrupt
   * (ring_buffer_wakeup): with thousands of threads that is the program's time. */
  uint32_t late_wakeups;
  /* Not 0: samples inside the kernel too.  They have the user registers and stack of the call; the
   * ip is the kernel's.  Without, a period that ends inside the kernel gives no sample: time in
   * system calls and page faults is not seen.  Needs CAP_PERFMON or kernel.perf_event_paranoid
   * <= 1. */
  uint32_t kernel;
};

/* What was got, to be told to the user where it differs from what was asked. */
struct mic_perf_settings {
  uint64_t ring_bytes, side_ring_bytes; /* a CPU; smaller than asked when memory is short */
  uint32_t cpus;                        /* with rings */
  bool rings_reduced;         /* raise `ulimit -l` or kernel.perf_event_mlock_kb for more */
  bool counts_lost;           /* PERF_FORMAT_LOST: Linux 6.0 */
  bool follows_children;      /* asked for, or unavoidable: before Linux 5.13 threads cannot be
                                 followed without processes; the caller drops those records */
  uint64_t mlock_kb;          /* kernel.perf_event_mlock_kb; UINT64_MAX: could not be read */
  uint64_t memlock_bytes;     /* RLIMIT_MEMLOCK, soft; UINT64_MAX: no limit */
  uint64_t files_soft_before; /* RLIMIT_NOFILE as it was before it was raised: what a launched */
  uint64_t files_hard;        /* program must get back (process/launch.h) */
};

struct mic_perf;

/* Rings for every online CPU, no event of a task yet.  Raises the soft RLIMIT_NOFILE to the hard
 * one. */
int mic_perf_new(const struct mic_perf_options *options, struct mic_perf **out,
                 struct mic_error *err);
void mic_perf_free(struct mic_perf *perf); /* NULL is fine; closes all, restores RLIMIT_NOFILE */
void mic_perf_settings(const struct mic_perf *perf, struct mic_perf_settings *out);
/* The layout of the samples in the rings.  Borrowed; immutable. */
const struct mic_perf_layout *mic_perf_layout(const struct mic_perf *perf);

enum mic_perf_when {
  MIC_PERF_NOW = 0,    /* samples start with mic_perf_enable, or at once when it is on already */
  MIC_PERF_AT_EXEC = 1 /* samples start when the task calls exec: a program held at a gate */
};
/* Open the events of one task.  On an error those it had opened are closed again. */
int mic_perf_add_task(struct mic_perf *perf, uint32_t tid, uint32_t when, struct mic_error *err);
/* Of many.  A task that is gone meanwhile is counted in *gone (may be NULL), no error; the first
 * other error ends it, with the tasks before it opened. */
int mic_perf_add_tasks(struct mic_perf *perf, const uint32_t *tids, size_t count, uint32_t when,
                       size_t *gone, struct mic_error *err);
/* Whether every record of this task comes: it was opened, or a FORK record proves that it
 * inherited all.  Looks at records still in the side rings without taking them; those that were
 * taken meanwhile are remembered (until mic_perf_enable). */
bool mic_perf_has(struct mic_perf *perf, uint32_t tid);
size_t mic_perf_tasks(const struct mic_perf *perf);       /* opened, exited ones too */
size_t mic_perf_descriptors(const struct mic_perf *perf); /* held */

/* Start or stop the sample events, inherited ones too.  Mappings and forks come all the time. */
int mic_perf_enable(struct mic_perf *perf, struct mic_error *err);
int mic_perf_disable(struct mic_perf *perf, struct mic_error *err);

enum mic_ring_kind { MIC_RING_SAMPLES = 0, MIC_RING_SIDE = 1 };
size_t mic_perf_rings(const struct mic_perf *perf); /* 2 a CPU */
struct mic_ring *mic_perf_ring(const struct mic_perf *perf, size_t index);
uint32_t mic_perf_ring_kind(const struct mic_perf *perf, size_t index); /* enum mic_ring_kind */
uint32_t mic_perf_ring_cpu(const struct mic_perf *perf, size_t index);
/* As mic_ring_copy of that ring; while attaching, FORK records are noted for mic_perf_has: use
 * this one, not mic_ring_copy, for rings of a mic_perf. */
size_t mic_perf_ring_copy(struct mic_perf *perf, size_t index, void *to, size_t room, size_t *want);

/* Wait until a ring is a quarter full or the time is over (-1: for ever).  Returns how many are,
 * 0 on timeout or a signal. */
int mic_perf_poll(struct mic_perf *perf, int timeout_ms);
/* For those who wait on other things too: an epoll descriptor. */
int mic_perf_poll_fd(const struct mic_perf *perf);
/* The least time in which samples fill a quarter of a ring, 1 to 1000. */
int mic_perf_look_ms(const struct mic_perf *perf);

/* What the kernel could not write, in all, from the events' own counters: more than the LOST
 * records when the end of the ring was lost.  MIC_EUNSUPPORTED before Linux 6.0.  It counts
 * records as the kernel does: a LOST record covers samples or side records, by its ring. */
struct mic_perf_lost {
  uint64_t samples, side;           /* all, by the events' counters */
  uint64_t samples_told, side_told; /* of these, told by LOST records copied so far */
};
int mic_perf_lost(struct mic_perf *perf, struct mic_perf_lost *out, struct mic_error *err);

/* Whose event an identifier is. */
bool mic_perf_id_is_sample(const struct mic_perf *perf, uint64_t id);
uint32_t mic_perf_id_owner(const struct mic_perf *perf, uint64_t id); /* the tid opened; 0: none */

/* For BPF: the sample events' descriptors (attach a program), and a foreign event written to the
 * ring of a CPU (PERF_EVENT_IOC_SET_OUTPUT; it must be an event of that CPU with this clock). */
size_t mic_perf_sample_fds(const struct mic_perf *perf, const int **fds); /* borrowed */
int mic_perf_redirect(struct mic_perf *perf, int fd, uint32_t cpu, uint32_t kind,
                      struct mic_error *err);

/* Each record once: see "Attaching" above.  Made when the attach is done; hand every decoded
 * record over in time order and use those it accepts.  It follows exits, reused tids and execs. */
struct mic_claims;
struct mic_claims *mic_perf_claims(const struct mic_perf *perf); /* owned by the caller */
bool mic_claims_accept(struct mic_claims *claims, const struct mic_record *record);
uint64_t mic_claims_dropped(const struct mic_claims *claims); /* second copies so far */
void mic_claims_free(struct mic_claims *claims);              /* NULL is fine */

#endif
