/* elf_internal.h - what elf.c and elf_section.c share of an open image. */
#ifndef MIC_IMAGE_ELF_INTERNAL_H
#define MIC_IMAGE_ELF_INTERNAL_H

#include <elf.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "image/elf.h"
#include "image/guard.h"

struct elf_unpacked { /* a section that was decompressed */
  uint64_t index;
  uint8_t *bytes;
  size_t size;
};

struct mic_elf {
  const uint8_t *bytes;
  size_t size;
  struct mic_guard *guard; /* NULL for memory that the caller keeps */
  char *name;
  bool any_type; /* opened for its debug information: objects too */
  Elf64_Ehdr header;
  MIC_VEC(struct mic_elf_segment) segments;
  uint64_t eh_frame_vaddr, eh_frame_size; /* PT_GNU_EH_FRAME; size 0: none */
  uint64_t dynamic_offset, dynamic_size;  /* PT_DYNAMIC, in the file; size 0: none */
  uint8_t build_id[MIC_BUILD_ID_MAX];
  size_t build_id_size;
  uint64_t section_count, section_names; /* section_count 0: stripped */
  pthread_mutex_t lock;                  /* unpacked */
  MIC_VEC(struct elf_unpacked) unpacked;
};

/* size bytes at a file offset, or NULL when they are not in the file. */
static inline const uint8_t *mic_elf_bytes(const struct mic_elf *elf, uint64_t offset,
                                           uint64_t size) {
  if (offset > elf->size || size > elf->size - offset) return NULL;
  return elf->bytes + offset;
}

/* The header of section index; false when the table does not hold it. */
bool mic_elf_section_header(const struct mic_elf *elf, uint64_t index, Elf64_Shdr *out);
/* Without section headers: what PT_DYNAMIC says of .dynsym, .dynstr, .rela.dyn and .rela.plt. */
bool mic_elf_dynamic_section(const struct mic_elf *elf, const char *name,
                             struct mic_elf_section *out);
/* Finds out section_count and section_names from the header (and section 0, gABI chapter 4). */
void mic_elf_count_sections(struct mic_elf *elf);
void mic_elf_find_build_id(struct mic_elf *elf, const uint8_t *notes, uint64_t size,
                           uint64_t align);

#endif
