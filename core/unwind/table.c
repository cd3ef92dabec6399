/*
 * table.c - an image's rows: compiled by FDE on first need, or as a whole.
 *
 * .eh_frame has the word wherever it covers an address; .debug_frame fills the ranges between.
 */
#include "unwind/table.h"

#include "unwind/table_internal.h"

/* Instructions that may be run in the life of a table, by the bytes of call-frame information it
 * has: each byte is at most one, and an FDE is compiled at most twice (on need, and as part of
 * the whole).  Only overlapping entries made to waste time come near. */
enum { WORK_PER_BYTE = 16, WORK_LEAST = 1 << 20 };

int mic_table_new(struct mic_elf *elf, struct mic_table **out, struct mic_error *err) {
  (void)err;
  struct mic_table *t = mic_alloc(sizeof *t);
  t->elf = elf;
  size_t count;
  const struct mic_elf_segment *s = mic_elf_segments(elf, &count);
  t->base = count ? s[0].vaddr : 0;
  for (size_t i = 1; i < count; i++)
    if (s[i].vaddr < t->base) t->base = s[i].vaddr;
  mic_fde_index_eh(&t->eh, elf);
  mic_rules_init(&t->rules);
  t->work_left = WORK_LEAST + t->eh.cfi.size * WORK_PER_BYTE;
  *out = t;
  return MIC_OK;
}

void mic_table_free(struct mic_table *table) {
  if (!table) return;
  mic_fde_index_free(&table->eh);
  mic_fde_index_free(&table->debug);
  mic_rules_free(&table->rules);
  mic_vec_free(&table->rows.pcs);
  mic_vec_free(&table->rows.rules);
  mic_vec_free(&table->compiled);
  mic_map_free(&table->fdes);
  free(table->cache);
  free(table);
}

struct mic_fde_index *mic_table_debug_index(struct mic_table *t) {
  if (!t->debug_indexed) {
    t->debug_indexed = true;
    mic_fde_index_debug(&t->debug, t->elf);
    t->work_left += t->debug.cfi.size * WORK_PER_BYTE;
  }
  return &t->debug;
}

static bool fits(const struct mic_table *t, const struct mic_cfi_fde *fde) {
  return fde->start >= t->base && fde->end - t->base <= UINT32_MAX;
}

static uint16_t search_rows(const struct mic_rows *rows, size_t first, size_t count, uint32_t pc) {
  size_t low = first, high = first + count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rows->pcs.at[middle] <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low == first ? MIC_RULE_ID_NONE : rows->rules.at[low - 1];
}

static const struct mic_compiled *compile_once(struct mic_table *t, uint64_t section, size_t entry,
                                               const struct mic_cfi *cfi,
                                               const struct mic_cfi_fde *fde) {
  bool added;
  uint32_t id = (uint32_t)t->compiled.count;
  id = mic_map_intern(&t->fdes, section, entry, id, &added);
  if (added) {
    size_t row = t->rows.pcs.count;
    mic_compile_fde(cfi, fde, t->base, &t->rules, &t->rows, &t->work_left);
    if (mic_elf_damaged(t->elf)) t->rows.rules.at[row] = MIC_RULE_ID_MALFORMED;
    *mic_vec_push(&t->compiled) =
      (struct mic_compiled){fde->start, fde->end, row, t->rows.pcs.count - row};
  }
  return &t->compiled.at[id];
}

static uint16_t find_rule(struct mic_table *t, uint64_t vaddr) {
  uint32_t pc = (uint32_t)(vaddr - t->base);
  if (t->whole) return search_rows(&t->rows, 0, t->rows.pcs.count, pc);
  struct mic_cfi_fde fde;
  size_t entry;
  uint64_t section = 0;
  struct mic_fde_index *index = &t->eh;
  enum mic_fde_found found = mic_fde_find(index, vaddr, &fde, &entry);
  if (found != MIC_FDE_FOUND) {
    section = 1;
    index = mic_table_debug_index(t);
    enum mic_fde_found second = mic_fde_find(index, vaddr, &fde, &entry);
    if (second != MIC_FDE_FOUND)
      return found == MIC_FDE_DAMAGED || second == MIC_FDE_DAMAGED || mic_elf_damaged(t->elf)
               ? MIC_RULE_ID_MALFORMED
               : MIC_RULE_ID_NONE;
  }
  if (!fits(t, &fde)) return MIC_RULE_ID_UNSUPPORTED;
  const struct mic_compiled *c = compile_once(t, section, entry, &index->cfi, &fde);
  return search_rows(&t->rows, c->row, c->rows, pc);
}

const struct mic_rule *mic_table_rule(struct mic_table *table, uint64_t vaddr) {
  uint64_t offset = vaddr - table->base;
  if (offset > UINT32_MAX) return &table->rules.rules.at[MIC_RULE_ID_UNSUPPORTED];
  if (!table->cache) table->cache = mic_alloc(MIC_TABLE_CACHE * sizeof *table->cache);
  uint32_t pc = (uint32_t)offset;
  /* Knuth's multiplicative hash: return addresses differ in all bits but seldom in few. */
  struct mic_table_cached *c = &table->cache[(pc * 2654435769U) >> 20];
  if (!c->used || c->pc != pc) {
    uint16_t rule = find_rule(table, vaddr);
    *c = (struct mic_table_cached){.pc = pc, .rule = rule, .used = 1};
  }
  return &table->rules.rules.at[c->rule];
}
