/*
 * dwarf_value.c - the numbers among an entry's attributes, without libdw.
 *
 * Indexing units and functions reads few attributes of many entries.  libdw looks an entry's
 * abbreviation up for each attribute, under a lock, and keeps all it has read; here an entry is
 * read once, left to right, by its abbreviation (DWARF 5, 7.5.3 to 7.5.5).
 */
#include "image/dwarf_internal.h"

/* The size of a form when it is the same for every entry, else MIC_FORM_VARYING. */
uint32_t mic_dwarf_fixed_size(const struct mic_dwarf_unit *unit, uint64_t form) {
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
  default: return MIC_FORM_VARYING;
  }
}

/* Steps over one value; an unknown form makes the cursor bad. */
void mic_dwarf_skip_form(const struct mic_dwarf_unit *unit, struct mic_cursor *c, uint64_t form) {
  uint32_t size = mic_dwarf_fixed_size(unit, form);
  if (size != MIC_FORM_VARYING) {
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
      mic_dwarf_skip_form(unit, c, form);
    break;
  default: c->bad = true;
  }
}

/* The place of an attribute among a mic_dwarf_values, or MIC_AT_COUNT. */
static enum mic_dwarf_at place_of(uint64_t name) {
  switch (name) {
  case DW_AT_low_pc: return MIC_AT_LOW_PC;
  case DW_AT_high_pc: return MIC_AT_HIGH_PC;
  case DW_AT_ranges: return MIC_AT_RANGES;
  case DW_AT_stmt_list: return MIC_AT_STMT_LIST;
  case DW_AT_addr_base: return MIC_AT_ADDR_BASE;
  case DW_AT_GNU_addr_base: return MIC_AT_GNU_ADDR_BASE;
  case DW_AT_rnglists_base: return MIC_AT_RNGLISTS_BASE;
  case DW_AT_GNU_ranges_base: return MIC_AT_GNU_RANGES_BASE;
  case DW_AT_GNU_dwo_id: return MIC_AT_GNU_DWO_ID;
  case DW_AT_call_file: return MIC_AT_CALL_FILE;
  case DW_AT_call_line: return MIC_AT_CALL_LINE;
  default: return MIC_AT_COUNT;
  }
}

/* A value that is a number, an address or an index of one; false for all else, stepped over. */
static bool read_number(const struct mic_dwarf_unit *unit, struct mic_cursor *c,
                        const struct mic_dwarf_form *form, uint64_t *out) {
  switch (form->form) {
  case DW_FORM_data1:
  case DW_FORM_addrx1: *out = mic_cursor_u8(c); return true;
  case DW_FORM_data2:
  case DW_FORM_addrx2: *out = mic_cursor_u16(c); return true;
  case DW_FORM_addrx3: {
    const uint8_t *b = mic_cursor_take(c, 3);
    if (b) *out = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16;
    return b != NULL;
  }
  case DW_FORM_data4:
  case DW_FORM_addrx4: *out = mic_cursor_u32(c); return true;
  case DW_FORM_data8: *out = mic_cursor_u64(c); return true;
  case DW_FORM_sdata: *out = (uint64_t)mic_cursor_sleb(c); return true;
  case DW_FORM_udata:
  case DW_FORM_addrx:
  case DW_FORM_GNU_addr_index:
  case DW_FORM_rnglistx: *out = mic_cursor_uleb(c); return true;
  case DW_FORM_implicit_const: *out = (uint64_t)form->constant; return true;
  case DW_FORM_sec_offset:
    *out = unit->offset_size == 8 ? mic_cursor_u64(c) : mic_cursor_u32(c);
    return true;
  case DW_FORM_addr:
    if (unit->address_size != 8) break;
    *out = mic_cursor_u64(c);
    return true;
  default: break;
  }
  mic_dwarf_skip_form(unit, c, form->form);
  return false;
}

