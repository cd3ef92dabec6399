/*
 * processor.h - from chunks of perf records to a target's events, in order of time.
 *
 * Each CPU has its own rings, so records come nearly in order: they wait until the watermark of a
 * chunk says that every record stamped before it has come, are put in order and decoded, and are
 * given to the target. Records come from outside: one that does not decode is a counted problem.
 *
 * Owns:    borrows queue, layout, claims, target and writer.
 * Threads: one user at a time; the counts may be read by others.
 */
#ifndef MIC_RECORD_PROCESSOR_H
#define MIC_RECORD_PROCESSOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "perf/events.h"
#include "perf/throttle.h"
#include "record/queue.h"
#include "target/target.h"

struct mic_processor_options {
  struct mic_queue *queue;
  const struct mic_perf_layout *layout;
  const struct mic_perf *perf; /* tells samples' losses from others'; NULL: all count as samples */
  struct mic_claims *claims;   /* NULL: every record counts */
  struct mic_target *target;
  struct mic_writer *writer;
  uint64_t start_ns;
  /* A chunk is done with. NULL: no one asks. */
  void (*on_done)(void *data, const struct mic_chunk *chunk);
  void *done_data;
  bool trim;            /* before that its samples' dyn_size is cut to what unwinding needed */
  bool follow_children; /* false: forks to other processes, and what these do, are dropped */
};

struct mic_processor;

struct mic_processor *mic_processor_new(const struct mic_processor_options *options);
/* Before its queue; what still waits is dropped. NULL is fine. */
void mic_processor_free(struct mic_processor *processor);
/* Takes in a chunk of the queue's and processes what its watermark allows; the chunk is released
 * when the last of its records was processed. */
void mic_processor_feed(struct mic_processor *processor, struct mic_chunk *chunk);
/* Processes all that is left; end_ns closes spans that are still open. */
void mic_processor_finish(struct mic_processor *processor, uint64_t end_ns);

/* Monotonic counts; readable from any thread while it runs. */
struct mic_processor_counts {
  _Atomic uint64_t samples, lost_samples, lost_records, threads, throttled_ns;
};
const struct mic_processor_counts *mic_processor_counts(const struct mic_processor *processor);
/* A loss that no record told of: the events' own counters know. */
void mic_processor_lost(struct mic_processor *processor, uint64_t time_ns, enum mic_loss kind,
                        uint64_t count);

#endif
