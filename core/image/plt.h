/* plt.h - stubs of procedure linkage tables, known by their instructions. */
#ifndef MIC_IMAGE_PLT_H
#define MIC_IMAGE_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include "image/elf.h"

/* vaddr is in a stub of a procedure linkage table, of the forms that GNU ld and lld write (lld
 * gives them no call-frame information).  *pushed is what lies on the stack above the return
 * address. */
bool mic_plt_is_stub(const struct mic_elf *elf, uint64_t vaddr, uint64_t *pushed);

#endif