void mic_dwarf_read_values(const struct mic_dwarf_unit *unit, struct mic_cursor *c,
                           const struct mic_dwarf_form *forms, size_t count,
                           struct mic_dwarf_values *out) {
  out->has = 0;
  for (size_t i = 0; i < count && !c->bad; i++) {
    enum mic_dwarf_at place = forms[i].place;
    if (place == MIC_AT_COUNT) {
      if (forms[i].size != MIC_FORM_VARYING)
        mic_cursor_take(c, forms[i].size);
      else
        mic_dwarf_skip_form(unit, c, forms[i].form);
    } else if (read_number(unit, c, &forms[i], &out->at[place]) && !c->bad) {
      out->has |= (uint16_t)(1U << place);
      out->form[place] = forms[i].form;
    }
  }
}

bool mic_dwarf_read_form(const struct mic_dwarf_unit *unit, struct mic_cursor *c,
                         struct mic_dwarf_form *out) {
  uint64_t name = mic_cursor_uleb(c), form = mic_cursor_uleb(c);
  if (name == 0 && form == 0) return false;
  *out = (struct mic_dwarf_form){.form = form <= UINT16_MAX ? (uint16_t)form : 0};
  if (form == DW_FORM_implicit_const) out->constant = mic_cursor_sleb(c);
  out->size = (uint16_t)mic_dwarf_fixed_size(unit, form);
  out->place = (uint8_t)place_of(name);
  return !c->bad;
}

uint64_t mic_dwarf_skip_abbrev(struct mic_cursor *table) {
  mic_cursor_uleb(table); /* tag */
  mic_cursor_u8(table);   /* has children */
  uint64_t name, form, count = 0;
  do {
    name = mic_cursor_uleb(table);
    form = mic_cursor_uleb(table);
    if (form == DW_FORM_implicit_const) mic_cursor_sleb(table);
    count++;
  } while (!table->bad && (name != 0 || form != 0));
  return count;
}

/* Seek an abbreviation, to what follows its code.  Where one was is remembered: a function's are
 * asked for again, and tables may be long. */
static bool seek_abbrev(const struct mic_dwarf_unit *unit, struct mic_cursor *table,
                        uint64_t wanted) {
  struct mic_dwarf_file *file = unit->file;
  uint32_t known = mic_map_get(&file->abbrev_at, unit->abbrev, wanted);
  if (known != MIC_NONE) return mic_cursor_seek(table, unit->abbrev + known);
  if (wanted == 0 || !mic_cursor_seek(table, unit->abbrev)) return false;
  uint64_t code = mic_cursor_uleb(table);
  while (!table->bad && code != 0 && code != wanted) {
    mic_dwarf_skip_abbrev(table);
    code = mic_cursor_uleb(table);
  }
  uint64_t walked = mic_cursor_offset(table) - unit->abbrev;
  if (!mic_dwarf_spend_abbrevs(file, walked) || table->bad || code == 0) return false;
  if (walked < MIC_NONE) mic_map_put(&file->abbrev_at, unit->abbrev, wanted, (uint32_t)walked);
  return true;
}

bool mic_dwarf_values_at(const struct mic_dwarf_unit *unit, uint64_t entry, uint32_t *tag,
                         struct mic_dwarf_values *out) {
  struct mic_dwarf_span info = unit->file->sections[MIC_SEC_INFO];
  struct mic_cursor c = mic_dwarf_cursor(info);
  struct mic_cursor table = mic_dwarf_cursor(unit->file->sections[MIC_SEC_ABBREV]);
  if (unit->end > info.size || !mic_cursor_seek(&c, entry)) return false;
  c.end = info.bytes + unit->end;
  if (!seek_abbrev(unit, &table, mic_cursor_uleb(&c))) return false;
  MIC_VEC(struct mic_dwarf_form) forms = {0};
  struct mic_dwarf_form form;
  *tag = (uint32_t)mic_cursor_uleb(&table);
  mic_cursor_u8(&table); /* has children */
  while (mic_dwarf_read_form(unit, &table, &form)) *mic_vec_push(&forms) = form;
  if (!table.bad) mic_dwarf_read_values(unit, &c, forms.at, forms.count, out);
  mic_vec_free(&forms);
  return !table.bad && !c.bad;
}
