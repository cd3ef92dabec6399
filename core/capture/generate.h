/*
 * generate.h - make captures of any size, for tests and benches.
 *
 * The rows look like those of a recording: a tree of stacks 5 to 60 frames deep whose branches
 * share their callers, a few hot stacks and a long tail, threads that move between CPUs,
 * inlined functions, a few unproven ends.  The same options give the same bytes.
 */
#ifndef MIC_CAPTURE_GENERATE_H
#define MIC_CAPTURE_GENERATE_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
/* 0 in any field but seed is its default, in brackets. */
struct mic_generate_options {
  uint32_t size;      /* of this struct */
  uint32_t processes; /* [1] */
  uint32_t threads;   /* in all [8] */
  uint32_t cpus;      /* [4] */
  uint32_t modules;   /* [20] */
  uint32_t functions; /* [5000] */
  uint32_t stacks;    /* distinct ones that samples have [10000] */
  uint32_t depth_max; /* frames, at least 5 [60] */
  uint32_t labels;    /* distinct ones [4] */
  uint32_t labelled;  /* one sample in so many has a label [1000] */
  uint32_t zones;     /* [8] */
  uint64_t samples;   /* [100000] */
  uint64_t period_ns; /* a thread's CPU time between samples [1000000] */
  uint64_t seed;
};

int mic_capture_generate(const struct mic_generate_options *options, const char *path,
                         struct mic_error *err);
/* ffi:end */

#endif
