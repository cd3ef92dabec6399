/*
 * folded.h - read folded stacks: a line a stack, frames from the outermost separated by ";", then
 * a blank and a count.
 *
 * The last blank of a line splits it, so frames may hold blanks.  A line that is no stack is left
 * out and told with its number; a file without one that is a stack is an error.
 *
 * Each line is a sample that weighs its count, of a thread that is not known.
 */
#ifndef MIC_IMPORT_FOLDED_H
#define MIC_IMPORT_FOLDED_H

#include "base/error.h"
#include "import/build.h"
#include "import/input.h"

/* ffi:begin */
struct mic_folded_result {
  uint64_t lines;     /* of the file */
  uint64_t stacks;    /* lines that are stacks */
  uint64_t bad_lines; /* lines that are not, blank ones not counted */
  uint64_t first_bad; /* the number of the first, from 1 */
  const char *why;    /* what is wrong with that; static text */
};

int mic_folded_read(struct mic_input *input, struct mic_writer *writer,
                    struct mic_folded_result *result, struct mic_error *err);
/* ffi:end */

#endif
