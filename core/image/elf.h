/*
 * elf.h - an ELF image mapped read-only: segments, sections, build ID.
 *
 * Everything in it is hostile: each offset is checked when it is read.  A file that shrinks while
 * it is mapped does not end the process: the missing pages read as zeros and mic_elf_damaged says
 * so (guard.h).
 *
 * Owns:    mic_elf owns its mapping; what it hands out is borrowed from it.
 * Fails:   MIC_EFORMAT with the offset, MIC_ESYS.
 * Threads: immutable once open; share it freely.
 */
#ifndef MIC_IMAGE_ELF_H
#define MIC_IMAGE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { MIC_BUILD_ID_MAX = 64 }; /* GNU build IDs have 8 to 20 bytes; lld's longest is 20 */

struct mic_elf_segment { /* one PT_LOAD */
  uint64_t vaddr, memory_size;
  uint64_t offset, file_size;
  uint32_t flags; /* PF_X and its kin */
};

struct mic_elf_section {
  const uint8_t *bytes; /* borrowed; decompressed where it was SHF_COMPRESSED or .zdebug_ */
  size_t size;
  uint64_t vaddr;
};

struct mic_elf;

/* Only 64-bit little-endian x86-64 programs and libraries open; others say what they are.
 * Maps the file behind fd (borrowed; may be closed after).  name is for messages. */
int mic_elf_open(int fd, const char *name, struct mic_elf **out, struct mic_error *err);
/* As mic_elf_open for a file of debug information: relocatable objects (.dwo, .dwp) open too. */
int mic_elf_open_debug(int fd, const char *name, struct mic_elf **out, struct mic_error *err);
/* As mic_elf_open over memory that the caller keeps: the vDSO, a tape, a fuzzer. */
int mic_elf_open_memory(const void *bytes, size_t size, const char *name, struct mic_elf **out,
                        struct mic_error *err);
void mic_elf_close(struct mic_elf *elf); /* NULL is fine */
/* The vDSO of this process: the running kernel has one for all of 64 bits.  NULL: none. */
const void *mic_elf_own_vdso(size_t *size);

size_t mic_elf_build_id(const struct mic_elf *elf, const uint8_t **bytes); /* size; 0: none */
/* Some page was not in the file any more: what was read since it opened proves nothing. */
bool mic_elf_damaged(const struct mic_elf *elf);
const char *mic_elf_name(const struct mic_elf *elf);
/* The memory that PT_GNU_EH_FRAME names; false when there is none.  Needs no section headers. */
bool mic_elf_eh_frame_header(const struct mic_elf *elf, uint64_t *vaddr, uint64_t *size);
uint64_t mic_elf_entry(const struct mic_elf *elf);
uint16_t mic_elf_type(const struct mic_elf *elf); /* ET_EXEC, ET_DYN */
const struct mic_elf_segment *mic_elf_segments(const struct mic_elf *elf, size_t *count);
/* False when the image has no such section.  A malformed or undecompressable one is an error
 * in *err and false (err->code stays MIC_OK when it is just absent).  An image without section
 * headers has .dynsym, .dynstr, .rela.dyn and .rela.plt as its dynamic linker finds them. */
bool mic_elf_section(struct mic_elf *elf, const char *name, struct mic_elf_section *out,
                     struct mic_error *err);
/* Whether the file has such a section with bytes of its own; nothing is decompressed to see it. */
bool mic_elf_has_section(struct mic_elf *elf, const char *name);
/* The bytes of the image at an ELF address, from its PT_LOAD segments; NULL when not in the file.
 * *left is how many follow in the segment. */
const uint8_t *mic_elf_at(const struct mic_elf *elf, uint64_t vaddr, size_t *left);
/* The address is in an executable segment, and so are the size - 1 that follow it. */
bool mic_elf_is_code(const struct mic_elf *elf, uint64_t vaddr, uint64_t size);
/* The ELF address that a file offset is loaded at, through the PT_LOAD (of those with the flags)
 * that holds it, or where there are none at all through a section; false when none does.  The bias
 * belongs to a segment, not to a file.  Segments are mapped by pages and two can share one: an
 * offset that begins a segment's first page means that segment, so the file offset of a mapping's
 * start gives the mapping's bias. */
bool mic_elf_vaddr_of_offset(const struct mic_elf *elf, uint64_t offset, uint32_t flags,
                             uint64_t *vaddr);

#endif
