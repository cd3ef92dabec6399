/*
 * zones.h - spans of others' traces, in any order, as zones.
 *
 * What is added is held until the end: spans are then put in order, each into the first lane of its
 * thread where it lies inside of others or beside them.
 */
#ifndef MIC_IMPORT_ZONES_H
#define MIC_IMPORT_ZONES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "capture/writer.h"

#define MIC_ZONE_OPEN INT64_MAX /* the end of what did not end */

struct mic_zone {
  int64_t start_ns, end_ns;
  uint32_t thread, site;
  uint32_t order; /* in which it was added: of equal spans the first is the outer one */
  bool async;     /* in lanes from 1 on: it says nothing of what its thread did */
};
struct mic_zones {
  MIC_VEC(struct mic_zone) all;
};

void mic_zones_add(struct mic_zones *zones, uint32_t thread, uint32_t site, int64_t start_ns,
                   int64_t end_ns, bool async);
/* The earliest start; 0 without any. */
int64_t mic_zones_start(const struct mic_zones *zones);
/* Write all, times counted from start_ns.  Gives how many that are not async had to go to another
 * lane as they overlap others. */
uint64_t mic_zones_write(struct mic_zones *zones, int64_t start_ns, struct mic_writer *writer);
void mic_zones_free(struct mic_zones *zones);

#endif
