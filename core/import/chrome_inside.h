/*
 * chrome_inside.h - a trace being read, as its two files share it.
 *
 * chrome.c takes events from the JSON, chrome_match.c makes spans of begins and ends.
 */
#ifndef MIC_IMPORT_CHROME_INSIDE_H
#define MIC_IMPORT_CHROME_INSIDE_H

#include "base/alloc.h"
#include "base/map.h"
#include "import/build.h"
#include "import/chrome.h"
#include "import/zones.h"

/* A begin or an end.  Those of one `track` are matched: a thread's own, or an asynchronous id's. */
struct mic_chrome_edge {
  int64_t time_ns;
  int64_t duration_ns; /* of a begin that says it; MIC_ZONE_OPEN: it does not */
  uint32_t track, thread, site;
  uint32_t name; /* of an end: the name it says, or 0 */
  uint32_t order;
  bool begin, async;
};

typedef MIC_VEC(struct mic_chrome_edge) mic_chrome_edges;

/* Match all edges, in order of time, into zones. */
void mic_chrome_match(mic_chrome_edges *edges, struct mic_zones *zones,
                      const uint32_t *name_of_site, struct mic_chrome_result *result);

#endif
