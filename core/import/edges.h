/*
 * edges.h - begins and ends of spans, in any order, matched into zones.
 *
 * An end belongs to the innermost begin of its name on its track, or to the innermost of all where
 * it says no name.  A begin that says how long it is lasts that long, with or without an end; when
 * it is over, or an end of another name comes, it waits for none.  Of open begins the innermost
 * MIC_LANES_OPEN_MAX are looked at.
 */
#ifndef MIC_IMPORT_EDGES_H
#define MIC_IMPORT_EDGES_H

#include "base/alloc.h"
#include "import/lanes.h"

struct mic_edge {
  int64_t time_ns;
  int64_t end_ns; /* of a begin that says it; else INT64_MAX */
  uint32_t site;
  uint32_t name;  /* of an end: the name it says, or 0 */
  uint32_t order; /* decides between those of one time; a zone has its begin's */
  bool begin;
};
typedef MIC_VEC(struct mic_edge) mic_edges;

struct mic_edge_counts {
  uint64_t unfinished;     /* begins without an end */
  uint64_t unmatched_ends; /* ends of nothing that began */
};

/* Match all, in order of time, into zones of their thread; sorts them. */
void mic_edges_match(mic_edges *edges, mic_lane_zones *zones, const uint32_t *name_of_site,
                     struct mic_edge_counts *counts);

#endif
