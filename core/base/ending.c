/* ending.c - a signalfd and the mask before it. */
#include "base/ending.h"

#include <sys/signalfd.h>
#include <unistd.h>

const int mic_ending_signals[MIC_ENDING_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

static sigset_t signals_of(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < MIC_ENDING_SIGNALS; i++) sigaddset(&set, mic_ending_signals[i]);
  return set;
}

void mic_ending_block(sigset_t *before) {
  sigset_t set = signals_of();
  pthread_sigmask(SIG_BLOCK, &set, before);
}

int mic_ending_take(struct mic_ending *ending, struct mic_error *err) {
  sigset_t set = signals_of();
  mic_ending_block(&ending->before);
  ending->held = true;
  ending->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return ending->fd < 0 ? mic_fail_sys(err, "no descriptor for signals") : MIC_OK;
}

int mic_ending_next(const struct mic_ending *ending) {
  struct signalfd_siginfo info;
  if (ending->fd < 0 || read(ending->fd, &info, sizeof info) != (ssize_t)sizeof info) return 0;
  return (int)info.ssi_signo;
}

void mic_ending_release(struct mic_ending *ending) {
  while (mic_ending_next(ending)) continue;
  if (ending->fd >= 0) close(ending->fd);
  if (ending->held) pthread_sigmask(SIG_SETMASK, &ending->before, NULL);
  ending->fd = -1;
  ending->held = false;
}
