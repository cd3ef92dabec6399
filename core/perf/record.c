/*
 * record.c - decode perf records (include/uapi/linux/perf_event.h, enum perf_event_type).
 *
 * A sample's parts stand in the order of the kernel's perf_output_sample; every other record ends
 * in the trailer of perf_event__output_id_sample, whose length the layout gives.
 */
#include "perf/record.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cursor.h"

/* Older headers lack them; the numbers are the kernel's ABI. */
#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14) /* Linux 5.12 */
#endif

#define SAMPLE_KNOWN                                                                      \
  (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |         \
   PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |          \
   PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | \
   PERF_SAMPLE_STACK_USER)

#ifndef PERF_SAMPLE_BRANCH_COUNTERS
#define PERF_SAMPLE_BRANCH_COUNTERS (1U << 19) /* Linux 6.8 */
#endif
#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4) /* Linux 6.0 */
#endif

#define SAMPLE_ALL ((1ULL << 25) - 1) /* up to PERF_SAMPLE_WEIGHT_STRUCT, Linux 5.12 */

uint64_t mic_perf_sample_known(void) { return SAMPLE_KNOWN; }
uint64_t mic_perf_sample_all(void) { return SAMPLE_ALL; }

/* arch/x86/include/uapi/asm/perf_regs.h numbers -> DWARF's; -1: not one of the 17.
 * There: AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8..R15. */
static const int8_t dwarf_of[24] = {0,  3,  2,  1,  4, 5, 6,  7,  16, -1, -1, -1,
                                    -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};

static bool has(const struct mic_perf_layout *layout, uint64_t bits) {
  return (layout->sample_type & bits) != 0;
}

static void read_pair(struct mic_cursor *c, uint32_t *a, uint32_t *b) {
  *a = mic_cursor_u32(c);
  *b = mic_cursor_u32(c);
}

/* The words of the trailer that every record but a sample ends in. */
static size_t trailer_bytes(const struct mic_perf_layout *layout) {
  static const uint64_t each[] = {PERF_SAMPLE_TID, PERF_SAMPLE_TIME,      PERF_SAMPLE_ID,
                                  PERF_SAMPLE_CPU, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_IDENTIFIER};
  size_t size = 0;
  for (size_t i = 0; i < sizeof each / sizeof *each; i++)
    if (has(layout, each[i])) size += 8;
  return size;
}

/* tid_too: the record's own pid and tid are the trailer's. */
static void read_trailer(const struct mic_perf_layout *layout, struct mic_cursor *c,
                         struct mic_record *record, bool tid_too) {
  uint32_t pid, tid;
  if (has(layout, PERF_SAMPLE_TID)) {
    read_pair(c, &pid, &tid);
    record->by_tid = tid;
    if (tid_too) record->pid = pid, record->tid = tid;
  }
  if (has(layout, PERF_SAMPLE_TIME)) record->time_ns = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_ID)) record->id = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_STREAM_ID)) mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_CPU)) {
    record->cpu = mic_cursor_u32(c);
    mic_cursor_u32(c);
  }
  if (has(layout, PERF_SAMPLE_IDENTIFIER)) record->id = mic_cursor_u64(c);
}

static void read_regs(const struct mic_perf_layout *layout, struct mic_cursor *c,
                      struct mic_record *record) {
  record->regs_abi = mic_cursor_u64(c);
  if (record->regs_abi == PERF_SAMPLE_REGS_ABI_NONE) return;
  if (record->regs_abi > PERF_SAMPLE_REGS_ABI_64) c->bad = true;
  for (uint64_t mask = layout->regs_user; mask; mask &= mask - 1) {
    int number = __builtin_ctzll(mask);
    uint64_t value = mic_cursor_u64(c);
    if (number >= 24 || dwarf_of[number] < 0) continue;
    record->regs.r[dwarf_of[number]] = value;
    record->regs.known |= 1u << dwarf_of[number];
  }
}

static void read_stack(struct mic_cursor *c, struct mic_record *record) {
  uint64_t slot = mic_cursor_u64(c);
  if (slot == 0 || c->bad) return;
  const uint8_t *bytes = mic_cursor_take(c, slot);
  uint64_t valid = mic_cursor_u64(c);
  if (valid > slot) c->bad = true;
  if (c->bad || valid == 0) return;
  record->stack = bytes;
  record->stack_size = (uint32_t)valid;
  record->stack_full = valid == slot;
}

static void read_chain(struct mic_cursor *c, struct mic_record *record) {
  uint64_t count = mic_cursor_u64(c);
  if (count > mic_cursor_left(c) / 8) {
    c->bad = true;
    return;
  }
  record->ips = mic_cursor_take(c, count * 8);
  record->ip_count = (uint32_t)count;
}

