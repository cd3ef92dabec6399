/*
 * kept.h - the image that a capture kept parts of, as a file in memory: the parts in place, zeros
 * elsewhere.
 *
 * Owns:    the capture is borrowed; a descriptor is the caller's.
 * Threads: one user at a time.
 */
#ifndef MIC_SYMBOLIZE_KEPT_H
#define MIC_SYMBOLIZE_KEPT_H

#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "capture/reader.h"

struct mic_kept {
  const struct mic_capture *capture;
  struct mic_map by_module, by_build_id; /* -> the first of a module's parts, which follow it */
};

void mic_kept_begin(struct mic_kept *kept, const struct mic_capture *capture);
/* A descriptor, or -1 and *err: MIC_ENOENT when nothing of the module's build ID was kept. */
int mic_kept_image(const struct mic_kept *kept, uint32_t module, struct mic_error *err);
void mic_kept_free(struct mic_kept *kept);

#endif
