/*
 * leftover.h - temporary files that a signal's end of the process does not leave behind.
 *
 * SIGINT, SIGTERM and SIGHUP, where they would end the process, first remove the files that are
 * named here; the process then ends by the same signal.  A signal that is ignored, blocked or
 * handled by others stays what it is.
 *
 * Copies:  the paths.
 * Fails:   never; a file that finds no place is not removed by a signal.
 * Threads: any; a child of fork removes nothing of its parent's.
 */
#ifndef MIC_BASE_LEFTOVER_H
#define MIC_BASE_LEFTOVER_H

#include <signal.h>

/* Between hold and release these signals wait: for making a file and naming it here. */
void mic_leftover_hold(sigset_t *before);
void mic_leftover_release(const sigset_t *before);
void mic_leftover_add(const char *path);
void mic_leftover_forget(
  const char *path);            /* it has its final name, or is removed; no match: fine */
void mic_leftover_remove(void); /* all of them; safe in a signal handler */

#endif