static void read_raw(struct mic_cursor *c, struct mic_record *record) {
  uint32_t size = mic_cursor_u32(c);
  record->raw = mic_cursor_take(c, size);
  record->raw_size = size;
  /* The kernel pads so that the next word is aligned; the padding is inside size. */
}

/* Words of 8 bytes, a hostile number of them. */
static void skip_words(struct mic_cursor *c, uint64_t count) {
  if (count > mic_cursor_left(c) / 8)
    c->bad = true;
  else
    mic_cursor_take(c, (size_t)count * 8);
}

static uint64_t bits(uint64_t value) { return (uint64_t)__builtin_popcountll(value); }

static uint64_t times_of(uint64_t format) {
  return bits(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
}

/* A value, the event's id and what it lost. */
static uint64_t words_of(uint64_t format) {
  return 1 + bits(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
}

/* Counts of the event, or of its group (perf_output_read): {value, times, id, lost}, or how many,
 * the times, and {value, id, lost} of each. */
static void read_counts(uint64_t format, struct mic_cursor *c, struct mic_record *record) {
  uint64_t count = 1, words = words_of(format);
  if (format & PERF_FORMAT_GROUP) {
    count = mic_cursor_u64(c);
    skip_words(c, times_of(format));
    if (count > mic_cursor_left(c) / 8 / words) c->bad = true;
  } else {
    words += times_of(format);
  }
  if (c->bad) return;
  record->reads = mic_cursor_take(c, (size_t)(count * words) * 8);
  record->read_count = (uint32_t)count;
}

uint64_t mic_perf_read_value(const struct mic_perf_more *more, const struct mic_record *record,
                             uint32_t i, uint64_t *id) {
  uint64_t format = more->read_format, value;
  const uint8_t *at = record->reads + (size_t)i * words_of(format) * 8;
  memcpy(&value, at, sizeof value);
  at += 8;
  if (!(format & PERF_FORMAT_GROUP)) at += times_of(format) * 8;
  *id = 0;
  if (format & PERF_FORMAT_ID) memcpy(id, at, sizeof *id);
  return value;
}

/* from, to, flags of each branch, then counters of each. */
static void read_branches(uint64_t type, struct mic_cursor *c, struct mic_record *record) {
  uint64_t count = mic_cursor_u64(c);
  if (type & PERF_SAMPLE_BRANCH_HW_INDEX) skip_words(c, 1);
  if (count > mic_cursor_left(c) / 24) c->bad = true;
  if (c->bad) return;
  record->branches = mic_cursor_take(c, count * 24);
  record->branch_count = (uint32_t)count;
  if (type & PERF_SAMPLE_BRANCH_COUNTERS) skip_words(c, count);
}

static void skip_regs(uint64_t mask, struct mic_cursor *c) {
  uint64_t abi = mic_cursor_u64(c);
  if (abi != PERF_SAMPLE_REGS_ABI_NONE) skip_words(c, bits(mask));
}

/* What follows the user's stack; of no use for stacks. */
static void skip_rest(const struct mic_perf_layout *layout, const struct mic_perf_more *more,
                      struct mic_cursor *c, struct mic_record *record) {
  static const uint64_t after[] = {PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP,
                                   PERF_SAMPLE_DATA_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE};
  if (has(layout, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) skip_words(c, 1);
  if (has(layout, PERF_SAMPLE_DATA_SRC)) record->data_source = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_TRANSACTION)) skip_words(c, 1);
  if (has(layout, PERF_SAMPLE_REGS_INTR)) skip_regs(more->regs_intr, c);
  for (size_t i = 0; i < sizeof after / sizeof *after; i++)
    if (has(layout, after[i])) skip_words(c, 1);
  if (!has(layout, PERF_SAMPLE_AUX)) return;
  uint64_t size = mic_cursor_u64(c);
  if (size > mic_cursor_left(c) || size % 8) c->bad = true;
  skip_words(c, c->bad ? 0 : size / 8);
}

static void read_sample(const struct mic_perf_layout *layout, const struct mic_perf_more *more,
                        struct mic_cursor *c, struct mic_record *record) {
  uint32_t zero;
  record->kind = MIC_RECORD_SAMPLE;
  record->user = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
  if (has(layout, PERF_SAMPLE_IDENTIFIER)) record->id = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_IP)) record->ip = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_TID)) read_pair(c, &record->pid, &record->tid);
  record->by_tid = record->tid;
  if (has(layout, PERF_SAMPLE_TIME)) record->time_ns = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_ADDR)) record->data_addr = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_ID)) record->id = mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_STREAM_ID)) mic_cursor_u64(c);
  if (has(layout, PERF_SAMPLE_CPU)) read_pair(c, &record->cpu, &zero);
  if (has(layout, PERF_SAMPLE_PERIOD)) record->period = mic_cursor_u64(c);
  if (more && has(layout, PERF_SAMPLE_READ)) read_counts(more->read_format, c, record);
  if (has(layout, PERF_SAMPLE_CALLCHAIN)) read_chain(c, record);
  if (has(layout, PERF_SAMPLE_RAW)) read_raw(c, record);
  if (more && has(layout, PERF_SAMPLE_BRANCH_STACK))
    read_branches(more->branch_sample_type, c, record);
  if (has(layout, PERF_SAMPLE_REGS_USER)) read_regs(layout, c, record);
  if (has(layout, PERF_SAMPLE_STACK_USER)) read_stack(c, record);
  if (more) skip_rest(layout, more, c, record);
}

