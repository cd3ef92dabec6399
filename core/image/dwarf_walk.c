/*
 * dwarf_walk.c - visit the entries of a unit, each once, parents first.
 *
 * Most entries describe types and variables that no name needs.  They are stepped over by the
 * sizes of their forms (dwarf_value.c); libdw reads all that lies below an entry to find the next
 * one where compilers write no DW_AT_sibling.
 */
#include <string.h>

#include "image/dwarf_internal.h"

enum { DEPTH_MAX = 2048 }; /* of entries; compilers stay below 200 */

struct abbrev {
  uint64_t code;
  uint32_t tag;
  uint32_t first, count; /* its forms */
  uint32_t size;         /* of all of them together, or MIC_FORM_VARYING */
  bool has_children;
  bool has_code; /* DW_AT_high_pc or DW_AT_ranges is among its attributes */
};

struct walk {
  struct mic_dwarf_unit *unit;
  MIC_VEC(struct abbrev) abbrevs;
  MIC_VEC(struct mic_dwarf_form) forms;
  struct mic_map by_code; /* of those that are not at code - 1 */
};

static void read_abbrev(struct walk *w, struct mic_cursor *c, uint64_t code) {
  struct abbrev a = {.code = code, .first = (uint32_t)w->forms.count};
  a.tag = (uint32_t)mic_cursor_uleb(c);
  a.has_children = mic_cursor_u8(c) == DW_CHILDREN_yes;
  struct mic_dwarf_form form;
  while (mic_dwarf_read_form(w->unit, c, &form)) {
    bool varies = form.size == MIC_FORM_VARYING || a.size == MIC_FORM_VARYING;
    a.size = varies ? MIC_FORM_VARYING : a.size + form.size;
    a.has_code |= form.place == MIC_AT_HIGH_PC || form.place == MIC_AT_RANGES;
    *mic_vec_push(&w->forms) = form;
    a.count++;
  }
  if (code != w->abbrevs.count + 1) mic_map_put(&w->by_code, code, 0, (uint32_t)w->abbrevs.count);
  *mic_vec_push(&w->abbrevs) = a;
}

/* The table was checked (mic_dwarf_unit_check). */
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
  if (a->size != MIC_FORM_VARYING) {
    mic_cursor_take(c, a->size);
    return;
  }
  const struct mic_dwarf_form *form = w->forms.at + a->first, *end = form + a->count;
  for (; form < end && !c->bad; form++)
    if (form->size != MIC_FORM_VARYING)
      mic_cursor_take(c, form->size);
    else
      mic_dwarf_skip_form(w->unit, c, form->form);
}

/* From the first child of the unit's own entry to the end; false when that is too deep. */
static bool walk_entries(struct walk *w, struct mic_cursor *c, mic_dwarf_wants *wants,
                         mic_dwarf_visit *visit, void *context) {
  const uint8_t *info = w->unit->file->sections[MIC_SEC_INFO].bytes;
  uint32_t given[DEPTH_MAX + 1]; /* by visit, for the children of a level */
  struct mic_dwarf_entry entry;
  unsigned depth = 0;
  given[0] = MIC_NONE;
  while (!c->bad && mic_cursor_left(c) > 0) {
    entry.offset = (uint64_t)(c->at - info);
    uint64_t code = mic_cursor_uleb(c);
    if (code == 0) { /* ends the children of a level */
      if (depth-- == 0) return true;
      continue;
    }
    const struct abbrev *a = find_abbrev(w, code);
    if (!a) return true;
    uint32_t mine = given[depth];
    bool wanted = wants((int)a->tag, a->has_code);
    if (wanted && a->has_code)
      mic_dwarf_read_values(w->unit, c, w->forms.at + a->first, a->count, &entry.values);
    else
      skip_values(w, c, a);
    if (c->bad) return true;
    if (wanted) {
      entry.tag = (int)a->tag;
      entry.depth = depth;
      mine = visit(w->unit, &entry, mine, context);
    }
    if (!a->has_children) continue;
    if (depth == DEPTH_MAX) {
      mic_problem_add(w->unit->file->owner->source.problem,
                      "debug information nested deeper than %d entries is not used", DEPTH_MAX);
      return false;
    }
    given[++depth] = mine;
  }
  return true;
}

bool mic_dwarf_walk(struct mic_dwarf_unit *unit, mic_dwarf_wants *wants, mic_dwarf_visit *visit,
                    void *context) {
  struct walk w = {.unit = unit};
  bool whole = true;
  struct mic_dwarf_span info = unit->file->sections[MIC_SEC_INFO];
  mic_dwarf_unit_read(unit);
  if (unit->attributes_known && unit->end <= info.size && mic_dwarf_unit_check(unit) &&
      read_abbrevs(&w)) {
    struct mic_cursor c = mic_cursor(info.bytes, unit->end);
    mic_cursor_seek(&c, unit->first_entry);
    const struct abbrev *own = find_abbrev(&w, mic_cursor_uleb(&c));
    if (own) skip_values(&w, &c, own);
    if (own && own->has_children && !c.bad) whole = walk_entries(&w, &c, wants, visit, context);
  }
  mic_vec_free(&w.abbrevs);
  mic_vec_free(&w.forms);
  mic_map_free(&w.by_code);
  return whole;
}
