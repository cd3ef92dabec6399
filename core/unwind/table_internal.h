/* table_internal.h - what the unwinder, its tests and benches see of a table. */
#ifndef MIC_UNWIND_TABLE_INTERNAL_H
#define MIC_UNWIND_TABLE_INTERNAL_H

#include "base/map.h"
#include "image/fde.h"
#include "unwind/compile.h"
#include "unwind/table.h"

/* Rules by address, direct-mapped: where a pc cache misses because the process is new, the image
 * seldom is.  4,096 entries hold what one program runs in one image (see unwind.md). */
enum { MIC_TABLE_CACHE = 4096 };
struct mic_table_cached {
  uint32_t pc;
  uint16_t rule;
  uint16_t used;
};

struct mic_compiled { /* the rows of one FDE */
  uint64_t start, end;
  size_t row, rows;
};

struct mic_table {
  struct mic_elf *elf; /* borrowed */
  uint64_t base;       /* rows' pcs are relative to it: the lowest segment's address */
  struct mic_fde_index eh, debug;
  bool debug_indexed; /* .debug_frame is looked at when .eh_frame has no answer */
  struct mic_rules rules;
  struct mic_rows rows; /* by FDE as they came; by pc when whole */
  bool whole;
  struct mic_map fdes; /* (section, entry offset) -> compiled */
  MIC_VEC(struct mic_compiled) compiled;
  struct mic_table_cached *cache;
  uint64_t work_left;
};

static inline const struct mic_elf *mic_table_elf(const struct mic_table *table) {
  return table->elf;
}
/* The rule that holds at an ELF address; borrowed until the next call. */
const struct mic_rule *mic_table_rule(struct mic_table *table, uint64_t vaddr);

struct mic_fde_index *mic_table_debug_index(struct mic_table *table); /* read on first need */

#endif
