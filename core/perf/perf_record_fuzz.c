/*
 * perf_record_fuzz.c - bytes as a ring of perf records: copied out with little room, then decoded.
 *
 * The first byte chooses the layout, the room and where the ring's end falls; the rest is what the
 * kernel would have written.  Inputs from real rings are kept in fixtures/fuzz/perf_record (written
 * by perf_events_test when MIC_WRITE_CORPUS names a folder).
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perf/record.h"
#include "perf/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGE = 4096, RING = 1 << 18 };

static const struct mic_perf_layout layouts[] = {
  {PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
   0xff0fff, 512},
  {PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
     PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
   UINT64_MAX, 512},
  {PERF_SAMPLE_STACK_USER | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID, 0, 65528},
  {0, 0, 0},
};

/* Reads every byte a record points at, so that a bad pointer is seen. */
static uint64_t touch(const struct mic_record *r) {
  uint64_t sum = r->time_ns + r->id;
  for (uint32_t i = 0; i < r->stack_size; i++) sum += r->stack[i];
  for (uint32_t i = 0; i < r->ip_count; i++) sum += r->ips[i];
  for (uint32_t i = 0; i < r->raw_size; i++) sum += r->raw[i];
  if (r->name) sum += strlen(r->name) + (uint8_t)r->name[r->name_size];
  return sum;
}

static uint64_t decode_all(const struct mic_perf_layout *layout, const uint8_t *bytes,
                           size_t size) {
  uint64_t sum = 0;
  for (size_t at = 0; at < size;) {
    struct perf_event_header header;
    struct mic_record record;
    struct mic_error err;
    uint64_t time_ns, id;
    uint32_t type;
    memcpy(&header, bytes + at, sizeof header);
    /* An exact copy: what is read past it is not there. */
    uint8_t *exact = malloc(header.size);
    memcpy(exact, bytes + at, header.size);
    if (mic_perf_decode(layout, exact, header.size, &record, &err) == 0) sum += touch(&record);
    if (mic_perf_peek(layout, exact, header.size, &time_ns, &id, &type)) sum += time_ns;
    free(exact);
    at += header.size; /* the ring gives whole records only */
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t *memory, *out;
  if (!memory) {
    memory = aligned_alloc(PAGE, PAGE + RING);
    out = aligned_alloc(PAGE, MIC_RECORD_MAX_BYTES);
  }
  if (!memory || !out || size < 1 || size - 1 > RING) return 0;
  const struct mic_perf_layout *layout = &layouts[data[0] & 3];
  size_t room = data[0] & 4 ? MIC_RECORD_MAX_BYTES : 4096;
  uint64_t start = data[0] & 8 ? RING - 64 : 0;
  struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)memory;
  memset(page, 0, sizeof *page);
  for (size_t i = 1; i < size; i++) memory[PAGE + (start + i - 1) % RING] = data[i];
  page->data_tail = start;
  page->data_head = start + size - 1;
  struct mic_ring *ring;
  if (mic_ring_over(memory, RING, layout, &ring, NULL)) return 0;
  uint64_t position = 0;
  while (mic_ring_peek(ring, &position, out, MIC_RECORD_MAX_BYTES)) {
  }
  size_t want, used;
  do {
    used = mic_ring_copy(ring, out, room, &want);
    decode_all(layout, out, used);
    if (used == 0 && want > room) room = MIC_RECORD_MAX_BYTES;
  } while (want);
  if (mic_ring_filled(ring) != 0) abort();
  mic_ring_close(ring);
  return 0;
}
