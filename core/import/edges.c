/* edges.c - begins and ends to spans. */
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "import/edges.h"

static enum mic_mark kind_of(const struct mic_lane_zone *mark) {
  return (enum mic_mark)(mark->order >> MIC_MARK_SHIFT);
}

static int by_time(const void *a, const void *b) {
  const struct mic_lane_zone *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  uint32_t m = x->order & MIC_MARK_ORDER, n = y->order & MIC_MARK_ORDER;
  return m < n ? -1 : m > n;
}

typedef MIC_VEC(uint32_t) open_marks;

/* Innermost begins that wait for no end. */
static void drop_timed(const mic_lane_zones *marks, open_marks *open,
                       const struct mic_lane_zone *end, const uint32_t *name_of_site) {
  while (open->count) {
    const struct mic_lane_zone *top = &marks->at[open->at[open->count - 1]];
    bool other = end->site != MIC_NONE && name_of_site[top->site] != end->site;
    if (kind_of(top) != MIC_MARK_TIMED || !(top->end < end->start || other)) return;
    open->count--;
  }
}

/* Where among the open begins the one stands that an end belongs to; NULL: there is none. */
static uint32_t *find(const mic_lane_zones *marks, const open_marks *open,
                      const struct mic_lane_zone *end, const uint32_t *name_of_site) {
  for (size_t i = open->count, from = mic_lanes_open_from(i); i-- > from;)
    if (end->site == MIC_NONE || name_of_site[marks->at[open->at[i]].site] == end->site)
      return &open->at[i];
  return NULL;
}

/* Those inside of it may have ends yet, stamped the same. */
static void close_begin(mic_lane_zones *marks, open_marks *open, uint32_t *at, int64_t end_ns) {
  struct mic_lane_zone *begin = &marks->at[*at];
  if (kind_of(begin) == MIC_MARK_BEGIN) begin->end = end_ns;
  open->count--;
  memmove(at, at + 1, (size_t)(open->at + open->count - at) * sizeof *at);
}

/* What is left are zones. */
static void drop_ends(mic_lane_zones *marks) {
  size_t left = 0;
  for (size_t i = 0; i < marks->count; i++) {
    struct mic_lane_zone mark = marks->at[i];
    if (kind_of(&mark) == MIC_MARK_END) continue;
    mark.order &= MIC_MARK_ORDER;
    marks->at[left++] = mark;
  }
  if (left < marks->count) mic_drop(marks->at + left, (marks->count - left) * sizeof *marks->at);
  marks->count = left;
}

void mic_edges_match(mic_lane_zones *marks, const uint32_t *name_of_site,
                     struct mic_edge_counts *counts) {
  open_marks open = {0};
  mic_sort(marks->at, marks->count, sizeof *marks->at, by_time);
  for (size_t i = 0; i < marks->count; i++) {
    const struct mic_lane_zone *mark = &marks->at[i];
    enum mic_mark kind = kind_of(mark);
    if (kind == MIC_MARK_BEGIN || kind == MIC_MARK_TIMED) *mic_vec_push(&open) = (uint32_t)i;
    if (kind != MIC_MARK_END) continue;
    drop_timed(marks, &open, mark, name_of_site);
    uint32_t *at = open.count ? find(marks, &open, mark, name_of_site) : NULL;
    if (at)
      close_begin(marks, &open, at, mark->start);
    else
      counts->unmatched_ends++;
  }
  for (size_t i = 0; i < open.count; i++)
    counts->unfinished += kind_of(&marks->at[open.at[i]]) == MIC_MARK_BEGIN;
  mic_vec_free(&open);
  drop_ends(marks);
}
