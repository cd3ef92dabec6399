/*
 * limits.h - where processes' main stacks end, so that what lies above is not copied.
 *
 * Above the first frame of a program's main stack lie its arguments and environment, and below
 * those up to 8 KiB that the kernel left free at random (arch/x86/kernel/process.c,
 * arch_align_stack): together more than most stacks.  No frame is there, so a copy may end where
 * the kernel says that the stack began.  An exec begins another stack, so what is known of a
 * process is forgotten at its exec, before a sample that came after it is copied: the caller takes
 * the rings' heads first (mic_ring_mark), then the side records, then the samples.
 *
 * A few processes are known at a time, those that samples come of; it is a cache.
 *
 * Threads: one user.
 */
#ifndef MIC_PERF_LIMITS_H
#define MIC_PERF_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  MIC_LIMITS = 256, /* places, by pid; one cache line holds almost three */
  /* Samples of a process before it is looked up, which costs as much as ten of them. */
  MIC_LIMITS_AFTER = 64
};

enum mic_limit_state {
  MIC_LIMIT_COUNTS = 0, /* too few samples yet */
  MIC_LIMIT_WANTED = 1, /* to be looked up */
  MIC_LIMIT_FRESH = 2,  /* looked up since the side records were last read: not used yet */
  MIC_LIMIT_KNOWN = 3,
  MIC_LIMIT_NONE = 4 /* cannot be known */
};

struct mic_limit {
  uint32_t pid; /* 0: an empty place */
  uint16_t samples;
  uint8_t state; /* enum mic_limit_state */
  uint64_t end;
};

struct mic_limits {
  struct mic_limit at[MIC_LIMITS];
  bool wanted; /* some are MIC_LIMIT_WANTED */
};

static inline struct mic_limit *mic_limits_place(struct mic_limits *limits, uint32_t pid) {
  return &limits->at[pid % MIC_LIMITS];
}

/* Of a sample: where the stack ends, 0 when that is not known. */
static inline uint64_t mic_limits_of(struct mic_limits *limits, uint32_t pid) {
  struct mic_limit *place = mic_limits_place(limits, pid);
  if (place->pid == pid && place->state == MIC_LIMIT_KNOWN) return place->end;
  if (place->pid != pid) *place = (struct mic_limit){.pid = pid};
  if (place->state != MIC_LIMIT_COUNTS || ++place->samples < MIC_LIMITS_AFTER) return 0;
  place->state = MIC_LIMIT_WANTED;
  limits->wanted = true;
  return 0;
}

/* Side records from here on are of after the lookups. */
void mic_limits_settle(struct mic_limits *limits);
/* A process called exec, or is another by this number. */
void mic_limits_forget(struct mic_limits *limits, uint32_t pid);
void mic_limits_forget_all(struct mic_limits *limits);
/* Has those that are wanted looked up: find gives 0 for what cannot be known. */
void mic_limits_look_up(struct mic_limits *limits, uint64_t (*find)(uint32_t pid));

#endif
