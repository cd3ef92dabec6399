/*
 * dwarf_file.c - give debug sections to libdw, and index their units.
 *
 * Sections come from our own ELF reader, unpacked and inside their file, and stand in an ELF
 * descriptor made in memory: libelf never reads a file of others.  What libdw 0.188 trusts and
 * must not is settled first: how many units there are (it allocates for each), how long
 * abbreviations are (it scans their attributes for each entry), and the up to 16 bytes it may
 * read past the end of a section, which are made readable by a copy where the end of a page is
 * nearer.  Strings are bounded by us after it found them.
 */
#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "image/dwarf_internal.h"

enum {
  /* libdw keeps about 250 bytes a unit.  The largest programs have some 100,000. */
  UNITS_MAX = 1 << 20,
  /* Attributes of one abbreviation; compilers write less than 40. */
  ABBREV_ATTRIBUTES_MAX = 512,
  OVERREAD_BYTES = 16, /* the largest fixed-size form, DW_FORM_data16 */
  PAGE_BYTES = 4096,
};
/* libdw reads an abbreviation table again for each unit that refers to it. */
static const uint64_t ABBREV_WORK_MAX_BYTES = (uint64_t)1 << 30;

static const char *const names[MIC_SEC_COUNT] = {
  [MIC_SEC_INFO] = ".debug_info",     [MIC_SEC_ABBREV] = ".debug_abbrev",
  [MIC_SEC_STR] = ".debug_str",       [MIC_SEC_LINE_STR] = ".debug_line_str",
  [MIC_SEC_ADDR] = ".debug_addr",     [MIC_SEC_STR_OFFSETS] = ".debug_str_offsets",
  [MIC_SEC_RANGES] = ".debug_ranges", [MIC_SEC_RNGLISTS] = ".debug_rnglists",
  [MIC_SEC_LINE] = ".debug_line",
};

void mic_dwarf_sections_of(struct mic_elf *elf, const char *suffix, struct mic_dwarf_span *out,
                           struct mic_problem *problem) {
  for (int i = 0; i < MIC_SEC_COUNT; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", names[i], suffix);
    struct mic_elf_section section;
    struct mic_error err = {0};
    out[i] = (struct mic_dwarf_span){0};
    if (mic_elf_section(elf, name, &section, &err))
      out[i] = (struct mic_dwarf_span){section.bytes, section.size};
    else if (err.code != MIC_OK)
      mic_problem_add(problem, "%s", err.msg);
  }
}

/* Makes the bytes just past the section readable. */
static void pad(struct mic_dwarf_file *file, int i) {
  struct mic_dwarf_span *s = &file->sections[i];
  size_t in_page = ((uintptr_t)s->bytes + s->size) & (PAGE_BYTES - 1);
  if (!s->bytes || (in_page > 0 && in_page + OVERREAD_BYTES <= PAGE_BYTES)) return;
  file->padded[i] = mic_alloc(s->size + OVERREAD_BYTES);
  memcpy(file->padded[i], s->bytes, s->size);
  s->bytes = file->padded[i];
}

static bool add_section(Elf *elf, uint32_t name_at, const void *bytes, size_t size, uint32_t type) {
  Elf_Scn *scn = elf_newscn(elf);
  Elf_Data *data = scn ? elf_newdata(scn) : NULL;
  Elf64_Shdr *header = scn ? elf64_getshdr(scn) : NULL;
  if (!data || !header) return false;
  data->d_buf = (void *)(uintptr_t)bytes; /* libdw only reads it */
  data->d_size = size;
  data->d_type = ELF_T_BYTE;
  data->d_align = 1;
  header->sh_name = name_at;
  header->sh_type = type;
  header->sh_size = size;
  return true;
}

