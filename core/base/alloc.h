/*
 * alloc.h - memory, growable arrays and arenas.
 *
 * Small allocations do not fail: when the system has none left, mic_alloc and its kin print
 * one line and end the process (Linux overcommits, so this is the address-space limit).  A size
 * that comes from outside (a file, the kernel, a target) goes through mic_try_alloc, which can.
 */
#ifndef MIC_BASE_ALLOC_H
#define MIC_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *mic_alloc(size_t size);              /* zeroed; ends the process when there is none */
void *mic_realloc(void *old, size_t size); /* as realloc; ends the process when there is none */
void *mic_try_alloc(size_t count, size_t each);    /* zeroed; NULL on overflow or none */
char *mic_strndup(const char *bytes, size_t size); /* owns; NUL-terminated */

/* Zeroed memory of its own pages, for what is large and goes while all around it stays: the heap
 * would keep it. */
void *mic_pages(size_t size);
void mic_pages_free(void *at, size_t size);
/* Give back the pages that lie within bytes of an allocation which are not read any more; the
 * allocation stays.  What it reads there from now on is not defined. */
void mic_drop(void *at, size_t size);

/* A growable array: `MIC_VEC(uint32_t) ids = {0};` `*mic_vec_push(&ids) = 7;` `ids.at[0]`.
 * Pointers into it are borrowed until the next push.  Freed by mic_vec_free. */
#define MIC_VEC(T) \
  struct {         \
    T *at;         \
    size_t count;  \
    size_t room;   \
  }
#define mic_vec_reserve(v, n) ((v)->at = mic_vec_grow_((v)->at, &(v)->room, (n), sizeof *(v)->at))
/* Room for exactly n, not fewer than there are. */
#define mic_vec_fit(v, n) \
  ((v)->at = mic_realloc((v)->at, (size_t)(n) * sizeof *(v)->at), (v)->room = (n))
/* Room for n where there is none: for many arrays that stay as small, as else there is for 16. */
#define mic_vec_begin(v, n) ((v)->room ? (void)0 : (void)mic_vec_fit(v, n))
/* The address of a new, uninitialised last element. */
#define mic_vec_push(v)                                                            \
  (((v)->count == (v)->room ? (void)mic_vec_reserve(v, (v)->count + 1) : (void)0), \
   &(v)->at[(v)->count++])
#define mic_vec_free(v) (free((v)->at), (v)->at = NULL, (v)->count = (v)->room = 0)
void *mic_vec_grow_(void *at, size_t *room, size_t need, size_t each);

/* An arena: allocations that are all freed at once. */
struct mic_arena {
  struct mic_arena_chunk *chunk; /* newest first */
  size_t used;                   /* bytes used of the newest */
  size_t total;                  /* bytes held, all chunks */
};
void *mic_arena_alloc(struct mic_arena *arena, size_t size); /* zeroed, 16-byte aligned */
void *mic_arena_bytes(struct mic_arena *arena, size_t size); /* not zeroed, not aligned */
char *mic_arena_strndup(struct mic_arena *arena, const char *bytes, size_t size);
void mic_arena_free(struct mic_arena *arena);

#endif
