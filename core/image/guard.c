/*
 * guard.c - mappings that survive the truncation of their file.
 *
 * Guards stand in a list that only grows: a signal handler walks it without a lock, so a node is
 * reused, never freed.  The handler replaces one page at a time.
 */
#include "image/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

enum { PAGE_BYTES = 4096 }; /* x86-64's smallest page; file mappings fault by it */

struct mic_guard {
  _Atomic(uintptr_t) start; /* 0: free */
  _Atomic(size_t) size;
  atomic_bool damaged;
  struct mic_guard *next; /* constant once published */
};

static _Atomic(struct mic_guard *) guards;
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER; /* all but the handler's reading */
static struct sigaction before; /* the disposition that ours replaced */

/* Put zeros where the file has no page; false when the address is in no guard. */
static bool mend(uintptr_t address) {
  for (struct mic_guard *g = atomic_load(&guards); g; g = g->next) {
    uintptr_t start = atomic_load(&g->start);
    if (!start || address - start >= atomic_load(&g->size)) continue;
    void *page = (void *)(address & ~(uintptr_t)(PAGE_BYTES - 1));
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(page, PAGE_BYTES, PROT_READ, flags, -1, 0) == MAP_FAILED) return false;
    atomic_store(&g->damaged, true);
    return true;
  }
  return false;
}

static void on_sigbus(int signal, siginfo_t *info, void *context) {
  int saved = errno;
  bool mended = info->si_code == BUS_ADRERR && mend((uintptr_t)info->si_addr);
  errno = saved;
  if (mended) return;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else { /* the access faults again, this time to the end */
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
  }
}

/* Others may have put their handler in place of ours since: then theirs comes after it. */
static void install(void) {
  struct sigaction now, action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  pthread_mutex_lock(&guards_lock);
  sigaction(SIGBUS, NULL, &now);
  if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
    before = now;
    sigaction(SIGBUS, &action, NULL);
  }
  pthread_mutex_unlock(&guards_lock);
}

static struct mic_guard *publish(uintptr_t start, size_t size) {
  pthread_mutex_lock(&guards_lock);
  struct mic_guard *g = atomic_load(&guards);
  while (g && atomic_load(&g->start)) g = g->next;
  bool fresh = !g;
  if (fresh) {
    g = mic_alloc(sizeof *g);
    g->next = atomic_load(&guards);
  }
  atomic_store(&g->damaged, false);
  atomic_store(&g->size, size);
  atomic_store(&g->start, start);
  if (fresh) atomic_store(&guards, g);
  pthread_mutex_unlock(&guards_lock);
  return g;
}

int mic_guard_map(int fd, size_t size, const char *name, struct mic_guard **out,
                  struct mic_error *err) {
  *out = NULL;
  install();
  void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) return mic_fail_sys(err, "%s: cannot map %zu bytes", name, size);
  *out = publish((uintptr_t)at, size);
  return MIC_OK;
}

void mic_guard_unmap(struct mic_guard *guard) {
  if (!guard) return;
  void *at = (void *)atomic_load(&guard->start);
  size_t size = atomic_load(&guard->size);
  pthread_mutex_lock(&guards_lock);
  munmap(at, size);
  atomic_store(&guard->start, 0);
  pthread_mutex_unlock(&guards_lock);
}

const void *mic_guard_bytes(const struct mic_guard *guard) {
  return (const void *)atomic_load(&guard->start);
}

bool mic_guard_damaged(const struct mic_guard *guard) { return atomic_load(&guard->damaged); }
