/*
 * kernel.h - names of the running kernel's functions, for recordings that were made under it.
 *
 * /proc/kallsyms names the functions of the kernel that runs now, and of the modules it has loaded,
 * at the addresses they have now.  That is proven to hold for a recording's addresses by the
 * kernel's build ID, which tells its code, and by the address of one of its symbols, which tells
 * where it was put.  Modules are loaded anew and elsewhere, so each is proven by its own build ID
 * and by where it begins.
 *
 * Owns:    the names own copies; those of modules are owned by the kernel's.
 * Threads: immutable once open.
 */
#ifndef MIC_TARGET_KERNEL_H
#define MIC_TARGET_KERNEL_H

#include <stddef.h>
#include <stdint.h>

struct mic_kernel_names;

struct mic_kernel_text { /* where a recording says that the kernel ran */
  const uint8_t *build_id;
  size_t build_id_size;
  const char *symbol; /* "_text" or "_stext" */
  uint64_t address;   /* of it */
  const char *root;   /* where proc and sys lie; "" but in tests */
};

/* NULL, and why in *problem (static text), when the running kernel is not that one. */
struct mic_kernel_names *mic_kernel_names_open(const struct mic_kernel_text *text,
                                               const char **problem);
void mic_kernel_names_free(struct mic_kernel_names *names); /* the kernel's; NULL is fine */

struct mic_kernel_module { /* as a recording has it */
  const char *path;        /* "[ext4]", or its file's */
  const uint8_t *build_id;
  size_t build_id_size;
  uint64_t address, size; /* of its code */
};

/* Names of a module by offset from where it begins, borrowed from the kernel's, or NULL and why. */
struct mic_kernel_names *mic_kernel_names_module(struct mic_kernel_names *kernel,
                                                 const struct mic_kernel_module *module,
                                                 const char **problem);
/* The function that an address is in, or NULL. */
const char *mic_kernel_names_find(const struct mic_kernel_names *names, uint64_t address);

#endif