/* An ELF descriptor that holds the sections, borrowed, under their plain names. */
static Elf *compose(struct mic_dwarf_file *file) {
  static char strings[256]; /* ".shstrtab" and the names: the same bytes each time */
  uint32_t at[MIC_SEC_COUNT], used = 1;
  for (int i = 0; i < MIC_SEC_COUNT; i++) {
    size_t size = strlen(names[i]) + 1;
    memcpy(strings + used, names[i], size);
    at[i] = used;
    used += (uint32_t)size;
  }
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(file->owner->null_fd, ELF_C_WRITE, NULL); /* never written */
  Elf64_Ehdr *header = elf ? elf64_newehdr(elf) : NULL;
  if (!header) return elf;
  header->e_ident[EI_DATA] = ELFDATA2LSB;
  header->e_machine = EM_X86_64;
  header->e_type = ET_DYN;
  header->e_version = EV_CURRENT;
  for (int i = 0; i < MIC_SEC_COUNT; i++) {
    const struct mic_dwarf_span *s = &file->sections[i];
    if (s->size > 0) add_section(elf, at[i], s->bytes, s->size, SHT_PROGBITS);
  }
  if (!add_section(elf, 0, strings, used, SHT_STRTAB)) return elf;
  size_t count = 0;
  elf_getshdrnum(elf, &count);
  header->e_shstrndx = (uint16_t)(count - 1);
  return elf;
}

/* Reads one unit's header (DWARF 5, 7.5.1); false at the end or when it is malformed. */
static bool read_header(struct mic_cursor *c, struct mic_dwarf_unit *u) {
  u->start = mic_cursor_offset(c);
  uint64_t length = mic_cursor_u32(c);
  u->offset_size = 4;
  if (length == 0xffffffff) {
    length = mic_cursor_u64(c);
    u->offset_size = 8;
  }
  size_t left = mic_cursor_left(c);
  u->end = mic_cursor_offset(c) + (length < left ? length : left);
  u->version = mic_cursor_u16(c);
  u->type = DW_UT_compile;
  if (u->version >= 5) {
    u->type = mic_cursor_u8(c);
    u->address_size = mic_cursor_u8(c);
  }
  u->abbrev = u->offset_size == 8 ? mic_cursor_u64(c) : mic_cursor_u32(c);
  if (u->version < 5) u->address_size = mic_cursor_u8(c);
  if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile) u->dwo_id = mic_cursor_u64(c);
  if (u->type == DW_UT_type || u->type == DW_UT_split_type) mic_cursor_take(c, 8u + u->offset_size);
  u->first_entry = mic_cursor_offset(c);
  return !c->bad && u->version >= 2 && u->version <= 5 && u->first_entry < u->end &&
         length < UINT64_MAX / 2;
}

/* The size of the abbreviation table at an offset; 0 when it is malformed or over a bound. */
static uint64_t abbrev_size(const struct mic_dwarf_span *section, uint64_t offset) {
  struct mic_cursor c = mic_dwarf_cursor(*section);
  if (offset >= section->size || !mic_cursor_seek(&c, offset)) return 0;
  while (!c.bad && mic_cursor_left(&c) > 0 && mic_cursor_uleb(&c) != 0)
    if (mic_dwarf_skip_abbrev(&c) > ABBREV_ATTRIBUTES_MAX) return 0;
  return c.bad ? 0 : mic_cursor_offset(&c) - offset;
}

static bool check_abbrevs(struct mic_dwarf_file *file, uint64_t offset) {
  uint32_t size = mic_map_get(&file->abbrev_sizes, offset, 0);
  if (size == MIC_NONE) {
    uint64_t wide = abbrev_size(&file->sections[MIC_SEC_ABBREV], offset);
    size = wide < MIC_NONE ? (uint32_t)wide : 0;
    mic_map_put(&file->abbrev_sizes, offset, 0, size);
  }
  return size > 0 && mic_dwarf_spend_abbrevs(file, size);
}

static void note_malformed(struct mic_dwarf_file *file, uint64_t start) {
  mic_problem_add(file->owner->source.problem,
                  "malformed debug information (unit at offset %" PRIu64 " of .debug_info)", start);
}

