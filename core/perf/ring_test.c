/*
 * ring_test.c - rings laid out by hand: wrapping, cutting stacks, short room, nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "perf/ring.h"

enum { PAGE = 4096, DATA = 4096 * 4 };

static const struct mic_perf_layout layout = {
  PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
    PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
  0xff0fff, 1024};

struct fake {
  struct perf_event_mmap_page *page;
  uint8_t *data;
  uint64_t head;
  struct mic_ring *ring;
};

static struct fake fake_new(uint64_t start) {
  struct fake fake = {0};
  uint8_t *memory = aligned_alloc(PAGE, PAGE + DATA);
  assert_non_null(memory);
  memset(memory, 0xee, PAGE + DATA);
  memset(memory, 0, PAGE);
  fake.page = (struct perf_event_mmap_page *)memory;
  fake.data = memory + PAGE;
  fake.head = start;
  fake.page->data_head = fake.page->data_tail = start;
  assert_int_equal(mic_ring_over(memory, DATA, &layout, &fake.ring, NULL), 0);
  return fake;
}
static void fake_free(struct fake *fake) {
  mic_ring_close(fake->ring);
  free(fake->page);
}
static void put(struct fake *fake, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    fake->data[(fake->head + i) % DATA] = ((const uint8_t *)bytes)[i];
  fake->head += size;
  fake->page->data_head = fake->head;
}

/* A sample with a slot of `slot` bytes of which `valid` are so; returns its size. */
static size_t sample(uint64_t *words, uint64_t abi, uint64_t slot, uint64_t valid, uint64_t mark) {
  size_t n = 1;
  words[n++] = 77;
  words[n++] = 0x1234;
  words[n++] = 5ull << 32 | 4;
  words[n++] = 1000 + mark;
  words[n++] = 1;
  words[n++] = 100;
  words[n++] = abi;
  for (uint64_t i = 0; abi && i < 20; i++) words[n++] = 0x1000 + i;
  words[n++] = slot;
  for (uint64_t i = 0; i < slot / 8; i++) words[n++] = mark << 32 | i;
  if (slot) words[n++] = valid;
  struct perf_event_header header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)(n * 8)};
  memcpy(words, &header, 8);
  return n * 8;
}

static void check_sample(const uint8_t *bytes, size_t size, uint64_t slot, uint64_t valid,
                         uint64_t mark) {
  struct mic_record r;
  struct mic_error err = {0};
  assert_int_equal(mic_perf_decode(&layout, bytes, size, &r, &err), 0);
  assert_int_equal(r.time_ns, 1000 + mark);
  assert_int_equal(r.stack_size, valid);
  assert_int_equal(r.stack_full, valid == slot && slot);
  for (uint64_t i = 0; i < valid / 8; i++) {
    uint64_t word;
    memcpy(&word, r.stack + i * 8, 8);
    assert_true(word == (mark << 32 | i));
  }
}

/* Every starting place, so that header, registers, stack and dyn_size all wrap once. */
static void wraps_anywhere(void **state) {
  (void)state;
  for (uint64_t start = 0; start < DATA; start += 8) {
    struct fake fake = fake_new(start + 5 * (uint64_t)DATA);
    uint64_t words[256], out[1024];
    const uint64_t valid[] = {0, 8, 504, 1016, 1024};
    for (uint64_t i = 0; i < 5; i++) put(&fake, words, sample(words, 2, 1024, valid[i], i + 1));
    size_t want, used = mic_ring_copy(fake.ring, out, sizeof out, &want), at = 0;
    assert_int_equal(want, 0);
    for (uint64_t i = 0; i < 5; i++) {
      uint16_t size = ((struct perf_event_header *)((uint8_t *)out + at))->size;
      check_sample((uint8_t *)out + at, size, 1024, valid[i], i + 1);
      at += size;
    }
    assert_int_equal(at, used);
    assert_int_equal(fake.page->data_tail, fake.head);
    assert_int_equal(mic_ring_filled(fake.ring), 0);
    fake_free(&fake);
  }
}

