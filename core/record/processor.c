/* processor.c - order, decode and hand over. */
#include "record/processor.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"

struct waiting {
  uint64_t time_ns;
  const uint8_t *bytes;
  struct mic_chunk *chunk;
};

typedef MIC_VEC(struct waiting) waiting_vec;

struct mic_processor {
  struct mic_processor_options options;
  struct mic_processor_counts counts;
  waiting_vec waiting; /* not yet allowed by a watermark, in the order they came */
  waiting_vec ready;   /* scratch: being processed */
  waiting_vec merged;  /* scratch: of the sort */
  uint64_t watermark_ns, turns;
  struct mic_throttle throttle;
  struct mic_map strangers; /* pids of processes not asked for, that an old kernel follows too */
  bool read_maps;           /* side records were lost since the maps were read */
  uint64_t maps_read_ns;    /* when reading them last began */
};

struct mic_processor *mic_processor_new(const struct mic_processor_options *options) {
  struct mic_processor *processor = mic_alloc(sizeof *processor);
  processor->options = *options;
  return processor;
}

void mic_processor_free(struct mic_processor *processor) {
  if (!processor) return;
  for (size_t i = 0; i < processor->waiting.count; i++) {
    struct mic_chunk *chunk = processor->waiting.at[i].chunk;
    if (--chunk->held == 0) mic_queue_release(processor->options.queue, chunk);
  }
  mic_vec_free(&processor->waiting);
  mic_vec_free(&processor->ready);
  mic_vec_free(&processor->merged);
  mic_throttle_free(&processor->throttle);
  mic_map_free(&processor->strangers);
  free(processor);
}

const struct mic_processor_counts *mic_processor_counts(const struct mic_processor *processor) {
  return &processor->counts;
}

static uint64_t relative(const struct mic_processor *processor, uint64_t time_ns) {
  uint64_t start_ns = processor->options.start_ns;
  return time_ns > start_ns ? time_ns - start_ns : 0;
}

static void problem(struct mic_processor *processor, const char *text) {
  mic_target_problem(processor->options.target, text, 1);
}

static void write_loss(struct mic_processor *processor, uint64_t time_ns, enum mic_loss kind,
                       uint64_t count, uint16_t cpu) {
  struct mic_losses_row row = {
    .time_ns = relative(processor, time_ns),
    .kind = (uint8_t)kind,
    .count = count,
    .cpu = cpu,
  };
  mic_writer_losses(processor->options.writer, &row);
  atomic_fetch_add(kind == MIC_LOSS_SAMPLES ? &processor->counts.lost_samples
                                            : &processor->counts.lost_records,
                   count);
}

void mic_processor_lost(struct mic_processor *processor, uint64_t time_ns, enum mic_loss kind,
                        uint64_t count) {
  if (count) write_loss(processor, time_ns, kind, count, UINT16_MAX);
}

static void take_loss(struct mic_processor *processor, const struct mic_record *record) {
  bool samples = record->kind == MIC_RECORD_LOST_SAMPLES || !processor->options.perf ||
                 mic_perf_id_is_sample(processor->options.perf, record->id);
  write_loss(processor, record->time_ns, samples ? MIC_LOSS_SAMPLES : MIC_LOSS_RECORDS,
             record->lost, (uint16_t)record->cpu);
}

static void put_throttled(struct mic_processor *processor, const struct mic_throttle_span *span) {
  struct mic_off_spans_row row = {
    .start_ns = relative(processor, span->start_ns),
    .end_ns = relative(processor, span->end_ns),
    .kind = MIC_OFF_THROTTLE,
    .cpu = (uint16_t)span->cpu,
  };
  if (row.end_ns <= row.start_ns) return;
  mic_writer_off_spans(processor->options.writer, &row);
  atomic_fetch_add(&processor->counts.throttled_ns, row.end_ns - row.start_ns);
}

static void take_throttle(struct mic_processor *processor, const struct mic_record *record) {
  struct mic_throttle_span span;
  if (mic_throttle_take(&processor->throttle, record, &span)) put_throttled(processor, &span);
}

/* False for what is no mapping of code: a data record comes only where data events are on. */
static bool mapping_of(const struct mic_record *record, struct mic_target_map *map) {
  if (record->kind != MIC_RECORD_MMAP || record->data || !record->name) return false;
  *map = (struct mic_target_map){
    .time_ns = record->time_ns,
    .pid = record->pid,
    .tid = record->tid,
    .address = record->addr,
    .size = record->len,
    .file_offset = record->pgoff,
    .maj = record->maj,
    .min = record->min,
    .inode = record->ino,
    .generation = record->ino_generation,
    .path = record->name,
  };
  return true;
}

