/*
 * queue.h - the bounded queue between collector and processor.
 *
 * Chunks of whole perf records, from a pool that holds no more than the bound. The last eighth is
 * kept for records other than samples: the collector stops sampling when the rest is used. Only a
 * processor that cannot go on without more gets past the bound: the records it holds wait for a
 * ring that has not been copied yet, as with many CPUs.
 *
 * Owns:    the queue owns every chunk; a chunk belongs to who took it until it is given on.
 * Threads: one collector (take, push, close), one processor (pop, release); the counts are for all.
 */
#ifndef MIC_RECORD_QUEUE_H
#define MIC_RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for several of the largest records (64 KiB), and small enough that a slow program's
 * records are not held back for want of filling one. */
enum { MIC_CHUNK_BYTES = 256 * 1024 };

struct mic_chunk {
  struct mic_chunk *next;
  size_t used;
  /* Every record stamped up to this has been pushed before or with this chunk; 0: says nothing. */
  uint64_t watermark_ns;
  uint32_t held; /* records of it that the processor still waits to process */
  uint64_t turn; /* the how-manieth the processor took in */
  _Alignas(8) uint8_t bytes[MIC_CHUNK_BYTES];
};

struct mic_queue;

struct mic_queue *mic_queue_new(size_t bound_bytes);
void mic_queue_free(struct mic_queue *queue); /* NULL is fine */

/* An empty chunk, or NULL when the bound is reached. For samples the last eighth counts as used. */
struct mic_chunk *mic_queue_take(struct mic_queue *queue, bool for_samples);
void mic_queue_push(struct mic_queue *queue, struct mic_chunk *chunk);
void mic_queue_close(struct mic_queue *queue); /* nothing more will be pushed */
/* Waits for the next chunk; NULL when the queue is closed and empty. */
struct mic_chunk *mic_queue_pop(struct mic_queue *queue);
void mic_queue_release(struct mic_queue *queue, struct mic_chunk *chunk);

size_t mic_queue_used(const struct mic_queue *queue); /* bytes of chunks that are not free */
size_t mic_queue_peak(const struct mic_queue *queue);
size_t mic_queue_bound(const struct mic_queue *queue);

#endif
