/* chrome_async.c - marks put beside those of their id where they lie, and matched id by id. */
#include "import/chrome_async.h"

#include <string.h>

/* Marks are given back in pieces of so many: 1 MiB of them. */
enum { PIECE = 65536 };

static uint32_t hash_of(struct mic_digest key) {
  return mic_index_mix((uint64_t)key.words[0] << 32 | key.words[1], key.words[2]);
}
static uint32_t hash_of_key(const void *keys, uint32_t i) {
  return hash_of(((const struct mic_digest *)keys)[i]);
}

static uint32_t key_of(struct mic_async *a, struct mic_digest key) {
  uint32_t hash = hash_of(key);
  uint64_t at;
  for (uint32_t i = mic_index_first(&a->by_key, hash, &at); i != MIC_NONE;
       i = mic_index_next(&a->by_key, hash, &at))
    if (memcmp(&a->keys.at[i], &key, sizeof key) == 0) return i;
  *mic_vec_push(&a->keys) = key;
  mic_index_add(&a->by_key, hash, hash_of_key, a->keys.at);
  return a->by_key.count - 1;
}

void mic_async_begin(struct mic_async *a, struct mic_digest key, int64_t ts, uint32_t site,
                     uint32_t thread) {
  *mic_vec_push(&a->marks) = (struct mic_async_mark){ts, key_of(a, key), site};
  *mic_vec_push(&a->threads) = thread;
}

void mic_async_end(struct mic_async *a, struct mic_digest key, int64_t ts, uint32_t name) {
  *mic_vec_push(&a->marks) = (struct mic_async_mark){ts, key_of(a, key) | MIC_ASYNC_END, name};
}

/* ---- order ---- */

/* Where each key's marks end when they lie side by side. */
static uint32_t *count_marks(const struct mic_async *a, uint32_t keys) {
  uint32_t *past = mic_alloc(((size_t)keys + 1) * sizeof *past), all = 0;
  past[keys] = (uint32_t)a->marks.count;
  for (size_t i = 0; i < a->marks.count; i++) past[a->marks.at[i].key & ~MIC_ASYNC_END]++;
  for (uint32_t k = 0; k < keys; k++) past[k] = all += past[k];
  return past;
}

static void swap(struct mic_async_mark *marks, uint32_t *place, uint32_t i, uint32_t k) {
  struct mic_async_mark mark = marks[i];
  uint32_t at = place[i];
  marks[i] = marks[k];
  marks[k] = mark;
  place[i] = place[k];
  place[k] = at;
}

/* Moves marks of a key together, in the order of the file: past, where a key's marks end, becomes
 * where they begin.  Gives the threads of begins, by where these lie then. */
static uint32_t *gather(struct mic_async *a, uint32_t *past) {
  struct mic_async_mark *marks = a->marks.at;
  uint32_t count = (uint32_t)a->marks.count, begins = (uint32_t)a->threads.count;
  uint32_t *place = mic_alloc((size_t)count * sizeof *place);
  for (uint32_t i = count; i-- > 0;) {
    place[i] = --past[marks[i].key & ~MIC_ASYNC_END];
    /* Where a mark lies tells its key from now on: a begin keeps its number among begins. */
    if (!(marks[i].key & MIC_ASYNC_END)) marks[i].key = --begins;
  }
  for (uint32_t i = 0; i < count; i++)
    while (place[i] != i) swap(marks, place, i, place[i]);
  for (uint32_t i = 0; i < count; i++)
    place[i] = marks[i].key & MIC_ASYNC_END ? MIC_NONE : a->threads.at[marks[i].key];
  return place;
}

/* ---- zones ---- */

struct matching {
  struct mic_async_mark *marks;
  uint32_t dropped;     /* marks whose memory is given back */
  mic_lane_zones zones; /* of one key */
};

static void take_marks(struct matching *m, uint32_t from, uint32_t past) {
  m->zones.count = 0;
  for (uint32_t i = from; i < past; i++) {
    enum mic_mark kind = m->marks[i].key & MIC_ASYNC_END ? MIC_MARK_END : MIC_MARK_BEGIN;
    mic_mark_add(&m->zones, kind, m->marks[i].ts, 0, m->marks[i].site, i);
    if (i - m->dropped < PIECE) continue;
    mic_drop(m->marks + m->dropped, (i - m->dropped) * sizeof *m->marks);
    m->dropped = i;
  }
}

void mic_async_match(struct mic_async *a, const uint32_t *name_of_site, mic_async_zone *on_zone,
                     void *data, struct mic_edge_counts *counts) {
  uint32_t keys = a->by_key.count;
  mic_vec_free(&a->keys);
  mic_index_free(&a->by_key);
  uint32_t *past = count_marks(a, keys), *threads = gather(a, past);
  mic_vec_free(&a->threads);
  struct matching m = {.marks = a->marks.at};
  for (uint32_t k = 0; k < keys; k++) {
    take_marks(&m, past[k], past[k + 1]);
    mic_edges_match(&m.zones, name_of_site, counts);
    for (size_t i = 0; i < m.zones.count; i++) {
      struct mic_lane_zone zone = m.zones.at[i];
      uint32_t thread = threads[zone.order];
      zone.order |= MIC_LANE_APART;
      on_zone(data, thread, &zone);
    }
  }
  mic_vec_free(&m.zones);
  free(past);
  free(threads);
  mic_vec_free(&a->marks);
}

void mic_async_free(struct mic_async *a) {
  mic_vec_free(&a->marks);
  mic_vec_free(&a->threads);
  mic_vec_free(&a->keys);
  mic_index_free(&a->by_key);
}