static void take_mapping(struct mic_processor *processor, const struct mic_record *record) {
  struct mic_target_map map;
  if (mapping_of(record, &map)) mic_target_map(processor->options.target, &map);
}

static void foresee(struct mic_processor *processor, const uint8_t *bytes, uint16_t size) {
  struct mic_record record;
  struct mic_target_map map;
  if (mic_perf_decode(processor->options.layout, bytes, size, &record, NULL) == 0 &&
      mapping_of(&record, &map))
    mic_target_foresee(processor->options.target, &map);
}

static enum mic_end fault_of(const struct mic_record *record) {
  if (record->regs_abi == PERF_SAMPLE_REGS_ABI_NONE) return MIC_END_NO_REGISTERS;
  return record->regs_abi == PERF_SAMPLE_REGS_ABI_32 ? MIC_END_COMPAT_CODE : MIC_END_NONE;
}

_Static_assert((int)MIC_RECORD_REGS == (int)MIC_REG_COUNT, "one register order on both floors");

static void take_sample(struct mic_processor *processor, const struct mic_record *record) {
  struct mic_target_sample sample = {
    .time_ns = record->time_ns,
    .pid = record->pid,
    .tid = record->tid,
    .cpu = (uint16_t)record->cpu,
    .weight = record->period,
    .fault = fault_of(record),
    .regs.known = record->regs.known,
    .stack =
      {
        .bytes = record->stack,
        .address = record->regs.r[MIC_REG_RSP],
        .size = record->stack ? record->stack_size : 0,
        .full = record->stack_full,
      },
  };
  memcpy(sample.regs.r, record->regs.r, sizeof sample.regs.r);
  mic_target_sample(processor->options.target, &sample);
  atomic_fetch_add(&processor->counts.samples, 1);
}

static void take(struct mic_processor *processor, const struct mic_record *record) {
  struct mic_target *target = processor->options.target;
  switch (record->kind) {
  case MIC_RECORD_SAMPLE: take_sample(processor, record); break;
  case MIC_RECORD_MMAP: take_mapping(processor, record); break;
  case MIC_RECORD_COMM:
    mic_target_name(target, record->time_ns, record->pid, record->tid, record->name, record->exec);
    break;
  case MIC_RECORD_FORK:
    mic_target_fork(target, record->time_ns, record->pid, record->tid, record->ppid, record->ptid);
    break;
  case MIC_RECORD_EXIT: mic_target_exit(target, record->time_ns, record->pid, record->tid); break;
  case MIC_RECORD_LOST:
  case MIC_RECORD_LOST_SAMPLES: take_loss(processor, record); break;
  case MIC_RECORD_THROTTLE:
  case MIC_RECORD_UNTHROTTLE: take_throttle(processor, record); break;
  default: break;
  }
}

/* Whether a record is of a process that was not asked for. */
static bool is_strange(struct mic_processor *processor, const struct mic_record *record) {
  if (processor->options.follow_children) return false;
  struct mic_map *strangers = &processor->strangers;
  if (record->kind == MIC_RECORD_FORK && record->pid != record->ppid)
    mic_map_put(strangers, record->pid, 0, 0);
  return mic_map_get(strangers, record->pid, 0) != MIC_NONE;
}

static bool counts(struct mic_processor *processor, const struct mic_record *record) {
  struct mic_claims *claims = processor->options.claims;
  return (!claims || mic_claims_accept(claims, record)) && !is_strange(processor, record);
}

static void release(struct mic_processor *processor, struct mic_chunk *chunk) {
  if (processor->options.on_done) processor->options.on_done(processor->options.done_data, chunk);
  mic_queue_release(processor->options.queue, chunk);
}

/* The copy's valid size is the last word of a sample (perf_event_open(2), PERF_SAMPLE_STACK_USER).
 */
static void trim(const struct mic_processor *processor, const struct waiting *waiting,
                 const struct mic_record *record) {
  uint64_t reach = mic_target_reach(processor->options.target);
  if (!record->stack || reach >= record->stack_size) return;
  size_t at = (size_t)(waiting->bytes - waiting->chunk->bytes) + record->size - sizeof reach;
  memcpy(waiting->chunk->bytes + at, &reach, sizeof reach);
}

static void process(struct mic_processor *processor, const struct waiting *waiting) {
  struct mic_record record;
  struct mic_error err = {0};
  uint16_t size = ((const struct perf_event_header *)(const void *)waiting->bytes)->size;
  if (mic_perf_decode(processor->options.layout, waiting->bytes, size, &record, &err) != 0)
    problem(processor, "a perf record that does not hold together");
  else if (counts(processor, &record)) {
    take(processor, &record);
    if (processor->options.trim && record.kind == MIC_RECORD_SAMPLE)
      trim(processor, waiting, &record);
  }
  if (--waiting->chunk->held == 0) release(processor, waiting->chunk);
}

