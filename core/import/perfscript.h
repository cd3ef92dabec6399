/*
 * perfscript.h - read what `perf script` prints.
 *
 * A sample is a line with the thread, the time and the event, then a line a frame, innermost first,
 * up to a blank line; without stacks its one frame stands in the same line.  A thread's name may
 * hold blanks, digits and brackets, so the numbers are found by what follows them: an id, perhaps
 * [CPU], and a time that ends in a colon, before an event.
 *
 * Weights are the event's periods in the event's unit, and 1 where the text has none.  Addresses
 * are left out: perf prints them now as those of the process, now as places in the file.
 *
 * A line that is none of these is left out and told with its number; a text without a sample is an
 * error.  Nothing is kept of the text but what the tables hold.
 */
#ifndef MIC_IMPORT_PERFSCRIPT_H
#define MIC_IMPORT_PERFSCRIPT_H

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_perfscript_result {
  uint64_t lines;
  uint64_t samples;
  uint64_t bad_lines;
  uint64_t first_bad; /* the number of the first, from 1 */
  const char *why;    /* what is wrong with that; static text */
  uint64_t records;   /* lines of records that are no samples: mappings, names and the like */
  uint64_t fields;    /* samples with more in their line: a tracepoint's fields and the like */
  uint64_t addresses; /* frames whose addresses are left out */
  uint64_t earlier;   /* samples before the first one's time, given that time */
};

int mic_perfscript_read(struct mic_input *input, struct mic_writer *writer,
                        struct mic_perfscript_result *result, struct mic_error *err);
/* ffi:end */

#endif
