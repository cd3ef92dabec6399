/* groups.c - samples by what they have in common. */
#include "import/groups.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

struct grouping {
  const struct mic_tables *t;
  struct mic_index index; /* of groups, by what their last row says */
  MIC_VEC(uint32_t) last;
  bool apart;
};

static uint32_t hash_of(const struct grouping *g, uint32_t row, const uint32_t *labels,
                        size_t size) {
  const struct mic_tables *t = g->t;
  uint64_t place = (uint64_t)t->samples.thread[row] << 32 | t->samples.stack[row];
  uint64_t source = g->apart ? t->samples.source[row] : 0;
  return mic_index_mix(place, source + (size ? mic_hash_key(labels, size) : 0));
}

/* The labels of a sample: their ids, and the bytes these take. */
static const uint32_t *labels_of(const struct mic_tables *t, uint32_t row, size_t *size) {
  uint64_t first = mic_tables_first_label(t, row), past = first;
  while (past < t->sample_labels.rows && t->sample_labels.sample[past] == row) past++;
  *size = (size_t)(past - first) * sizeof(uint32_t);
  return *size ? &t->sample_labels.label[first] : NULL;
}

static uint32_t hash_of_group(const void *keys, uint32_t group) {
  const struct grouping *g = keys;
  size_t size;
  const uint32_t *labels = labels_of(g->t, g->last.at[group], &size);
  return hash_of(g, g->last.at[group], labels, size);
}

static bool is_of(const struct grouping *g, uint32_t group, uint32_t row, const uint32_t *labels,
                  size_t size) {
  const struct mic_tables *t = g->t;
  uint32_t other = g->last.at[group];
  if (t->samples.stack[other] != t->samples.stack[row]) return false;
  if (t->samples.thread[other] != t->samples.thread[row]) return false;
  if (g->apart && t->samples.source[other] != t->samples.source[row]) return false;
  size_t other_size;
  const uint32_t *others = labels_of(t, other, &other_size);
  return other_size == size && (!size || memcmp(others, labels, size) == 0);
}

static void put(struct grouping *g, struct mic_groups *out, uint32_t row) {
  size_t size;
  const uint32_t *labels = labels_of(g->t, row, &size);
  uint32_t hash = hash_of(g, row, labels, size);
  uint64_t at;
  uint32_t group = mic_index_first(&g->index, hash, &at);
  while (group != MIC_NONE && !is_of(g, group, row, labels, size))
    group = mic_index_next(&g->index, hash, &at);
  out->next[row] = MIC_NONE;
  if (group != MIC_NONE) {
    out->next[g->last.at[group]] = row;
    g->last.at[group] = row;
    return;
  }
  out->begins[row / 8] |= (uint8_t)(1U << row % 8);
  *mic_vec_push(&g->last) = row;
  mic_index_add(&g->index, hash, hash_of_group, g);
}

struct mic_groups mic_groups_of(const struct mic_tables *t, bool apart) {
  uint64_t rows = t->samples.rows;
  struct grouping g = {.t = t, .apart = apart};
  struct mic_groups out = {
    .next = mic_realloc(NULL, (size_t)(rows + 1) * sizeof *out.next),
    .begins = mic_alloc((size_t)rows / 8 + 1),
  };
  for (uint32_t row = 0; row < rows; row++) put(&g, &out, row);
  mic_index_free(&g.index);
  mic_vec_free(&g.last);
  return out;
}

void mic_groups_free(struct mic_groups *groups) {
  free(groups->next);
  free(groups->begins);
  *groups = (struct mic_groups){NULL, NULL};
}
