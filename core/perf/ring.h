/*
 * ring.h - the memory a perf event writes its records to, and copying them out.
 *
 * Copying is the collector's hot path.  It moves whole records in order, never decodes them, and
 * cuts the stack copy of a sample to its valid bytes: on ordinary programs only 16-50 % of a
 * slot is valid.  A record so cut is still a valid record: header.size and the stack's size word
 * are rewritten, dyn_size is kept, and size > dyn_size still says that the slot was not full.
 *
 * Owns:    a ring owns its mapping; mic_perf owns its rings.
 * Fails:   a ring whose bytes make no sense (a size that cannot be) is counted in
 *          mic_ring_garbled and skipped to its head.
 * Threads: one reader a ring; the writer is the kernel.
 */
#ifndef MIC_PERF_RING_H
#define MIC_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "perf/limits.h"
#include "perf/record.h"

enum { MIC_RECORD_MAX_BYTES = 65536 }; /* perf_event_header.size is 16 bits */

struct mic_ring;

/* Map a ring of data_bytes (a power of two, at least a page) on a perf event.  layout (borrowed
 * for the ring's life) tells how to cut samples; NULL: copy as they are. */
int mic_ring_map(int fd, size_t data_bytes, const struct mic_perf_layout *layout,
                 struct mic_ring **out, struct mic_error *err);
/* The same over memory that is laid out as the kernel lays it out (perf_event_mmap_page in the
 * first page, data from the second on); for tests and fuzzing.  Not unmapped by the close. */
int mic_ring_over(void *memory, size_t data_bytes, const struct mic_perf_layout *layout,
                  struct mic_ring **out, struct mic_error *err);
void mic_ring_close(struct mic_ring *ring); /* NULL is fine */

/* Copies of stacks end at the limits (borrowed), from now on. */
void mic_ring_limit(struct mic_ring *ring, struct mic_limits *limits);
/* Copies take what is in it now and nothing that comes after, until it is marked again. */
void mic_ring_mark(struct mic_ring *ring);
/* Copy whole records, oldest first, while they fit room.  Returns the bytes copied.  *want is 0
 * when the ring was emptied (as of the head seen), else the size of the next record as copied:
 * when the result is 0, room must be at least that.  to is 8-byte aligned. */
size_t mic_ring_copy(struct mic_ring *ring, void *to, size_t room, size_t *want);
/* Throw away what is in it; returns the records dropped, which the caller counts. */
uint64_t mic_ring_discard(struct mic_ring *ring);
/* The record at *position (bytes written since the ring began; below the oldest is the oldest),
 * without taking it.  Moves *position past it; returns its size, 0 when there is none or room
 * (at least MIC_RECORD_MAX_BYTES) is short. */
size_t mic_ring_peek(const struct mic_ring *ring, uint64_t *position, void *to, size_t room);
uint64_t mic_ring_position(const struct mic_ring *ring); /* of the oldest record in it */
size_t mic_ring_filled(const struct mic_ring *ring);     /* bytes waiting */
size_t mic_ring_bytes(const struct mic_ring *ring);      /* the data part */

/* What copying has met so far. */
struct mic_ring_counts {
  uint64_t records;   /* copied */
  uint64_t samples;   /* of these */
  uint64_t lost_told; /* sum of LOST records: records the kernel could not write */
  uint64_t garbled;   /* times the ring made no sense and was skipped to its head */
  uint64_t garbled_bytes;
  uint64_t bytes_in, bytes_out; /* before and after cutting the stacks */
};
void mic_ring_counts(const struct mic_ring *ring, struct mic_ring_counts *out);

#endif
