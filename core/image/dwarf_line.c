/*
 * dwarf_line.c - line programs (DWARF 5, 6.2; versions 2 to 5).
 *
 * A table is decoded once, when an address first needs it, into rows that keep file and line
 * only: rows that differ in columns or statement marks fold into one.  Sequences stay apart, so
 * that those of discarded functions can be told by where they begin.
 */
#include <string.h>

#include "image/dwarf_internal.h"
#include "image/symbols_table.h"

struct program { /* the header's numbers, and the machine's registers */
  struct mic_dwarf_unit *unit;
  struct mic_dwarf_lines *lines;
  uint8_t offset_size;
  uint8_t min_instruction, line_range, opcode_base;
  int8_t line_base;
  const uint8_t *lengths; /* of standard opcodes, from 1 */
  uint64_t address;
  uint64_t file;
  uint64_t line;
  size_t first; /* row of the sequence */
  bool sorted;
};

static struct mic_dwarf_span string_in(const struct mic_dwarf_span *section, uint64_t offset) {
  if (offset >= section->size) return (struct mic_dwarf_span){0};
  const uint8_t *at = section->bytes + offset;
  return (struct mic_dwarf_span){at, strnlen((const char *)at, section->size - offset)};
}

static uint64_t read_offset(struct mic_cursor *c, unsigned size) {
  return size == 8 ? mic_cursor_u64(c) : mic_cursor_u32(c);
}

static struct mic_dwarf_span inline_string(struct mic_cursor *c) {
  const char *string = mic_cursor_string(c);
  return (struct mic_dwarf_span){(const uint8_t *)string, string ? strlen(string) : 0};
}

/* A value of one of the forms that version 5 tables are made of; false for any other form. */
static bool read_form(struct program *p, struct mic_cursor *c, uint64_t form,
                      struct mic_dwarf_span *string, uint64_t *number) {
  const struct mic_dwarf_file *file = p->unit->file;
  const struct mic_dwarf_span *alt = file->alt ? file->alt->sections : file->sections;
  switch (form) {
  case DW_FORM_string: *string = inline_string(c); return true;
  case DW_FORM_line_strp:
    *string = string_in(&file->sections[MIC_SEC_LINE_STR], read_offset(c, p->offset_size));
    return true;
  case DW_FORM_strp:
    *string = string_in(&file->sections[MIC_SEC_STR], read_offset(c, p->offset_size));
    return true;
  case DW_FORM_strp_sup:
  case DW_FORM_GNU_strp_alt:
    *string = string_in(&alt[MIC_SEC_STR], read_offset(c, p->offset_size));
    return true;
  case DW_FORM_udata: *number = mic_cursor_uleb(c); return true;
  case DW_FORM_data1: *number = mic_cursor_u8(c); return true;
  case DW_FORM_data2: *number = mic_cursor_u16(c); return true;
  case DW_FORM_data4: *number = mic_cursor_u32(c); return true;
  case DW_FORM_data8: *number = mic_cursor_u64(c); return true;
  case DW_FORM_data16: mic_cursor_take(c, 16); return true;
  case DW_FORM_block: mic_cursor_take(c, mic_cursor_uleb(c)); return true;
  default: return false;
  }
}

/* One of the two tables of version 5: a description of the fields, then the entries. */
static void read_table(struct program *p, struct mic_cursor *c, bool is_dirs) {
  uint64_t kinds[256], forms[256];
  unsigned fields = mic_cursor_u8(c);
  for (unsigned i = 0; i < fields; i++) {
    kinds[i] = mic_cursor_uleb(c);
    forms[i] = mic_cursor_uleb(c);
  }
  uint64_t count = mic_cursor_uleb(c);
  if (fields == 0 && count > 0) c->bad = true; /* entries of no bytes would never end */
  for (uint64_t i = 0; i < count && !c->bad; i++) {
    struct mic_dwarf_path path = {.full = MIC_NONE};
    for (unsigned k = 0; k < fields && !c->bad; k++) {
      struct mic_dwarf_span string = {0};
      uint64_t number = 0;
      if (!read_form(p, c, forms[k], &string, &number)) c->bad = true;
      if (kinds[k] == DW_LNCT_path) path.name = string;
      if (kinds[k] == DW_LNCT_directory_index) path.dir = number;
    }
    if (is_dirs)
      *mic_vec_push(&p->lines->dirs) = path.name;
    else
      *mic_vec_push(&p->lines->files) = path;
  }
}

