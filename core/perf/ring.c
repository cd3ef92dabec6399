/*
 * ring.c - copy records out of a perf ring.
 *
 * The protocol is that of kernel/events/ring_buffer.c: the kernel publishes data_head after the
 * bytes (read with acquire), and does not write past data_tail (stored with release once the
 * bytes were read).  Both grow for ever; the data part's size is a power of two.  Records are
 * multiples of 8 bytes, so one aligned word never wraps, but a record may.
 */
#include "perf/ring.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

/* Give room back to the kernel this often within one copy, so that a full ring can be written
 * again while the rest is read; seldom enough that the shared line is not fought over. */
enum { RELEASE_BYTES = 64 * 1024 };

/* Where the parts of a sample stand that cutting its stack needs; from the record's start. */
struct cut {
  bool possible;
  uint32_t abi_at;   /* the word of the register ABI; 0: no registers */
  uint32_t stack_at; /* the word of the stack's size, when there are registers (or never are) */
  uint32_t tid_at;   /* the word of pid and tid; 0: none */
  uint32_t sp_at;    /* the word of the stack pointer, when there are registers; 0: none */
};

struct mic_ring {
  struct perf_event_mmap_page *page;
  const uint8_t *data;
  uint64_t size; /* of data */
  uint64_t tail; /* ours; page->data_tail follows */
  uint64_t released;
  size_t mapped; /* bytes to unmap; 0: not ours */
  uint64_t mark; /* copy up to here, when marked */
  bool marked;
  struct mic_limits *limits; /* borrowed; NULL: none */
  struct cut cut;
  struct mic_ring_counts counts;
};

static struct cut cut_of(const struct mic_perf_layout *layout) {
  struct cut cut = {0};
  const uint64_t variable = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
  if (!layout || !(layout->sample_type & PERF_SAMPLE_STACK_USER) ||
      (layout->sample_type & (variable | ~mic_perf_sample_known())))
    return cut;
  const uint64_t words =
    layout->sample_type & ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
  uint32_t at = 8 + 8 * (uint32_t)__builtin_popcountll(words);
  if (layout->sample_type & PERF_SAMPLE_TID) {
    uint64_t before = layout->sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
    cut.tid_at = 8 + 8 * (uint32_t)__builtin_popcountll(before);
  }
  if (layout->sample_type & PERF_SAMPLE_REGS_USER) {
    cut.abi_at = at;
    uint64_t sp = 1ULL << PERF_REG_X86_SP;
    if (layout->regs_user & sp)
      cut.sp_at = at + 8 + 8 * (uint32_t)__builtin_popcountll(layout->regs_user & (sp - 1));
    at += 8 + 8 * (uint32_t)__builtin_popcountll(layout->regs_user);
  }
  cut.stack_at = at;
  cut.possible = true;
  return cut;
}

static struct mic_ring *ring_new(void *memory, size_t data_bytes,
                                 const struct mic_perf_layout *layout) {
  struct mic_ring *ring = mic_alloc(sizeof *ring);
  ring->page = memory;
  ring->data = (const uint8_t *)memory + sysconf(_SC_PAGESIZE);
  ring->size = data_bytes;
  ring->tail = ring->released = __atomic_load_n(&ring->page->data_tail, __ATOMIC_RELAXED);
  ring->cut = cut_of(layout);
  return ring;
}

static int check_bytes(size_t data_bytes, struct mic_error *err) {
  if (data_bytes < (size_t)sysconf(_SC_PAGESIZE) || (data_bytes & (data_bytes - 1)))
    return mic_fail(err, MIC_EARG, "a ring of %zu bytes: a power of two of pages is needed",
                    data_bytes);
  return 0;
}

int mic_ring_over(void *memory, size_t data_bytes, const struct mic_perf_layout *layout,
                  struct mic_ring **out, struct mic_error *err) {
  *out = NULL;
  int code = check_bytes(data_bytes, err);
  if (!code) *out = ring_new(memory, data_bytes, layout);
  return code;
}

