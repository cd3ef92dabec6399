/*
 * scratch.h - a file without a name, for what does not fit in memory.
 *
 * It lies in $TMPDIR, or in /tmp, and takes at most half of what is free there when it is opened,
 * so that no input fills a disk that others use (or, on tmpfs, memory).
 *
 * Owns:  the caller closes fd.
 * Fails: MIC_ELIMIT for more than that, by the name of what it is for.
 */
#ifndef MIC_IMPORT_SCRATCH_H
#define MIC_IMPORT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mic_scratch {
  const char *name; /* borrowed */
  uint64_t room, size;
  int fd; /* -1: not open */
};

int mic_scratch_open(struct mic_scratch *scratch, const char *name, struct mic_error *err);
int mic_scratch_write(struct mic_scratch *scratch, const void *bytes, size_t size,
                      struct mic_error *err);

#endif
