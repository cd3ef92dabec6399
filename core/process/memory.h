/*
 * memory.h - read memory of another process.
 *
 * Fails:   MIC_EGONE, MIC_EPERM (ptrace access), MIC_ESYS.  A part that is not mapped ends the
 *          read: *got says how much came before it, 0 with MIC_EFORMAT when nothing did.
 * Threads: no state.
 */
#ifndef MIC_PROCESS_MEMORY_H
#define MIC_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Read [address, address + size) of the process as far as it is readable: page by page, so that
 * *got is exact to the first page that is not. */
int mic_memory_read(uint32_t pid, uint64_t address, void *to, size_t size, size_t *got,
                    struct mic_error *err);

#endif
