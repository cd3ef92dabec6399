/*
 * firefox.h - read the Firefox Profiler's processed profiles: threads, samples, markers.
 *
 * Versions with tables in each thread (to 59) and with tables that all share (from 60); the file is
 * read twice, as what threads name may come after them.  Markers that are spans become zones.
 *
 * Fails:   MIC_EFORMAT with the thread, table and row for an index that is none.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_FIREFOX_H
#define MIC_IMPORT_FIREFOX_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_firefox_result {
  uint64_t threads, samples;
  uint64_t empty;     /* samples without a stack: their thread did nothing */
  uint64_t instants;  /* markers that are no spans */
  uint64_t early;     /* times before the recording's start, taken as the start */
  uint64_t inlined;   /* inlined frames under no frame of theirs: kept as frames of their own */
  uint64_t addresses; /* frames with addresses in no library, which are left out */
  uint64_t rounded;   /* weights and CPU times with parts of units, which are rounded */
  uint64_t unfinished, unmatched_ends, overlapping, zones;
};

int mic_firefox_read(struct mic_input *input, struct mic_writer *writer,
                     struct mic_firefox_result *result, struct mic_error *err);
/* ffi:end */

#endif
