/* symbols_table.c - read symbol tables, choose among aliases, find by address. */
#include "image/symbols_table.h"

#include <elf.h>
#include <string.h>

uint16_t mic_symtab_add_strings(struct mic_symtab *table, const void *bytes, size_t size) {
  *mic_vec_push(&table->strings) = (struct mic_symtab_strings){bytes, size};
  return (uint16_t)(table->strings.count - 1); /* a table or two an image: never near 65,535 */
}

void mic_symtab_add_entry(struct mic_symtab *table, const struct mic_symtab_entry *entry) {
  if (table->entries.count >= MIC_NONE) return; /* ids are u32 */
  *mic_vec_push(&table->entries) = *entry;
}

/* Does the symbol stand for code of this image? */
static bool stands_for_code(const Elf64_Sym *sym, const struct mic_elf *code) {
  unsigned type = ELF64_ST_TYPE(sym->st_info);
  if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON)
    return false;
  if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
  return type == STT_NOTYPE && mic_elf_is_code(code, sym->st_value, 1);
}

void mic_symtab_add(struct mic_symtab *table, struct mic_elf *elf, const char *section,
                    const char *strings, const struct mic_elf *code, struct mic_error *err) {
  struct mic_elf_section symbols, text;
  if (!mic_elf_section(elf, section, &symbols, err)) return;
  if (!mic_elf_section(elf, strings, &text, err)) return;
  uint16_t where = mic_symtab_add_strings(table, text.bytes, text.size);
  size_t count = symbols.size / sizeof(Elf64_Sym);
  mic_vec_reserve(&table->entries, table->entries.count + count);
  for (size_t i = 1; i < count; i++) { /* 0 is the null symbol */
    Elf64_Sym sym;
    memcpy(&sym, symbols.bytes + i * sizeof sym, sizeof sym);
    if (sym.st_name >= text.size || text.bytes[sym.st_name] == 0) continue;
    if (!stands_for_code(&sym, code)) continue;
    unsigned binding = ELF64_ST_BIND(sym.st_info);
    bool wraps = sym.st_size > UINT64_MAX - sym.st_value; /* then its size proves nothing */
    mic_symtab_add_entry(table, &(struct mic_symtab_entry){
                                  .value = sym.st_value,
                                  .size = wraps ? 0 : sym.st_size,
                                  .name = sym.st_name,
                                  .strings = where,
                                  .binding = binding == STB_LOCAL  ? 2
                                             : binding == STB_WEAK ? 1
                                                                   : 0,
                                  .untyped = ELF64_ST_TYPE(sym.st_info) == STT_NOTYPE,
                                });
  }
}

const char *mic_symtab_name(const struct mic_symtab *table, uint32_t entry, size_t *size) {
  const struct mic_symtab_entry *e = &table->entries.at[entry];
  const struct mic_symtab_strings *s = &table->strings.at[e->strings];
  /* Bounded each time: the strings are a mapped file's, which may change. */
  *size = strnlen(s->bytes + e->name, s->size - e->name);
  return s->bytes + e->name;
}

static size_t leading_underscores(const char *name, size_t size) {
  size_t n = 0;
  while (n < size && name[n] == '_') n++;
  return n;
}

bool mic_symtab_is_better(const struct mic_symtab *table, uint32_t a, uint32_t b) {
  const struct mic_symtab_entry *ea = &table->entries.at[a], *eb = &table->entries.at[b];
  if (ea->binding != eb->binding) return ea->binding < eb->binding;
  if (ea->untyped != eb->untyped) return ea->untyped < eb->untyped;
  size_t a_size, b_size;
  const char *an = mic_symtab_name(table, a, &a_size), *bn = mic_symtab_name(table, b, &b_size);
  size_t au = leading_underscores(an, a_size), bu = leading_underscores(bn, b_size);
  if (au != bu) return au < bu;
  if (a_size != b_size) return a_size < b_size;
  return memcmp(an, bn, a_size) < 0;
}

/* Leaves the best of the entries with one value and size: order[from, to) shares the value. */
static void take_group(struct mic_symtab *table, const uint32_t *order, size_t count,
                       struct mic_cover_range *ranges, size_t *range_count) {
  uint64_t value = table->entries.at[order[0]].value;
  size_t first = *range_count;
  for (size_t i = 0; i < count; i++) {
    uint32_t id = order[i];
    uint64_t size = table->entries.at[id].size;
    if (size == 0) {
      uint32_t had = mic_map_get(&table->exact, value, 0);
      if (had == MIC_NONE || mic_symtab_is_better(table, id, had))
        mic_map_put(&table->exact, value, 0, id);
      continue;
    }
    /* Aliases mostly have one size, so the newest range is the one to compare with; a hostile
     * table with many sizes at one value only leaves more ranges to the cover. */
    struct mic_cover_range *last = *range_count > first ? &ranges[*range_count - 1] : NULL;
    if (last && last->end - last->start == size) {
      if (mic_symtab_is_better(table, id, last->id)) last->id = id;
    } else {
      ranges[(*range_count)++] = (struct mic_cover_range){value, value + size, id, 0};
    }
  }
}

void mic_symtab_finish(struct mic_symtab *table) {
  size_t count = table->entries.count, range_count = 0;
  uint64_t *key = mic_alloc((count + 1) * sizeof *key);
  uint32_t *order = mic_alloc((count + 1) * sizeof *order);
  struct mic_cover_range *ranges = mic_alloc((count + 1) * sizeof *ranges);
  for (size_t i = 0; i < count; i++) {
    key[i] = table->entries.at[i].size;
    order[i] = (uint32_t)i;
  }
  mic_sort_by_key(order, key, count); /* by size first, so that one value's sizes are in order */
  for (size_t i = 0; i < count; i++) key[i] = table->entries.at[i].value;
  mic_sort_by_key(order, key, count);
  for (size_t from = 0, to; from < count; from = to) {
    for (to = from + 1; to < count && key[order[to]] == key[order[from]]; to++) {
    }
    take_group(table, order + from, to - from, ranges, &range_count);
  }
  mic_cover_build(&table->cover, ranges, range_count);
  free(ranges);
  free(order);
  free(key);
}

uint32_t mic_symtab_find(const struct mic_symtab *table, uint64_t vaddr, bool *sized) {
  uint32_t entry = mic_cover_find(&table->cover, vaddr);
  *sized = entry != MIC_NONE;
  return *sized ? entry : mic_map_get(&table->exact, vaddr, 0);
}

void mic_symtab_free(struct mic_symtab *table) {
  mic_vec_free(&table->entries);
  mic_vec_free(&table->strings);
  mic_arena_free(&table->names);
  mic_cover_free(&table->cover);
  mic_map_free(&table->exact);
}
