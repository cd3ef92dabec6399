/* lanes.c - the first lane that a zone fits. */
#include "import/lanes.h"

#include "base/sort.h"

typedef MIC_VEC(int64_t) ends; /* of the zones of a lane that are open, the innermost last */

static int outer_first(const void *a, const void *b) {
  const struct mic_lane_zone *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->end != y->end) return x->end > y->end ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Does the zone fit the lane, when what ended before it is taken off? */
static bool fits(ends *open, const struct mic_lane_zone *zone) {
  while (open->count && open->at[open->count - 1] <= zone->start) open->count--;
  return !open->count || open->at[open->count - 1] >= zone->end;
}

bool mic_lanes_write(struct mic_writer *writer, uint32_t thread, mic_lane_zones *zones,
                     int64_t origin, uint64_t *overlapping, uint64_t *unended) {
  MIC_VEC(ends) lanes = {0};
  bool all = true;
  mic_sort(zones->at, zones->count, sizeof *zones->at, outer_first);
  for (size_t i = 0; i < zones->count && all; i++) {
    const struct mic_lane_zone *zone = &zones->at[i];
    uint32_t apart = (zone->order & MIC_LANE_APART) != 0, lane = apart;
    while (lane < lanes.count && !fits(&lanes.at[lane], zone)) lane++;
    all = lane < MIC_LANES_MAX;
    if (!all) break;
    while (lane >= lanes.count) *mic_vec_push(&lanes) = (ends){0};
    *mic_vec_push(&lanes.at[lane]) = zone->end;
    bool ended = zone->end != INT64_MAX;
    struct mic_zones_row row = {
      .thread = thread,
      .site = zone->site,
      .start_ns = (uint64_t)zone->start - (uint64_t)origin,
      .end_ns = ended ? (uint64_t)zone->end - (uint64_t)origin : UINT64_MAX,
      .lane = lane,
    };
    mic_writer_zones(writer, &row);
    *overlapping += lane > apart;
    *unended += !ended;
  }
  for (size_t i = 0; i < lanes.count; i++) mic_vec_free(&lanes.at[i]);
  mic_vec_free(&lanes);
  return all;
}