static void read_old_file(struct program *p, struct mic_cursor *c, struct mic_dwarf_span name) {
  struct mic_dwarf_path path = {.name = name, .full = MIC_NONE};
  path.dir = mic_cursor_uleb(c);
  mic_cursor_uleb(c); /* time */
  mic_cursor_uleb(c); /* size */
  *mic_vec_push(&p->lines->files) = path;
}

/* The tables before version 5: strings up to an empty one.  Both count from 1, so slot 0 is
 * filled to count alike. */
static void read_old_tables(struct program *p, struct mic_cursor *c) {
  struct mic_dwarf_span string;
  *mic_vec_push(&p->lines->dirs) = (struct mic_dwarf_span){0};
  *mic_vec_push(&p->lines->files) = (struct mic_dwarf_path){.full = MIC_NONE};
  while (string = inline_string(c), !c->bad && string.size > 0)
    *mic_vec_push(&p->lines->dirs) = string;
  while (string = inline_string(c), !c->bad && string.size > 0) read_old_file(p, c, string);
}

static void emit_row(struct program *p) {
  struct mic_dwarf_lines *lines = p->lines;
  uint32_t file = p->file < MIC_NONE ? (uint32_t)p->file : MIC_NONE;
  uint32_t line = p->line < UINT32_MAX ? (uint32_t)p->line : 0;
  struct mic_dwarf_row *last =
    lines->rows.count > p->first ? &lines->rows.at[lines->rows.count - 1] : NULL;
  if (last && last->file == file && last->line == line && last->address <= p->address) return;
  if (last && last->address == p->address) { /* nothing runs on the row before */
    last->file = file;
    last->line = line;
    return;
  }
  if (last && last->address > p->address) p->sorted = false;
  /* The analyzer does not know that rows with room have a place. */
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  *mic_vec_push(&lines->rows) = (struct mic_dwarf_row){p->address, file, line};
}

_Static_assert(offsetof(struct mic_dwarf_row, address) == 0, "mic_sort_records takes it for key");

static void reset(struct program *p) {
  p->address = 0;
  p->file = 1;
  p->line = 1;
  p->first = p->lines->rows.count;
  p->sorted = true;
}

static void end_sequence(struct program *p) {
  struct mic_dwarf_lines *lines = p->lines;
  size_t count = lines->rows.count - p->first;
  bool is_live = false;
  if (count > 0 && count < MIC_NONE) {
    struct mic_dwarf_row *rows = lines->rows.at + p->first;
    if (!p->sorted) mic_sort_records(rows, count, sizeof(struct mic_dwarf_row));
    uint64_t start = rows[0].address;
    is_live = start > 0 && start < p->address &&
              mic_elf_is_code(p->unit->file->owner->source.image, start, 1);
    if (is_live)
      *mic_vec_push(&lines->sequences) =
        (struct mic_dwarf_sequence){start, p->address, p->first, count};
  }
  if (!is_live) lines->rows.count = p->first;
  reset(p);
}

static void run_extended(struct program *p, struct mic_cursor *c) {
  uint64_t size = mic_cursor_uleb(c);
  const uint8_t *body = mic_cursor_take(c, size);
  if (!body || size == 0) return;
  struct mic_cursor in = mic_cursor(body, size);
  switch (mic_cursor_u8(&in)) {
  case DW_LNE_end_sequence: end_sequence(p); break;
  case DW_LNE_set_address:
    p->address = size == 9 ? mic_cursor_u64(&in) : mic_cursor_u32(&in);
    break;
  case DW_LNE_define_file: read_old_file(p, &in, inline_string(&in)); break;
  default: break; /* discriminators, and what others define */
  }
}

static void advance(struct program *p, uint64_t operations) {
  p->address += operations * p->min_instruction; /* x86-64 has one operation an instruction */
}

