/*
 * lanes.h - zones of one thread, put in order and into lanes.
 *
 * In a lane zones lie inside of one another or have no time in common; one that fits no lane
 * begins another.
 *
 * Owns: lanes own their memory.  Zero-initialised is empty.
 */
#ifndef MIC_IMPORT_LANES_H
#define MIC_IMPORT_LANES_H

#include "base/alloc.h"
#include "capture/writer.h"

/* A zone; end INT64_MAX: its end was not seen. */
struct mic_lane_zone {
  int64_t start, end;
  uint32_t site;
  uint32_t order; /* of equal spans the lower is outside; and MIC_LANE_APART */
};
/* In order: the zone may overlap any, so it never stands in lane 0. */
#define MIC_LANE_APART (1U << 31)
typedef MIC_VEC(struct mic_lane_zone) mic_lane_zones;

enum {
  MIC_LANES_MAX = 4096,
  /* Open begins that an end is looked for in, the innermost: no thread is that deep, and a trace of
   * ends that close nothing would take time by its square. */
  MIC_LANES_OPEN_MAX = 4096
};
/* Of so many open begins the first that is looked at. */
static inline size_t mic_lanes_open_from(size_t count) {
  return count > MIC_LANES_OPEN_MAX ? count - MIC_LANES_OPEN_MAX : 0;
}

/* Writes the zones with times from `origin` on; they are sorted in place.  Counts those above lane
 * 0 and those that did not end.  False: more than MIC_LANES_MAX overlap. */
bool mic_lanes_write(struct mic_writer *writer, uint32_t thread, mic_lane_zones *zones,
                     int64_t origin, uint64_t *overlapping, uint64_t *unended);

#endif
