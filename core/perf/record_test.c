/*
 * record_test.c - records written by hand as include/uapi/linux/perf_event.h lays them out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "perf/record.h"

static const struct mic_perf_layout layout = {
  PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
    PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
  0xff0fff, 64};

struct writer {
  uint8_t bytes[8192];
  size_t size;
};
static void w32(struct writer *w, uint32_t value) {
  memcpy(w->bytes + w->size, &value, 4);
  w->size += 4;
}
static void w64(struct writer *w, uint64_t value) {
  memcpy(w->bytes + w->size, &value, 8);
  w->size += 8;
}
static void name(struct writer *w, const char *text) {
  size_t size = strlen(text) + 1;
  memcpy(w->bytes + w->size, text, size);
  w->size += (size + 7) & ~7u;
}
static void begin(struct writer *w) {
  memset(w, 0, sizeof *w);
  w->size = 8;
}
/* TID TIME CPU IDENTIFIER */
static void trailer(struct writer *w) {
  w32(w, 900), w32(w, 901);
  w64(w, 5555);
  w32(w, 3), w32(w, 0);
  w64(w, 42);
}
static void end(struct writer *w, uint32_t type, uint16_t misc) {
  struct perf_event_header header = {type, misc, (uint16_t)w->size};
  memcpy(w->bytes, &header, sizeof header);
}
/* Of an exact copy, so that a read past the end is seen by AddressSanitizer. */
static int decode(const struct writer *w, size_t size, struct mic_record *r) {
  struct mic_error err;
  uint8_t *exact = malloc(size ? size : 1);
  memcpy(exact, w->bytes, size);
  int code = mic_perf_decode(&layout, exact, size, r, &err);
  if (code == 0 && r->name) r->name = (const char *)w->bytes + (r->name - (const char *)exact);
  if (code == 0 && r->stack) r->stack = w->bytes + (r->stack - exact);
  free(exact);
  return code;
}
static void good(const struct writer *w, struct mic_record *r) {
  assert_int_equal(decode(w, w->size, r), 0);
  assert_int_equal(r->size, w->size);
}
/* With one word missing at any place it does not hold together, or says less. */
static void never_reads_past(struct writer w, uint32_t type, uint16_t misc) {
  struct mic_record r;
  size_t whole = w.size;
  for (size_t size = 0; size < whole; size++) {
    assert_int_equal(decode(&w, size, &r), MIC_EFORMAT);
    w.size = size;
    if (size >= 8) {
      end(&w, type, misc);
      decode(&w, size, &r);
    }
    w.size = whole;
    end(&w, type, misc);
  }
}

static void sample_body(struct writer *w, uint64_t abi, uint64_t slot, uint64_t valid) {
  begin(w);
  w64(w, 42), w64(w, 0xabc);
  w32(w, 10), w32(w, 11);
  w64(w, 5555);
  w32(w, 3), w32(w, 0);
  w64(w, 1000000);
  w64(w, abi);
  for (uint64_t i = 0; i < 24 && abi; i++)
    if (0xff0fffu >> i & 1) w64(w, 100 + i);
  w64(w, slot);
  for (uint64_t i = 0; i < slot; i++) w->bytes[w->size++] = (uint8_t)i;
  if (slot) w64(w, valid);
}

