/*
 * speedscope.h - read speedscope files: each profile a thread, its weights samples.
 *
 * A sampled profile's samples and weights are taken as they are; of one with events each span
 * between two of them is a sample of the stack that was open.  The file is read twice: frames and
 * units may come after what needs them.
 *
 * Fails:   MIC_EFORMAT with profile and sample or event for what does not hold together.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_SPEEDSCOPE_H
#define MIC_IMPORT_SPEEDSCOPE_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_speedscope_result {
  uint64_t profiles, samples;
  uint64_t rounded; /* weights that are no whole number of their unit */
};

int mic_speedscope_read(struct mic_input *input, struct mic_writer *writer,
                        struct mic_speedscope_result *result, struct mic_error *err);
/* ffi:end */

#endif
