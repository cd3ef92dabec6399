/*
 * rewrite.h - write a capture that has what another one has, with other rows in some tables.
 *
 * What is kept is copied block by block as it is stored, also tables and columns that this version
 * does not know.  Rows that are then appended follow the kept ones, so ids that point at those stay
 * what they were; a replaced table begins empty.
 *
 * Owns:    the writer owns copies of all; the file and the open capture are borrowed for the call.
 * Fails:   as the writer; MIC_EFORMAT when the file is not what was opened, MIC_EVERSION when a
 *          replaced table has columns that this version does not know, MIC_ESTATE when cancelled.
 * Threads: one user at a time; *cancel may be set by any.
 */
#ifndef MIC_CAPTURE_REWRITE_H
#define MIC_CAPTURE_REWRITE_H

#include <stdatomic.h>

#include "capture/reader.h"
#include "capture/writer.h"

struct mic_rewrite {
  int fd;                            /* of the capture, and what it was opened as */
  const struct mic_capture *capture; /* the same, open */
  const enum mic_table_id *replaced; /* tables whose rows are not kept */
  uint32_t replaced_count;
  const atomic_bool *cancel; /* ends the copying when set; may be NULL */
};

/* A writer for path that has begun with the capture's blocks. */
int mic_rewrite_open(const struct mic_rewrite *rewrite, const char *path, struct mic_writer **out,
                     struct mic_error *err);

#endif