bool mic_dwarf_spend_abbrevs(struct mic_dwarf_file *file, uint64_t bytes) {
  file->abbrev_work += bytes;
  return file->abbrev_work <= ABBREV_WORK_MAX_BYTES;
}

bool mic_dwarf_unit_check(struct mic_dwarf_unit *unit) {
  if (unit->checked) return unit->sound;
  unit->checked = true;
  unit->sound = check_abbrevs(unit->file, unit->abbrev);
  if (!unit->sound) note_malformed(unit->file, unit->start);
  return unit->sound;
}

/* Lists the units.  Those from the first malformed one on are cut off, for libdw too.  Before
 * version 5 libdw looks into each unit on its way to a later one, so their abbreviations are
 * checked here; others' when they are first needed. */
static void index_units(struct mic_dwarf_file *file) {
  struct mic_dwarf_span *info = &file->sections[MIC_SEC_INFO];
  struct mic_cursor c = mic_dwarf_cursor(*info);
  while (mic_cursor_left(&c) > 0) {
    struct mic_dwarf_unit unit = {.file = file, .comp_dir = MIC_NONE, .dwo_name = MIC_NONE};
    size_t start = mic_cursor_offset(&c);
    bool reads = read_header(&c, &unit) && file->units.count < UNITS_MAX;
    unit.checked = unit.sound = reads && unit.version < 5 && check_abbrevs(file, unit.abbrev);
    if (!reads || (unit.version < 5 && !unit.sound)) {
      note_malformed(file, start);
      info->size = start;
      break;
    }
    *mic_vec_push(&file->units) = unit;
    mic_cursor_seek(&c, unit.end);
  }
}

struct mic_dwarf_file *mic_dwarf_file_open(struct mic_dwarf *owner,
                                           const struct mic_dwarf_span *sections,
                                           struct mic_dwarf_file *alt, bool is_split) {
  struct mic_dwarf_file *file = mic_alloc(sizeof *file);
  file->is_split = is_split;
  file->owner = owner;
  file->alt = alt;
  memcpy(file->sections, sections, sizeof file->sections);
  index_units(file);
  for (int i = 0; i < MIC_SEC_COUNT; i++) pad(file, i);
  /* Each byte of a range list or a line program is decoded once, when nothing refers twice to
   * the same; twice that bounds what hostile references can cost. */
  owner->range_budget += 2 * (sections[MIC_SEC_RANGES].size + sections[MIC_SEC_RNGLISTS].size);
  owner->line_budget += 2 * sections[MIC_SEC_LINE].size;
  if (file->units.count > 0) file->elf = compose(file);
  if (file->elf) file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
  if (!file->dwarf) {
    mic_dwarf_file_close(file);
    return NULL;
  }
  if (alt) dwarf_setalt(file->dwarf, alt->dwarf);
  return file;
}

static void free_unit(struct mic_dwarf_unit *unit) {
  mic_vec_free(&unit->functions);
  mic_vec_free(&unit->scopes);
  mic_map_free(&unit->scope_of);
  mic_cover_free(&unit->cover);
}

void mic_dwarf_file_close(struct mic_dwarf_file *file) {
  if (!file) return;
  if (file->dwarf) dwarf_end(file->dwarf);
  if (file->elf) elf_end(file->elf);
  for (size_t i = 0; i < file->units.count; i++) free_unit(&file->units.at[i]);
  mic_vec_free(&file->units);
  mic_map_free(&file->lines);
  mic_map_free(&file->abbrev_sizes);
  mic_map_free(&file->abbrev_at);
  for (int i = 0; i < MIC_SEC_COUNT; i++) free(file->padded[i]);
  free(file);
}

struct mic_dwarf_unit *mic_dwarf_unit_at(struct mic_dwarf_file *file, uint64_t entry) {
  size_t low = 0, high = file->units.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (file->units.at[middle].start <= entry)
      low = middle + 1;
    else
      high = middle;
  }
  struct mic_dwarf_unit *unit = low > 0 ? &file->units.at[low - 1] : NULL;
  return unit && entry >= unit->first_entry && entry < unit->end ? unit : NULL;
}

