/* edges.c - begins and ends to spans. */
#include <stdlib.h>
#include <string.h>

#include "import/edges.h"

static int compare(const void *a, const void *b) {
  const struct mic_edge *x = a, *y = b;
  if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(mic_edges *edges) {
  for (size_t i = 1; i < edges->count; i++) {
    if (compare(&edges->at[i - 1], &edges->at[i]) <= 0) continue;
    qsort(edges->at, edges->count, sizeof *edges->at, compare);
    return;
  }
}

typedef MIC_VEC(const struct mic_edge *) open_edges;

static bool is_timed(const struct mic_edge *begin) { return begin->end_ns != INT64_MAX; }

static void add(mic_lane_zones *zones, const struct mic_edge *begin, int64_t end_ns) {
  if (is_timed(begin)) end_ns = begin->end_ns;
  *mic_vec_push(zones) = (struct mic_lane_zone){begin->time_ns, end_ns, begin->site, begin->order};
}

/* Innermost begins that wait for no end. */
static void drop_timed(open_edges *open, const struct mic_edge *end, const uint32_t *name_of_site,
                       mic_lane_zones *zones) {
  while (open->count) {
    const struct mic_edge *top = open->at[open->count - 1];
    bool other = end->name && name_of_site[top->site] != end->name;
    if (!is_timed(top) || !(top->end_ns < end->time_ns || other)) return;
    add(zones, top, INT64_MAX);
    open->count--;
  }
}

/* The begin that an end belongs to: the innermost of its name, or the innermost of all where it
 * says none.  SIZE_MAX: there is none. */
static size_t find(const open_edges *open, const struct mic_edge *end,
                   const uint32_t *name_of_site) {
  for (size_t i = open->count, from = mic_lanes_open_from(i); i-- > from;)
    if (!end->name || name_of_site[open->at[i]->site] == end->name) return i;
  return SIZE_MAX;
}

/* Those inside of it may have ends yet, stamped the same. */
static void close(open_edges *open, size_t at, mic_lane_zones *zones, int64_t end_ns) {
  add(zones, open->at[at], end_ns);
  memmove(&open->at[at], &open->at[at + 1], (open->count - at - 1) * sizeof *open->at);
  open->count--;
}

static void finish(open_edges *open, mic_lane_zones *zones, struct mic_edge_counts *counts) {
  for (size_t i = 0; i < open->count; i++) {
    add(zones, open->at[i], INT64_MAX);
    counts->unfinished += !is_timed(open->at[i]);
  }
  open->count = 0;
}

void mic_edges_match(mic_edges *edges, mic_lane_zones *zones, const uint32_t *name_of_site,
                     struct mic_edge_counts *counts) {
  open_edges open = {0};
  sort(edges);
  for (size_t i = 0; i < edges->count; i++) {
    const struct mic_edge *edge = &edges->at[i];
    if (edge->begin) {
      *mic_vec_push(&open) = edge;
      continue;
    }
    drop_timed(&open, edge, name_of_site, zones);
    size_t at = find(&open, edge, name_of_site);
    if (at == SIZE_MAX)
      counts->unmatched_ends++;
    else
      close(&open, at, zones, edge->time_ns);
  }
  finish(&open, zones, counts);
  mic_vec_free(&open);
}