static void reads_samples(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  sample_body(&w, PERF_SAMPLE_REGS_ABI_64, 64, 40);
  end(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  good(&w, &r);
  assert_int_equal(r.kind, MIC_RECORD_SAMPLE);
  assert_int_equal(r.id, 42);
  assert_int_equal(r.ip, 0xabc);
  assert_int_equal(r.pid, 10);
  assert_int_equal(r.tid, 11);
  assert_int_equal(r.by_tid, 11);
  assert_int_equal(r.time_ns, 5555);
  assert_int_equal(r.cpu, 3);
  assert_int_equal(r.period, 1000000);
  assert_true(r.user);
  /* perf: AX0 BX1 CX2 DX3 SI4 DI5 BP6 SP7 IP8 R8=16..R15=23 */
  const uint64_t dwarf[17] = {100, 103, 102, 101, 104, 105, 106, 107, 116,
                              117, 118, 119, 120, 121, 122, 123, 108};
  assert_memory_equal(r.regs.r, dwarf, sizeof dwarf);
  assert_int_equal(r.regs.known, 0x1ffff);
  assert_int_equal(r.stack_size, 40);
  assert_int_equal(r.stack[39], 39);
  assert_false(r.stack_full);
  never_reads_past(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

  sample_body(&w, PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
  end(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
  good(&w, &r);
  assert_int_equal(r.regs.known, 0);
  assert_null(r.stack);
  assert_false(r.user);

  sample_body(&w, PERF_SAMPLE_REGS_ABI_64, 64, 64);
  end(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  good(&w, &r);
  assert_true(r.stack_full);
}

static void refuses_bad_samples(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  sample_body(&w, PERF_SAMPLE_REGS_ABI_64, 64, 65);
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);
  sample_body(&w, 3, 64, 64);
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);
  sample_body(&w, PERF_SAMPLE_REGS_ABI_64, 64, 64);
  w64(&w, 0); /* a word too many */
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);
  struct mic_perf_layout odd = layout;
  struct mic_error err;
  odd.sample_type |= PERF_SAMPLE_BRANCH_STACK;
  assert_int_equal(mic_perf_decode(&odd, w.bytes, w.size, &r, &err), MIC_EUNSUPPORTED);
}

static void reads_chains_and_raw(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  struct mic_error err;
  const struct mic_perf_layout other = {
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW, 0, 0};
  begin(&w);
  w64(&w, 7);
  w64(&w, 2), w64(&w, PERF_CONTEXT_USER), w64(&w, 0x1111);
  w32(&w, 12), w32(&w, 1), w32(&w, 2), w32(&w, 3);
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_int_equal(mic_perf_decode(&other, w.bytes, w.size, &r, &err), 0);
  assert_int_equal(r.ip_count, 2);
  assert_int_equal(r.ips[1], 0x1111);
  assert_int_equal(r.raw_size, 12);
  begin(&w);
  w64(&w, 7);
  w64(&w, UINT64_MAX / 4), w64(&w, 0);
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_int_equal(mic_perf_decode(&other, w.bytes, w.size, &r, &err), MIC_EFORMAT);
}

static void mmap2_body(struct writer *w, uint64_t addr, uint64_t len) {
  begin(w);
  w32(w, 10), w32(w, 11);
  w64(w, addr), w64(w, len), w64(w, 0x2000);
}

static void reads_mappings(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  mmap2_body(&w, 0x7f0000000000, 0x1000);
  w32(&w, 8), w32(&w, 1), w64(&w, 1234), w64(&w, 99);
  w32(&w, PROT_READ | PROT_EXEC), w32(&w, MAP_PRIVATE);
  name(&w, "/usr/lib/odd name\n.so");
  trailer(&w);
  end(&w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
  good(&w, &r);
  assert_int_equal(r.kind, MIC_RECORD_MMAP);
  assert_int_equal(r.addr, 0x7f0000000000);
  assert_int_equal(r.len, 0x1000);
  assert_int_equal(r.pgoff, 0x2000);
  assert_int_equal(r.maj, 8);
  assert_int_equal(r.min, 1);
  assert_int_equal(r.ino, 1234);
  assert_int_equal(r.ino_generation, 99);
  assert_true(r.has_inode);
  assert_int_equal(r.prot, PROT_READ | PROT_EXEC);
  assert_string_equal(r.name, "/usr/lib/odd name\n.so");
  assert_int_equal(r.name_size, 21);
  assert_int_equal(r.pid, 10);
  assert_int_equal(r.tid, 11);
  assert_int_equal(r.by_tid, 901);
  assert_int_equal(r.time_ns, 5555);
  assert_int_equal(r.id, 42);
  never_reads_past(w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

  mmap2_body(&w, 0x1000, 0x1000);
  w.bytes[w.size] = 20;
  memset(w.bytes + w.size + 4, 0xab, 20);
  w.size += 24;
  w32(&w, PROT_EXEC), w32(&w, MAP_SHARED);
  name(&w, "/x");
  trailer(&w);
  end(&w, PERF_RECORD_MMAP2, 1 << 14);
  good(&w, &r);
  assert_int_equal(r.build_id_size, 20);
  assert_int_equal(r.build_id[19], 0xab);
  assert_false(r.has_inode);
  w.bytes[8 + 32] = 21;
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);

  mmap2_body(&w, UINT64_MAX - 10, 100); /* past the address space */
  w32(&w, 8), w32(&w, 1), w64(&w, 1234), w64(&w, 99), w32(&w, 1), w32(&w, 1);
  name(&w, "/x");
  trailer(&w);
  end(&w, PERF_RECORD_MMAP2, 0);
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);

  mmap2_body(&w, 0x1000, 0x1000);
  name(&w, "//anon");
  trailer(&w);
  end(&w, PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA);
  good(&w, &r);
  assert_int_equal(r.prot, PROT_READ);
  assert_true(r.data);
}

static void refuses_endless_names(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  begin(&w);
  w32(&w, 10), w32(&w, 11);
  memset(w.bytes + w.size, 'x', 16);
  w.size += 16;
  trailer(&w);
  end(&w, PERF_RECORD_COMM, 0);
  assert_int_equal(decode(&w, w.size, &r), MIC_EFORMAT);
}

static void reads_tasks(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  const uint32_t types[] = {PERF_RECORD_FORK, PERF_RECORD_EXIT};
  for (int i = 0; i < 2; i++) {
    begin(&w);
    w32(&w, 10), w32(&w, 20), w32(&w, 11), w32(&w, 21), w64(&w, 1);
    trailer(&w);
    end(&w, types[i], 0);
    good(&w, &r);
    assert_int_equal(r.kind, i ? MIC_RECORD_EXIT : MIC_RECORD_FORK);
    assert_int_equal(r.pid, 10);
    assert_int_equal(r.tid, 11);
    assert_int_equal(r.ppid, 20);
    assert_int_equal(r.ptid, 21);
    assert_int_equal(r.by_tid, 901);
    assert_int_equal(r.time_ns, 5555);
    never_reads_past(w, types[i], 0);
  }
  begin(&w);
  w32(&w, 10), w32(&w, 11);
  name(&w, "HDMI polling ta");
  trailer(&w);
  end(&w, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  good(&w, &r);
  assert_int_equal(r.kind, MIC_RECORD_COMM);
  assert_true(r.exec);
  assert_string_equal(r.name, "HDMI polling ta");
}

static void reads_losses(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  begin(&w);
  w64(&w, 42), w64(&w, 17);
  trailer(&w);
  end(&w, PERF_RECORD_LOST, 0);
  good(&w, &r);
  assert_int_equal(r.kind, MIC_RECORD_LOST);
  assert_int_equal(r.lost, 17);
  begin(&w);
  w64(&w, 3);
  trailer(&w);
  end(&w, PERF_RECORD_LOST_SAMPLES, 0);
  good(&w, &r);
  assert_int_equal(r.lost, 3);
  for (uint32_t type = PERF_RECORD_THROTTLE; type <= PERF_RECORD_UNTHROTTLE; type++) {
    begin(&w);
    w64(&w, 5555), w64(&w, 42), w64(&w, 42);
    trailer(&w);
    end(&w, type, 0);
    good(&w, &r);
    assert_int_equal(r.kind,
                     type == PERF_RECORD_THROTTLE ? MIC_RECORD_THROTTLE : MIC_RECORD_UNTHROTTLE);
  }
  begin(&w);
  trailer(&w);
  end(&w, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
  good(&w, &r);
  assert_true(r.out);
  assert_false(r.preempted);
}

static void passes_what_is_new(void **state) {
  (void)state;
  struct writer w;
  struct mic_record r;
  uint64_t time_ns, id;
  uint32_t type;
  begin(&w);
  w64(&w, 1), w64(&w, 2), w64(&w, 3);
  trailer(&w);
  end(&w, 777, 0);
  good(&w, &r);
  assert_int_equal(r.kind, MIC_RECORD_OTHER);
  assert_int_equal(r.type, 777);
  assert_int_equal(r.time_ns, 5555);
  assert_true(mic_perf_peek(&layout, w.bytes, w.size, &time_ns, &id, &type));
  assert_int_equal(time_ns, 5555);
  assert_int_equal(id, 42);
  assert_int_equal(type, 777);
  sample_body(&w, PERF_SAMPLE_REGS_ABI_64, 64, 40);
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_true(mic_perf_peek(&layout, w.bytes, w.size, &time_ns, &id, &type));
  assert_int_equal(time_ns, 5555);
  assert_int_equal(id, 42);
  w.size = 24;
  end(&w, PERF_RECORD_SAMPLE, 0);
  assert_false(mic_perf_peek(&layout, w.bytes, w.size, &time_ns, &id, &type));
  w.size = 16;
  end(&w, 777, 0);
  assert_false(mic_perf_peek(&layout, w.bytes, w.size, &time_ns, &id, &type));
}

/* {value, enabled, running, id, lost}, or how many, {enabled, running}, {value, id, lost} of each.
 */
static void put_counts(struct writer *w, uint64_t format, uint32_t count) {
  bool group = format & PERF_FORMAT_GROUP;
  if (group) w64(w, count);
  for (uint32_t i = 0; i < (group ? count : 1); i++) {
    if (!group) w64(w, 100);
    if (i == 0 && format & PERF_FORMAT_TOTAL_TIME_ENABLED) w64(w, 7001);
    if (i == 0 && format & PERF_FORMAT_TOTAL_TIME_RUNNING) w64(w, 7002);
    if (group) w64(w, 100 + i);
    if (format & PERF_FORMAT_ID) w64(w, 500 + i);
    if (format & PERF_FORMAT_LOST) w64(w, 9);
  }
}

static void counts_are_read_in_every_format(void **state) {
  static const struct mic_perf_layout counted = {
    PERF_SAMPLE_IP | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN, 0, 0};
  (void)state;
  for (uint64_t format = 0; format < 32; format++) {
    struct mic_perf_more more = {.read_format = format};
    uint32_t count = format & PERF_FORMAT_GROUP ? 3 : 1;
    struct writer w;
    struct mic_record r;
    begin(&w);
    w64(&w, 0x1234);
    put_counts(&w, format, count);
    w64(&w, 1);
    w64(&w, 0x5678);
    end(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    assert_int_equal(mic_perf_decode_more(&counted, &more, w.bytes, w.size, &r, NULL), 0);
    assert_int_equal(r.read_count, count);
    for (uint32_t i = 0; i < count; i++) {
      uint64_t id;
      assert_int_equal(mic_perf_read_value(&more, &r, i, &id), 100 + i);
      assert_int_equal(id, format & PERF_FORMAT_ID ? 500 + i : 0);
    }
    /* What follows the counts is where it should be. */
    assert_int_equal(r.ip_count, 1);
    assert_memory_equal(r.ips, &(uint64_t){0x5678}, 8);
    if (!(format & PERF_FORMAT_GROUP)) continue;
    uint64_t many[] = {4, 1000, UINT64_MAX / 8, UINT64_MAX};
    for (size_t k = 0; k < sizeof many / sizeof *many; k++) {
      memcpy(w.bytes + 16, &many[k], 8);
      assert_int_equal(mic_perf_decode_more(&counted, &more, w.bytes, w.size, &r, NULL),
                       MIC_EFORMAT);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_are_read_in_every_format),
    cmocka_unit_test(reads_samples),
    cmocka_unit_test(refuses_bad_samples),
    cmocka_unit_test(reads_chains_and_raw),
    cmocka_unit_test(reads_mappings),
    cmocka_unit_test(refuses_endless_names),
    cmocka_unit_test(reads_tasks),
    cmocka_unit_test(reads_losses),
    cmocka_unit_test(passes_what_is_new),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
