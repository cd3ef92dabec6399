/* zones.c - sort, give lanes, write. */
#include "import/zones.h"

#include <stdlib.h>

static void grow(struct mic_zones *zones) {
  size_t room = zones->all.room + zones->all.room / 4 + 1024;
  zones->all.at = mic_realloc(zones->all.at, room * sizeof *zones->all.at);
  zones->all.room = room;
}

void mic_zones_add(struct mic_zones *zones, uint32_t thread, uint32_t site, int64_t start_ns,
                   int64_t end_ns, bool async) {
  uint32_t order = (uint32_t)zones->all.count;
  /* A quarter more at a time: of ten million spans, doubling would leave half the room unused. */
  if (zones->all.count == zones->all.room) grow(zones);
  *mic_vec_push(&zones->all) = (struct mic_zone){start_ns, end_ns, thread, site, order, async};
}

int64_t mic_zones_start(const struct mic_zones *zones) {
  int64_t start = zones->all.count ? INT64_MAX : 0;
  for (size_t i = 0; i < zones->all.count; i++)
    if (zones->all.at[i].start_ns < start) start = zones->all.at[i].start_ns;
  return start;
}

/* By thread, then by start; of those that begin together the longest first. */
static int compare(const void *a, const void *b) {
  const struct mic_zone *x = a, *y = b;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->end_ns != y->end_ns) return x->end_ns > y->end_ns ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* The ends of the zones that are open in each lane of a thread, innermost last. */
typedef MIC_VEC(int64_t) ends;
struct lanes {
  MIC_VEC(ends) at;
  size_t used;
};

static bool fits(ends *lane, const struct mic_zone *zone) {
  while (lane->count && lane->at[lane->count - 1] <= zone->start_ns &&
         lane->at[lane->count - 1] != MIC_ZONE_OPEN)
    lane->count--;
  return !lane->count || lane->at[lane->count - 1] >= zone->end_ns;
}

static uint32_t lane_of(struct lanes *lanes, const struct mic_zone *zone) {
  size_t lane = zone->async ? 1 : 0;
  for (;; lane++) {
    while (lane >= lanes->at.count) *mic_vec_push(&lanes->at) = (ends){0};
    if (lane >= lanes->used) lanes->used = lane + 1;
    if (fits(&lanes->at.at[lane], zone)) break;
  }
  *mic_vec_push(&lanes->at.at[lane]) = zone->end_ns;
  return (uint32_t)lane;
}

static void next_thread(struct lanes *lanes) {
  for (size_t i = 0; i < lanes->used; i++) lanes->at.at[i].count = 0;
  lanes->used = 0;
}

uint64_t mic_zones_write(struct mic_zones *zones, int64_t start_ns, struct mic_writer *writer) {
  struct lanes lanes = {0};
  uint64_t moved = 0;
  if (zones->all.count) qsort(zones->all.at, zones->all.count, sizeof *zones->all.at, compare);
  for (size_t i = 0; i < zones->all.count; i++) {
    const struct mic_zone *zone = &zones->all.at[i];
    if (i && zone->thread != zone[-1].thread) next_thread(&lanes);
    uint32_t lane = lane_of(&lanes, zone);
    moved += lane && !zone->async;
    struct mic_zones_row row = {
      .thread = zone->thread,
      .site = zone->site,
      .start_ns = (uint64_t)zone->start_ns - (uint64_t)start_ns,
      .end_ns =
        zone->end_ns == MIC_ZONE_OPEN ? UINT64_MAX : (uint64_t)zone->end_ns - (uint64_t)start_ns,
      .lane = lane,
    };
    mic_writer_zones(writer, &row);
  }
  for (size_t i = 0; i < lanes.at.count; i++) mic_vec_free(&lanes.at.at[i]);
  mic_vec_free(&lanes.at);
  return moved;
}

void mic_zones_free(struct mic_zones *zones) { mic_vec_free(&zones->all); }
