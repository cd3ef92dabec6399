/*
 * launch.h - start a program that waits at a gate.
 *
 * The child exists, with its final pid, before the program in it does: events are attached to it,
 * then the gate opens and it calls exec.  It runs unharmed by the recorder's end afterwards; a
 * recorder that ends before opens nothing and the child exits.  The child gets back the signal
 * mask, the dispositions and the file limit the recorder had been given.  Its process group and
 * terminal stay the recorder's, so Ctrl-C reaches both.
 *
 * Owns:    mic_launch owns its descriptors, and its child until it was waited for.
 * Fails:   MIC_ENOENT (no such program), MIC_EPERM (not executable), MIC_ESYS, naming it.
 * Threads: one user at a time.
 */
#ifndef MIC_PROCESS_LAUNCH_H
#define MIC_PROCESS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct mic_launch;

struct mic_launch_options {
  uint32_t size;            /* sizeof this struct */
  uint64_t files_soft;      /* RLIMIT_NOFILE soft limit to restore; 0: leave */
  const sigset_t *mask;     /* signal mask the program gets; NULL: that of the calling thread */
  const sigset_t *ignored;  /* signals to leave ignored; all others whose handler the recorder
                               set are default.  NULL: those that are SIG_IGN at the call */
  const char *directory;    /* working directory; NULL: ours */
  char *const *environment; /* NULL: ours */
};

/* Make the child; argv[0] is looked up in PATH by execvp's rules once the gate opens. */
int mic_launch_new(char *const *argv, const struct mic_launch_options *options,
                   struct mic_launch **out, struct mic_error *err);
uint32_t mic_launch_pid(const struct mic_launch *launch);
int mic_launch_pidfd(const struct mic_launch *launch); /* readable once it ended; borrowed; -1
                                                          before Linux 5.3 */
/* Open the gate, once; returns when exec went past the point of no return (the name in /proc may
 * still be the old one for a moment) or failed. */
int mic_launch_release(struct mic_launch *launch, struct mic_error *err);

struct mic_exit {
  bool exited;    /* false: still running */
  int32_t code;   /* exit code, when signal is 0 */
  int32_t signal; /* that ended it */
  bool core_dumped;
};
/* Whether it ended; timeout_ms 0: only look, -1: wait.  Reaps that child and no other. */
int mic_launch_wait(struct mic_launch *launch, int timeout_ms, struct mic_exit *out,
                    struct mic_error *err);
/* Before the release: ends the child.  After: leaves the program running.  NULL is fine. */
void mic_launch_free(struct mic_launch *launch);

#endif
