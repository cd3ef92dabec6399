/* map.c - open addressing with linear probes; at most 3/4 full. */
#include "base/map.h"

#include <string.h>
#include <xxhash.h>

/* The finalizer of MurmurHash3 over both words: keys are often small and dense. */
static inline uint32_t hash_pair(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9e3779b97f4a7c15ULL ^ (b + 0x7f4a7c15ULL) * 0xc2b2ae3d27d4eb4fULL;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  return (uint32_t)h;
}

static struct mic_map_slot *find(const struct mic_map *map, uint64_t a, uint64_t b) {
  uint32_t mask = map->room - 1;
  for (uint32_t i = hash_pair(a, b) & mask;; i = (i + 1) & mask) {
    struct mic_map_slot *slot = &map->slots[i];
    if (slot->value == MIC_NONE || (slot->a == a && slot->b == b)) return slot;
  }
}

static void grow(struct mic_map *map) {
  struct mic_map old = *map;
  map->room = old.room ? old.room * 2 : 16;
  map->slots = mic_realloc(NULL, (size_t)map->room * sizeof *map->slots);
  for (uint32_t i = 0; i < map->room; i++) map->slots[i].value = MIC_NONE;
  for (uint32_t i = 0; i < old.room; i++)
    if (old.slots[i].value != MIC_NONE) *find(map, old.slots[i].a, old.slots[i].b) = old.slots[i];
  free(old.slots);
}

uint32_t mic_map_get(const struct mic_map *map, uint64_t a, uint64_t b) {
  return map->room ? find(map, a, b)->value : MIC_NONE;
}

uint32_t mic_map_intern(struct mic_map *map, uint64_t a, uint64_t b, uint32_t value, bool *added) {
  if ((uint64_t)map->count * 4 + 4 > (uint64_t)map->room * 3) grow(map);
  struct mic_map_slot *slot = find(map, a, b);
  bool is_new = slot->value == MIC_NONE;
  if (is_new) {
    *slot = (struct mic_map_slot){a, b, value};
    map->count++;
  }
  if (added) *added = is_new;
  return slot->value;
}

void mic_map_put(struct mic_map *map, uint64_t a, uint64_t b, uint32_t value) {
  bool added;
  mic_map_intern(map, a, b, value, &added);
  if (!added) find(map, a, b)->value = value;
}

bool mic_map_remove(struct mic_map *map, uint64_t a, uint64_t b) {
  if (!map->room) return false;
  struct mic_map_slot *slot = find(map, a, b);
  if (slot->value == MIC_NONE) return false;
  slot->value = MIC_NONE;
  map->count--;
  /* Close the gap: what probed past it moves back. */
  uint32_t mask = map->room - 1;
  for (uint32_t i = ((uint32_t)(slot - map->slots) + 1) & mask; map->slots[i].value != MIC_NONE;
       i = (i + 1) & mask) {
    struct mic_map_slot moved = map->slots[i];
    map->slots[i].value = MIC_NONE;
    *find(map, moved.a, moved.b) = moved;
  }
  return true;
}

void mic_map_free(struct mic_map *map) {
  free(map->slots);
  memset(map, 0, sizeof *map);
}

uint64_t mic_hash(const void *bytes, size_t size) { return XXH3_64bits(bytes, size); }

static uint32_t *string_slot(const struct mic_interner *in, const char *bytes, size_t size) {
  uint32_t mask = in->room - 1;
  for (uint32_t i = (uint32_t)mic_hash(bytes, size) & mask;; i = (i + 1) & mask) {
    uint32_t id = in->slots[i];
    if (id == 0) return &in->slots[i];
    const struct mic_string *have = &in->strings.at[id - 1];
    if (have->size == size && memcmp(have->bytes, bytes, size) == 0) return &in->slots[i];
  }
}

static void grow_strings(struct mic_interner *in) {
  free(in->slots);
  in->room = in->room ? in->room * 2 : 64;
  in->slots = mic_alloc((size_t)in->room * sizeof *in->slots);
  for (uint32_t id = 0; id < in->strings.count; id++)
    *string_slot(in, in->strings.at[id].bytes, in->strings.at[id].size) = id + 1;
}

uint32_t mic_interner_find(const struct mic_interner *in, const char *bytes, size_t size) {
  uint32_t id = in->room ? *string_slot(in, bytes ? bytes : "", size) : 0;
  return id ? id - 1 : MIC_NONE;
}

uint32_t mic_intern(struct mic_interner *in, const char *bytes, size_t size) {
  if (!bytes) bytes = "";
  if ((in->strings.count + 1) * 4 > (size_t)in->room * 3) grow_strings(in);
  uint32_t *slot = string_slot(in, bytes, size);
  if (*slot) return *slot - 1;
  uint32_t id = (uint32_t)in->strings.count;
  *mic_vec_push(&in->strings) =
    (struct mic_string){mic_arena_strndup(&in->arena, bytes, size), (uint32_t)size};
  *slot = id + 1;
  return id;
}

void mic_interner_free(struct mic_interner *in) {
  mic_arena_free(&in->arena);
  mic_vec_free(&in->strings);
  free(in->slots);
  memset(in, 0, sizeof *in);
}
