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

static bool is_indexed(uint16_t form) {
  return form == DW_FORM_addrx || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4) ||
         form == DW_FORM_GNU_addr_index;
}

/* An address, by itself or by an index; false for another form. */
static bool address_of(struct mic_dwarf_unit *unit, const struct mic_dwarf_values *v,
                       enum mic_dwarf_at at, uint64_t *out) {
  if (!mic_dwarf_has(v, at)) return false;
  *out = v->at[at];
  return v->form[at] == DW_FORM_addr ||
         (is_indexed(v->form[at]) && indexed_address(unit, v->at[at], out));
}

bool mic_dwarf_low_pc(struct mic_dwarf_unit *unit, const struct mic_dwarf_values *values,
                      uint64_t *out) {
  return address_of(unit, values, MIC_AT_LOW_PC, out);
}

static void read_list(struct mic_dwarf_unit *unit, uint16_t form, uint64_t value,
                      struct mic_dwarf_ranges *out) {
  bool indexed = form == DW_FORM_rnglistx;
  bool offset = form == DW_FORM_sec_offset || form == DW_FORM_data4 || form == DW_FORM_data8;
  if (!offset && !indexed) return;
  if (unit->version < 5)
    read_ranges(unit, value, out);
  else if (!indexed || rnglist_offset(unit, value, &value))
    read_rnglist(unit, value, out);
}

void mic_dwarf_ranges_of(struct mic_dwarf_unit *unit, const struct mic_dwarf_values *values,
                         struct mic_dwarf_ranges *out) {
  if (unit->address_size != 8) return;
  if (mic_dwarf_has(values, MIC_AT_RANGES)) {
    read_list(unit, values->form[MIC_AT_RANGES], values->at[MIC_AT_RANGES], out);
    return;
  }
  uint64_t low, high;
  if (!mic_dwarf_has(values, MIC_AT_HIGH_PC) || !mic_dwarf_low_pc(unit, values, &low)) return;
  uint16_t form = values->form[MIC_AT_HIGH_PC];
  if (form == DW_FORM_addr || is_indexed(form)) {
    if (!address_of(unit, values, MIC_AT_HIGH_PC, &high)) return;
  } else {
    high = low + values->at[MIC_AT_HIGH_PC]; /* since version 4 a size */
  }
  add(unit, low, high, out);
}
