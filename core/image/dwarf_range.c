/*
 * dwarf_range.c - the address ranges of an entry (DWARF 5, 2.17; DWARF 4, 2.17.3).
 *
 * Ranges that do not begin in executable memory belong to functions that the linker discarded,
 * and are left out: linkers leave 0, 1, -1 or -2 in them.
 */
#include "image/dwarf_internal.h"
#include "image/symbols_table.h"

/* The unit whose file has the addresses and ranges that a unit refers to. */
static struct mic_dwarf_unit *linked(struct mic_dwarf_unit *unit) {
  return unit->skeleton ? unit->skeleton : unit;
}

static void add(struct mic_dwarf_unit *unit, uint64_t start, uint64_t end,
                struct mic_dwarf_ranges *out) {
  if (start == 0 || start >= end || !mic_elf_is_code(unit->file->owner->source.image, start, 1))
    return;
  *mic_vec_push(out) = (struct mic_dwarf_range){start, end};
}

static bool spend(struct mic_dwarf_unit *unit) {
  uint64_t *budget = &unit->file->owner->range_budget;
  if (*budget > 0) return (*budget)--, true;
  mic_problem_add(unit->file->owner->source.problem, "range lists refer to the same bytes over "
                                                     "and over");
  return false;
}

/* The address at an index of .debug_addr. */
static bool indexed_address(struct mic_dwarf_unit *unit, uint64_t index, uint64_t *out) {
  struct mic_dwarf_unit *u = linked(unit);
  struct mic_dwarf_span s = u->file->sections[MIC_SEC_ADDR];
  if (u->addr_base > s.size || index >= (s.size - u->addr_base) / 8) return false;
  memcpy(out, s.bytes + u->addr_base + index * 8, 8);
  return true;
}

/* .debug_ranges: pairs of offsets from a base; (-1, base) sets it, (0, 0) ends. */
static void read_ranges(struct mic_dwarf_unit *unit, uint64_t offset,
                        struct mic_dwarf_ranges *out) {
  struct mic_dwarf_unit *u = linked(unit);
  struct mic_dwarf_span s = u->file->sections[MIC_SEC_RANGES];
  struct mic_cursor c = mic_dwarf_cursor(s);
  uint64_t base = u->base;
  if (unit->skeleton) offset += u->ranges_base;
  mic_cursor_seek(&c, offset);
  while (!c.bad && spend(unit)) {
    uint64_t start = mic_cursor_u64(&c), end = mic_cursor_u64(&c);
    if (c.bad || (start == 0 && end == 0)) return;
    if (start == UINT64_MAX)
      base = end;
    else
      add(unit, base + start, base + end, out);
  }
}

/* One entry of .debug_rnglists (7.25); false at the end of the list. */
static bool read_rnglist_entry(struct mic_dwarf_unit *unit, struct mic_cursor *c, uint64_t *base,
                               struct mic_dwarf_ranges *out) {
  uint64_t start = 0, end = 0;
  bool known = true;
  uint8_t kind = mic_cursor_u8(c);
  switch (kind) {
  case DW_RLE_base_addressx: return indexed_address(unit, mic_cursor_uleb(c), base) && !c->bad;
  case DW_RLE_base_address: *base = mic_cursor_u64(c); return !c->bad;
  case DW_RLE_startx_endx:
    known = indexed_address(unit, mic_cursor_uleb(c), &start);
    known &= indexed_address(unit, mic_cursor_uleb(c), &end);
    break;
  case DW_RLE_startx_length:
    known = indexed_address(unit, mic_cursor_uleb(c), &start);
    end = start + mic_cursor_uleb(c);
    break;
  case DW_RLE_offset_pair:
    start = *base + mic_cursor_uleb(c);
    end = *base + mic_cursor_uleb(c);
    break;
  case DW_RLE_start_end:
    start = mic_cursor_u64(c);
    end = mic_cursor_u64(c);
    break;
  case DW_RLE_start_length:
    start = mic_cursor_u64(c);
    end = start + mic_cursor_uleb(c);
    break;
  default: return false; /* DW_RLE_end_of_list, or what no version 5 has */
  }
  if (known && !c->bad) add(unit, start, end, out);
  return !c->bad;
}

static void read_rnglist(struct mic_dwarf_unit *unit, uint64_t offset,
                         struct mic_dwarf_ranges *out) {
  struct mic_dwarf_span s = unit->file->sections[MIC_SEC_RNGLISTS];
  struct mic_cursor c = mic_dwarf_cursor(s);
  uint64_t base = linked(unit)->base;
  mic_cursor_seek(&c, offset);
  while (!c.bad && spend(unit) && read_rnglist_entry(unit, &c, &base, out)) {
  }
}

/* DW_FORM_rnglistx: an index of the table of offsets at rnglists_base, each from there. */
static bool rnglist_offset(struct mic_dwarf_unit *unit, uint64_t index, uint64_t *offset) {
  struct mic_dwarf_span s = unit->file->sections[MIC_SEC_RNGLISTS];
  struct mic_cursor c = mic_dwarf_cursor(s);
  uint64_t base = unit->rnglists_base, each = unit->offset_size;
  if (base > s.size || index >= (s.size - base) / each) return false;
  mic_cursor_seek(&c, base + index * each);
  *offset = base + (each == 8 ? mic_cursor_u64(&c) : mic_cursor_u32(&c));
  return !c.bad;
}

/* The attribute's value as it is written: libdw would resolve it against sections and a base
 * that are not a split unit's. */
static bool raw_value(struct mic_dwarf_unit *unit, const Dwarf_Attribute *attr, uint64_t *out) {
  struct mic_dwarf_span s = unit->file->sections[MIC_SEC_INFO];
  struct mic_cursor c = mic_dwarf_cursor(s);
  uintptr_t at = (uintptr_t)attr->valp - (uintptr_t)s.bytes;
  if (at >= s.size) return false;
  mic_cursor_seek(&c, at);
  switch (attr->form) {
  case DW_FORM_rnglistx: *out = mic_cursor_uleb(&c); break;
  case DW_FORM_data4: *out = mic_cursor_u32(&c); break;
  case DW_FORM_data8: *out = mic_cursor_u64(&c); break;
  case DW_FORM_sec_offset:
    *out = unit->offset_size == 8 ? mic_cursor_u64(&c) : mic_cursor_u32(&c);
    break;
  default: return false;
  }
  return !c.bad;
}

void mic_dwarf_ranges_of(struct mic_dwarf_unit *unit, Dwarf_Die *die,
                         struct mic_dwarf_ranges *out) {
  if (unit->address_size != 8) return;
  Dwarf_Attribute attr;
  uint64_t value;
  if (dwarf_attr(die, DW_AT_ranges, &attr)) {
    if (!raw_value(unit, &attr, &value)) return;
    if (unit->version < 5)
      read_ranges(unit, value, out);
    else if (attr.form != DW_FORM_rnglistx || rnglist_offset(unit, value, &value))
      read_rnglist(unit, value, out);
    return;
  }
  Dwarf_Addr low, high;
  if (dwarf_attr(die, DW_AT_high_pc, &attr) && dwarf_lowpc(die, &low) == 0 &&
      dwarf_highpc(die, &high) == 0)
    add(unit, low, high, out);
}
