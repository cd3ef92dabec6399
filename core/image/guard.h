/*
 * guard.h - read a file through a mapping that outlives the file's shrinking.
 *
 * A page of a mapped file that no longer has a page in the file raises SIGBUS.  A guarded mapping
 * survives it: the handler puts a page of zeros there and marks the mapping damaged, so readers
 * that check every bound read nonsense once, ask mic_guard_damaged, and give an error.
 *
 * The handler is put in place with each guarded mapping where it is not.  A SIGBUS elsewhere goes
 * to the handler that was there before, or ends the process as ever.
 *
 * Owns:    a guard owns its mapping.
 * Threads: all of it may be used from any thread.
 */
#ifndef MIC_IMAGE_GUARD_H
#define MIC_IMAGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct mic_guard;

/* Maps size bytes (more than 0) of fd, read-only. */
int mic_guard_map(int fd, size_t size, const char *name, struct mic_guard **out,
                  struct mic_error *err);
void mic_guard_unmap(struct mic_guard *guard); /* NULL is fine */
const void *mic_guard_bytes(const struct mic_guard *guard);
bool mic_guard_damaged(const struct mic_guard *guard); /* some page was not in the file any more */

#endif
