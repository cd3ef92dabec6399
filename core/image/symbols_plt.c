/*
 * symbols_plt.c - names for PLT stubs.
 *
 * No symbol stands for a stub.  What proves its name is its own jump: through a slot of the GOT
 * that a relocation fills with a symbol.  A stub of a lazy PLT with CET pushes the index of its
 * relocation instead.  IRELATIVE relocations (static programs) hold the address of the resolver,
 * whose symbol is the function's.  (x86-64 psABI, "Procedure Linkage Table".)
 */
#include <elf.h>
#include <string.h>

#include "base/cursor.h"
#include "base/map.h"
#include "image/symbols_table.h"

struct plt {
  struct mic_symtab *table;
  struct mic_elf *elf;
  struct mic_elf_section symbols, names; /* .dynsym, .dynstr */
  struct mic_elf_section lazy;           /* .rela.plt, whose indexes lazy stubs push */
  struct mic_map slots;                  /* GOT slot -> index of targets */
  MIC_VEC(Elf64_Rela) targets;
  struct mic_map resolvers; /* address -> entry of table; filled when first needed */
  MIC_VEC(char) text;       /* the names made; offsets are entry names */
  MIC_VEC(struct mic_symtab_entry) stubs;
};

static bool names_a_target(const Elf64_Rela *rela) {
  uint64_t type = ELF64_R_TYPE(rela->r_info);
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
}

static void read_relocations(struct plt *plt, const struct mic_elf_section *section) {
  for (size_t i = 0; i < section->size / sizeof(Elf64_Rela); i++) {
    Elf64_Rela rela;
    memcpy(&rela, section->bytes + i * sizeof rela, sizeof rela);
    if (!names_a_target(&rela)) continue;
    mic_map_put(&plt->slots, rela.r_offset, 0, (uint32_t)plt->targets.count);
    *mic_vec_push(&plt->targets) = rela;
  }
}

/* Decodes one stub; false when it is none.  *slot is the GOT slot, or *index the relocation. */
static bool decode_stub(const uint8_t *bytes, size_t size, uint64_t vaddr, uint64_t *slot,
                        uint32_t *index) {
  struct mic_cursor c = mic_cursor(bytes, size);
  *index = MIC_NONE;
  if (size > 4 && memcmp(bytes, "\xf3\x0f\x1e\xfa", 4) == 0) mic_cursor_take(&c, 4); /* endbr64 */
  if (mic_cursor_left(&c) > 5 && c.at[0] == 0x68) { /* push imm32 */
    mic_cursor_take(&c, 1);
    *index = mic_cursor_u32(&c);
    if (mic_cursor_left(&c) > 0 && c.at[0] == 0xf2) mic_cursor_take(&c, 1); /* bnd */
    return mic_cursor_u8(&c) == 0xe9; /* jmp rel32, to the first stub */
  }
  if (mic_cursor_left(&c) > 0 && c.at[0] == 0xf2) mic_cursor_take(&c, 1);
  uint8_t opcode = mic_cursor_u8(&c), modrm = mic_cursor_u8(&c);
  if (opcode != 0xff || modrm != 0x25) return false; /* jmp *rel32(%rip) */
  int32_t distance = (int32_t)mic_cursor_u32(&c);
  *slot = vaddr + mic_cursor_offset(&c) + (uint64_t)(int64_t)distance;
  return !c.bad;
}

/* The best entry at each address that an IRELATIVE relocation names. */
static void find_resolvers(struct plt *plt) {
  struct mic_map wanted = {0};
  for (size_t i = 0; i < plt->targets.count; i++)
    if (ELF64_R_TYPE(plt->targets.at[i].r_info) == R_X86_64_IRELATIVE)
      mic_map_put(&wanted, (uint64_t)plt->targets.at[i].r_addend, 0, 0);
  for (uint32_t id = 0; wanted.count > 0 && id < plt->table->entries.count; id++) {
    uint64_t value = plt->table->entries.at[id].value;
    if (mic_map_get(&wanted, value, 0) == MIC_NONE) continue;
    uint32_t had = mic_map_get(&plt->resolvers, value, 0);
    if (had == MIC_NONE || mic_symtab_is_better(plt->table, id, had))
      mic_map_put(&plt->resolvers, value, 0, id);
  }
  mic_map_free(&wanted);
}

