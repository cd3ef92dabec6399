/*
 * demangle.c - libiberty's demanglers, held inside bounds.
 *
 * libiberty demangles into a callback without allocating for C++, so output that grows past the
 * bound (a hundred bytes of substitutions can stand for gigabytes) is left by longjmp.  Its work
 * areas are on the stack and grow with the name, and with the square of it for template
 * arguments: names that fit its own recursion limit run where we are, longer ones on a stack
 * sized for them.
 */
#include "image/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

enum {
  OUTPUT_MAX = 64 * 1024, /* a longer name helps nobody */
  /* Under libiberty's recursion limit (2048 components, two a byte) its frames and work areas
   * take at most about 3 MiB. */
  SHORT_MAX = 1024,
  /* Over that: 4 * 16 * (n/6) * (n/4) bytes for template arguments is 179 MiB for 8 KiB. */
  LONG_MAX_BYTES = 8 * 1024,
};
static const size_t LONG_STACK = (size_t)256 << 20; /* reserved, touched only where used */

struct work {
  const char *name;
  int extra_options;
  char *out;
  size_t used, room;
  jmp_buf full;
  bool done;
};

static void collect(const char *bytes, size_t size, void *opaque) {
  struct work *work = opaque;
  if (size > OUTPUT_MAX - work->used) longjmp(work->full, 1);
  if (work->used + size + 1 > work->room) {
    work->room = (work->used + size + 1) * 2;
    work->out = mic_realloc(work->out, work->room);
  }
  memcpy(work->out + work->used, bytes, size);
  work->used += size;
}

static bool is_rust_legacy(const char *name) {
  /* _ZN ... 17h, sixteen hex digits, E */
  const char *end = strrchr(name, 'E');
  return end && end - name > 22 && strncmp(end - 19, "17h", 3) == 0;
}

static void run(struct work *work) {
  int options = DMGL_PARAMS | DMGL_ANSI | work->extra_options;
  if (setjmp(work->full)) return;
  if (work->name[0] == '_' && work->name[1] == 'R') {
    work->done = rust_demangle_callback(work->name, options, collect, work);
    return;
  }
  if (is_rust_legacy(work->name)) {
    work->done = rust_demangle_callback(work->name, options, collect, work);
    if (work->done) return;
    work->used = 0;
  }
  work->done = cplus_demangle_v3_callback(work->name, options, collect, work);
}

static void *run_thread(void *opaque) {
  run(opaque);
  return NULL;
}

/* On a stack of its own, as large as the worst name of LONG_MAX_BYTES needs. */
static void run_long(struct work *work) {
  void *stack = mmap(NULL, LONG_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return;
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  work->extra_options = DMGL_NO_RECURSE_LIMIT;
  if (pthread_attr_setstack(&attr, stack, LONG_STACK) == 0 &&
      pthread_create(&thread, &attr, run_thread, work) == 0)
    pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  munmap(stack, LONG_STACK);
}

/*
 * D's back references (Q, then a distance in base 26: capitals, the last digit a small letter)
 * repeat what stands before them, so a name can stand for a text that doubles every few bytes,
 * and libiberty builds it in full.  cost[i] bounds what the first i bytes stand for.
 */
static bool is_d_bounded(const char *name, size_t size) {
  uint32_t cost[SHORT_MAX + 1] = {0};
  for (size_t i = 0; i < size; i++) {
    size_t distance = 0, j = i + 1;
    if (name[i] == 'Q') {
      while (j < size && name[j] >= 'A' && name[j] <= 'Z' && distance <= size)
        distance = distance * 26 + (size_t)(name[j++] - 'A');
      if (j < size && name[j] >= 'a' && name[j] <= 'z')
        distance = distance * 26 + (size_t)(name[j] - 'a');
      else
        distance = 0;
    }
    cost[i + 1] = cost[i] + 1;
    if (distance > 0 && distance <= i) cost[i + 1] += cost[i] - cost[i - distance];
    if (cost[i + 1] > OUTPUT_MAX) return false;
  }
  return true;
}

static char *demangle_d(const char *name, size_t size) {
  if (size > SHORT_MAX || !is_d_bounded(name, size)) return NULL;
  return dlang_demangle(name, DMGL_PARAMS | DMGL_ANSI);
}

/* The size of the name without ".llvm.HASH", which ThinLTO adds to statics it makes global. */
static size_t size_without_llvm(const char *name) {
  const char *at = strstr(name, ".llvm.");
  if (!at || at == name || !isdigit((unsigned char)at[6])) return strlen(name);
  const char *end = at + 6;
  while (isdigit((unsigned char)*end)) end++;
  return *end ? strlen(name) : (size_t)(at - name);
}

static bool is_mangled(const char *name) {
  return (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R')) ||
         strncmp(name, "_GLOBAL_", 8) == 0;
}

char *mic_demangle(const char *name) {
  size_t size = size_without_llvm(name);
  char *bare = mic_strndup(name, size);
  char *shown = NULL;
  if (name[0] == '_' && name[1] == 'D') {
    shown = demangle_d(bare, size);
  } else if (is_mangled(name) && size <= LONG_MAX_BYTES) {
    struct work work = {.name = bare};
    if (size <= SHORT_MAX)
      run(&work);
    else
      run_long(&work);
    if (work.done && work.used > 0) {
      work.out[work.used] = 0;
      shown = work.out;
    } else {
      free(work.out);
    }
  }
  if (shown || name[size] == 0) {
    free(bare);
    return shown;
  }
  return bare;
}