/* A name is all that is left of the body: NUL-terminated and padded to 8 bytes. */
static void read_name(struct mic_cursor *c, struct mic_record *record) {
  const char *name = mic_cursor_string(c);
  if (!name) return;
  record->name = name;
  record->name_size = (uint32_t)strlen(name);
  mic_cursor_take(c, mic_cursor_left(c));
}

static void read_inode(struct mic_cursor *c, struct mic_record *record) {
  if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
    uint8_t size = mic_cursor_u8(c);
    mic_cursor_take(c, 3);
    const void *id = mic_cursor_take(c, sizeof record->build_id);
    if (size > sizeof record->build_id) c->bad = true;
    if (c->bad) return;
    memcpy(record->build_id, id, size);
    record->build_id_size = size;
    return;
  }
  read_pair(c, &record->maj, &record->min);
  record->ino = mic_cursor_u64(c);
  record->ino_generation = mic_cursor_u64(c);
  record->has_inode = true;
}

static void read_mmap(struct mic_cursor *c, struct mic_record *record) {
  record->kind = MIC_RECORD_MMAP;
  read_pair(c, &record->pid, &record->tid);
  record->addr = mic_cursor_u64(c);
  record->len = mic_cursor_u64(c);
  record->pgoff = mic_cursor_u64(c);
  record->data = (record->misc & PERF_RECORD_MISC_MMAP_DATA) != 0;
  if (record->type == PERF_RECORD_MMAP2) {
    read_inode(c, record);
    read_pair(c, &record->prot, &record->flags);
  } else {
    record->prot = record->data ? PROT_READ : PROT_EXEC;
  }
  read_name(c, record);
  if (record->addr + record->len < record->addr) c->bad = true;
}

