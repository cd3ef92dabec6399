/*
 * chrome_async.h - begins and ends of asynchronous zones, matched by their ids.
 *
 * All are held until the last is read, as a file may have them in any order: 16 bytes each, four
 * more for a begin and up to 20 for an id, whatever its length.
 *
 * Owns: its memory.  Zero-initialised is empty.  Threads: one user at a time.
 */
#ifndef MIC_IMPORT_CHROME_ASYNC_H
#define MIC_IMPORT_CHROME_ASYNC_H

#include "base/map.h"
#include "import/edges.h"

struct mic_async_mark {
  int64_t ts;
  uint32_t key;  /* and, of an end, MIC_ASYNC_END */
  uint32_t site; /* of an end the name that it says, or MIC_NONE */
};
#define MIC_ASYNC_END (1U << 31)

struct mic_async {
  MIC_VEC(struct mic_async_mark) marks; /* as they come */
  MIC_VEC(uint32_t) threads;            /* of the begins among them */
  MIC_VEC(struct mic_digest) keys;
  struct mic_index by_key;
};

/* Those of equal keys belong to one another. */
void mic_async_begin(struct mic_async *async, struct mic_digest key, int64_t ts, uint32_t site,
                     uint32_t thread);
void mic_async_end(struct mic_async *async, struct mic_digest key, int64_t ts, uint32_t name);

/* A zone of the thread that began it; its order has MIC_LANE_APART. */
typedef void mic_async_zone(void *data, uint32_t thread, const struct mic_lane_zone *zone);

/* Matches all as mic_edges_match does, those of each key by themselves, and empties it. */
void mic_async_match(struct mic_async *async, const uint32_t *name_of_site, mic_async_zone *on_zone,
                     void *data, struct mic_edge_counts *counts);
void mic_async_free(struct mic_async *async);

#endif
