/*
 * dwarf_walk.c - visit the entries of a unit, each once, parents first.
 *
 * Most entries describe types and variables that no name needs.  They are stepped over by the
 * sizes of their forms (DWARF 5, 7.5.3 and 7.5.5), and libdw is asked only about those whose tag
 * is wanted: it looks an entry's abbreviation up several times under a lock, and reads all that
 * lies below an entry to find the next one where compilers write no DW_AT_sibling.
 */
#include <string.h>

#include "image/dwarf_internal.h"

enum {
  DEPTH_MAX = 512, /* of entries; compilers stay below 100 */
  VARYING = UINT16_MAX
};

struct abbrev {
  uint64_t code;
  uint32_t tag;
  uint32_t first, count; /* its forms */
  uint32_t size;         /* of all of them together, or VARYING */
  bool has_children;
  bool has_code; /* DW_AT_high_pc or DW_AT_ranges is among its attributes */
};

struct form {
  uint16_t form;
  uint16_t size; /* or VARYING */
};

struct walk {
  struct mic_dwarf_unit *unit;
  MIC_VEC(struct abbrev) abbrevs;
  MIC_VEC(struct form) forms;
  struct mic_map by_code; /* of those that are not at code - 1 */
};

/* The size of a form when it is the same for every entry, else VARYING. */
static uint32_t fixed_size(const struct mic_dwarf_unit *unit, uint64_t form) {
  switch (form) {
  case DW_FORM_flag_present:
  case DW_FORM_implicit_const: return 0;
  case DW_FORM_data1:
  case DW_FORM_ref1:
  case DW_FORM_flag:
  case DW_FORM_strx1:
  case DW_FORM_addrx1: return 1;
  case DW_FORM_data2:
  case DW_FORM_ref2:
  case DW_FORM_strx2:
  case DW_FORM_addrx2: return 2;
  case DW_FORM_strx3:
  case DW_FORM_addrx3: return 3;
  case DW_FORM_data4:
  case DW_FORM_ref4:
  case DW_FORM_strx4:
  case DW_FORM_addrx4:
  case DW_FORM_ref_sup4: return 4;
  case DW_FORM_data8:
  case DW_FORM_ref8:
  case DW_FORM_ref_sig8:
  case DW_FORM_ref_sup8: return 8;
  case DW_FORM_data16: return 16;
  case DW_FORM_addr: return unit->address_size;
  case DW_FORM_ref_addr: return unit->version == 2 ? unit->address_size : unit->offset_size;
  case DW_FORM_sec_offset:
  case DW_FORM_strp:
  case DW_FORM_line_strp:
  case DW_FORM_strp_sup:
  case DW_FORM_GNU_ref_alt:
  case DW_FORM_GNU_strp_alt: return unit->offset_size;
  default: return VARYING;
  }
}

/* Steps over one value; an unknown form makes the cursor bad. */
static void skip_form(const struct mic_dwarf_unit *unit, struct mic_cursor *c, uint64_t form) {
  uint32_t size = fixed_size(unit, form);
  if (size != VARYING) {
    mic_cursor_take(c, size);
    return;
  }
  switch (form) {
  case DW_FORM_string: mic_cursor_string(c); break;
  case DW_FORM_block1: mic_cursor_take(c, mic_cursor_u8(c)); break;
  case DW_FORM_block2: mic_cursor_take(c, mic_cursor_u16(c)); break;
  case DW_FORM_block4: mic_cursor_take(c, mic_cursor_u32(c)); break;
  case DW_FORM_block:
  case DW_FORM_exprloc: mic_cursor_take(c, mic_cursor_uleb(c)); break;
  case DW_FORM_sdata: mic_cursor_sleb(c); break;
  case DW_FORM_udata:
  case DW_FORM_ref_udata:
  case DW_FORM_strx:
  case DW_FORM_addrx:
  case DW_FORM_loclistx:
  case DW_FORM_rnglistx:
  case DW_FORM_GNU_addr_index:
  case DW_FORM_GNU_str_index: mic_cursor_uleb(c); break;
  case DW_FORM_indirect:
    form = mic_cursor_uleb(c);
    if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
      c->bad = true;
    else
      skip_form(unit, c, form);
    break;
  default: c->bad = true;
  }
}

