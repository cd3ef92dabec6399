/* leftover.c - a table of paths that a signal handler can walk. */
#include "base/leftover.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/ending.h"

enum { PLACES = 64 /* a command writes one file, by way of at most two */ };

/* Whoever exchanges a path for NULL has it: the handler never frees, forget frees what it took. */
static char *_Atomic places[PLACES];
static _Atomic pid_t owner;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void mic_leftover_remove(void) {
  int kept = errno;
  if (atomic_load(&owner) != getpid()) return;
  for (int i = 0; i < PLACES; i++) {
    char *path = atomic_exchange(&places[i], NULL);
    if (path) unlink(path);
  }
  errno = kept;
}

/* SA_RESETHAND made the signal's own action the default again, and it is blocked until we return:
 * what is raised ends the process then. */
static void on_ending(int number) {
  mic_leftover_remove();
  raise(number);
}

static void watch(void) {
  for (int i = 0; i < MIC_ENDING_SIGNALS; i++) {
    int number = mic_ending_signals[i];
    struct sigaction now, action = {.sa_handler = on_ending, .sa_flags = (int)SA_RESETHAND};
    if (sigaction(number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO)) continue;
    if (now.sa_handler == SIG_DFL) sigaction(number, &action, NULL);
  }
}

void mic_leftover_hold(sigset_t *before) { mic_ending_block(before); }

void mic_leftover_release(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

void mic_leftover_add(const char *path) {
  char *copy = mic_strndup(path, strlen(path));
  bool placed = false;
  pthread_mutex_lock(&changing);
  if (atomic_exchange(&owner, getpid()) != getpid())
    for (int i = 0; i < PLACES; i++) atomic_store(&places[i], NULL); /* a parent's */
  for (int i = 0; i < PLACES && !placed; i++) {
    char *none = NULL;
    placed = atomic_compare_exchange_strong(&places[i], &none, copy);
  }
  pthread_mutex_unlock(&changing);
  if (placed)
    watch();
  else
    free(copy);
}

void mic_leftover_forget(const char *path) {
  pthread_mutex_lock(&changing);
  for (int i = 0; i < PLACES; i++) {
    char *held = atomic_load(&places[i]);
    if (!held || strcmp(held, path) != 0) continue;
    if (atomic_compare_exchange_strong(&places[i], &held, NULL)) free(held);
  }
  pthread_mutex_unlock(&changing);
}