static void keeps_what_it_cannot_cut(void **state) {
  (void)state;
  struct fake fake = fake_new(0);
  uint64_t words[256], out[1024];
  size_t sizes[4], want, at = 0;
  put(&fake, words, sizes[0] = sample(words, 0, 0, 0, 1));     /* a kernel thread */
  put(&fake, words, sizes[1] = sample(words, 2, 0, 0, 2));     /* no stack slot */
  put(&fake, words, sizes[2] = sample(words, 2, 64, 9999, 3)); /* dyn_size past the slot */
  sizes[3] = sample(words, 2, 64, 8, 4);
  words[28] = 72; /* a slot that is not what the record holds */
  put(&fake, words, sizes[3]);
  size_t used = mic_ring_copy(fake.ring, out, sizeof out, &want);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(((struct perf_event_header *)((uint8_t *)out + at))->size, sizes[i]);
    at += sizes[i];
  }
  assert_int_equal(used, at);
  struct mic_record r;
  struct mic_error err;
  assert_int_equal(
    mic_perf_decode(&layout, (uint8_t *)out + at - sizes[3] - sizes[2], sizes[2], &r, &err),
    MIC_EFORMAT);
  fake_free(&fake);
}

static void waits_for_room(void **state) {
  (void)state;
  struct fake fake = fake_new(DATA - 64);
  uint64_t words[256], out[1024];
  size_t want, full = sample(words, 2, 1024, 1024, 1);
  put(&fake, words, full);
  size_t cut = sample(words, 2, 1024, 16, 2) - (1024 - 24);
  put(&fake, words, sample(words, 2, 1024, 16, 2));
  assert_int_equal(mic_ring_copy(fake.ring, out, full - 8, &want), 0);
  assert_int_equal(want, full);
  assert_int_equal(fake.page->data_tail, DATA - 64);
  assert_int_equal(mic_ring_copy(fake.ring, out, full + cut - 8, &want), full);
  assert_int_equal(want, cut);
  assert_int_equal(mic_ring_copy(fake.ring, out, cut, &want), cut);
  assert_int_equal(want, 0);
  struct mic_ring_counts counts;
  mic_ring_counts(fake.ring, &counts);
  assert_int_equal(counts.records, 2);
  assert_int_equal(counts.samples, 2);
  assert_int_equal(counts.bytes_in, 2 * full);
  assert_int_equal(counts.bytes_out, full + cut);
  fake_free(&fake);
}

enum { SP = 0x1007, PID = 4 }; /* of each sample */

static uint64_t find_end(uint32_t pid) { return pid == PID ? SP + 512 : 0; }

/* The next sample of the ring has `valid` bytes of its stack. */
static void expect_copy(struct fake *fake, uint64_t valid, uint64_t mark) {
  uint64_t words[256], out[1024];
  size_t want;
  put(fake, words, sample(words, 2, 1024, 1024, mark));
  size_t used = mic_ring_copy(fake->ring, out, sizeof out, &want);
  check_sample((const uint8_t *)out, used, 1024, valid, mark);
}

static void stacks_end_at_the_limit(void **state) {
  (void)state;
  static struct mic_limits limits;
  struct fake fake = fake_new(DATA - 304);
  mic_ring_limit(fake.ring, &limits);
  for (int i = 1; i < MIC_LIMITS_AFTER; i++) expect_copy(&fake, 1024, 1);
  mic_limits_look_up(&limits, find_end); /* not wanted yet */
  expect_copy(&fake, 1024, 2);
  mic_limits_look_up(&limits, find_end);
  expect_copy(&fake, 1024, 3); /* an exec may still be in a side ring */
  mic_limits_settle(&limits);
  expect_copy(&fake, 512, 4);
  mic_limits_place(&limits, PID)->end = SP + 4096; /* past what was copied */
  expect_copy(&fake, 1024, 5);
  mic_limits_place(&limits, PID)->end = SP - 8; /* another stack, above */
  expect_copy(&fake, 1024, 6);
  mic_limits_place(&limits, PID)->end = SP + 512;
  mic_limits_forget(&limits, PID + MIC_LIMITS); /* another in the same place */
  expect_copy(&fake, 512, 7);
  mic_limits_forget(&limits, PID);
  expect_copy(&fake, 1024, 8);
  mic_ring_limit(fake.ring, NULL);
  fake_free(&fake);
}

static void copies_up_to_the_mark(void **state) {
  (void)state;
  struct fake fake = fake_new(0);
  uint64_t words[256], out[1024];
  size_t want, size = sample(words, 2, 64, 64, 1);
  put(&fake, words, size);
  mic_ring_mark(fake.ring);
  put(&fake, words, size);
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), size);
  assert_int_equal(want, 0);
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), 0);
  mic_ring_mark(fake.ring);
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), size);
  fake_free(&fake);
}

