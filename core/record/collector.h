/*
 * collector.h - the thread that copies records out of the rings.
 *
 * It never decodes, unwinds or allocates for a sample. When the queue has no room for samples it
 * stops the sample events until the processor has caught up, and notes the span; it measures the
 * budget and notes what that turned off. Mappings and forks are collected all the time.
 *
 * Owns:    borrows perf and queue; its notes are its own and may be read once it was joined.
 * Threads: made and stopped by one thread; `live` may be read by any.
 */
#ifndef MIC_RECORD_COLLECTOR_H
#define MIC_RECORD_COLLECTOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "capture/schema.h"
#include "perf/events.h"
#include "record/queue.h"

struct mic_collector_options {
  struct mic_perf *perf;
  struct mic_queue *queue;
  uint32_t budget_permille;
  uint64_t delay_ns; /* sampling is switched on so long after the start; 0: it is on already */
  uint64_t start_ns; /* times in notes are relative to it */
};

struct mic_collector_live {
  _Atomic uint64_t off_queue_ns, off_budget_ns; /* of spans that are over */
};

struct mic_collector_notes {
  MIC_VEC(struct mic_off_spans_row) off;
  MIC_VEC(struct mic_duty_row) duty;
  uint64_t lost_samples, lost_records; /* that no record told of */
  struct mic_error error;              /* why it ended early; code MIC_OK: it did not */
};

struct mic_collector;

int mic_collector_start(const struct mic_collector_options *options, struct mic_collector **out,
                        struct mic_error *err);
/* Stop sampling, drain the rings, close the queue. Returns at once; done when the queue closes. */
void mic_collector_stop(struct mic_collector *collector);
const struct mic_collector_live *mic_collector_live(const struct mic_collector *collector);
/* Waits for the thread's end; borrowed until the free. */
const struct mic_collector_notes *mic_collector_join(struct mic_collector *collector);
void mic_collector_free(struct mic_collector *collector); /* stops it too; NULL is fine */

#endif
