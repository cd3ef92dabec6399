/*
 * legacy.h - read what came before pprof's own format, as `go tool pprof` still does.
 *
 * gperftools' CPU profiles (binary words), its heap profiles, and the texts of Go's debug=1: heap,
 * goroutine and its kin, mutex and block profiles.  What proves where an address was is the list of
 * mappings at the end; functions are known where a Go text has them behind its stacks.  The
 * addresses of callers are one below the return address.  Sampled heap profiles are scaled by their
 * rate, as pprof does it.
 *
 * The input is read twice, as names and mappings come after the stacks.
 *
 * Fails:   MIC_EFORMAT with the byte or the line.
 */
#ifndef MIC_IMPORT_LEGACY_H
#define MIC_IMPORT_LEGACY_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_legacy_result {
  uint64_t records;      /* stacks with their values */
  uint64_t zero_records; /* of which all values are 0: left out */
  uint64_t labels;       /* lines of labels, left out */
  uint64_t bad_lines, first_bad;
  const char *why;     /* of the first bad line */
  uint64_t cut_offset; /* where a binary profile ends within a record; 0: it does not */
};

int mic_legacy_read(struct mic_input *input, struct mic_writer *writer,
                    struct mic_legacy_result *result, struct mic_error *err);
/* ffi:end */

#endif
