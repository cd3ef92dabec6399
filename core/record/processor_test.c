/* processor_test.c - records laid out by hand, in and out of order, through to a capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/perf_event.h>
#include <zstd.h>

#include "capture/reader.h"
#include "record/processor.h"
#include "record/tape.h"
#include "record/tape_format.h"

enum { PID = 4000, START = 1000 };

static const struct mic_perf_layout layout = {
  .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER |
                 PERF_SAMPLE_STACK_USER,
  .regs_user = 1 << 7 | 1 << 8, /* sp, ip */
  .stack_bytes = 64,
};

struct world {
  char path[64];
  struct mic_queue *queue;
  struct mic_writer *writer;
  struct mic_target *target;
  struct mic_processor *processor;
  struct mic_chunk *chunk;
};

static void begin(struct world *w) {
  memset(w, 0, sizeof *w);
  snprintf(w->path, sizeof w->path, "/tmp/processor-test-%d.usprof", (int)getpid());
  w->queue = mic_queue_new(0);
  assert_int_equal(mic_writer_open(w->path, &w->writer, NULL), 0);
  struct mic_target_options target = {.writer = w->writer, .start_ns = START};
  w->target = mic_target_new(&target);
  struct mic_processor_options options = {
    .queue = w->queue,
    .layout = &layout,
    .target = w->target,
    .writer = w->writer,
    .start_ns = START,
    .follow_children = true,
  };
  w->processor = mic_processor_new(&options);
  struct mic_sources_row source = {.name = mic_writer_text(w->writer, "cpu-clock"), .period = 1};
  mic_writer_sources(w->writer, &source);
  w->chunk = mic_queue_take(w->queue, false);
}

static void put(struct world *w, const void *bytes, size_t size) {
  memcpy(w->chunk->bytes + w->chunk->used, bytes, size);
  w->chunk->used += size;
}

static void put64(struct world *w, uint64_t value) { put(w, &value, sizeof value); }

static void put_header(struct world *w, uint32_t type, size_t size) {
  struct perf_event_header header = {type, PERF_RECORD_MISC_USER, (uint16_t)size};
  put(w, &header, sizeof header);
}