static void run_standard(struct program *p, struct mic_cursor *c, uint8_t opcode) {
  switch (opcode) {
  case DW_LNS_copy: emit_row(p); break;
  case DW_LNS_advance_pc: advance(p, mic_cursor_uleb(c)); break;
  case DW_LNS_advance_line: p->line += (uint64_t)mic_cursor_sleb(c); break;
  case DW_LNS_set_file: p->file = mic_cursor_uleb(c); break;
  case DW_LNS_const_add_pc: advance(p, (255u - p->opcode_base) / p->line_range); break;
  case DW_LNS_fixed_advance_pc: p->address += mic_cursor_u16(c); break;
  default:
    for (uint8_t i = 0; i < p->lengths[opcode - 1]; i++) mic_cursor_uleb(c);
  }
}

/* Each opcode has a byte at least. */
static bool spend(struct program *p, uint64_t bytes) {
  uint64_t *budget = &p->unit->file->owner->line_budget;
  if (*budget >= bytes) return (*budget) -= bytes, true;
  *budget = 0;
  mic_problem_add(p->unit->file->owner->source.problem,
                  "line programs refer to the same bytes over and over");
  return false;
}

static void run(struct program *p, struct mic_cursor *c) {
  reset(p);
  if (!spend(p, mic_cursor_left(c))) return;
  while (!c->bad && mic_cursor_left(c) > 0) {
    uint8_t opcode = mic_cursor_u8(c);
    if (opcode >= p->opcode_base) {
      unsigned adjusted = (unsigned)(opcode - p->opcode_base);
      advance(p, adjusted / p->line_range);
      p->line += (uint64_t)(int64_t)(p->line_base + (int)(adjusted % p->line_range));
      emit_row(p);
    } else if (opcode == 0) {
      run_extended(p, c);
    } else {
      run_standard(p, c, opcode);
    }
  }
  p->lines->rows.count = p->first; /* a sequence without an end proves no range */
}

/* Reads the header up to the program, and narrows the cursor to it. */
static bool read_header(struct program *p, struct mic_cursor *c) {
  uint64_t length = mic_cursor_u32(c);
  p->offset_size = 4;
  if (length == 0xffffffff) {
    length = mic_cursor_u64(c);
    p->offset_size = 8;
  }
  if (c->bad || length > mic_cursor_left(c)) return false;
  c->end = c->at + length;
  p->lines->version = mic_cursor_u16(c);
  if (p->lines->version < 2 || p->lines->version > 5) return false;
  if (p->lines->version >= 5) mic_cursor_take(c, 2); /* sizes of addresses and segments */
  uint64_t header = read_offset(c, p->offset_size);
  if (c->bad || header > mic_cursor_left(c)) return false;
  const uint8_t *program = c->at + header;
  p->min_instruction = mic_cursor_u8(c);
  if (p->lines->version >= 4) mic_cursor_u8(c); /* operations an instruction */
  mic_cursor_u8(c);                             /* statement by default */
  p->line_base = (int8_t)mic_cursor_u8(c);
  p->line_range = mic_cursor_u8(c);
  p->opcode_base = mic_cursor_u8(c);
  if (c->bad || p->line_range == 0 || p->opcode_base == 0) return false;
  p->lengths = mic_cursor_take(c, p->opcode_base - 1u);
  if (!p->lengths) return false;
  if (p->lines->version >= 5) {
    read_table(p, c, true);
    read_table(p, c, false);
  } else {
    read_old_tables(p, c);
  }
  if (c->bad) return false;
  c->at = program;
  return true;
}

static void cover_sequences(struct mic_dwarf_lines *lines) {
  size_t count = lines->sequences.count;
  struct mic_cover_range *ranges = mic_alloc((count + 1) * sizeof *ranges);
  for (size_t i = 0; i < count; i++)
    ranges[i] = (struct mic_cover_range){lines->sequences.at[i].start, lines->sequences.at[i].end,
                                         (uint32_t)i, 0};
  mic_cover_build(&lines->cover, ranges, count);
  free(ranges);
}

