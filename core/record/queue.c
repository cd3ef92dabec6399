/* queue.c - a list under a lock; chunks are large, so the lock is taken seldom. */
#include "record/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"

struct mic_queue {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  struct mic_chunk *first, **last; /* pushed, oldest first */
  struct mic_chunk *free;
  size_t bound;             /* chunks */
  atomic_size_t used, peak; /* chunks; written under the lock */
  bool closed;
  bool starved; /* the processor waits for a chunk */
};

struct mic_queue *mic_queue_new(size_t bound_bytes) {
  struct mic_queue *queue = mic_alloc(sizeof *queue);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->filled, NULL);
  queue->last = &queue->first;
  queue->bound = bound_bytes / MIC_CHUNK_BYTES;
  /* Two for the rings' other records, two for samples, four to have something to wait for. */
  if (queue->bound < 8) queue->bound = 8;
  return queue;
}

static void free_list(struct mic_chunk *chunk) {
  for (struct mic_chunk *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
}

void mic_queue_free(struct mic_queue *queue) {
  if (!queue) return;
  free_list(queue->first);
  free_list(queue->free);
  pthread_mutex_destroy(&queue->lock);
  pthread_cond_destroy(&queue->filled);
  free(queue);
}

struct mic_chunk *mic_queue_take(struct mic_queue *queue, bool for_samples) {
  struct mic_chunk *chunk = NULL;
  pthread_mutex_lock(&queue->lock);
  size_t used = atomic_load(&queue->used);
  /* A processor that waits and still holds chunks lacks the watermark that would free them, and
   * that comes only when more is copied: then the bound gives way, or neither would go on. */
  bool stuck = queue->starved && !queue->first;
  bool may = stuck || used < queue->bound - (for_samples ? queue->bound / 8 : 0);
  if (may) {
    chunk = queue->free;
    if (chunk) queue->free = chunk->next;
    atomic_store(&queue->used, used + 1);
    if (used + 1 > atomic_load(&queue->peak)) atomic_store(&queue->peak, used + 1);
  }
  pthread_mutex_unlock(&queue->lock);
  if (!may) return NULL;
  if (!chunk) chunk = mic_realloc(NULL, sizeof *chunk);
  chunk->next = NULL;
  chunk->used = 0;
  chunk->watermark_ns = 0;
  chunk->held = 0;
  return chunk;
}

void mic_queue_push(struct mic_queue *queue, struct mic_chunk *chunk) {
  pthread_mutex_lock(&queue->lock);
  *queue->last = chunk;
  queue->last = &chunk->next;
  pthread_cond_signal(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
}

void mic_queue_close(struct mic_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closed = true;
  pthread_cond_signal(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
}

struct mic_chunk *mic_queue_pop(struct mic_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->starved = true;
  while (!queue->first && !queue->closed) pthread_cond_wait(&queue->filled, &queue->lock);
  queue->starved = false;
  struct mic_chunk *chunk = queue->first;
  if (chunk) {
    queue->first = chunk->next;
    if (!queue->first) queue->last = &queue->first;
    chunk->next = NULL;
  }
  pthread_mutex_unlock(&queue->lock);
  return chunk;
}

void mic_queue_release(struct mic_queue *queue, struct mic_chunk *chunk) {
  pthread_mutex_lock(&queue->lock);
  chunk->next = queue->free;
  queue->free = chunk;
  atomic_store(&queue->used, atomic_load(&queue->used) - 1);
  pthread_mutex_unlock(&queue->lock);
}

size_t mic_queue_used(const struct mic_queue *queue) {
  return atomic_load(&queue->used) * MIC_CHUNK_BYTES;
}
size_t mic_queue_peak(const struct mic_queue *queue) {
  return atomic_load(&queue->peak) * MIC_CHUNK_BYTES;
}
size_t mic_queue_bound(const struct mic_queue *queue) { return queue->bound * MIC_CHUNK_BYTES; }
