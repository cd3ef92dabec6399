/* own_ids.c - rows by an index of the first that has each id. */
#include "import/own_ids.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/index.h"

enum { FIRST_FREE = 1 << 22 }; /* PID_MAX_LIMIT, include/linux/threads.h: no process has it */

struct own_ids {
  const uint32_t *ids;
  MIC_VEC(uint32_t) first; /* row of each that differs */
  struct mic_index index;
};

static uint32_t hash_of(const void *keys, uint32_t id) {
  const struct own_ids *own = keys;
  return mic_index_mix(own->ids[own->first.at[id]], 1);
}

/* Which of those that differ has an id; MIC_NONE: none. */
static uint32_t find(const struct own_ids *own, uint32_t id) {
  uint64_t at;
  uint32_t found = mic_index_first(&own->index, mic_index_mix(id, 1), &at);
  while (found != MIC_NONE && own->ids[own->first.at[found]] != id)
    found = mic_index_next(&own->index, mic_index_mix(id, 1), &at);
  return found;
}

/* The same of a row, which may be the first that has it. */
static uint32_t take(struct own_ids *own, uint32_t row) {
  uint32_t found = find(own, own->ids[row]);
  if (found != MIC_NONE) return found;
  *mic_vec_push(&own->first) = row;
  mic_index_add(&own->index, mic_index_mix(own->ids[row], 1), hash_of, own);
  return own->index.count - 1;
}

static void release(struct own_ids *own) {
  mic_vec_free(&own->first);
  mic_index_free(&own->index);
}

MIC_EXPORT void mic_own_ids(uint32_t *ids, uint64_t rows) {
  struct own_ids own = {.ids = ids};
  uint32_t next = FIRST_FREE;
  for (uint32_t row = 0; row < rows; row++) take(&own, row);
  if (own.first.at && own.first.count < rows)
    for (uint32_t row = 0; row < rows; row++) {
      if (own.first.at[find(&own, ids[row])] == row) continue;
      while (find(&own, next) != MIC_NONE) next++;
      ids[row] = next++;
    }
  release(&own);
}

MIC_EXPORT void mic_own_ids_repeats(const uint32_t *ids, uint64_t rows, uint32_t *repeats) {
  struct own_ids own = {.ids = ids};
  uint32_t *counts = mic_alloc((size_t)(rows + 1) * sizeof *counts); /* of each that differs */
  for (uint32_t row = 0; row < rows; row++) repeats[row] = counts[take(&own, row)]++;
  free(counts);
  release(&own);
}

MIC_EXPORT int mic_own_ids_differ(const uint32_t *ids, uint64_t rows) {
  struct own_ids own = {.ids = ids};
  bool differ = true;
  for (uint32_t row = 0; row < rows && differ; row++)
    differ = ids[row] != 0 && take(&own, row) == row;
  release(&own);
  return differ;
}