int mic_ring_map(int fd, size_t data_bytes, const struct mic_perf_layout *layout,
                 struct mic_ring **out, struct mic_error *err) {
  *out = NULL;
  int code = check_bytes(data_bytes, err);
  if (code) return code;
  size_t size = data_bytes + (size_t)sysconf(_SC_PAGESIZE);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return mic_fail_sys(err, "mapping a ring of %zu bytes", size);
  *out = ring_new(memory, data_bytes, layout);
  (*out)->mapped = size;
  return 0;
}

void mic_ring_close(struct mic_ring *ring) {
  if (!ring) return;
  if (ring->mapped) munmap(ring->page, ring->mapped);
  free(ring);
}

static uint64_t head_of(const struct mic_ring *ring) {
  return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}
static void release(struct mic_ring *ring) {
  ring->released = ring->tail;
  __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}
static uint64_t word_at(const struct mic_ring *ring, uint64_t position) {
  uint64_t word;
  memcpy(&word, ring->data + (position & (ring->size - 1)), sizeof word);
  return word;
}
static void copy_out(const struct mic_ring *ring, void *to, uint64_t position, size_t size) {
  size_t at = (size_t)(position & (ring->size - 1));
  size_t first = ring->size - at < size ? (size_t)(ring->size - at) : size;
  memcpy(to, ring->data + at, first);
  if (first < size) memcpy((uint8_t *)to + first, ring->data, size - first);
}

/* The header at position, when what it says is possible with `left` bytes written from there. */
static bool header_at(const struct mic_ring *ring, uint64_t position, uint64_t left,
                      struct perf_event_header *header) {
  if (left < sizeof *header || left > ring->size || position % 8) return false;
  memcpy(header, ring->data + (position & (ring->size - 1)), sizeof *header);
  return header->size >= sizeof *header && header->size % 8 == 0 && header->size <= left;
}

/* Nothing of it can be trusted, since records are found by the sizes of those before. */
static void skip_garbled(struct mic_ring *ring, uint64_t head) {
  ring->counts.garbled++;
  ring->counts.garbled_bytes += head - ring->tail;
  ring->tail = head;
}

static void count(struct mic_ring *ring, const struct perf_event_header *header,
                  uint64_t position) {
  ring->counts.records++;
  ring->counts.bytes_in += header->size;
  if (header->type == PERF_RECORD_SAMPLE) ring->counts.samples++;
  /* struct { header; u64 id; u64 lost; trailer } */
  if (header->type == PERF_RECORD_LOST && header->size >= 24)
    ring->counts.lost_told += word_at(ring, position + 16);
}

/* Of `valid` bytes those below the process's limit. */
static uint64_t below_limit(const struct mic_ring *ring, uint64_t position, uint64_t valid) {
  const struct cut *cut = &ring->cut;
  if (!ring->limits || !cut->tid_at || !cut->sp_at) return valid;
  uint64_t end = mic_limits_of(ring->limits, (uint32_t)word_at(ring, position + cut->tid_at));
  uint64_t sp = word_at(ring, position + cut->sp_at);
  return sp < end && end - sp < valid ? end - sp : valid;
}

struct stack_cut { /* of one sample */
  uint32_t at;     /* bytes before the size word */
  uint32_t slot;   /* as it stands in the ring */
  uint32_t keep;   /* of it */
  uint64_t valid;  /* what dyn_size is to say */
};

/* How to cut a sample's stack.  False: copy as it is.  What is kept is more than dyn_size, so that
 * a cut copy is never taken for a full one. */
static bool stack_of(const struct mic_ring *ring, uint64_t position, uint32_t size,
                     struct stack_cut *out) {
  if (!ring->cut.possible) return false;
  bool regs = ring->cut.abi_at != 0;
  out->at = ring->cut.stack_at;
  if (regs) {
    if (ring->cut.abi_at + 8 > size) return false;
    regs = word_at(ring, position + ring->cut.abi_at) != PERF_SAMPLE_REGS_ABI_NONE;
    if (!regs) out->at = ring->cut.abi_at + 8;
  }
  if (out->at + 16 > size) return false;
  uint64_t slot = word_at(ring, position + out->at);
  out->valid = word_at(ring, position + size - 8);
  if (slot != size - 16u - out->at || out->valid > slot) return false;
  if (regs) out->valid = below_limit(ring, position, out->valid);
  if (out->valid == slot) return false;
  out->slot = (uint32_t)slot;
  out->keep = ((uint32_t)out->valid + 8u) & ~7u;
  return out->keep <= slot;
}

