/*
 * numbers.h - a column of numbers, each as wide as the widest of them: 1, 2, 4 or 8 bytes.
 *
 * Columns of others' files are held until all that they are of is known; most of them are indexes
 * and small numbers.
 *
 * Owns: its numbers.  Zero-initialised is empty and ready.  Threads: one user at a time.
 */
#ifndef MIC_IMPORT_NUMBERS_H
#define MIC_IMPORT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIC_NUMBER_NULL INT64_MIN /* none, also past the last */

struct mic_numbers {
  uint8_t *at;
  size_t count;
  size_t room;    /* bytes */
  uint32_t width; /* bytes of one; 0 before the first */
};

void mic_numbers_push(struct mic_numbers *numbers, int64_t value);
void mic_numbers_set(struct mic_numbers *numbers, size_t index, int64_t value);
void mic_numbers_set_last(struct mic_numbers *numbers, int64_t value);
void mic_numbers_clear(struct mic_numbers *numbers); /* keeps the room */
void mic_numbers_free(struct mic_numbers *numbers);

/* The least number of a width stands for none. */
static inline int64_t mic_numbers_get(const struct mic_numbers *numbers, uint64_t index) {
  if (index >= numbers->count) return MIC_NUMBER_NULL;
  const uint8_t *at = numbers->at + index * numbers->width;
  int8_t narrow;
  int16_t short_;
  int32_t half;
  int64_t whole;
  switch (numbers->width) {
  case 1: memcpy(&narrow, at, 1); return narrow == INT8_MIN ? MIC_NUMBER_NULL : narrow;
  case 2: memcpy(&short_, at, 2); return short_ == INT16_MIN ? MIC_NUMBER_NULL : short_;
  case 4: memcpy(&half, at, 4); return half == INT32_MIN ? MIC_NUMBER_NULL : half;
  default: memcpy(&whole, at, 8); return whole;
  }
}

#endif