static void skips_nonsense(void **state) {
  (void)state;
  const uint16_t sizes[] = {0, 4, 12, 40, 0xfff8};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct fake fake = fake_new(DATA - 16);
    uint64_t words[256], out[1024];
    struct mic_ring_counts counts;
    size_t want, good = sample(words, 2, 64, 64, 1);
    put(&fake, words, good);
    struct perf_event_header bad = {PERF_RECORD_COMM, 0, sizes[i]};
    put(&fake, &bad, sizeof bad);
    put(&fake, &bad, sizeof bad);
    assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), good);
    assert_int_equal(want, 0);
    mic_ring_counts(fake.ring, &counts);
    assert_int_equal(counts.garbled, 1);
    assert_int_equal(counts.garbled_bytes, 16);
    /* And it goes on after it. */
    put(&fake, words, good);
    assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), good);
    check_sample((uint8_t *)out, good, 64, 64, 1);
    fake_free(&fake);
  }
}

static void survives_an_impossible_head(void **state) {
  (void)state;
  struct fake fake = fake_new(0);
  uint64_t out[64];
  size_t want;
  struct mic_ring_counts counts;
  fake.page->data_head = 3 * DATA;
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), 0);
  fake.page->data_head = 8; /* backwards */
  assert_int_equal(mic_ring_filled(fake.ring), DATA);
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), 0);
  fake.page->data_head = 13; /* not on a word */
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), 0);
  fake.page->data_head = 29;
  assert_int_equal(mic_ring_copy(fake.ring, out, sizeof out, &want), 0);
  mic_ring_counts(fake.ring, &counts);
  assert_int_equal(counts.garbled, 4);
  fake_free(&fake);
}

static void counts_what_was_lost(void **state) {
  (void)state;
  struct fake fake = fake_new(0);
  uint64_t lost[8] = {0, 77, 12, 5ull << 32 | 4, 1000, 1, 77}, out[64];
  struct perf_event_header header = {PERF_RECORD_LOST, 0, 7 * 8};
  struct mic_ring_counts counts;
  size_t want;
  memcpy(lost, &header, 8);
  put(&fake, lost, 7 * 8);
  put(&fake, lost, 7 * 8);
  assert_int_equal(mic_ring_copy(fake.ring, out, 7 * 8, &want), 7 * 8);
  assert_int_equal(mic_ring_discard(fake.ring), 1);
  mic_ring_counts(fake.ring, &counts);
  assert_int_equal(counts.lost_told, 24);
  fake_free(&fake);
}

static void peeks_without_taking(void **state) {
  (void)state;
  struct fake fake = fake_new(DATA - 8);
  uint64_t words[256], *room = malloc(MIC_RECORD_MAX_BYTES), position = 0;
  size_t first = sample(words, 2, 64, 8, 1), want;
  put(&fake, words, first);
  put(&fake, words, sample(words, 2, 64, 8, 2));
  assert_int_equal(mic_ring_peek(fake.ring, &position, room, MIC_RECORD_MAX_BYTES), first);
  check_sample((uint8_t *)room, first, 64, 8, 1);
  assert_int_equal(mic_ring_peek(fake.ring, &position, room, MIC_RECORD_MAX_BYTES), first);
  assert_int_equal(mic_ring_peek(fake.ring, &position, room, MIC_RECORD_MAX_BYTES), 0);
  assert_int_equal(fake.page->data_tail, DATA - 8);
  uint64_t out[256];
  assert_true(mic_ring_copy(fake.ring, out, sizeof out, &want) > 0);
  position = 0;
  assert_int_equal(mic_ring_peek(fake.ring, &position, room, MIC_RECORD_MAX_BYTES), 0);
  free(room);
  fake_free(&fake);
}

static void refuses_odd_sizes(void **state) {
  (void)state;
  struct mic_ring *ring;
  struct mic_error err;
  assert_int_equal(mic_ring_over(NULL, 5000, &layout, &ring, &err), MIC_EARG);
  assert_int_equal(mic_ring_over(NULL, 2048, &layout, &ring, &err), MIC_EARG);
  assert_null(ring);
  assert_int_equal(mic_ring_map(-1, 4096, &layout, &ring, &err), MIC_ESYS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(wraps_anywhere),
    cmocka_unit_test(keeps_what_it_cannot_cut),
    cmocka_unit_test(waits_for_room),
    cmocka_unit_test(stacks_end_at_the_limit),
    cmocka_unit_test(copies_up_to_the_mark),
    cmocka_unit_test(skips_nonsense),
    cmocka_unit_test(survives_an_impossible_head),
    cmocka_unit_test(counts_what_was_lost),
    cmocka_unit_test(peeks_without_taking),
    cmocka_unit_test(refuses_odd_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
