/* numbers.c - columns that widen where they lie. */
#include "import/numbers.h"

#include "base/alloc.h"

enum { WIDEST = 8 };

static uint32_t width_of(int64_t value) {
  if (value == MIC_NUMBER_NULL || (value > INT8_MIN && value <= INT8_MAX)) return 1;
  if (value > INT16_MIN && value <= INT16_MAX) return 2;
  return value > INT32_MIN && value <= INT32_MAX ? 4 : WIDEST;
}

static void put(struct mic_numbers *n, size_t index, int64_t value) {
  uint8_t *at = n->at + index * n->width;
  /* The lowest bytes; of none the highest bit of the width. */
  uint64_t bits = (uint64_t)value;
  if (value == MIC_NUMBER_NULL) bits = 1ULL << (8 * n->width - 1);
  memcpy(at, &bits, n->width); /* little-endian */
}

static void make_room(struct mic_numbers *n, size_t count) {
  if (n->room < count * n->width) n->at = mic_vec_grow_(n->at, &n->room, count * n->width, 1);
}

/* From the last on, so that none is written over before it was read. */
static void widen(struct mic_numbers *n, uint32_t width) {
  struct mic_numbers before = *n;
  n->width = width;
  make_room(n, n->count);
  before.at = n->at;
  for (size_t i = n->count; i-- > 0;) put(n, i, mic_numbers_get(&before, i));
}

void mic_numbers_push(struct mic_numbers *numbers, int64_t value) {
  uint32_t width = width_of(value);
  if (width > numbers->width) widen(numbers, width);
  make_room(numbers, numbers->count + 1);
  put(numbers, numbers->count++, value);
}

void mic_numbers_set(struct mic_numbers *numbers, size_t index, int64_t value) {
  uint32_t width = width_of(value);
  if (width > numbers->width) widen(numbers, width);
  put(numbers, index, value);
}

void mic_numbers_set_last(struct mic_numbers *numbers, int64_t value) {
  mic_numbers_set(numbers, numbers->count - 1, value);
}

void mic_numbers_clear(struct mic_numbers *numbers) {
  numbers->count = 0;
  numbers->width = 0;
}

void mic_numbers_free(struct mic_numbers *numbers) {
  free(numbers->at);
  *numbers = (struct mic_numbers){0};
}