static const char *target_name(struct plt *plt, const Elf64_Rela *rela, size_t *size) {
  if (ELF64_R_TYPE(rela->r_info) == R_X86_64_IRELATIVE) {
    uint32_t entry = mic_map_get(&plt->resolvers, (uint64_t)rela->r_addend, 0);
    return entry == MIC_NONE ? NULL : mic_symtab_name(plt->table, entry, size);
  }
  Elf64_Sym sym;
  uint64_t index = ELF64_R_SYM(rela->r_info);
  if (index == 0 || index >= plt->symbols.size / sizeof sym) return NULL;
  memcpy(&sym, plt->symbols.bytes + index * sizeof sym, sizeof sym);
  if (sym.st_name == 0 || sym.st_name >= plt->names.size) return NULL;
  *size = strnlen((const char *)plt->names.bytes + sym.st_name, plt->names.size - sym.st_name);
  return (const char *)plt->names.bytes + sym.st_name;
}

static void append(struct plt *plt, const char *bytes, size_t size) {
  mic_vec_reserve(&plt->text, plt->text.count + size);
  memcpy(plt->text.at + plt->text.count, bytes, size);
  plt->text.count += size;
}

static void name_stub(struct plt *plt, uint64_t vaddr, uint64_t size, const Elf64_Rela *rela) {
  size_t name_size = 0;
  const char *name = target_name(plt, rela, &name_size);
  if (!name || name_size == 0 || plt->text.count + name_size > UINT32_MAX - 8) return;
  *mic_vec_push(&plt->stubs) = (struct mic_symtab_entry){
    .value = vaddr, .size = size, .name = (uint32_t)plt->text.count, .binding = 2};
  append(plt, name, name_size);
  append(plt, "@plt", sizeof "@plt");
}

/* The bytes of the stub at bytes: 16, or 8 where the next jump follows so soon (.plt.got without
 * CET, and static programs). */
static size_t stub_size(const uint8_t *bytes, size_t left) {
  if (left < 16) return 8;
  return memcmp(bytes, "\xff\x25", 2) == 0 && memcmp(bytes + 8, "\xff\x25", 2) == 0 ? 8 : 16;
}

static void read_stubs(struct plt *plt, const char *section) {
  struct mic_elf_section s;
  if (!mic_elf_section(plt->elf, section, &s, NULL)) return;
  for (size_t at = 0, size; at + 8 <= s.size; at += size) {
    size = stub_size(s.bytes + at, s.size - at);
    uint64_t slot = 0;
    uint32_t index, target;
    Elf64_Rela rela;
    if (!decode_stub(s.bytes + at, size, s.vaddr + at, &slot, &index)) continue;
    if (index != MIC_NONE) {
      if (index >= plt->lazy.size / sizeof rela) continue;
      memcpy(&rela, plt->lazy.bytes + index * sizeof rela, sizeof rela);
      if (!names_a_target(&rela)) continue;
    } else {
      target = mic_map_get(&plt->slots, slot, 0);
      if (target == MIC_NONE) continue;
      rela = plt->targets.at[target];
    }
    name_stub(plt, s.vaddr + at, size, &rela);
  }
}

void mic_symtab_add_plt(struct mic_symtab *table, struct mic_elf *elf) {
  struct plt plt = {.table = table, .elf = elf};
  struct mic_elf_section dynamic;
  mic_elf_section(elf, ".dynsym", &plt.symbols, NULL);
  mic_elf_section(elf, ".dynstr", &plt.names, NULL);
  if (mic_elf_section(elf, ".rela.plt", &plt.lazy, NULL)) read_relocations(&plt, &plt.lazy);
  if (mic_elf_section(elf, ".rela.dyn", &dynamic, NULL)) read_relocations(&plt, &dynamic);
  find_resolvers(&plt);
  read_stubs(&plt, ".plt");
  read_stubs(&plt, ".plt.sec");
  read_stubs(&plt, ".plt.got");
  read_stubs(&plt, ".iplt");
  if (plt.stubs.count > 0) {
    char *kept = mic_arena_alloc(&table->names, plt.text.count);
    memcpy(kept, plt.text.at, plt.text.count);
    uint16_t strings = mic_symtab_add_strings(table, kept, plt.text.count);
    for (size_t i = 0; i < plt.stubs.count; i++) {
      plt.stubs.at[i].strings = strings;
      mic_symtab_add_entry(table, &plt.stubs.at[i]);
    }
  }
  mic_map_free(&plt.slots);
  mic_map_free(&plt.resolvers);
  mic_vec_free(&plt.targets);
  mic_vec_free(&plt.text);
  mic_vec_free(&plt.stubs);
}
