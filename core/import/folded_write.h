/*
 * folded_write.h - write folded stacks: a line for each path of names that has samples.
 *
 * Frames stand from the outermost on, separated by ";", then a blank and how much samples of the
 * path weigh together: in samples for a source with a period, else in the source's unit.  A stack
 * that ends short begins with its reason in brackets.  Lines are in order of the stacks' rows.
 *
 * Fails:   as mic_paths_of; writes keep their failure in the output.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_FOLDED_WRITE_H
#define MIC_IMPORT_FOLDED_WRITE_H

#include "base/error.h"
#include "capture/reader.h"
#include "import/output.h"

/* ffi:begin */
/* source: a row of sources.  *changed gets how many names were written otherwise than they are: ";"
 * as ":" and ends of lines as blanks. */
int mic_folded_write(const struct mic_capture *cap, uint32_t source, struct mic_output *output,
                     uint64_t *changed, struct mic_error *err);
/* ffi:end */

#endif
