/* file_places.c - from the start of each module's file on, with a heap of what is mapped there. */
#include "import/file_places.h"

#include "base/alloc.h"
#include "base/sort.h"

struct mapped {
  uint64_t start;
  uint32_t module, row;
};

/* Rows that hold where the walk is, the first on top, and some that have ended below it. */
typedef MIC_VEC(uint32_t) heap;

static int by_start(const void *a, const void *b) {
  const struct mapped *x = a, *y = b;
  if (x->module != y->module) return x->module < y->module ? -1 : 1;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

static void heap_push(heap *h, uint32_t row) {
  *mic_vec_push(h) = row;
  size_t at = h->count - 1;
  for (; at && h->at[(at - 1) / 2] > row; at = (at - 1) / 2) h->at[at] = h->at[(at - 1) / 2];
  h->at[at] = row;
}

static void heap_pop(heap *h) {
  uint32_t row = h->at[--h->count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
    if (child + 1 < h->count && h->at[child + 1] < h->at[child]) child++;
    if (h->at[child] >= row) break;
    h->at[at] = h->at[child];
  }
  if (h->count) h->at[at] = row;
}

static uint64_t end_of(const struct mic_tables *t, uint32_t row) {
  uint64_t start = t->mappings.file_offset[row], size = t->mappings.size[row];
  return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

static void add(struct mic_file_places *out, uint64_t start, uint32_t row) {
  size_t count = out->row.count;
  if (count && out->row.at[count - 1] == row) return;
  *mic_vec_push(&out->start) = start;
  *mic_vec_push(&out->row) = row;
}

/* The ranges of one module's mappings: each turn passes the start of one or the end of another. */
static void cut(struct mic_file_places *out, heap *h, const struct mapped *at,
                const struct mapped *past) {
  const struct mic_tables *t = out->t;
  while (at < past || h->count) {
    uint64_t here = h->count ? end_of(t, h->at[0]) : at->start;
    if (at < past && at->start < here) here = at->start;
    for (; at < past && at->start == here; at++) heap_push(h, at->row);
    while (h->count && end_of(t, h->at[0]) <= here) heap_pop(h);
    if (h->count) add(out, here, h->at[0]);
  }
}

void mic_file_places_of(const struct mic_tables *t, const bool *asked,
                        struct mic_file_places *out) {
  MIC_VEC(struct mapped) mapped = {0};
  heap h = {0};
  *out = (struct mic_file_places){.t = t};
  for (uint32_t i = 0; i < t->mappings.rows; i++) {
    uint32_t module = t->mappings.module[i];
    if (module == MIC_NONE || !asked[module] || !t->mappings.size[i]) continue;
    *mic_vec_push(&mapped) = (struct mapped){t->mappings.file_offset[i], module, i};
  }
  mic_sort(mapped.at, mapped.count, sizeof *mapped.at, by_start);
  for (size_t i = 0, past; i < mapped.count; i = past) {
    for (past = i; past < mapped.count && mapped.at[past].module == mapped.at[i].module;) past++;
    cut(out, &h, mapped.at + i, mapped.at + past);
  }
  mic_vec_free(&mapped);
  mic_vec_free(&h);
}

void mic_file_places_free(struct mic_file_places *places) {
  mic_vec_free(&places->start);
  mic_vec_free(&places->row);
}

uint32_t mic_file_places_find(const struct mic_file_places *places, uint32_t module,
                              uint64_t offset) {
  const struct mic_tables *t = places->t;
  size_t low = 0, past = places->row.count; /* the first range that begins behind it */
  while (low < past) {
    size_t middle = low + (past - low) / 2;
    uint32_t of = t->mappings.module[places->row.at[middle]];
    if (of < module || (of == module && places->start.at[middle] <= offset))
      low = middle + 1;
    else
      past = middle;
  }
  if (!low) return MIC_NONE;
  uint32_t row = places->row.at[low - 1];
  if (t->mappings.module[row] != module) return MIC_NONE;
  return offset - t->mappings.file_offset[row] < t->mappings.size[row] ? row : MIC_NONE;
}