static void read_ksymbol(struct mic_cursor *c, struct mic_record *record) {
  record->kind = MIC_RECORD_KSYMBOL;
  record->addr = mic_cursor_u64(c);
  record->len = mic_cursor_u32(c);
  mic_cursor_u16(c); /* BPF or out of line: code either way */
  record->out = (mic_cursor_u16(c) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0;
  read_name(c, record);
  if (record->addr + record->len < record->addr) c->bad = true;
}

static void read_task(struct mic_cursor *c, struct mic_record *record, uint32_t kind) {
  record->kind = kind;
  read_pair(c, &record->pid, &record->ppid);
  read_pair(c, &record->tid, &record->ptid);
  record->time_ns = mic_cursor_u64(c);
}

/* The body of any record but a sample.  *tid_too: the trailer's thread is the one it is about. */
static void read_body(struct mic_cursor *c, struct mic_record *record, bool *tid_too) {
  switch (record->type) {
  case PERF_RECORD_MMAP:
  case PERF_RECORD_MMAP2: read_mmap(c, record); return;
  case PERF_RECORD_COMM:
    record->kind = MIC_RECORD_COMM;
    record->exec = (record->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    read_pair(c, &record->pid, &record->tid);
    read_name(c, record);
    return;
  case PERF_RECORD_KSYMBOL: read_ksymbol(c, record); break;
  case PERF_RECORD_FORK: read_task(c, record, MIC_RECORD_FORK); return;
  case PERF_RECORD_EXIT: read_task(c, record, MIC_RECORD_EXIT); return;
  case PERF_RECORD_LOST:
    record->kind = MIC_RECORD_LOST;
    mic_cursor_u64(c); /* the id, which the trailer has too */
    record->lost = mic_cursor_u64(c);
    break;
  case PERF_RECORD_LOST_SAMPLES:
    record->kind = MIC_RECORD_LOST_SAMPLES;
    record->lost = mic_cursor_u64(c);
    break;
  case PERF_RECORD_THROTTLE:
  case PERF_RECORD_UNTHROTTLE:
    record->kind =
      record->type == PERF_RECORD_THROTTLE ? MIC_RECORD_THROTTLE : MIC_RECORD_UNTHROTTLE;
    mic_cursor_take(c, 16); /* time, id: the trailer has them */
    record->stream = mic_cursor_u64(c);
    break;
  case PERF_RECORD_SWITCH_CPU_WIDE: mic_cursor_take(c, 8); /* fall through */
  case PERF_RECORD_SWITCH:
    record->kind = MIC_RECORD_SWITCH;
    record->out = (record->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
    record->preempted = record->out && (record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    break;
  default: record->kind = MIC_RECORD_OTHER; mic_cursor_take(c, mic_cursor_left(c));
  }
  *tid_too = true;
}

static void decode_other(const struct mic_perf_layout *layout, struct mic_cursor *whole,
                         struct mic_record *record) {
  size_t trailer = trailer_bytes(layout);
  if (mic_cursor_left(whole) < trailer) {
    whole->bad = true;
    return;
  }
  struct mic_cursor body = mic_cursor(whole->at, mic_cursor_left(whole) - trailer);
  bool tid_too = false;
  read_body(&body, record, &tid_too);
  if (body.bad || mic_cursor_left(&body) != 0) {
    whole->bad = true;
    whole->at = body.at;
    return;
  }
  whole->at = body.end;
  uint64_t time_ns = record->time_ns;
  read_trailer(layout, whole, record, tid_too);
  if (!has(layout, PERF_SAMPLE_TIME)) record->time_ns = time_ns;
}

/* The header, when the record's own size fits what is there. */
static bool read_header(const void *bytes, size_t size, struct perf_event_header *header) {
  if (size < sizeof *header) return false;
  memcpy(header, bytes, sizeof *header);
  return header->size >= sizeof *header && header->size <= size && header->size % 8 == 0;
}

int mic_perf_decode_more(const struct mic_perf_layout *layout, const struct mic_perf_more *more,
                         const void *bytes, size_t size, struct mic_record *record,
                         struct mic_error *err) {
  struct perf_event_header header;
  memset(record, 0, sizeof *record);
  if (layout->sample_type & ~(more ? SAMPLE_ALL : (uint64_t)SAMPLE_KNOWN))
    return mic_fail(err, MIC_EUNSUPPORTED, "sample_type 0x%llx has parts that are not decoded",
                    (unsigned long long)layout->sample_type);
  if (!read_header(bytes, size, &header))
    return mic_fail_at(err, 0, "a perf record's header does not fit its %zu bytes", size);
  record->type = header.type;
  record->misc = header.misc;
  record->size = header.size;
  struct mic_cursor c = mic_cursor(bytes, header.size);
  mic_cursor_take(&c, sizeof header);
  if (header.type == PERF_RECORD_SAMPLE)
    read_sample(layout, more, &c, record);
  else
    decode_other(layout, &c, record);
  if (!c.bad && mic_cursor_left(&c) == 0) return 0;
  return mic_fail_at(err, mic_cursor_offset(&c),
                     "a perf record of type %u and %u bytes does not hold together", header.type,
                     header.size);
}

int mic_perf_decode(const struct mic_perf_layout *layout, const void *bytes, size_t size,
                    struct mic_record *record, struct mic_error *err) {
  return mic_perf_decode_more(layout, NULL, bytes, size, record, err);
}

bool mic_perf_peek(const struct mic_perf_layout *layout, const void *bytes, size_t size,
                   uint64_t *time_ns, uint64_t *id, uint32_t *type) {
  struct perf_event_header header;
  struct mic_record record = {0};
  if (!read_header(bytes, size, &header)) return false;
  struct mic_cursor c = mic_cursor(bytes, header.size);
  mic_cursor_take(&c, sizeof header);
  if (header.type == PERF_RECORD_SAMPLE) {
    if (has(layout, PERF_SAMPLE_IDENTIFIER)) record.id = mic_cursor_u64(&c);
    if (has(layout, PERF_SAMPLE_IP)) mic_cursor_u64(&c);
    if (has(layout, PERF_SAMPLE_TID)) mic_cursor_u64(&c);
    if (has(layout, PERF_SAMPLE_TIME)) record.time_ns = mic_cursor_u64(&c);
    if (has(layout, PERF_SAMPLE_ADDR)) mic_cursor_u64(&c);
    if (has(layout, PERF_SAMPLE_ID)) record.id = mic_cursor_u64(&c);
  } else {
    size_t trailer = trailer_bytes(layout);
    if (mic_cursor_left(&c) < trailer) return false;
    mic_cursor_seek(&c, header.size - trailer);
    read_trailer(layout, &c, &record, true);
  }
  *time_ns = record.time_ns;
  *id = record.id;
  *type = header.type;
  return !c.bad;
}
