/*
 * edges.h - spans, and begins and ends of spans in any order, matched into zones.
 *
 * All of a track are marks of one list, in which ends find their begins: nothing more is held.  An
 * end belongs to the innermost begin of its name, or to the innermost of all where it says no name.
 * A begin that says how long it is lasts that long, with or without an end; when it is over, or an
 * end of another name comes, it waits for none.  Of open begins the innermost MIC_LANES_OPEN_MAX
 * are looked at.
 */
#ifndef MIC_IMPORT_EDGES_H
#define MIC_IMPORT_EDGES_H

#include "base/alloc.h"
#include "import/lanes.h"

enum mic_mark { MIC_MARK_SPAN = 0, MIC_MARK_BEGIN = 1, MIC_MARK_END = 2, MIC_MARK_TIMED = 3 };
#define MIC_MARK_SHIFT 30 /* the kind stands above a zone's order */
#define MIC_MARK_ORDER ((1U << MIC_MARK_SHIFT) - 1)

struct mic_edge_counts {
  uint64_t unfinished;     /* begins without an end */
  uint64_t unmatched_ends; /* ends of nothing that began */
};

/* Where the next mark goes: many tracks have one only. */
static inline struct mic_lane_zone *mic_mark_push(mic_lane_zones *marks) {
  mic_vec_begin(marks, 1);
  return mic_vec_push(marks);
}

/* Append a mark; end_ns is a span's or a timed begin's.  site: of an end the name that it says, or
 * MIC_NONE.  order decides between marks of one time, below 2^30. */
static inline void mic_mark_add(mic_lane_zones *marks, enum mic_mark kind, int64_t start_ns,
                                int64_t end_ns, uint32_t site, uint64_t order) {
  uint32_t all = (uint32_t)(order & MIC_MARK_ORDER) | (uint32_t)kind << MIC_MARK_SHIFT;
  if (kind == MIC_MARK_BEGIN) end_ns = INT64_MAX;
  *mic_mark_push(marks) = (struct mic_lane_zone){start_ns, end_ns, site, all};
}

/* Match all, in order of time: what is left are zones, whose orders are plain. */
void mic_edges_match(mic_lane_zones *marks, const uint32_t *name_of_site,
                     struct mic_edge_counts *counts);

#endif
