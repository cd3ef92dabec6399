/*
 * index.h - ids found by their keys, where the keys are kept elsewhere.
 *
 * An index holds nothing but ids, at most 8 bytes each, so that a table of small rows can be looked
 * up in less memory than its rows take.  Ids are dense: the n-th that is added is n - 1.  What an
 * id's key is the caller knows:
 *
 *   uint64_t at;
 *   for (uint32_t id = mic_index_first(&index, hash, &at); id != MIC_NONE;
 *        id = mic_index_next(&index, hash, &at))
 *     if (keys[id] == key) return id;
 *   mic_index_add(&index, hash, hash_of_key, keys);
 *
 * Owns: its slots.  Zero-initialised is empty and ready.  Threads: one user at a time.
 */
#ifndef MIC_BASE_INDEX_H
#define MIC_BASE_INDEX_H

#include <stdint.h>

#include "base/alloc.h"

#define MIC_NONE UINT32_MAX /* the id that stands for "none" */

/* A slot is an id and, in the bits that ids do not need yet, some of its key's hash: few keys are
 * looked at in vain. */
struct mic_index {
  uint32_t *slots; /* MIC_NONE: empty */
  uint64_t room;
  uint32_t count;
  uint32_t id_bits;
};

/* The hash of the key that an id stands for. */
typedef uint32_t mic_index_hash(const void *keys, uint32_t id);

/* Append the next id, which is index->count, under its key's hash.  The key must not be there, and
 * hash_of must know the ids before it. */
void mic_index_add(struct mic_index *index, uint32_t hash, mic_index_hash *hash_of,
                   const void *keys);
void mic_index_free(struct mic_index *index);

/* Different in each run: who makes a file does not know which keys meet, so that no file can make
 * look-ups walk through all there is.  Nothing that is written may follow from it. */
extern uint64_t mic_index_secret[2];

/* A hash of words, for keys that are some. */
static inline uint32_t mic_index_mix(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  wide product = (wide)(a ^ mic_index_secret[0]) * (b ^ mic_index_secret[1]);
  uint64_t h = (uint64_t)product ^ (uint64_t)(product >> 64);
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL; /* of MurmurHash3's finalizer */
  return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

/* The bits above an id. */
static inline uint32_t mic_index_tag(const struct mic_index *index, uint32_t hash) {
  return index->id_bits < 32 ? hash << index->id_bits : 0;
}

static inline uint32_t mic_index_seek(const struct mic_index *index, uint32_t hash, uint64_t *at) {
  uint32_t ids = (uint32_t)((1ULL << index->id_bits) - 1), tag = mic_index_tag(index, hash);
  for (;; *at = *at + 1 == index->room ? 0 : *at + 1) {
    uint32_t slot = index->slots[*at];
    if (slot == MIC_NONE) return MIC_NONE;
    if ((slot & ~ids) == tag) return slot & ids;
  }
}

/* The first id whose key may have the hash, or MIC_NONE; *at is for mic_index_next. */
static inline uint32_t mic_index_first(const struct mic_index *index, uint32_t hash, uint64_t *at) {
  if (!index->room) return MIC_NONE;
  *at = hash * index->room >> 32;
  return mic_index_seek(index, hash, at);
}

static inline uint32_t mic_index_next(const struct mic_index *index, uint32_t hash, uint64_t *at) {
  *at = *at + 1 == index->room ? 0 : *at + 1;
  return mic_index_seek(index, hash, at);
}

#endif
