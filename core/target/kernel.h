/*
 * kernel.h - names of the running kernel's functions, for recordings that were made under it.
 *
 * /proc/kallsyms names the functions of the kernel that runs now, at the addresses they have now.
 * That is proven to hold for a recording's addresses by the kernel's build ID, which tells its
 * code, and by the address of _text, which tells where it was put. Modules are loaded anew and
 * elsewhere, so their functions are left out.
 *
 * Owns:    the names own copies.
 * Threads: immutable once open.
 */
#ifndef MIC_TARGET_KERNEL_H
#define MIC_TARGET_KERNEL_H

#include <stddef.h>
#include <stdint.h>

struct mic_kernel_names;

/* NULL, and why in *problem (static text), when the running kernel is not that one. */
struct mic_kernel_names *mic_kernel_names_open(const uint8_t *build_id, size_t size,
                                               uint64_t text_address, const char **problem);
void mic_kernel_names_free(struct mic_kernel_names *names); /* NULL is fine */
/* The function that an address is in, or NULL. */
const char *mic_kernel_names_find(const struct mic_kernel_names *names, uint64_t address);

#endif
