/*
 * pprof_read.h - a pprof profile as the rows of a capture.
 *
 * The file is read twice, as samples come before what they name: first types, mappings, functions,
 * locations and strings, then the samples, one at a time.  Each value that is not 0 is a sample of
 * its type's source (docs/internals/formats.md).
 *
 * Fails:   MIC_EFORMAT with the record and its offset in the decompressed file: ids that are there
 *          twice or not at all, strings that are not there, negative values.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_PPROF_READ_H
#define MIC_IMPORT_PPROF_READ_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_pprof_result {
  uint64_t samples;      /* of the file */
  uint64_t zero_samples; /* all of whose values are 0: they have no row */
  uint32_t types;
};

int mic_pprof_read(struct mic_input *input, struct mic_writer *writer,
                   struct mic_pprof_result *result, struct mic_error *err);
/* ffi:end */

#endif
