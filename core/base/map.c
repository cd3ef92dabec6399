/* map.c - open addressing with linear probes; at most 3/4 full. */
#include "base/map.h"

#include <string.h>
#include <xxhash.h>

static struct mic_map_slot *find(const struct mic_map *map, uint64_t a, uint64_t b) {
  uint32_t mask = map->room - 1;
  for (uint32_t i = mic_index_mix(a, b) & mask;; i = (i + 1) & mask) {
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

static struct mic_id_map_slot *find_id(const struct mic_id_map *ids, uint32_t key) {
  uint32_t i = (uint32_t)((uint64_t)mic_index_mix(key, 0) * ids->room >> 32);
  while (ids->slots[i].value != MIC_NONE && ids->slots[i].key != key)
    i = i + 1 == ids->room ? 0 : i + 1;
  return &ids->slots[i];
}

/* By a half, as all of it is seldom used. */
static void grow_ids(struct mic_id_map *ids) {
  struct mic_id_map old = *ids;
  ids->room = old.room ? old.room / 2 * 3 : 16;
  ids->slots = mic_realloc(NULL, (size_t)ids->room * sizeof *ids->slots);
  for (uint32_t i = 0; i < ids->room; i++) ids->slots[i].value = MIC_NONE;
  for (uint32_t i = 0; i < old.room; i++)
    if (old.slots[i].value != MIC_NONE) *find_id(ids, old.slots[i].key) = old.slots[i];
  free(old.slots);
}

uint32_t mic_id_map_get(const struct mic_id_map *ids, uint32_t key) {
  return ids->room ? find_id(ids, key)->value : MIC_NONE;
}

void mic_id_map_put(struct mic_id_map *ids, uint32_t key, uint32_t value) {
  if (((uint64_t)ids->count + 1) * 4 > (uint64_t)ids->room * 3) grow_ids(ids);
  struct mic_id_map_slot *slot = find_id(ids, key);
  ids->count += slot->value == MIC_NONE;
  *slot = (struct mic_id_map_slot){key, value};
}

bool mic_id_map_remove(struct mic_id_map *ids, uint32_t key) {
  if (!ids->room) return false;
  struct mic_id_map_slot *slot = find_id(ids, key);
  if (slot->value == MIC_NONE) return false;
  slot->value = MIC_NONE;
  ids->count--;
  uint32_t i = (uint32_t)(slot - ids->slots);
  for (;;) { /* what probed past the gap moves back */
    i = i + 1 == ids->room ? 0 : i + 1;
    struct mic_id_map_slot moved = ids->slots[i];
    if (moved.value == MIC_NONE) return true;
    ids->slots[i].value = MIC_NONE;
    *find_id(ids, moved.key) = moved;
  }
}

void mic_id_map_free(struct mic_id_map *ids) {
  free(ids->slots);
  memset(ids, 0, sizeof *ids);
}

uint64_t mic_hash(const void *bytes, size_t size) { return XXH3_64bits(bytes, size); }

struct mic_digest mic_digest(const void *bytes, size_t size) {
  XXH128_hash_t h = XXH3_128bits_withSeed(bytes, size, mic_index_secret[0]);
  return (struct mic_digest){{(uint32_t)h.low64, (uint32_t)(h.low64 >> 32), (uint32_t)h.high64}};
}

uint32_t mic_hash_key(const void *bytes, size_t size) {
  return (uint32_t)XXH3_64bits_withSeed(bytes, size, mic_index_secret[0]);
}

enum { SIZE_MAX_BYTES = 5 }; /* LEB128 of 32 bits */

struct mic_string mic_interner_at(const struct mic_interner *in, uint32_t id) {
  const uint8_t *at = in->strings.at[id];
  uint32_t size = *at & 0x7f;
  for (uint32_t shift = 7; *at++ & 0x80; shift += 7) size |= (uint32_t)(*at & 0x7f) << shift;
  return (struct mic_string){(const char *)at, size};
}

static uint32_t hash_of_string(const void *interner, uint32_t id) {
  struct mic_string s = mic_interner_at(interner, id);
  return mic_hash_key(s.bytes, s.size);
}

static uint32_t find_string(const struct mic_interner *in, const char *bytes, size_t size,
                            uint32_t hash) {
  uint64_t at;
  for (uint32_t id = mic_index_first(&in->index, hash, &at); id != MIC_NONE;
       id = mic_index_next(&in->index, hash, &at)) {
    struct mic_string have = mic_interner_at(in, id);
    if (have.size == size && memcmp(have.bytes, bytes, size) == 0) return id;
  }
  return MIC_NONE;
}

uint32_t mic_interner_find(const struct mic_interner *in, const char *bytes, size_t size) {
  if (!bytes) bytes = "";
  return find_string(in, bytes, size, mic_hash_key(bytes, size));
}

static const uint8_t *keep_string(struct mic_interner *in, const char *bytes, size_t size) {
  uint8_t head[SIZE_MAX_BYTES];
  size_t used = 0;
  for (uint32_t left = (uint32_t)size; used == 0 || left; left >>= 7)
    head[used++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  uint8_t *kept = mic_arena_bytes(&in->arena, used + size + 1);
  memcpy(kept, head, used);
  if (size) memcpy(kept + used, bytes, size);
  kept[used + size] = 0;
  return kept;
}

uint32_t mic_intern(struct mic_interner *in, const char *bytes, size_t size) {
  if (!bytes) bytes = "";
  uint32_t hash = mic_hash_key(bytes, size);
  uint32_t id = find_string(in, bytes, size, hash);
  if (id != MIC_NONE) return id;
  *mic_vec_push(&in->strings) = keep_string(in, bytes, size);
  mic_index_add(&in->index, hash, hash_of_string, in);
  return in->index.count - 1;
}

void mic_interner_free(struct mic_interner *in) {
  mic_arena_free(&in->arena);
  mic_vec_free(&in->strings);
  mic_index_free(&in->index);
}