/* Merge sort, stable: records of one time keep the order they came in. Runs that are in order
 * already, as one ring's are, cost one pass. */
static void merge(const struct waiting *from, size_t low, size_t middle, size_t high,
                  struct waiting *to) {
  size_t a = low, b = middle;
  for (size_t i = low; i < high; i++)
    to[i] = a < middle && (b >= high || from[a].time_ns <= from[b].time_ns) ? from[a++] : from[b++];
}

static size_t run_end(const struct waiting *at, size_t from, size_t count) {
  size_t end = from + 1;
  while (end < count && at[end - 1].time_ns <= at[end].time_ns) end++;
  return end;
}

static void sort(struct mic_processor *processor) {
  waiting_vec *ready = &processor->ready, *merged = &processor->merged;
  mic_vec_reserve(merged, ready->count + 1);
  while (ready->count > 1) {
    for (size_t low = 0; low < ready->count;) {
      size_t middle = run_end(ready->at, low, ready->count);
      if (low == 0 && middle == ready->count) return;
      size_t high = middle < ready->count ? run_end(ready->at, middle, ready->count) : middle;
      merge(ready->at, low, middle, high, merged->at);
      low = high;
    }
    merged->count = ready->count;
    waiting_vec swap = *ready;
    *ready = *merged;
    *merged = swap;
    mic_vec_reserve(merged, ready->count + 1);
  }
}

/* Process every waiting record stamped up to the watermark. */
static void advance(struct mic_processor *processor, uint64_t watermark_ns) {
  waiting_vec *waiting = &processor->waiting;
  size_t left = 0;
  processor->ready.count = 0;
  for (size_t i = 0; i < waiting->count; i++) {
    if (waiting->at[i].time_ns <= watermark_ns)
      *mic_vec_push(&processor->ready) = waiting->at[i];
    else
      waiting->at[left++] = waiting->at[i];
  }
  waiting->count = left;
  sort(processor);
  for (size_t i = 0; i < processor->ready.count; i++) process(processor, &processor->ready.at[i]);
  mic_target_time(processor->options.target, watermark_ns);
}

/* Note each record of a chunk with its time. */
static void ingest(struct mic_processor *processor, struct mic_chunk *chunk) {
  size_t at = 0;
  uint64_t now_ns = mic_clock_ns();
  while (at + sizeof(struct perf_event_header) <= chunk->used) {
    const uint8_t *bytes = chunk->bytes + at;
    uint16_t size = ((const struct perf_event_header *)(const void *)bytes)->size;
    /* Whole u64s, as the kernel writes them (kernel/events/core.c): headers stay aligned. */
    if (size < sizeof(struct perf_event_header) || size % 8 || size > chunk->used - at) break;
    uint64_t time_ns, id;
    uint32_t type;
    bool whole =
      mic_perf_peek(processor->options.layout, bytes, chunk->used - at, &time_ns, &id, &type);
    if (whole && processor->options.perf && time_ns > now_ns) {
      /* Waiting for its turn it would hold its chunk for ever. A tape has the time of another day.
       */
      problem(processor, "a perf record stamped later than it was read");
    } else if (whole) {
      *mic_vec_push(&processor->waiting) = (struct waiting){time_ns, bytes, chunk};
      chunk->held++;
      if (type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2) foresee(processor, bytes, size);
      /* What was lost came before its record. */
      if (type == PERF_RECORD_LOST && processor->options.perf &&
          !mic_perf_id_is_sample(processor->options.perf, id) && time_ns > processor->maps_read_ns)
        processor->read_maps = true;
    } else {
      problem(processor, "a perf record that does not hold together");
    }
    at += size;
  }
  if (at != chunk->used) problem(processor, "a chunk of perf records that does not hold together");
}

void mic_processor_feed(struct mic_processor *processor, struct mic_chunk *chunk) {
  uint64_t watermark_ns = chunk->watermark_ns;
  chunk->turn = processor->turns++;
  ingest(processor, chunk);
  if (chunk->held == 0) release(processor, chunk);
  if (processor->read_maps) {
    processor->read_maps = false;
    processor->maps_read_ns = mic_clock_ns();
    mic_target_lost(processor->options.target);
  }
  if (watermark_ns == 0 || watermark_ns < processor->watermark_ns) return;
  processor->watermark_ns = watermark_ns;
  advance(processor, watermark_ns);
  struct mic_target_counts counts;
  mic_target_count(processor->options.target, &counts);
  atomic_store(&processor->counts.threads, counts.threads);
}

void mic_processor_finish(struct mic_processor *processor, uint64_t end_ns) {
  advance(processor, UINT64_MAX);
  struct mic_throttle_span span;
  while (mic_throttle_end(&processor->throttle, end_ns, &span)) put_throttled(processor, &span);
}
