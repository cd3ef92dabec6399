/*
 * fde.h - which FDE covers an address.
 *
 * .eh_frame_hdr's binary search table is used in place where it has the usual form; it is checked
 * as it is used, and as a whole before anything is called absent.  Otherwise, and for
 * .debug_frame, the section is scanned once.
 */
#ifndef MIC_IMAGE_FDE_H
#define MIC_IMAGE_FDE_H

#include "base/alloc.h"
#include "base/error.h"
#include "image/cfi.h"
#include "image/elf.h"

struct mic_fde_place {
  uint64_t start; /* ELF address */
  uint64_t entry; /* offset in the section */
};

struct mic_fde_index {
  struct mic_elf *elf; /* borrowed */
  struct mic_cfi cfi;
  const uint8_t *header; /* .eh_frame_hdr's table, in place; NULL: not used */
  uint64_t header_vaddr;
  size_t header_count;
  bool header_checked; /* it is sorted as a whole */
  bool scanned;
  bool damaged; /* the scan could not read all: what is not found may be there all the same */
  MIC_VEC(struct mic_fde_place) places; /* of the scan, by start */
};

enum mic_fde_found { MIC_FDE_ABSENT = 0, MIC_FDE_FOUND = 1, MIC_FDE_DAMAGED = 2 };

void mic_fde_index_eh(struct mic_fde_index *index, struct mic_elf *elf);
void mic_fde_index_debug(struct mic_fde_index *index, struct mic_elf *elf);
void mic_fde_index_free(struct mic_fde_index *index);
/* *entry is the FDE's offset in the section: what it is known by. */
enum mic_fde_found mic_fde_find(struct mic_fde_index *index, uint64_t vaddr,
                                struct mic_cfi_fde *out, size_t *entry);
/* Every FDE in order of start; false past the last.  Makes the whole index trustworthy first when
 * called with 0. */
size_t mic_fde_count(struct mic_fde_index *index);
bool mic_fde_get(struct mic_fde_index *index, size_t i, struct mic_cfi_fde *out);

#endif
