/* dwarf_internal.h - what the dwarf*.c files share: files, units, lines, functions. */
#ifndef MIC_IMAGE_DWARF_INTERNAL_H
#define MIC_IMAGE_DWARF_INTERNAL_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/map.h"
#include "image/dwarf.h"
#include "image/symbols_cover.h"

enum mic_dwarf_section {
  MIC_SEC_INFO,
  MIC_SEC_ABBREV,
  MIC_SEC_STR,
  MIC_SEC_LINE_STR,
  MIC_SEC_STR_OFFSETS,
  MIC_SEC_ADDR,
  MIC_SEC_RANGES,
  MIC_SEC_RNGLISTS,
  MIC_SEC_LINE,
  MIC_SEC_COUNT
};

struct mic_dwarf_span {
  const uint8_t *bytes; /* NULL: absent */
  size_t size;
};
static inline struct mic_cursor mic_dwarf_cursor(struct mic_dwarf_span span) {
  return span.bytes ? mic_cursor(span.bytes, span.size) : mic_cursor("", 0);
}

/* One row of a line program: from address on, up to the next row of its sequence. */
struct mic_dwarf_row {
  uint64_t address;
  uint32_t file, line;
};
struct mic_dwarf_sequence {
  uint64_t start, end;
  size_t first, count; /* rows */
};
struct mic_dwarf_path {
  struct mic_dwarf_span name;
  uint64_t dir;
  uint32_t full; /* id of the whole path, once made */
};
struct mic_dwarf_lines {
  uint64_t offset; /* in .debug_line */
  uint16_t version;
  MIC_VEC(struct mic_dwarf_row) rows;
  MIC_VEC(struct mic_dwarf_sequence) sequences;
  MIC_VEC(struct mic_dwarf_path) files;
  MIC_VEC(struct mic_dwarf_span) dirs;
  struct mic_cover cover; /* address -> sequence */
};

/* The attributes that indexing reads. */
enum mic_dwarf_at {
  MIC_AT_LOW_PC,
  MIC_AT_HIGH_PC,
  MIC_AT_RANGES,
  MIC_AT_STMT_LIST,
  MIC_AT_ADDR_BASE,
  MIC_AT_GNU_ADDR_BASE,
  MIC_AT_RNGLISTS_BASE,
  MIC_AT_GNU_RANGES_BASE,
  MIC_AT_GNU_DWO_ID,
  MIC_AT_CALL_FILE,
  MIC_AT_CALL_LINE,
  MIC_AT_COUNT
};
enum { MIC_FORM_VARYING = UINT16_MAX };
struct mic_dwarf_form { /* of an attribute of an abbreviation */
  int64_t constant;     /* DW_FORM_implicit_const: the value */
  uint16_t form;
  uint16_t size; /* or MIC_FORM_VARYING */
  uint8_t place; /* enum mic_dwarf_at; MIC_AT_COUNT: not read */
};
struct mic_dwarf_values {
  uint16_t has; /* bit i: at[i] was there, and a number */
  uint16_t form[MIC_AT_COUNT];
  uint64_t at[MIC_AT_COUNT]; /* as written: addresses may be indexes */
};
static inline bool mic_dwarf_has(const struct mic_dwarf_values *values, enum mic_dwarf_at at) {
  return values->has >> at & 1;
}

/* A function or an inlined one, in the order of the entries of its unit. */
struct mic_dwarf_function {
  uint64_t entry;  /* offset of its entry in .debug_info */
  uint32_t parent; /* the function it is inlined into; MIC_NONE: it is none inlined */
  uint32_t call_file, call_line;
  bool is_named; /* what follows was read */
  uint32_t name, linkage_name, decl_file, decl_line;
};
struct mic_dwarf_scope { /* a namespace, a class, or a function: part of a qualified name */
  uint64_t entry;
  uint32_t parent; /* MIC_NONE: at the top */
};

