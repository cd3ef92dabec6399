/*
 * renaming.h - what a location meant and what a lookup gives for it: the fuller of both.
 *
 * A name that was proven is never lost: new functions take the place of old ones only where they
 * have all of those, with their lines.
 *
 * Threads: one user at a time.
 */
#ifndef MIC_SYMBOLIZE_RENAMING_H
#define MIC_SYMBOLIZE_RENAMING_H

#include <stdbool.h>

#include "capture/reader.h"
#include "image/symbols.h"
#include "target/meanings.h"

struct mic_renaming {
  const struct mic_capture *capture; /* borrowed */
  struct mic_meanings meanings;
  uint64_t line_rows;                                /* of the capture's lines */
  const uint32_t *location, *function, *file, *line; /* its columns */
  const uint32_t *linkage_name, *decl_file;          /* of its functions */
};

void mic_renaming_begin(struct mic_renaming *renaming, const struct mic_capture *capture);
/* The location means these functions, innermost first, or what it meant before.  True when the
 * function that holds its code has a name. */
bool mic_renaming_add(struct mic_renaming *renaming, uint32_t location, uint32_t module,
                      const struct mic_symbol *frames, size_t count);
void mic_renaming_free(struct mic_renaming *renaming);

#endif
