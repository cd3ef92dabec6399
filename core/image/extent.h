/*
 * extent.h - the piece of code around an address, as call-frame information bounds it.
 *
 * An FDE covers one function, or one part of a function that was split (NAME.cold); compilers and
 * assemblers write one for each.  So where no symbol is left its start stands for the function.
 * The FDE of a procedure linkage table covers many stubs and is no piece of code in this sense.
 *
 * Owns:    its indexes; the image is borrowed until it is freed.
 * Threads: one user at a time.
 */
#ifndef MIC_IMAGE_EXTENT_H
#define MIC_IMAGE_EXTENT_H

#include "image/fde.h"

struct mic_extents {
  struct mic_elf *elf; /* borrowed */
  struct mic_fde_index eh, debug;
  bool eh_read, debug_read; /* each on first need */
};

struct mic_extent {
  uint64_t start, end; /* ELF addresses */
};

/* The piece that covers the address: of .eh_frame, else of .debug_frame.  False when nothing
 * proves one. */
bool mic_extent_find(struct mic_extents *extents, uint64_t vaddr, struct mic_extent *out);
void mic_extents_free(struct mic_extents *extents);

#endif
