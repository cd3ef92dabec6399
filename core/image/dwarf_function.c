/* dwarf_function.c - the functions and inlined functions of a unit, by address. */
#include "image/dwarf_internal.h"

struct collection {
  struct mic_dwarf_ranges ranges; /* of one entry, reused */
  MIC_VEC(struct mic_cover_range) all;
};

static uint32_t number_or_0(const struct mic_dwarf_values *values, enum mic_dwarf_at at) {
  return mic_dwarf_has(values, at) && values->at[at] < UINT32_MAX ? (uint32_t)values->at[at] : 0;
}

static bool is_function(int tag, bool has_code) {
  return has_code && (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine);
}

static uint32_t collect(struct mic_dwarf_unit *unit, const struct mic_dwarf_entry *entry,
                        uint32_t above, void *context) {
  struct collection *to = context;
  bool inlined = entry->tag == DW_TAG_inlined_subroutine;
  to->ranges.count = 0;
  mic_dwarf_ranges_of(unit, &entry->values, &to->ranges);
  if (to->ranges.count == 0) return above;
  if (unit->functions.count >= MIC_NONE) return above;
  uint32_t id = (uint32_t)unit->functions.count;
  *mic_vec_push(&unit->functions) = (struct mic_dwarf_function){
    .entry = entry->offset,
    .parent = inlined ? above : MIC_NONE,
    .call_file = inlined ? number_or_0(&entry->values, MIC_AT_CALL_FILE) : 0,
    .call_line = inlined ? number_or_0(&entry->values, MIC_AT_CALL_LINE) : 0,
  };
  for (size_t i = 0; i < to->ranges.count; i++)
    *mic_vec_push(&to->all) =
      (struct mic_cover_range){to->ranges.at[i].start, to->ranges.at[i].end, id, entry->depth};
  return id;
}

void mic_dwarf_unit_functions(struct mic_dwarf_unit *unit) {
  if (unit->functions_read) return;
  unit->functions_read = true;
  struct collection to = {0};
  /* Of code in what was not visited the innermost function known would be a wrong one. */
  if (!mic_dwarf_walk(unit, is_function, collect, &to)) to.all.count = 0;
  mic_cover_build(&unit->cover, to.all.at, to.all.count);
  mic_vec_free(&to.all);
  mic_vec_free(&to.ranges);
}