static struct mic_dwarf_lines *read_lines(struct mic_dwarf_unit *unit) {
  struct mic_dwarf_span s = unit->file->sections[MIC_SEC_LINE];
  struct mic_cursor c = mic_dwarf_cursor(s);
  struct mic_dwarf_lines *lines = mic_alloc(sizeof *lines);
  struct program p = {.unit = unit, .lines = lines};
  lines->offset = unit->line_offset;
  if (mic_cursor_seek(&c, unit->line_offset) && read_header(&p, &c))
    run(&p, &c);
  else
    mic_problem_add(unit->file->owner->source.problem,
                    "malformed line program at offset %llu of .debug_line",
                    (unsigned long long)unit->line_offset);
  cover_sequences(lines);
  return lines;
}

struct mic_dwarf_lines *mic_dwarf_unit_lines(struct mic_dwarf_unit *unit) {
  if (unit->skeleton) unit = unit->skeleton; /* a split unit's lines stay with the image */
  if (unit->lines_read) return unit->lines;
  unit->lines_read = true;
  mic_dwarf_unit_read(unit);
  if (!unit->has_lines) return NULL;
  struct mic_dwarf *owner = unit->file->owner;
  uint32_t index = (uint32_t)owner->lines.count;
  bool added;
  index = mic_map_intern(&unit->file->lines, unit->line_offset, 0, index, &added);
  if (added) {
    struct mic_dwarf_lines *lines = read_lines(unit);
    *mic_vec_push(&owner->lines) = lines;
  }
  return unit->lines = owner->lines.at[index];
}

bool mic_dwarf_lines_find(const struct mic_dwarf_lines *lines, uint64_t vaddr, uint32_t *file,
                          uint32_t *line) {
  uint32_t index = mic_cover_find(&lines->cover, vaddr);
  if (index == MIC_NONE) return false;
  const struct mic_dwarf_sequence *s = &lines->sequences.at[index];
  const struct mic_dwarf_row *rows = lines->rows.at + s->first;
  size_t low = 0, high = s->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rows[middle].address <= vaddr)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return false;
  *file = rows[low - 1].file;
  *line = rows[low - 1].line;
  return true;
}

static bool is_absolute(struct mic_dwarf_span s) { return s.size > 0 && s.bytes[0] == '/'; }

static char *append(char *at, const void *bytes, size_t size) {
  if (size > 0) memcpy(at, bytes, size);
  return at + size;
}

/* comp_dir/dir/name, from the first that is absolute on. */
static uint32_t join(struct mic_dwarf_unit *unit, struct mic_dwarf_span dir,
                     struct mic_dwarf_span name) {
  struct mic_interner *strings = unit->file->owner->source.strings;
  struct mic_dwarf_span parts[3] = {{0}, dir, name};
  int from = is_absolute(name) ? 2 : is_absolute(dir) ? 1 : 0;
  if (from == 0) mic_dwarf_unit_names(unit);
  if (unit->comp_dir != MIC_NONE) {
    struct mic_string s = mic_interner_at(strings, unit->comp_dir);
    parts[0] = (struct mic_dwarf_span){(const uint8_t *)s.bytes, s.size};
  }
  char *whole = mic_alloc(parts[0].size + dir.size + name.size + 3), *at = whole;
  for (int i = from; i < 3; i++) {
    at = append(at, parts[i].bytes, parts[i].size);
    if (i < 2 && parts[i].size > 0 && at[-1] != '/') *at++ = '/';
  }
  uint32_t id = mic_intern(strings, whole, (size_t)(at - whole));
  free(whole);
  return id;
}

uint32_t mic_dwarf_unit_path(struct mic_dwarf_unit *unit, uint64_t file) {
  struct mic_dwarf_lines *lines = mic_dwarf_unit_lines(unit);
  if (!lines || file >= lines->files.count) return MIC_NONE;
  struct mic_dwarf_path *path = &lines->files.at[file];
  if (path->full != MIC_NONE) return path->full;
  if (path->name.size == 0) return MIC_NONE;
  struct mic_dwarf_span dir = {0};
  if (path->dir < lines->dirs.count) dir = lines->dirs.at[path->dir];
  if (unit->skeleton) unit = unit->skeleton;
  return path->full = join(unit, dir, path->name);
}

void mic_dwarf_lines_free(struct mic_dwarf_lines *lines) {
  mic_vec_free(&lines->rows);
  mic_vec_free(&lines->sequences);
  mic_vec_free(&lines->files);
  mic_vec_free(&lines->dirs);
  mic_cover_free(&lines->cover);
  free(lines);
}