static void read_abbrev(struct walk *w, struct mic_cursor *c, uint64_t code) {
  struct abbrev a = {.code = code, .first = (uint32_t)w->forms.count};
  a.tag = (uint32_t)mic_cursor_uleb(c);
  a.has_children = mic_cursor_u8(c) == DW_CHILDREN_yes;
  for (uint64_t name, form; !c->bad;) {
    name = mic_cursor_uleb(c);
    form = mic_cursor_uleb(c);
    if (name == 0 && form == 0) break;
    if (form == DW_FORM_implicit_const) mic_cursor_sleb(c);
    uint32_t size = fixed_size(w->unit, form);
    a.size = size == VARYING || a.size == VARYING ? VARYING : a.size + size;
    a.has_code |= name == DW_AT_high_pc || name == DW_AT_ranges;
    *mic_vec_push(&w->forms) =
      (struct form){form <= UINT16_MAX ? (uint16_t)form : 0, (uint16_t)size};
    a.count++;
  }
  if (code != w->abbrevs.count + 1) mic_map_put(&w->by_code, code, 0, (uint32_t)w->abbrevs.count);
  *mic_vec_push(&w->abbrevs) = a;
}

/* The table was checked when the unit was listed (dwarf_file.c): it is not larger than its work. */
static bool read_abbrevs(struct walk *w) {
  struct mic_cursor c = mic_dwarf_cursor(w->unit->file->sections[MIC_SEC_ABBREV]);
  mic_cursor_seek(&c, w->unit->abbrev);
  for (uint64_t code; mic_cursor_left(&c) > 0 && (code = mic_cursor_uleb(&c)) != 0 && !c.bad;)
    read_abbrev(w, &c, code);
  return !c.bad;
}

static const struct abbrev *find_abbrev(const struct walk *w, uint64_t code) {
  if (code - 1 < w->abbrevs.count && w->abbrevs.at[code - 1].code == code)
    return &w->abbrevs.at[code - 1];
  uint32_t index = mic_map_get(&w->by_code, code, 0);
  return index == MIC_NONE ? NULL : &w->abbrevs.at[index];
}

static void skip_values(const struct walk *w, struct mic_cursor *c, const struct abbrev *a) {
  if (a->size != VARYING) {
    mic_cursor_take(c, a->size);
    return;
  }
  const struct form *form = w->forms.at + a->first, *end = form + a->count;
  for (; form < end && !c->bad; form++)
    if (form->size != VARYING)
      mic_cursor_take(c, form->size);
    else
      skip_form(w->unit, c, form->form);
}

/* From the first child of the unit's own entry to the end. */
static void walk_entries(struct walk *w, struct mic_cursor *c, mic_dwarf_wants *wants,
                         mic_dwarf_visit *visit, void *context) {
  uint32_t given[DEPTH_MAX + 1]; /* by visit, for the children of a level */
  unsigned depth = 0;
  given[0] = MIC_NONE;
  while (!c->bad && mic_cursor_left(c) > 0) {
    const uint8_t *at = c->at;
    uint64_t code = mic_cursor_uleb(c);
    if (code == 0) { /* ends the children of a level */
      if (depth-- == 0) return;
      continue;
    }
    const struct abbrev *a = find_abbrev(w, code);
    if (!a) return;
    skip_values(w, c, a);
    if (c->bad) return;
    uint32_t mine = given[depth];
    if (wants((int)a->tag, a->has_code)) {
      Dwarf_Die die = {.addr = (void *)(uintptr_t)at, .cu = w->unit->die.cu};
      mine = visit(w->unit, &die, (int)a->tag, mine, depth, context);
    }
    if (!a->has_children) continue;
    if (depth == DEPTH_MAX) return;
    given[++depth] = mine;
  }
}

void mic_dwarf_walk(struct mic_dwarf_unit *unit, mic_dwarf_wants *wants, mic_dwarf_visit *visit,
                    void *context) {
  struct walk w = {.unit = unit};
  struct mic_dwarf_span info = unit->file->sections[MIC_SEC_INFO];
  mic_dwarf_unit_read(unit);
  if (unit->die.cu && unit->end <= info.size && read_abbrevs(&w)) {
    struct mic_cursor c = mic_cursor(info.bytes, unit->end);
    mic_cursor_seek(&c, unit->first_entry);
    const struct abbrev *own = find_abbrev(&w, mic_cursor_uleb(&c));
    if (own) skip_values(&w, &c, own);
    if (own && own->has_children && !c.bad) walk_entries(&w, &c, wants, visit, context);
  }
  mic_vec_free(&w.abbrevs);
  mic_vec_free(&w.forms);
  mic_map_free(&w.by_code);
}