struct mic_dwarf_unit {
  struct mic_dwarf_file *file;
  uint64_t start, end;  /* in .debug_info */
  uint64_t first_entry; /* offset of the unit's own entry */
  uint64_t abbrev;
  uint64_t dwo_id;
  uint16_t version;
  uint8_t type; /* DW_UT_*; before version 5 DW_UT_compile until known better */
  uint8_t address_size, offset_size;
  bool attributes_read, functions_read, lines_read, split_tried, split_stale, scopes_read;
  /* Of the unit's own entry. */
  bool attributes_known, names_read;
  bool checked, sound; /* its abbreviations are within their bounds */
  struct mic_dwarf_values values;
  uint64_t base, ranges_base, rnglists_base, addr_base;
  uint64_t line_offset;
  bool has_lines;
  uint32_t comp_dir, dwo_name;     /* ids of strings, after mic_dwarf_unit_names */
  struct mic_dwarf_unit *split;    /* what a skeleton stands for */
  struct mic_dwarf_unit *skeleton; /* of a split unit */
  struct mic_dwarf_lines *lines;
  MIC_VEC(struct mic_dwarf_function) functions;
  struct mic_cover cover; /* address -> function */
  MIC_VEC(struct mic_dwarf_scope) scopes;
  struct mic_map scope_of; /* entry -> scope */
};

/* One set of debug sections, as libdw reads it: of an image, a dwz file, a .dwo, or the part of
 * a .dwp that one unit contributed. */
struct mic_dwarf_file {
  struct mic_dwarf *owner;
  bool is_split;
  struct mic_dwarf_span sections[MIC_SEC_COUNT];
  uint8_t *padded[MIC_SEC_COUNT]; /* copies made of sections; see dwarf_file.c */
  Elf *elf;
  Dwarf *dwarf;
  struct mic_dwarf_file *alt;
  MIC_VEC(struct mic_dwarf_unit) units; /* in order of start; fixed once open */
  struct mic_map abbrev_sizes; /* offset of a table of abbreviations -> its size, 0: malformed */
  struct mic_map abbrev_at;    /* (its table, code) -> an abbreviation's place in it */
  uint64_t abbrev_work;        /* bytes of such tables read, again and again */
  struct mic_map lines;        /* offset -> owner's line tables */
};

struct mic_dwarf {
  struct mic_dwarf_source source;
  struct mic_dwarf_file *main, *alt;
  struct mic_debugfile alt_file;
  MIC_VEC(struct mic_dwarf_file *) split_files;
  MIC_VEC(struct mic_elf *) split_elves; /* .dwo and .dwp files, open till close */
  struct mic_map split_names;            /* id of a path -> index of split_elves */
  MIC_VEC(struct mic_dwarf_lines *) lines;
  bool indexed;
  struct mic_cover cover;             /* address -> unit of main */
  uint64_t range_budget, line_budget; /* work left; see dwarf_file.c */
  int null_fd;
};

/* dwarf_file.c */
struct mic_dwarf_file *mic_dwarf_file_open(struct mic_dwarf *owner,
                                           const struct mic_dwarf_span *sections,
                                           struct mic_dwarf_file *alt, bool is_split);
void mic_dwarf_file_close(struct mic_dwarf_file *file);
void mic_dwarf_sections_of(struct mic_elf *elf, const char *suffix, struct mic_dwarf_span *out,
                           struct mic_problem *problem);
struct mic_dwarf_unit *mic_dwarf_unit_at(struct mic_dwarf_file *file, uint64_t entry);
/* Before libdw or a walk looks into a unit: its abbreviations are what both can bear. */
bool mic_dwarf_unit_check(struct mic_dwarf_unit *unit);
/* Counts bytes of abbreviations that are read; false when it is too much. */
bool mic_dwarf_spend_abbrevs(struct mic_dwarf_file *file, uint64_t bytes);
/* Reads the numbers of the unit's own entry, once. */
void mic_dwarf_unit_read(struct mic_dwarf_unit *unit);
/* Reads comp_dir and dwo_name, once. */
void mic_dwarf_unit_names(struct mic_dwarf_unit *unit);
/* The string value of an attribute, interned; MIC_NONE when it has none. */
uint32_t mic_dwarf_string(struct mic_dwarf_file *file, Dwarf_Attribute *attr);
bool mic_dwarf_number(Dwarf_Die *die, unsigned name, uint64_t *out);