static uint64_t pair(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

static void put_trailer(struct world *w, uint32_t tid, uint64_t time_ns, uint32_t cpu) {
  put64(w, pair(PID, tid));
  put64(w, time_ns);
  put64(w, cpu);
  put64(w, 77);
}

static void put_fork(struct world *w, uint32_t tid, uint64_t time_ns) {
  put_header(w, PERF_RECORD_FORK, 8 + 24 + 32);
  put64(w, pair(PID, PID));
  put64(w, pair(tid, PID));
  put64(w, time_ns);
  put_trailer(w, PID, time_ns, 0);
}

static void put_name(struct world *w, uint32_t tid, uint64_t time_ns, const char name[8]) {
  put_header(w, PERF_RECORD_COMM, 8 + 16 + 32);
  put64(w, pair(PID, tid));
  put(w, name, 8);
  put_trailer(w, tid, time_ns, 0);
}

static void put_sample(struct world *w, uint32_t tid, uint64_t time_ns, uint64_t abi) {
  put_header(w, PERF_RECORD_SAMPLE, 8 + 48 + 8 + (abi ? 16 : 0) + 8 + 64 + 8);
  put64(w, 77);
  put64(w, 0x1234);
  put64(w, pair(PID, tid));
  put64(w, time_ns);
  put64(w, 1);
  put64(w, 1);
  put64(w, abi);
  if (abi) {
    put64(w, 0x7fff0000);
    put64(w, 0x1234);
  }
  put64(w, 64);
  uint8_t stack[64] = {0};
  put(w, stack, sizeof stack);
  put64(w, 32);
}

static void put_words(struct world *w, uint32_t type, uint64_t time_ns, const uint64_t *words,
                      size_t count) {
  put_header(w, type, 8 + count * 8 + 32);
  put(w, words, count * 8);
  put_trailer(w, PID, time_ns, 1);
}

static void feed(struct world *w, uint64_t watermark_ns) {
  w->chunk->watermark_ns = watermark_ns;
  mic_processor_feed(w->processor, w->chunk);
  w->chunk = mic_queue_take(w->queue, false);
  assert_non_null(w->chunk);
}

static struct mic_capture *finish(struct world *w, uint64_t end_ns) {
  struct mic_error err = {0};
  struct mic_capture *cap;
  mic_queue_release(w->queue, w->chunk);
  mic_processor_finish(w->processor, end_ns);
  mic_target_finish(w->target);
  assert_int_equal(mic_queue_used(w->queue), 0); /* every chunk came back */
  assert_int_equal(mic_writer_finish(w->writer, false, &err), 0);
  assert_int_equal(mic_capture_open(w->path, &cap, &err), 0);
  unlink(w->path);
  mic_processor_free(w->processor);
  mic_target_free(w->target);
  mic_queue_free(w->queue);
  return cap;
}

static const void *column(struct mic_capture *cap, const char *table, const char *name,
                          uint64_t rows) {
  uint64_t have = 0;
  const void *data = mic_capture_array(cap, table, name, &have);
  assert_int_equal(have, rows);
  return data;
}

/* A sample is in the ring of one CPU before the fork of its thread is in another's. */
static void records_are_put_in_order_of_time(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  put_sample(&w, PID + 1, START + 200, PERF_SAMPLE_REGS_ABI_64);
  put_sample(&w, PID + 1, START + 400, PERF_SAMPLE_REGS_ABI_NONE);
  feed(&w, START + 50);
  assert_int_equal(mic_processor_counts(w.processor)->samples, 0);
  put_name(&w, PID, START + 10, "parent\0");
  put_fork(&w, PID + 1, START + 100);
  put_name(&w, PID + 1, START + 300, "worker\0");
  put_sample(&w, PID + 1, START + 150, PERF_SAMPLE_REGS_ABI_32);
  feed(&w, START + 250);
  assert_int_equal(mic_processor_counts(w.processor)->samples, 2);
  struct mic_capture *cap = finish(&w, START + 500);
  const uint64_t *times = column(cap, "samples", "time_ns", 3);
  assert_int_equal(times[0], 150);
  assert_int_equal(times[1], 200);
  assert_int_equal(times[2], 400);
  const uint64_t *starts = column(cap, "threads", "start_ns", 2);
  assert_int_equal(starts[1], 100);
  /* parent, the name worker inherits from it, worker. */
  const uint64_t *named = column(cap, "thread_names", "time_ns", 3);
  assert_int_equal(named[1], 100);
  assert_int_equal(named[2], 300);
  const uint32_t *stacks = column(cap, "samples", "stack", 3);
  const uint8_t *ends = mic_capture_array(cap, "stacks", "end", NULL);
  assert_int_equal(ends[stacks[0]], MIC_END_COMPAT_CODE);
  assert_int_equal(ends[stacks[1]], 0); /* a frame: its root says that the code is unmapped */
  assert_int_equal(ends[stacks[2]], MIC_END_NO_REGISTERS);
  mic_capture_close(cap);
}

/* Of two events on a CPU each has its own span. */
static void events_are_throttled_apart(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  put_words(&w, PERF_RECORD_THROTTLE, START + 10, (uint64_t[]){START + 10, 77, 1}, 3);
  put_words(&w, PERF_RECORD_THROTTLE, START + 20, (uint64_t[]){START + 20, 77, 2}, 3);
  put_words(&w, PERF_RECORD_UNTHROTTLE, START + 30, (uint64_t[]){START + 30, 77, 1}, 3);
  put_words(&w, PERF_RECORD_UNTHROTTLE, START + 40, (uint64_t[]){START + 40, 77, 2}, 3);
  feed(&w, START + 100);
  struct mic_capture *cap = finish(&w, START + 100);
  const uint64_t *from = column(cap, "off_spans", "start_ns", 2);
  const uint64_t *to = column(cap, "off_spans", "end_ns", 2);
  assert_int_equal(from[0], 10);
  assert_int_equal(to[0], 30);
  assert_int_equal(from[1], 20);
  assert_int_equal(to[1], 40);
  mic_capture_close(cap);
}

static void losses_and_throttling_are_rows(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  put_words(&w, PERF_RECORD_LOST, START + 10, (uint64_t[]){77, 5}, 2);
  put_words(&w, PERF_RECORD_THROTTLE, START + 20, (uint64_t[]){START + 20, 77, 77}, 3);
  put_words(&w, PERF_RECORD_UNTHROTTLE, START + 50, (uint64_t[]){START + 50, 77, 77}, 3);
  put_words(&w, PERF_RECORD_UNTHROTTLE, START + 55, (uint64_t[]){START + 55, 77, 77}, 3);
  put_words(&w, PERF_RECORD_THROTTLE, START + 60, (uint64_t[]){START + 60, 77, 77}, 3);
  put_words(&w, PERF_RECORD_THROTTLE, START + 65, (uint64_t[]){START + 65, 77, 77}, 3);
  feed(&w, START + 100);
  mic_processor_lost(w.processor, START + 100, MIC_LOSS_RECORDS, 3);
  mic_processor_lost(w.processor, START + 100, MIC_LOSS_SAMPLES, 0);
  const struct mic_processor_counts *counts = mic_processor_counts(w.processor);
  assert_int_equal(counts->lost_samples, 5);
  assert_int_equal(counts->lost_records, 3);
  struct mic_capture *cap = finish(&w, START + 100);
  const uint64_t *lost = column(cap, "losses", "count", 2);
  assert_int_equal(lost[0], 5);
  assert_int_equal(lost[1], 3);
  const uint64_t *from = column(cap, "off_spans", "start_ns", 2);
  const uint64_t *to = column(cap, "off_spans", "end_ns", 2);
  assert_int_equal(from[0], 20);
  assert_int_equal(to[0], 50);
  assert_int_equal(from[1], 60); /* still throttled at the end */
  assert_int_equal(to[1], 100);
  mic_capture_close(cap);
}

static void malformed_records_are_counted(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  put_header(&w, PERF_RECORD_SAMPLE, 24); /* too short for its parts */
  put64(&w, 77);
  put64(&w, 1);
  put_name(&w, PID, START + 1, "whole\0\0");
  put_header(&w, PERF_RECORD_COMM, 4096); /* past the chunk */
  feed(&w, START + 10);
  struct mic_capture *cap = finish(&w, START + 10);
  const uint64_t *counts = column(cap, "problems", "count", 2);
  assert_int_equal(counts[0], 1);
  assert_int_equal(counts[1], 1);
  column(cap, "thread_names", "time_ns", 1);
  mic_capture_close(cap);
}

/* As on a damaged tape: what follows would be read from an odd address. */
static void a_record_of_an_odd_size_ends_its_chunk(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  put_header(&w, PERF_RECORD_SAMPLE, 17);
  put64(&w, 77);
  put(&w, "", 1);
  put_name(&w, PID, START + 1, "whole\0\0");
  feed(&w, START + 10);
  struct mic_capture *cap = finish(&w, START + 10);
  assert_int_equal(((const uint64_t *)column(cap, "problems", "count", 1))[0], 1);
  column(cap, "thread_names", "time_ns", 0);
  mic_capture_close(cap);
}

/* Whatever bytes come, the chunk comes back and the capture is valid. */
static void any_bytes_leave_a_valid_capture(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  uint32_t seed = 11;
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < 20; i++) {
      size_t from = w.chunk->used;
      if (i % 3 == 0)
        put_sample(&w, PID + (uint32_t)i, START + (uint64_t)(round * 20 + i), 2);
      else if (i % 3 == 1)
        put_fork(&w, PID + (uint32_t)i, START + (uint64_t)(round * 20));
      else
        put_name(&w, PID, START + 3, "abc\0\0\0\0");
      seed = seed * 1664525 + 1013904223;
      /* Not the sizes: those say where the next record is. */
      size_t at = from + 8 + (seed >> 8) % (w.chunk->used - from - 8);
      w.chunk->bytes[at] = (uint8_t)(seed >> 24);
    }
    feed(&w, UINT64_MAX);
  }
  mic_capture_close(finish(&w, START + 10000));
}

