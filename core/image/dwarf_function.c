/* dwarf_function.c - the functions and inlined functions of a unit, by address. */
#include "image/dwarf_internal.h"

struct collection {
  struct mic_dwarf_ranges ranges; /* of one entry, reused */
  MIC_VEC(struct mic_cover_range) all;
};

static uint32_t number_or_0(Dwarf_Die *die, unsigned name) {
  uint64_t value = 0;
  return mic_dwarf_number(die, name, &value) && value < UINT32_MAX ? (uint32_t)value : 0;
}

static bool is_function(int tag, bool has_code) {
  return has_code && (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine);
}

static uint32_t collect(struct mic_dwarf_unit *unit, Dwarf_Die *die, int tag, uint32_t above,
                        unsigned depth, void *context) {
  struct collection *to = context;
  bool inlined = tag == DW_TAG_inlined_subroutine;
  to->ranges.count = 0;
  mic_dwarf_ranges_of(unit, die, &to->ranges);
  if (to->ranges.count == 0) return above;
  if (unit->functions.count >= MIC_NONE) return above;
  uint32_t id = (uint32_t)unit->functions.count;
  *mic_vec_push(&unit->functions) = (struct mic_dwarf_function){
    .entry = dwarf_dieoffset(die),
    .parent = inlined ? above : MIC_NONE,
    .call_file = inlined ? number_or_0(die, DW_AT_call_file) : 0,
    .call_line = inlined ? number_or_0(die, DW_AT_call_line) : 0,
  };
  for (size_t i = 0; i < to->ranges.count; i++)
    *mic_vec_push(&to->all) =
      (struct mic_cover_range){to->ranges.at[i].start, to->ranges.at[i].end, id, depth};
  return id;
}

void mic_dwarf_unit_functions(struct mic_dwarf_unit *unit) {
  if (unit->functions_read) return;
  unit->functions_read = true;
  struct collection to = {0};
  mic_dwarf_walk(unit, is_function, collect, &to);
  mic_cover_build(&unit->cover, to.all.at, to.all.count);
  mic_vec_free(&to.all);
  mic_vec_free(&to.ranges);
}
