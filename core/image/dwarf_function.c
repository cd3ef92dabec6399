/*
 * dwarf_function.c - walk the entries of a unit; find its functions and inlined functions.
 *
 * The walk goes forward through the bytes and visits each entry once.  libdw's own way to the
 * next sibling reads all that lies below an entry again, for compilers that write no
 * DW_AT_sibling.
 */
#include "image/dwarf_internal.h"
#include "image/symbols_table.h"

enum { DEPTH_MAX = 512 }; /* of entries; deeper ones are not looked at */

struct level {
  uint32_t given; /* what visit gave for the entry whose children these are */
};

/* The bytes that follow an entry without children, or NULL at the end. */
static const uint8_t *after(Dwarf_Die *die) {
  Dwarf_Die next;
  /* When a level ends libdw leaves the address of the byte that ends it. */
  return dwarf_siblingof(die, &next) >= 0 ? next.addr : NULL;
}

void mic_dwarf_walk(struct mic_dwarf_unit *unit, mic_dwarf_visit *visit, void *context) {
  const struct mic_dwarf_span info = unit->file->sections[MIC_SEC_INFO];
  const uint8_t *end = info.bytes + unit->end;
  struct level *levels = mic_alloc((DEPTH_MAX + 1) * sizeof *levels);
  Dwarf_Die die;
  mic_dwarf_unit_read(unit);
  if (dwarf_child(&unit->die, &die) != 0) {
    free(levels);
    return;
  }
  unsigned depth = 0;
  levels[0].given = MIC_NONE;
  for (const uint8_t *at = die.addr; at && at < end;) {
    if (*at == 0) { /* ends the children of a level */
      if (depth-- == 0) break;
      at++;
      continue;
    }
    die = (Dwarf_Die){.addr = (void *)(uintptr_t)at, .cu = unit->die.cu};
    int tag = dwarf_tag(&die);
    if (tag == DW_TAG_invalid) break;
    uint32_t given = visit(unit, &die, tag, levels[depth].given, depth, context);
    Dwarf_Die child;
    if (depth < DEPTH_MAX && dwarf_child(&die, &child) == 0) {
      levels[++depth].given = given;
      at = child.addr;
    } else {
      const uint8_t *next = after(&die);
      at = next > at ? next : NULL;
    }
  }
  free(levels);
}

struct collection {
  struct mic_dwarf_ranges ranges; /* of one entry, reused */
  MIC_VEC(struct mic_cover_range) all;
};

static uint32_t number_or_0(Dwarf_Die *die, unsigned name) {
  uint64_t value = 0;
  return mic_dwarf_number(die, name, &value) && value < UINT32_MAX ? (uint32_t)value : 0;
}

static uint32_t collect(struct mic_dwarf_unit *unit, Dwarf_Die *die, int tag, uint32_t above,
                        unsigned depth, void *context) {
  struct collection *to = context;
  bool inlined = tag == DW_TAG_inlined_subroutine;
  if (tag != DW_TAG_subprogram && !inlined) return above;
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
  mic_dwarf_walk(unit, collect, &to);
  mic_cover_build(&unit->cover, to.all.at, to.all.count);
  mic_vec_free(&to.all);
  mic_vec_free(&to.ranges);
}
