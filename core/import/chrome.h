/*
 * chrome.h - read Chrome's Trace Event JSON: its spans as zones.
 *
 * Complete events (X), begins and ends (B, E) and asynchronous ones (b, e; S, F) in any order, of
 * threads by pid and tid, whose names come with metadata events (M).  Times count from the first
 * event.  A text that ends between two events is whole: the format lets the last "]" be missing.
 *
 * Fails:   MIC_EFORMAT with the offset for what is no JSON or no trace.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_CHROME_H
#define MIC_IMPORT_CHROME_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_chrome_result {
  uint64_t events;
  uint64_t zones;
  uint64_t unfinished;     /* zones that begin and do not end */
  uint64_t overlapping;    /* zones in lanes of their own, as they overlap others of their thread */
  uint64_t unmatched_ends; /* ends of nothing that began */
  uint64_t with_arguments; /* zones that have arguments, which are left out */
  uint64_t bad;            /* events without a phase, a time or a length that is one */
  uint64_t first_bad;      /* the number of the first of these, from 1 */
  uint64_t other[128];     /* events left out, by their phase's letter */
};

int mic_chrome_read(struct mic_input *input, struct mic_writer *writer,
                    struct mic_chrome_result *result, struct mic_error *err);
/* ffi:end */

#endif
