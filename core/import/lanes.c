/* lanes.c - the first lane that a zone fits. */
#include "import/lanes.h"

#include "base/index.h"

typedef MIC_VEC(int64_t) ends; /* of the zones of a lane that are open, the innermost last */

static int outer_first(const void *a, const void *b) {
  const struct mic_lane_zone *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->end != y->end) return x->end > y->end ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Parts of so many are left to qsort(3), which copies them: 768 KiB. */
enum { PART = 32768 };

/* Where the second part begins: nothing in it stands before anything in the first, and neither is
 * empty. */
static size_t split(struct mic_lane_zone *at, size_t count, struct mic_lane_zone pivot,
                    mic_lane_order *order) {
  size_t low = 0, high = count - 1;
  for (;; low++, high--) {
    while (order(&at[low], &pivot) < 0) low++;
    while (order(&at[high], &pivot) > 0) high--;
    if (low >= high) return high + 1;
    struct mic_lane_zone zone = at[low];
    at[low] = at[high];
    at[high] = zone;
  }
}

/* By Hoare's partition around any zone but the last: who makes a file does not know which. */
static void sort_parts(struct mic_lane_zone *at, size_t count, mic_lane_order *order,
                       uint64_t random) {
  while (count > PART) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL; /* of Knuth's MMIX */
    size_t first = split(at, count, at[(random >> 32) % (count - 1)], order), rest = count - first;
    bool small = first < rest; /* the smaller half first: at most 32 calls are open */
    sort_parts(small ? at : at + first, small ? first : rest, order, random);
    at = small ? at + first : at;
    count = small ? rest : first;
  }
  if (count) qsort(at, count, sizeof *at, order);
}

void mic_lane_zones_sort(mic_lane_zones *zones, mic_lane_order *order) {
  for (size_t i = 1; i < zones->count; i++) {
    if (order(&zones->at[i - 1], &zones->at[i]) <= 0) continue;
    sort_parts(zones->at, zones->count, order, mic_index_secret[0]);
    return;
  }
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
  mic_lane_zones_sort(zones, outer_first);
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
