/* ids.c - ids as they are counted, or in an index. */
#include "import/ids.h"

#include <string.h>

static uint32_t hash_of(const void *keys, uint32_t record) {
  return mic_index_mix(((const struct mic_ids *)keys)->ids.at[record], 0);
}

uint32_t mic_ids_find(const struct mic_ids *ids, uint64_t id) {
  if (!ids->sparse) return id - 1 < ids->count ? (uint32_t)(id - 1) : MIC_NONE;
  uint32_t hash = mic_index_mix(id, 0);
  uint64_t at;
  for (uint32_t i = mic_index_first(&ids->index, hash, &at); i != MIC_NONE;
       i = mic_index_next(&ids->index, hash, &at))
    if (ids->ids.at[i] == id) return i;
  return MIC_NONE;
}

static void keep(struct mic_ids *ids, uint64_t id) {
  *mic_vec_push(&ids->ids) = id;
  mic_index_add(&ids->index, mic_index_mix(id, 0), hash_of, ids);
}

bool mic_ids_add(struct mic_ids *ids, uint64_t id) {
  if (mic_ids_find(ids, id) != MIC_NONE) return false;
  if (!ids->sparse && id != (uint64_t)ids->count + 1) {
    ids->sparse = true;
    for (uint32_t i = 0; i < ids->count; i++) keep(ids, (uint64_t)i + 1);
  }
  if (ids->sparse) keep(ids, id);
  ids->count++;
  return true;
}

uint64_t mic_ids_at(const struct mic_ids *ids, uint32_t record) {
  return ids->sparse ? ids->ids.at[record] : (uint64_t)record + 1;
}

void mic_ids_free(struct mic_ids *ids) {
  mic_vec_free(&ids->ids);
  mic_index_free(&ids->index);
  memset(ids, 0, sizeof *ids);
}
