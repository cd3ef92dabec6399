/*
 * symbolize.h - give the locations of a capture their functions, inlined functions and lines.
 *
 * Reads a capture, finds for each module a file that is proven to be it by build ID, and writes a
 * capture with the same rows but for what locations mean.  The work is done in a thread of its own;
 * the caller polls for events.  SIGINT, SIGTERM and SIGHUP are taken from new until free and come
 * as events.  Nothing is written before all is named, and the old file stays whole until then.
 *
 * Owns:    the job owns its thread and the open capture; options are copied.
 * Fails:   int functions return 0 or a MIC_E* code and fill *err.
 * Threads: one user at a time; one job a process at a time.
 */
#ifndef MIC_SYMBOLIZE_SYMBOLIZE_H
#define MIC_SYMBOLIZE_SYMBOLIZE_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
enum mic_symbolize_event {
  MIC_SYMBOLIZE_TICK = 0,        /* the timeout passed */
  MIC_SYMBOLIZE_INTERRUPTED = 1, /* a signal came */
  MIC_SYMBOLIZE_DONE = 2,        /* the output is complete under its name */
  MIC_SYMBOLIZE_FAILED = 3       /* nothing was written: mic_symbolize_error says why */
};

struct mic_symbolize_options {
  uint32_t size;                 /* sizeof(struct mic_symbolize_options) */
  uint32_t debuginfod;           /* 1: ask the servers of DEBUGINFOD_URLS for what is missing */
  const char *input;             /* the capture */
  const char *output;            /* what is written; may be the input */
  const char *const *debug_dirs; /* folders with debug files and images, NULL-terminated */
};

struct mic_symbolize_progress {
  uint32_t modules;     /* that have locations */
  uint32_t module;      /* of these done */
  uint64_t locations;   /* to be named */
  uint64_t located;     /* of these done */
  uint64_t fetched;     /* bytes of the file that is fetched now */
  uint64_t fetch_bytes; /* of these in all; 0: not known */
  uint32_t fetching;    /* 1: a server has been asked */
  uint32_t writing;     /* 1: all is named, the output is written */
  const char *name;     /* the module's path; borrowed until free, "" before the first */
};

struct mic_symbolize;

int mic_symbolize_new(const struct mic_symbolize_options *options, struct mic_symbolize **out,
                      struct mic_error *err);
/* The next enum mic_symbolize_event, MIC_SYMBOLIZE_TICK when timeout_ms passed without one.
 * *signal is the number of the signal that came, else 0. */
uint32_t mic_symbolize_poll(struct mic_symbolize *job, int32_t timeout_ms, int32_t *signal);
void mic_symbolize_progress(struct mic_symbolize *job, struct mic_symbolize_progress *out);
/* End it as soon as can be: polls go on to FAILED, or to DONE when all was written already. */
void mic_symbolize_stop(struct mic_symbolize *job);
/* Why it failed, after MIC_SYMBOLIZE_FAILED. */
void mic_symbolize_error(const struct mic_symbolize *job, struct mic_error *out);
/* Stops it.  A thread that does not end within a second (a file system that hangs) is left behind,
 * with what it uses; it writes no output any more.  NULL is fine. */
void mic_symbolize_free(struct mic_symbolize *job);
/* ffi:end */

#endif
