/*
 * symbols_cover.h - which of many ranges, nested or overlapping, covers an address.
 *
 * Ranges are flattened once into disjoint pieces, each owned by the range that wins there: the
 * higher rank, then the smaller size, then the smaller id.  A lookup is one binary search.
 *
 * Owns: a cover owns its pieces.  Zero-initialised is empty.
 */
#ifndef MIC_IMAGE_SYMBOLS_COVER_H
#define MIC_IMAGE_SYMBOLS_COVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct mic_cover_range {
  uint64_t start, end; /* start < end, or it covers nothing */
  uint32_t id;
  uint32_t rank;
};

struct mic_cover_piece {
  uint64_t start; /* up to the next piece's start */
  uint32_t id;    /* MIC_NONE: nothing */
};

struct mic_cover {
  MIC_VEC(struct mic_cover_piece) pieces;
};

/* Builds from ranges in any order; they are sorted in place. */
void mic_cover_build(struct mic_cover *cover, struct mic_cover_range *ranges, size_t count);
uint32_t mic_cover_find(const struct mic_cover *cover, uint64_t address); /* an id or MIC_NONE */
void mic_cover_free(struct mic_cover *cover);

/* Sorts order[] (ids below count) by key[id], ties by their order before.  Linear time: symbol
 * tables come with a million entries. */
void mic_sort_by_key(uint32_t *order, const uint64_t *key, size_t count);
/* Sorts records of a size that begin with a u64, which is the key; ties stay in their order. */
void mic_sort_records(void *records, size_t count, size_t each);

#endif
