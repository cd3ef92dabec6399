/*
 * compile.h - one FDE's instructions into rows.
 *
 * A row says which rule holds from its pc on, up to the next row or the FDE's end.  An FDE whose
 * instructions are malformed gives one row that says so.
 */
#ifndef MIC_UNWIND_COMPILE_H
#define MIC_UNWIND_COMPILE_H

#include "image/cfi.h"
#include "unwind/rule.h"

struct mic_rows {        /* two arrays of one length: 6 bytes a row */
  MIC_VEC(uint32_t) pcs; /* address - the table's base */
  MIC_VEC(uint16_t) rules;
};

/* Appends the rows of an FDE that starts at `base` or above and ends within 4 GiB of it.  Takes the
 * instructions run off *work_left; when it is used up the FDE counts as malformed. */
void mic_compile_fde(const struct mic_cfi *cfi, const struct mic_cfi_fde *fde, uint64_t base,
                     struct mic_rules *rules, struct mic_rows *out, uint64_t *work_left);

#endif