static void put_item(FILE *file, uint32_t kind, const void *bytes, size_t size) {
  struct mic_tape_item item = {.kind = kind, .size = size};
  static const uint8_t zeros[8];
  assert_int_equal(fwrite(&item, sizeof item, 1, file), 1);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fwrite(zeros, 1, -size & 7, file), -size & 7);
}

static void pack(const char *path, const void *bytes, size_t size) {
  size_t room = ZSTD_compressBound(size);
  void *packed = malloc(room);
  size_t got = ZSTD_compress(packed, room, bytes, size, 1);
  assert_false(ZSTD_isError(got));
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(packed, 1, got, file), got);
  assert_int_equal(fclose(file), 0);
  free(packed);
}

/* Chunks that no watermark ever lets go of are refused, not kept until memory ends. */
static void a_tape_without_watermarks_is_malformed(void **state) {
  (void)state;
  struct world w;
  begin(&w);
  struct mic_tape_head head = {.version = MIC_TAPE_VERSION, .pid = PID, .layout = layout};
  uint64_t watermark_ns = 0, stop_ns = START;
  put64(&w, watermark_ns);
  put_name(&w, PID, START + 1, "name\0\0\0");
  char *bytes, tape[64];
  size_t size;
  FILE *file = open_memstream(&bytes, &size);
  put_item(file, MIC_TAPE_HEAD, &head, sizeof head);
  for (int i = 0; i < 5000; i++) put_item(file, MIC_TAPE_CHUNK, w.chunk->bytes, w.chunk->used);
  put_item(file, MIC_TAPE_END, &stop_ns, sizeof stop_ns);
  fclose(file);
  snprintf(tape, sizeof tape, "/tmp/processor-test-%d.tape", (int)getpid());
  pack(tape, bytes, size);
  struct mic_replay_options options = {.size = sizeof options, .passes = 1, .tape = tape};
  struct mic_replay_result result;
  struct mic_error err = {0};
  assert_int_equal(mic_tape_replay(&options, &result, &err), MIC_EFORMAT);
  assert_non_null(strstr(err.msg, tape));
  unlink(tape);
  free(bytes);
  w.chunk->used = 0;
  mic_capture_close(finish(&w, START));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_are_put_in_order_of_time),
    cmocka_unit_test(losses_and_throttling_are_rows),
    cmocka_unit_test(events_are_throttled_apart),
    cmocka_unit_test(malformed_records_are_counted),
    cmocka_unit_test(a_record_of_an_odd_size_ends_its_chunk),
    cmocka_unit_test(any_bytes_leave_a_valid_capture),
    cmocka_unit_test(a_tape_without_watermarks_is_malformed),
  };
  return cmocka_run_group_tests_name("processor", tests, NULL, NULL);
}
