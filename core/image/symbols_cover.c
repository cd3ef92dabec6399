/* symbols_cover.c - flatten ranges with a sweep: a heap holds those open at the sweep's place. */
#include "image/symbols_cover.h"

#include <stdbool.h>
#include <string.h>

#include "base/map.h"

struct heap {
  const struct mic_cover_range **at; /* room for all ranges */
  size_t count;
};

static bool is_better(const struct mic_cover_range *a, const struct mic_cover_range *b) {
  if (a->rank != b->rank) return a->rank > b->rank;
  uint64_t a_size = a->end - a->start, b_size = b->end - b->start;
  if (a_size != b_size) return a_size < b_size;
  return a->id < b->id;
}

static void swap(struct heap *heap, size_t i, size_t j) {
  const struct mic_cover_range *held = heap->at[i];
  heap->at[i] = heap->at[j];
  heap->at[j] = held;
}

static void heap_push(struct heap *heap, const struct mic_cover_range *range) {
  size_t i = heap->count++;
  heap->at[i] = range;
  for (; i > 0 && is_better(heap->at[i], heap->at[(i - 1) / 2]); i = (i - 1) / 2)
    swap(heap, i, (i - 1) / 2);
}

static void heap_pop(struct heap *heap) {
  heap->at[0] = heap->at[--heap->count];
  for (size_t i = 0;;) {
    size_t best = i, left = 2 * i + 1;
    if (left < heap->count && is_better(heap->at[left], heap->at[best])) best = left;
    if (left + 1 < heap->count && is_better(heap->at[left + 1], heap->at[best])) best = left + 1;
    if (best == i) return;
    swap(heap, i, best);
    i = best;
  }
}

static void emit(struct mic_cover *cover, uint64_t start, uint32_t id) {
  size_t count = cover->pieces.count;
  if (count > 0 && cover->pieces.at[count - 1].id == id) return;
  *mic_vec_push(&cover->pieces) = (struct mic_cover_piece){start, id};
}

/* ranges are sorted by start.  Each turn opens a range or closes one, so it ends. */
static void sweep(struct mic_cover *cover, struct heap *heap, const struct mic_cover_range *ranges,
                  size_t count) {
  uint64_t here = 0;
  for (size_t next = 0; next < count || heap->count > 0;) {
    if (heap->count == 0 && ranges[next].start > here) here = ranges[next].start;
    for (; next < count && ranges[next].start <= here; next++)
      if (ranges[next].end > here) heap_push(heap, &ranges[next]);
    while (heap->count > 0 && heap->at[0]->end <= here) heap_pop(heap);
    if (heap->count == 0) {
      if (here > 0) emit(cover, here, MIC_NONE);
      continue;
    }
    emit(cover, here, heap->at[0]->id);
    here = heap->at[0]->end;
    if (next < count && ranges[next].start < here) here = ranges[next].start;
  }
}

void mic_sort_by_key(uint32_t *order, const uint64_t *key, size_t count) {
  uint64_t varying = 0;
  for (size_t i = 1; i < count; i++) varying |= key[order[i]] ^ key[order[0]];
  uint32_t *from = order, *spare = mic_alloc((count + 1) * sizeof *spare), *to = spare;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (!((varying >> shift) & 0xff)) continue;
    size_t starts[256] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) starts[(key[from[i]] >> shift) & 0xff]++;
    for (size_t byte = 0; byte < 256; byte++) {
      size_t here = starts[byte];
      starts[byte] = sum;
      sum += here;
    }
    for (size_t i = 0; i < count; i++) to[starts[(key[from[i]] >> shift) & 0xff]++] = from[i];
    uint32_t *held = from;
    from = to;
    to = held;
  }
  if (from != order) memcpy(order, from, count * sizeof *order);
  free(spare);
}

static uint64_t key_at(const uint8_t *records, size_t index, size_t each) {
  uint64_t key;
  memcpy(&key, records + index * each, sizeof key);
  return key;
}

void mic_sort_records(void *records, size_t count, size_t each) {
  uint8_t *at = records;
  bool sorted = true;
  for (size_t i = 1; i < count && sorted; i++)
    sorted = key_at(at, i - 1, each) <= key_at(at, i, each);
  if (sorted) return;
  uint64_t *key = mic_alloc(count * sizeof *key);
  uint32_t *order = mic_alloc(count * sizeof *order);
  uint8_t *copy = mic_alloc(count * each);
  for (size_t i = 0; i < count; i++) {
    key[i] = key_at(at, i, each);
    order[i] = (uint32_t)i;
  }
  mic_sort_by_key(order, key, count);
  for (size_t i = 0; i < count; i++) memcpy(copy + i * each, at + order[i] * each, each);
  memcpy(at, copy, count * each);
  free(copy);
  free(order);
  free(key);
}

_Static_assert(offsetof(struct mic_cover_range, start) == 0, "mic_sort_records takes it for key");

void mic_cover_build(struct mic_cover *cover, struct mic_cover_range *ranges, size_t count) {
  cover->pieces.count = 0;
  mic_sort_records(ranges, count, sizeof *ranges);
  struct heap heap = {mic_alloc((count + 1) * sizeof *heap.at), 0};
  mic_vec_reserve(&cover->pieces, count + 1);
  sweep(cover, &heap, ranges, count);
  free(heap.at);
}

uint32_t mic_cover_find(const struct mic_cover *cover, uint64_t address) {
  size_t low = 0, high = cover->pieces.count; /* the first piece that starts past the address */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (cover->pieces.at[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 ? cover->pieces.at[low - 1].id : MIC_NONE;
}

void mic_cover_free(struct mic_cover *cover) { mic_vec_free(&cover->pieces); }