/* libdw does not check that a string it found by index ends inside its section. */
static size_t bounded_size(const struct mic_dwarf_file *file, const char *string) {
  for (; file; file = file->alt) {
    for (int i = 0; i < MIC_SEC_COUNT; i++) {
      const struct mic_dwarf_span *s = &file->sections[i];
      uintptr_t in = (uintptr_t)string - (uintptr_t)s->bytes;
      if (s->bytes && in < s->size) return strnlen(string, s->size - in);
    }
  }
  return 0;
}

uint32_t mic_dwarf_string(struct mic_dwarf_file *file, Dwarf_Attribute *attr) {
  const char *string = dwarf_formstring(attr);
  size_t size = string ? bounded_size(file, string) : 0;
  return size > 0 ? mic_intern(file->owner->source.strings, string, size) : MIC_NONE;
}

bool mic_dwarf_number(Dwarf_Die *die, unsigned name, uint64_t *out) {
  Dwarf_Attribute attr;
  Dwarf_Word value;
  if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) != 0) return false;
  *out = value;
  return true;
}

static uint32_t string_attribute(struct mic_dwarf_unit *unit, Dwarf_Die *die, unsigned name,
                                 unsigned other) {
  Dwarf_Attribute attr;
  if (!dwarf_attr(die, name, &attr) && !(other && dwarf_attr(die, other, &attr))) return MIC_NONE;
  return mic_dwarf_string(unit->file, &attr);
}

void mic_dwarf_unit_names(struct mic_dwarf_unit *unit) {
  if (unit->names_read) return;
  unit->names_read = true;
  Dwarf_Die die;
  if (!mic_dwarf_unit_check(unit)) return;
  if (!dwarf_offdie(unit->file->dwarf, unit->first_entry, &die)) return;
  unit->comp_dir = string_attribute(unit, &die, DW_AT_comp_dir, 0);
  unit->dwo_name = string_attribute(unit, &die, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
}

static bool value_of(const struct mic_dwarf_unit *unit, enum mic_dwarf_at at, uint64_t *out) {
  if (!mic_dwarf_has(&unit->values, at)) return false;
  *out = unit->values.at[at];
  return true;
}

/* Before version 5 split units are a GNU extension, told by attributes
 * (gcc.gnu.org/wiki/DebugFission). */
static void read_gnu_split(struct mic_dwarf_unit *unit) {
  value_of(unit, MIC_AT_GNU_RANGES_BASE, &unit->ranges_base);
  if (!value_of(unit, MIC_AT_GNU_DWO_ID, &unit->dwo_id)) return;
  /* Both may carry the name and both may have children: where it stands tells them apart. */
  unit->type = unit->file->is_split ? DW_UT_split_compile : DW_UT_skeleton;
}

void mic_dwarf_unit_read(struct mic_dwarf_unit *unit) {
  if (unit->attributes_read) return;
  unit->attributes_read = true;
  uint32_t tag;
  unit->attributes_known = mic_dwarf_values_at(unit, unit->first_entry, &tag, &unit->values);
  if (!unit->attributes_known) {
    unit->values.has = 0;
    return;
  }
  if (unit->version < 5 && tag == DW_TAG_partial_unit) unit->type = DW_UT_partial;
  if (unit->version < 5) read_gnu_split(unit);
  unit->has_lines = value_of(unit, MIC_AT_STMT_LIST, &unit->line_offset);
  if (!value_of(unit, MIC_AT_ADDR_BASE, &unit->addr_base))
    value_of(unit, MIC_AT_GNU_ADDR_BASE, &unit->addr_base);
  uint64_t low;
  if (mic_dwarf_low_pc(unit, &unit->values, &low)) unit->base = low;
  /* Without the attribute the offsets follow the header of the only table (7.28). */
  if (!value_of(unit, MIC_AT_RNGLISTS_BASE, &unit->rnglists_base))
    unit->rnglists_base = unit->offset_size == 8 ? 20 : 12;
}
