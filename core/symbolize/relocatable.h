/*
 * relocatable.h - a kernel module's file as an image: sections placed, debug information relocated.
 *
 * A .ko is a relocatable object: its sections have no addresses, and its debug information holds
 * zeros where relocations belong.  What is made of it is an ELF image with .text at a known
 * address, symbols and DWARF for it, and neither a build ID nor links to other files.
 *
 * The kernel puts a module's executable sections one after the other, in their order in the file,
 * those of initialisation elsewhere (kernel/module/main.c, layout_sections).  So .text begins where
 * the module's code does when it is the first of them; where it is not, that is an error.
 *
 * Owns:    the descriptor that is made is the caller's.
 * Fails:   MIC_EFORMAT, MIC_ELIMIT, MIC_EUNSUPPORTED.
 * Threads: no state.
 */
#ifndef MIC_SYMBOLIZE_RELOCATABLE_H
#define MIC_SYMBOLIZE_RELOCATABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mic_relocated {
  int fd;
  uint64_t address, size; /* of .text in the image */
};

/* fd is the file's, borrowed; it is not changed. */
int mic_relocatable_image(int fd, const char *name, struct mic_relocated *out,
                          struct mic_error *err);
/* What a file of xz, zstd or gzip holds, as a file in memory; -1: it is none, or *err. */
int mic_relocatable_unpack(int fd, const char *name, struct mic_error *err);

#endif