/* dwarf_range.c */
/* Appends the ranges of an entry that begin in executable memory. */
void mic_dwarf_ranges_of(struct mic_dwarf_unit *unit, const struct mic_dwarf_values *values,
                         struct mic_dwarf_ranges *out);
/* The address that DW_AT_low_pc says, by itself or by an index. */
bool mic_dwarf_low_pc(struct mic_dwarf_unit *unit, const struct mic_dwarf_values *values,
                      uint64_t *out);

/* dwarf_line.c */
struct mic_dwarf_lines *mic_dwarf_unit_lines(struct mic_dwarf_unit *unit);
bool mic_dwarf_lines_find(const struct mic_dwarf_lines *lines, uint64_t vaddr, uint32_t *file,
                          uint32_t *line);
/* The id of a file's path, or MIC_NONE. */
uint32_t mic_dwarf_unit_path(struct mic_dwarf_unit *unit, uint64_t file);
void mic_dwarf_lines_free(struct mic_dwarf_lines *lines);

/* dwarf_function.c */
void mic_dwarf_unit_functions(struct mic_dwarf_unit *unit);

/* dwarf_value.c */
uint32_t mic_dwarf_fixed_size(const struct mic_dwarf_unit *unit, uint64_t form);
void mic_dwarf_skip_form(const struct mic_dwarf_unit *unit, struct mic_cursor *c, uint64_t form);
/* From an abbreviation's code past its end; gives how many attributes it has, the last one too. */
uint64_t mic_dwarf_skip_abbrev(struct mic_cursor *table);
/* The next attribute of an abbreviation; false past the last. */
bool mic_dwarf_read_form(const struct mic_dwarf_unit *unit, struct mic_cursor *c,
                         struct mic_dwarf_form *out);
/* Reads an entry's values, and the cursor past it. */
void mic_dwarf_read_values(const struct mic_dwarf_unit *unit, struct mic_cursor *c,
                           const struct mic_dwarf_form *forms, size_t count,
                           struct mic_dwarf_values *out);
/* Those of one entry; false when it cannot be read. */
bool mic_dwarf_values_at(const struct mic_dwarf_unit *unit, uint64_t entry, uint32_t *tag,
                         struct mic_dwarf_values *out);

/* dwarf_walk.c */
/* Is an entry wanted?  has_code: it may have ranges. */
typedef bool mic_dwarf_wants(int tag, bool has_code);
/* Calls visit for each entry below the unit's own that is wanted, parents first.  visit gets
 * what it returned for the nearest such entry around (MIC_NONE at the top). */
struct mic_dwarf_entry {
  uint64_t offset; /* in .debug_info */
  int tag;
  unsigned depth;
  struct mic_dwarf_values values; /* of entries that have code */
};
typedef uint32_t mic_dwarf_visit(struct mic_dwarf_unit *unit, const struct mic_dwarf_entry *entry,
                                 uint32_t above, void *context);
/* False, and a problem, when entries are nested too deep to visit all. */
bool mic_dwarf_walk(struct mic_dwarf_unit *unit, mic_dwarf_wants *wants, mic_dwarf_visit *visit,
                    void *context);

/* dwarf_name.c */
/* Fills name, linkage_name, decl_file and decl_line of the function at an entry. */
void mic_dwarf_name(struct mic_dwarf_unit *unit, uint64_t entry, struct mic_dwarf_frame *frame);

/* dwarf_split.c */
/* The unit that a skeleton stands for, or NULL. */
struct mic_dwarf_unit *mic_dwarf_split(struct mic_dwarf_unit *skeleton);

#endif
