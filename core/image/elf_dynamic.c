/*
 * elf_dynamic.c - what the dynamic linker is told, under the names that sections would have.
 *
 * An image whose section headers were taken off (sstrip, packers) still says by PT_DYNAMIC where
 * its dynamic symbols, their strings and its relocations are (gABI, chapter 5).  How many symbols
 * there are only a hash table tells.
 */
#include "base/cursor.h"
#include "image/elf_internal.h"

struct dynamic { /* by DT_*; 0: absent */
  uint64_t symbols, strings, strings_size, hash, gnu_hash;
  uint64_t rela, rela_size, jmprel, jmprel_size;
};

static bool read_dynamic(const struct mic_elf *elf, struct dynamic *out) {
  const uint8_t *bytes = mic_elf_bytes(elf, elf->dynamic_offset, elf->dynamic_size);
  *out = (struct dynamic){0};
  if (!bytes || elf->dynamic_size == 0) return false;
  for (uint64_t i = 0; i < elf->dynamic_size / sizeof(Elf64_Dyn); i++) {
    Elf64_Dyn d;
    memcpy(&d, bytes + i * sizeof d, sizeof d);
    switch (d.d_tag) {
    case DT_NULL: return true;
    case DT_SYMTAB: out->symbols = d.d_un.d_ptr; break;
    case DT_STRTAB: out->strings = d.d_un.d_ptr; break;
    case DT_STRSZ: out->strings_size = d.d_un.d_val; break;
    case DT_HASH: out->hash = d.d_un.d_ptr; break;
    case DT_GNU_HASH: out->gnu_hash = d.d_un.d_ptr; break;
    case DT_RELA: out->rela = d.d_un.d_ptr; break;
    case DT_RELASZ: out->rela_size = d.d_un.d_val; break;
    case DT_JMPREL: out->jmprel = d.d_un.d_ptr; break;
    case DT_PLTRELSZ: out->jmprel_size = d.d_un.d_val; break;
    default: break;
    }
  }
  return true;
}

static struct mic_cursor cursor_at(const struct mic_elf *elf, uint64_t vaddr) {
  size_t left = 0;
  const uint8_t *bytes = vaddr ? mic_elf_at(elf, vaddr, &left) : NULL;
  return bytes ? mic_cursor(bytes, left) : mic_cursor("", 0);
}

/* DT_GNU_HASH: the last chain ends with the last symbol; those before `first` are in no chain. */
static uint64_t count_by_gnu_hash(const struct mic_elf *elf, uint64_t vaddr) {
  struct mic_cursor c = cursor_at(elf, vaddr);
  uint32_t buckets = mic_cursor_u32(&c), first = mic_cursor_u32(&c), words = mic_cursor_u32(&c);
  uint32_t last = 0;
  mic_cursor_u32(&c); /* a shift */
  mic_cursor_take(&c, (uint64_t)words * 8);
  for (uint32_t i = 0; i < buckets && !c.bad; i++) {
    uint32_t chain = mic_cursor_u32(&c);
    if (chain > last) last = chain;
  }
  if (c.bad || last < first) return c.bad ? 0 : first;
  mic_cursor_take(&c, (uint64_t)(last - first) * 4);
  for (uint64_t at = last; !c.bad; at++)
    if (mic_cursor_u32(&c) & 1) return c.bad ? 0 : at + 1;
  return 0;
}

static uint64_t count_symbols(const struct mic_elf *elf, const struct dynamic *d) {
  if (!d->hash) return count_by_gnu_hash(elf, d->gnu_hash);
  struct mic_cursor c = cursor_at(elf, d->hash);
  mic_cursor_u32(&c); /* buckets */
  uint32_t count = mic_cursor_u32(&c);
  return c.bad ? 0 : count;
}

bool mic_elf_dynamic_section(const struct mic_elf *elf, const char *name,
                             struct mic_elf_section *out) {
  struct dynamic d;
  uint64_t vaddr = 0, size = 0;
  if (!read_dynamic(elf, &d)) return false;
  if (strcmp(name, ".dynsym") == 0) {
    vaddr = d.symbols;
    size = count_symbols(elf, &d) * sizeof(Elf64_Sym);
  } else if (strcmp(name, ".dynstr") == 0) {
    vaddr = d.strings;
    size = d.strings_size;
  } else if (strcmp(name, ".rela.dyn") == 0) {
    vaddr = d.rela;
    size = d.rela_size;
  } else if (strcmp(name, ".rela.plt") == 0) {
    vaddr = d.jmprel;
    size = d.jmprel_size;
  }
  struct mic_cursor c = cursor_at(elf, vaddr);
  if (size == 0 || size > mic_cursor_left(&c)) return false;
  *out = (struct mic_elf_section){.bytes = c.at, .size = size, .vaddr = vaddr};
  return true;
}
