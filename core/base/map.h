/*
 * map.h - hash maps to dense u32 ids, and interned byte strings.
 *
 * Owns: a map owns its slots; an interner owns copies of its strings.  Zero-initialised is
 * empty and ready.  Threads: one user at a time.
 */
#ifndef MIC_BASE_MAP_H
#define MIC_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/index.h"

/* A map from (u64, u64) to u32; MIC_NONE cannot be stored.  Give b as 0 when one word is the key.
 */
struct mic_map_slot {
  uint64_t a, b;
  uint32_t value; /* MIC_NONE: empty */
};
struct mic_map {
  struct mic_map_slot *slots;
  uint32_t room; /* a power of two, or 0 */
  uint32_t count;
};
uint32_t mic_map_get(const struct mic_map *map, uint64_t a, uint64_t b); /* or MIC_NONE */
void mic_map_put(struct mic_map *map, uint64_t a, uint64_t b, uint32_t value);
/* The value kept for the key; a new key gets `value` and *added (may be NULL) is set. */
uint32_t mic_map_intern(struct mic_map *map, uint64_t a, uint64_t b, uint32_t value, bool *added);
bool mic_map_remove(struct mic_map *map, uint64_t a, uint64_t b);
void mic_map_free(struct mic_map *map);

/* A map from u32 to u32, of 8 bytes a slot: ids that the kernel gives to ours.  MIC_NONE cannot be
 * stored. */
struct mic_id_map_slot {
  uint32_t key, value; /* value MIC_NONE: empty */
};
struct mic_id_map {
  struct mic_id_map_slot *slots;
  uint32_t room, count;
};
uint32_t mic_id_map_get(const struct mic_id_map *ids, uint32_t key); /* or MIC_NONE */
void mic_id_map_put(struct mic_id_map *ids, uint32_t key, uint32_t value);
bool mic_id_map_remove(struct mic_id_map *ids, uint32_t key);
void mic_id_map_free(struct mic_id_map *ids);

/* Byte strings with dense ids from 0, in the order first seen.  One takes its bytes, two more (for
 * less than 128) and up to 16 of what finds it. */
struct mic_string {
  const char *bytes; /* NUL-terminated, may hold NULs too; borrowed until the interner is freed */
  uint32_t size;
};
struct mic_interner {
  struct mic_arena arena;
  MIC_VEC(const uint8_t *) strings; /* each its size (LEB128), its bytes and a NUL */
  struct mic_index index;
};
uint32_t mic_intern(struct mic_interner *in, const char *bytes, size_t size);
uint32_t mic_interner_find(const struct mic_interner *in, const char *bytes,
                           size_t size); /* or MIC_NONE */
/* The string of an id that was given. */
struct mic_string mic_interner_at(const struct mic_interner *in, uint32_t id);
void mic_interner_free(struct mic_interner *in);

uint64_t mic_hash(const void *bytes, size_t size); /* XXH3, 64 bits */
/* Stands for bytes of any length: 96 bits of XXH3, so that of 10^9 texts two meet with a chance of
 * 10^-11 (n^2 / 2^97).  Another one in each run, so that who makes a file cannot make them meet;
 * nothing that is written may follow from it. */
struct mic_digest {
  uint32_t words[3];
};
struct mic_digest mic_digest(const void *bytes, size_t size);
/* Another one in each run, as mic_index_mix: for keys of maps and indexes. */
uint32_t mic_hash_key(const void *bytes, size_t size);

#endif
