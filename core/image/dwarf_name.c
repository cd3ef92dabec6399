/*
 * dwarf_name.c - the names of a function, and where it is declared.
 *
 * An entry leads to its abstract instance and from there to the declaration in a class, maybe in
 * other units and in the file shared by dwz; each attribute is taken where it is first met.
 * Without a linkage name (C, and what C++ keeps to one unit) the name is qualified by the
 * namespaces and classes around the declaration.
 */
#include <string.h>

#include "image/dwarf_internal.h"

enum {
  CHAIN_MAX = 8,   /* instance, abstract instance, declaration: three; more is a loop */
  SCOPES_MAX = 64, /* around a name; deeper ones are left out */
};

struct place { /* an entry and the unit whose file table and parents are its */
  struct mic_dwarf_unit *unit;
  Dwarf_Die die;
};

static struct mic_dwarf_file *file_of(struct mic_dwarf_file *file, Dwarf_Die *die) {
  Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
  if (dwarf == file->dwarf) return file;
  return file->alt && dwarf == file->alt->dwarf ? file->alt : NULL;
}

/* Follows the attribute to another entry; false when there is none. */
static bool follow(struct place *place, unsigned name) {
  Dwarf_Attribute attr;
  Dwarf_Die next;
  /* A signature would make libdw read every type unit, and no function is referred to by one. */
  if (!dwarf_attr(&place->die, name, &attr) || attr.form == DW_FORM_ref_sig8) return false;
  if (attr.form == DW_FORM_GNU_ref_alt && !place->unit->file->alt) return false;
  if (!dwarf_formref_die(&attr, &next)) return false;
  struct mic_dwarf_file *file = file_of(place->unit->file, &next);
  struct mic_dwarf_unit *unit = file ? mic_dwarf_unit_at(file, dwarf_dieoffset(&next)) : NULL;
  if (!unit || !mic_dwarf_unit_check(unit)) return false;
  *place = (struct place){unit, next};
  return true;
}

static uint32_t string_of(struct place *place, unsigned name) {
  Dwarf_Attribute attr;
  if (!dwarf_attr(&place->die, name, &attr)) return MIC_NONE;
  if (attr.form == DW_FORM_GNU_strp_alt && !place->unit->file->alt) return MIC_NONE;
  return mic_dwarf_string(place->unit->file, &attr);
}

static bool is_scope(int tag, bool has_code) {
  (void)has_code;
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
         tag == DW_TAG_union_type || tag == DW_TAG_interface_type || tag == DW_TAG_module ||
         tag == DW_TAG_enumeration_type || tag == DW_TAG_subprogram;
}

static uint32_t collect_scope(struct mic_dwarf_unit *unit, const struct mic_dwarf_entry *entry,
                              uint32_t above, void *context) {
  (void)context;
  if (unit->scopes.count >= MIC_NONE) return above;
  uint32_t id = (uint32_t)unit->scopes.count;
  *mic_vec_push(&unit->scopes) = (struct mic_dwarf_scope){entry->offset, above};
  /* Nothing is around most: those of C. */
  if (above != MIC_NONE) mic_map_put(&unit->scope_of, entry->offset, 0, id);
  return id;
}

/* The scope around an entry, or MIC_NONE. */
static uint32_t scope_around(struct place *place) {
  struct mic_dwarf_unit *unit = place->unit;
  if (!unit->scopes_read) {
    unit->scopes_read = true;
    mic_dwarf_walk(unit, is_scope, collect_scope, NULL);
  }
  uint32_t id = mic_map_get(&unit->scope_of, dwarf_dieoffset(&place->die), 0);
  return id == MIC_NONE ? MIC_NONE : unit->scopes.at[id].parent;
}

/* The name of a scope: its own, or that of the function it is an instance of. */
static uint32_t scope_name(struct place scope, int *tag) {
  *tag = dwarf_tag(&scope.die);
  for (int i = 0; i < CHAIN_MAX; i++) {
    uint32_t name = string_of(&scope, DW_AT_name);
    if (name != MIC_NONE) return name;
    if (!follow(&scope, DW_AT_abstract_origin) && !follow(&scope, DW_AT_specification)) break;
  }
  return MIC_NONE;
}

static size_t outer_names(struct place *place, struct mic_string *parts, size_t room) {
  struct mic_interner *strings = place->unit->file->owner->source.strings;
  size_t count = 0;
  for (uint32_t id = scope_around(place); id != MIC_NONE && count < room;
       id = place->unit->scopes.at[id].parent) {
    struct place scope = {.unit = place->unit};
    if (!dwarf_offdie(place->unit->file->dwarf, place->unit->scopes.at[id].entry, &scope.die))
      break;
    int tag;
    uint32_t name = scope_name(scope, &tag);
    if (name != MIC_NONE)
      parts[count++] = mic_interner_at(strings, name);
    else if (tag == DW_TAG_namespace)
      parts[count++] = (struct mic_string){"(anonymous namespace)", 21};
    else if (tag != DW_TAG_enumeration_type)
      parts[count++] = (struct mic_string){"{unnamed type}", 14};
  }
  return count;
}

/* OUTER::INNER::NAME, from the scopes around the entry where the chain ended. */
static uint32_t qualify(struct place *place, uint32_t name) {
  struct mic_interner *strings = place->unit->file->owner->source.strings;
  struct mic_string parts[SCOPES_MAX + 1];
  parts[0] = mic_interner_at(strings, name);
  size_t count = 1 + outer_names(place, parts + 1, SCOPES_MAX), size = 0;
  if (count == 1) return name;
  for (size_t i = 0; i < count; i++) size += parts[i].size + 2;
  char *whole = mic_alloc(size + 1), *at = whole;
  for (size_t i = count; i-- > 0;) {
    memcpy(at, parts[i].bytes, parts[i].size);
    at += parts[i].size;
    if (i > 0) at = (char *)memcpy(at, "::", 2) + 2;
  }
  uint32_t id = mic_intern(strings, whole, (size_t)(at - whole));
  free(whole);
  return id;
}

static void take(struct place *place, struct mic_dwarf_frame *frame) {
  uint64_t number;
  if (frame->linkage_name == MIC_NONE) frame->linkage_name = string_of(place, DW_AT_linkage_name);
  if (frame->linkage_name == MIC_NONE)
    frame->linkage_name = string_of(place, DW_AT_MIPS_linkage_name);
  if (frame->name == MIC_NONE) frame->name = string_of(place, DW_AT_name);
  if (frame->decl_file == MIC_NONE && mic_dwarf_number(&place->die, DW_AT_decl_file, &number))
    frame->decl_file = mic_dwarf_unit_path(place->unit, number);
  if (frame->decl_line == 0 && mic_dwarf_number(&place->die, DW_AT_decl_line, &number) &&
      number < UINT32_MAX)
    frame->decl_line = (uint32_t)number;
}

void mic_dwarf_name(struct mic_dwarf_unit *unit, uint64_t entry, struct mic_dwarf_frame *frame) {
  struct place place = {.unit = unit};
  frame->name = frame->linkage_name = frame->decl_file = MIC_NONE;
  frame->decl_line = 0;
  if (!mic_dwarf_unit_check(unit)) return;
  if (!dwarf_offdie(unit->file->dwarf, entry, &place.die)) return;
  take(&place, frame);
  for (int i = 0; i < CHAIN_MAX; i++) {
    if (!follow(&place, DW_AT_abstract_origin) && !follow(&place, DW_AT_specification)) break;
    take(&place, frame);
  }
  if (frame->linkage_name == MIC_NONE && frame->name != MIC_NONE)
    frame->name = qualify(&place, frame->name);
}
