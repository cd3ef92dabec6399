/*
 * symbols_table.h - the symbols of an image that stand for code, by address.
 *
 * A symbol with a size covers [value, value + size).  One without covers its own address and
 * nothing that follows.  Where several cover an address the smallest wins; of several with the
 * same range: global before weak before local, functions before untyped, fewer leading
 * underscores, the shorter name, then the order of their bytes.
 *
 * Owns:    its entries; names are borrowed from the images, which must outlive it.
 * Threads: one user at a time.
 */
#ifndef MIC_IMAGE_SYMBOLS_TABLE_H
#define MIC_IMAGE_SYMBOLS_TABLE_H

#include <stdbool.h>

#include "base/map.h"
#include "image/elf.h"
#include "image/symbols_cover.h"

struct mic_symtab_entry {
  uint64_t value, size;
  uint32_t name;    /* offset in its strings */
  uint16_t strings; /* index of mic_symtab.strings */
  uint8_t binding;  /* 0 global, 1 weak, 2 local: less is better */
  uint8_t untyped;  /* 1: STT_NOTYPE */
};

struct mic_symtab_strings {
  const char *bytes;
  size_t size;
};

struct mic_symtab {
  MIC_VEC(struct mic_symtab_entry) entries;
  MIC_VEC(struct mic_symtab_strings) strings;
  struct mic_arena names; /* of what is named here: PLT stubs */
  struct mic_cover cover;
  struct mic_map exact; /* address -> entry, for those without a size */
};

/* Adds the code symbols of one table (".symtab" with ".strtab").  `code` is the image whose
 * segments say what is executable: a separate debug file's own say nothing. */
void mic_symtab_add(struct mic_symtab *table, struct mic_elf *elf, const char *section,
                    const char *strings, const struct mic_elf *code, struct mic_error *err);
/* Adds NAME@plt for each PLT stub whose jump goes through a slot that a relocation fills with
 * NAME (symbols_plt.c). */
void mic_symtab_add_plt(struct mic_symtab *table, struct mic_elf *elf);
void mic_symtab_add_entry(struct mic_symtab *table, const struct mic_symtab_entry *entry);
uint16_t mic_symtab_add_strings(struct mic_symtab *table, const void *bytes, size_t size);
/* After the last addition and before the first lookup. */
void mic_symtab_finish(struct mic_symtab *table);
/* The entry that covers the address, or MIC_NONE.  *sized is false when it is one without size. */
uint32_t mic_symtab_find(const struct mic_symtab *table, uint64_t vaddr, bool *sized);
/* Is a the better name of two entries with the same range? */
bool mic_symtab_is_better(const struct mic_symtab *table, uint32_t a, uint32_t b);
/* The entry's name and its length, not NUL-terminated. */
const char *mic_symtab_name(const struct mic_symtab *table, uint32_t entry, size_t *size);
void mic_symtab_free(struct mic_symtab *table);

#endif
