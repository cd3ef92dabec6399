/*
 * gecko.h - read Gecko profiles: what Firefox itself and `perf script report gecko` write.
 *
 * Tables have a schema that says which value of a row is which; threads of other processes are
 * nested.  A sample counts 1 where it has no weight.  A place is known by its text alone, of which
 * "NAME (in MODULE)" tells a module.  Markers that are spans become zones.
 *
 * Memory: the tables of one thread at a time.
 * Fails:   MIC_EFORMAT with the thread, table and row for an index that is none.
 */
#ifndef MIC_IMPORT_GECKO_H
#define MIC_IMPORT_GECKO_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_gecko_result {
  uint64_t threads, samples, zones;
  uint64_t empty;    /* samples without a stack */
  uint64_t instants; /* markers that are no spans */
  uint64_t early;    /* times before the start, taken as the start */
  uint64_t unfinished, unmatched_ends, overlapping;
};

int mic_gecko_read(struct mic_input *input, struct mic_writer *writer,
                   struct mic_gecko_result *result, struct mic_error *err);
/* ffi:end */

#endif
