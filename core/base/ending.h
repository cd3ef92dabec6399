/*
 * ending.h - the signals by which a person ends a program, SIGINT, SIGTERM and SIGHUP: held, and
 * asked for one by one.
 *
 * Owns:    a mic_ending owns its descriptor until it is released.
 * Fails:   MIC_ESYS when no descriptor is left; release is due all the same.
 * Threads: the mask is that of the thread that takes and of those it starts from then on.
 */
#ifndef MIC_BASE_ENDING_H
#define MIC_BASE_ENDING_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

enum { MIC_ENDING_SIGNALS = 3 };
extern const int mic_ending_signals[MIC_ENDING_SIGNALS];

struct mic_ending {
  sigset_t before; /* the mask as it was, for programs that are started meanwhile */
  int fd;          /* readable when one came; -1: none taken */
  bool held;
};

/* Blocks them; *before gets the mask as it was. */
void mic_ending_block(sigset_t *before);
int mic_ending_take(struct mic_ending *ending, struct mic_error *err);
int mic_ending_next(const struct mic_ending *ending); /* a signal that came, or 0; never waits */
/* Those that came and were not asked for are gone: they were for the holder too, and must not end
 * the process now. */
void mic_ending_release(struct mic_ending *ending);

#endif
