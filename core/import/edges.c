/* edges.c - begins and ends to spans. */
#include <stdlib.h>

#include "import/edges.h"

static int compare(const void *a, const void *b) {
  const struct mic_edge *x = a, *y = b;
  if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

typedef MIC_VEC(const struct mic_edge *) open_edges;

static void add(mic_lane_zones *zones, const struct mic_edge *begin, int64_t end_ns) {
  uint32_t order = (uint32_t)zones->count & ~MIC_LANE_APART;
  *mic_vec_push(zones) = (struct mic_lane_zone){begin->time_ns, end_ns, begin->site, order};
}

/* The begin that an end belongs to: the innermost of its name, or the innermost of all where it
 * says none.  SIZE_MAX: there is none. */
static size_t find(const open_edges *open, const struct mic_edge *end,
                   const uint32_t *name_of_site) {
  for (size_t i = open->count, from = mic_lanes_open_from(i); i-- > from;)
    if (!end->name || name_of_site[open->at[i]->site] == end->name) return i;
  return SIZE_MAX;
}

static void close(open_edges *open, size_t at, mic_lane_zones *zones, int64_t end_ns) {
  add(zones, open->at[at], end_ns);
  for (; at + 1 < open->count; at++) open->at[at] = open->at[at + 1];
  open->count--;
}

static void finish(open_edges *open, mic_lane_zones *zones, struct mic_edge_counts *counts) {
  for (size_t i = 0; i < open->count; i++) {
    add(zones, open->at[i], INT64_MAX);
    counts->unfinished++;
  }
  open->count = 0;
}

void mic_edges_match(mic_edges *edges, mic_lane_zones *zones, const uint32_t *name_of_site,
                     struct mic_edge_counts *counts) {
  open_edges open = {0};
  if (edges->count) qsort(edges->at, edges->count, sizeof *edges->at, compare);
  for (size_t i = 0; i < edges->count; i++) {
    const struct mic_edge *edge = &edges->at[i];
    if (edge->begin) {
      *mic_vec_push(&open) = edge;
      continue;
    }
    size_t at = find(&open, edge, name_of_site);
    if (at == SIZE_MAX)
      counts->unmatched_ends++;
    else
      close(&open, at, zones, edge->time_ns);
  }
  finish(&open, zones, counts);
  mic_vec_free(&open);
}
