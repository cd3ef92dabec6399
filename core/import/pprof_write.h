/*
 * pprof_write.h - a capture as a pprof profile, for `go tool pprof` and all that read its files.
 *
 * Samples of the same thread, stack and labels are added up, as the format has no times.  Each
 * source is a value of a sample; one that is taken by a period also has a count of samples.
 * Threads and processes are labels (thread, tid, process, pid), and a stack that ends short has
 * its reason in brackets as outermost frame.  Addresses are those of the ELF file: each module is
 * mapped at 0.
 *
 * Fails:   MIC_ELIMIT for a sum of more than 2^63 - 1, which the format cannot hold.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_PPROF_WRITE_H
#define MIC_IMPORT_PPROF_WRITE_H

#include "base/error.h"
#include "capture/reader.h"
#include "import/output.h"

/* ffi:begin */
int mic_pprof_write(const struct mic_capture *cap, struct mic_output *output,
                    struct mic_error *err);
/* ffi:end */

/* The comment by which the reader knows a file of ours again. */
#define MIC_PPROF_MARK "written by microscope"
/* And the one that says that stacks without a reason are not known to be whole. */
/* "period of NAME: N", of all but the one that the format has a place for. */
#define MIC_PPROF_PERIOD_OF "period of "
#define MIC_PPROF_UNSTATED "where stacks end is not stated"

#endif