static void copy_cut(const struct mic_ring *ring, uint8_t *to, uint64_t position,
                     struct perf_event_header header, const struct stack_cut *cut) {
  copy_out(ring, to, position, cut->at + 8u + cut->keep);
  uint64_t kept = cut->keep;
  header.size = (uint16_t)(header.size - (cut->slot - cut->keep));
  memcpy(to, &header, sizeof header);
  memcpy(to + cut->at, &kept, sizeof kept);
  memcpy(to + header.size - 8, &cut->valid, sizeof cut->valid);
}

/* Copy the record at the tail; returns its size as copied, or 0 and *want when room is short. */
static size_t copy_one(struct mic_ring *ring, const struct perf_event_header *header, uint8_t *to,
                       size_t room, size_t *want) {
  struct stack_cut stack;
  bool cut = header->type == PERF_RECORD_SAMPLE && stack_of(ring, ring->tail, header->size, &stack);
  size_t size = cut ? header->size - (stack.slot - stack.keep) : header->size;
  if (size > room) {
    *want = size;
    return 0;
  }
  if (cut)
    copy_cut(ring, to, ring->tail, *header, &stack);
  else
    copy_out(ring, to, ring->tail, size);
  count(ring, header, ring->tail);
  ring->counts.bytes_out += size;
  ring->tail += header->size;
  return size;
}

void mic_ring_limit(struct mic_ring *ring, struct mic_limits *limits) { ring->limits = limits; }

void mic_ring_mark(struct mic_ring *ring) {
  ring->mark = head_of(ring);
  ring->marked = true;
}

size_t mic_ring_copy(struct mic_ring *ring, void *to, size_t room, size_t *want) {
  uint64_t head = ring->marked ? ring->mark : head_of(ring);
  size_t used = 0;
  *want = 0;
  while (ring->tail != head) {
    struct perf_event_header header;
    if (!header_at(ring, ring->tail, head - ring->tail, &header)) {
      skip_garbled(ring, head);
      break;
    }
    size_t size = copy_one(ring, &header, (uint8_t *)to + used, room - used, want);
    if (size == 0) break;
    used += size;
    if (ring->tail - ring->released >= RELEASE_BYTES) release(ring);
  }
  if (ring->tail != ring->released) release(ring);
  return used;
}

uint64_t mic_ring_discard(struct mic_ring *ring) {
  uint64_t head = head_of(ring), records = 0;
  while (ring->tail != head) {
    struct perf_event_header header;
    if (!header_at(ring, ring->tail, head - ring->tail, &header)) {
      skip_garbled(ring, head);
      break;
    }
    if (header.type == PERF_RECORD_LOST && header.size >= 24)
      ring->counts.lost_told += word_at(ring, ring->tail + 16);
    ring->tail += header.size;
    records++;
  }
  release(ring);
  return records;
}

size_t mic_ring_peek(const struct mic_ring *ring, uint64_t *position, void *to, size_t room) {
  uint64_t head = head_of(ring);
  struct perf_event_header header;
  if (*position < ring->tail) *position = ring->tail;
  if (*position >= head || !header_at(ring, *position, head - *position, &header) ||
      header.size > room)
    return 0;
  copy_out(ring, to, *position, header.size);
  *position += header.size;
  return header.size;
}

uint64_t mic_ring_position(const struct mic_ring *ring) { return ring->tail; }
size_t mic_ring_filled(const struct mic_ring *ring) {
  uint64_t filled = head_of(ring) - ring->tail;
  return filled > ring->size ? (size_t)ring->size : (size_t)filled;
}
size_t mic_ring_bytes(const struct mic_ring *ring) { return (size_t)ring->size; }
void mic_ring_counts(const struct mic_ring *ring, struct mic_ring_counts *out) {
  *out = ring->counts;
}
