/*
 * cfi.h - the entries of .eh_frame and .debug_frame: CIEs and FDEs.
 *
 * Reads one entry at a time out of hostile bytes, with bounded work.  DWARF 5 section 6.4, the
 * LSB's section 10.6 for .eh_frame's differences.
 */
#ifndef MIC_IMAGE_CFI_H
#define MIC_IMAGE_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct mic_cfi { /* a section */
  const uint8_t *bytes;
  size_t size;
  uint64_t vaddr;
  bool is_debug; /* .debug_frame */
};

struct mic_cfi_cie {
  const uint8_t *program; /* initial instructions */
  size_t program_size;
  uint64_t code_align;
  int64_t data_align;
  uint8_t encoding; /* of the FDEs' addresses, DW_EH_PE_ */
  bool augmented;   /* 'z': FDEs have augmentation data */
  bool signal;      /* 'S' */
};

struct mic_cfi_fde {
  uint64_t start, end; /* ELF addresses */
  const uint8_t *program;
  size_t program_size;
  struct mic_cfi_cie cie;
};

enum mic_cfi_kind {
  MIC_CFI_BAD = 0, /* the section cannot be read from here on */
  MIC_CFI_END = 1,
  MIC_CFI_CIE = 2,
  MIC_CFI_FDE = 3
};
struct mic_cfi_entry {
  enum mic_cfi_kind kind;
  size_t next; /* offset of the entry after it */
  size_t body; /* offset past length and id */
  size_t cie;  /* MIC_CFI_FDE: offset of its CIE */
};

struct mic_cfi_entry mic_cfi_entry_at(const struct mic_cfi *cfi, size_t offset);
/* False when the FDE or its CIE is malformed, or uses what is not supported. */
bool mic_cfi_read_fde(const struct mic_cfi *cfi, const struct mic_cfi_entry *entry,
                      struct mic_cfi_fde *out);
/* A pointer as DW_EH_PE_ `encoding` says (LSB 10.5.1), absolute or relative to its own place in
 * cfi; other bases and indirection are refused.  False also when the bytes end. */
bool mic_cfi_read_pointer(struct mic_cursor *c, const struct mic_cfi *cfi, uint8_t encoding,
                          uint64_t *out);

#endif
