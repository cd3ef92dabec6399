/* alloc.c - memory, growable arrays and arenas. */
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Chunks of an arena: large enough that their headers and tails do not count, small enough
 * that an arena for a few names costs nothing. */
enum { CHUNK = 64 * 1024, ALIGN = 16 };

struct mic_arena_chunk {
  struct mic_arena_chunk *next;
  size_t size;
  _Alignas(ALIGN) char data[];
};

static _Noreturn void refuse(size_t size) {
  fprintf(stderr, "microscope: out of memory: %zu more bytes were refused\n", size);
  exit(1);
}

static void *or_die(void *got, size_t size) {
  if (got || size == 0) return got;
  refuse(size);
}

/* No allocation may be larger than PTRDIFF_MAX (malloc(3)); saying so spares the libraries asking,
 * and compilers warning. */
void *mic_alloc(size_t size) {
  if (size > PTRDIFF_MAX) refuse(size);
  return or_die(calloc(1, size ? size : 1), size);
}

void *mic_realloc(void *old, size_t size) {
  if (size > PTRDIFF_MAX) refuse(size);
  return or_die(realloc(old, size ? size : 1), size);
}

void *mic_try_alloc(size_t count, size_t each) {
  if (each && count > PTRDIFF_MAX / each) return NULL;
  return calloc(count ? count : 1, each ? each : 1);
}

void *mic_pages(size_t size) {
  void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) refuse(size);
  return at;
}

void mic_pages_free(void *at, size_t size) {
  if (at) munmap(at, size);
}

void mic_drop(void *at, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at;
  uintptr_t first = (from + page - 1) / page * page, past = (from + size) / page * page;
  /* Memory of calloc and mmap is private to the process: MADV_DONTNEED frees it (madvise(2)). */
  if (past > first) madvise((char *)at + (first - from), past - first, MADV_DONTNEED);
}

char *mic_strndup(const char *bytes, size_t size) {
  char *copy = mic_alloc(size + 1);
  if (size) memcpy(copy, bytes, size);
  return copy;
}

void *mic_vec_grow_(void *at, size_t *room, size_t need, size_t each) {
  if (need <= *room) return at;
  size_t grown = *room ? *room * 2 : 16;
  if (grown < need) grown = need;
  if (grown > PTRDIFF_MAX / each) refuse(SIZE_MAX);
  at = mic_realloc(at, grown * each);
  *room = grown;
  return at;
}

static void *take(struct mic_arena *arena, size_t size) {
  if (!arena->chunk || arena->used > arena->chunk->size ||
      arena->chunk->size - arena->used < size) {
    size_t room = size > CHUNK ? size : CHUNK;
    struct mic_arena_chunk *chunk = mic_alloc(sizeof *chunk + room);
    chunk->next = arena->chunk;
    chunk->size = room;
    arena->chunk = chunk;
    arena->used = 0;
    arena->total += room;
  }
  void *got = arena->chunk->data + arena->used;
  arena->used += size;
  return got;
}

void *mic_arena_alloc(struct mic_arena *arena, size_t size) {
  size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  arena->used = (arena->used + ALIGN - 1) & ~(size_t)(ALIGN - 1); /* past bytes */
  return take(arena, size);
}

void *mic_arena_bytes(struct mic_arena *arena, size_t size) { return take(arena, size); }

char *mic_arena_strndup(struct mic_arena *arena, const char *bytes, size_t size) {
  char *copy = mic_arena_alloc(arena, size + 1);
  if (size) memcpy(copy, bytes, size);
  return copy;
}

void mic_arena_free(struct mic_arena *arena) {
  for (struct mic_arena_chunk *chunk = arena->chunk, *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  memset(arena, 0, sizeof *arena);
}
