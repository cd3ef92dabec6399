/*
 * symbols.c - put together what an address means.
 *
 * The symbol table names the function that is really there; DWARF tells which others were
 * inlined into it, and lines.  A sized symbol's name stands for the outermost frame, with or
 * without debug information, so that a function has one name either way.  Where neither has a
 * name call-frame information still tells where the function begins.
 */
#include "image/symbols.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "image/debugfile.h"
#include "image/demangle.h"
#include "image/dwarf.h"
#include "image/elf.h"
#include "image/extent.h"
#include "image/symbols_mini.h"
#include "image/symbols_problem.h"
#include "image/symbols_table.h"

/* Cached frames before the cache starts again: 48 MiB; a recording has fewer locations. */
enum { CACHED_FRAMES_MAX = 1 << 20 };
/* A function that debug information has, between others, without saying what it is called. */
static const char UNNAMED[] = "[function without a name]";

struct result {
  size_t first;
  size_t count;
};

struct mic_symbols {
  char *path, *root, *name;
  char *(*find_file)(void *data, const uint8_t *build_id, size_t size);
  void *find_data;
  char **debug_dirs; /* copies, NULL-terminated; NULL: default */
  struct mic_elf *image, *mini;
  uint8_t *mini_bytes;
  struct mic_debugfile debug;
  struct mic_symtab table;
  struct mic_dwarf *dwarf;
  struct mic_extents extents;
  struct mic_interner strings;
  uint32_t no_symbol;      /* "": the linkage name of what has none */
  struct mic_map linkages; /* entry of the table -> id of its name */
  struct mic_map pieces;   /* start of a piece of code -> id of its name */
  struct mic_map shown;    /* id of a linkage name -> id of the name shown for it */
  struct mic_map cache;    /* address -> results */
  MIC_VEC(struct result) results;
  MIC_VEC(struct mic_symbol) frames;
  struct mic_problem problem;
};

static char *copy_string(const char *string) {
  return string ? mic_strndup(string, strlen(string)) : NULL;
}

static char **copy_dirs(const char *const *dirs) {
  if (!dirs) return NULL;
  size_t count = 0;
  while (dirs[count]) count++;
  char **copy = mic_alloc((count + 1) * sizeof *copy);
  for (size_t i = 0; i < count; i++) copy[i] = copy_string(dirs[i]);
  return copy;
}

static struct mic_debugfile_search search_of(const struct mic_symbols *s) {
  return (struct mic_debugfile_search){.path = s->path,
                                       .root = s->root,
                                       .debug_dirs = (const char *const *)s->debug_dirs,
                                       .find_file = s->find_file,
                                       .find_data = s->find_data};
}

static void add_table(struct mic_symbols *s, struct mic_elf *elf, const char *section,
                      const char *strings) {
  struct mic_error err = {0};
  mic_symtab_add(&s->table, elf, section, strings, s->image, &err);
  if (err.code != MIC_OK) mic_problem_add(&s->problem, "%s", err.msg);
}

static void add_mini(struct mic_symbols *s) {
  struct mic_elf_section packed;
  struct mic_error err = {0};
  size_t size;
  if (!mic_elf_section(s->image, ".gnu_debugdata", &packed, &err)) return;
  if (mic_mini_unpack(packed.bytes, packed.size, &s->mini_bytes, &size, &err) == MIC_OK &&
      mic_elf_open_memory(s->mini_bytes, size, ".gnu_debugdata", &s->mini, &err) == MIC_OK)
    add_table(s, s->mini, ".symtab", ".strtab");
  else
    mic_problem_add(&s->problem, "%s", err.msg);
}

static bool has_section(struct mic_elf *elf, const char *name) {
  struct mic_elf_section s;
  return mic_elf_section(elf, name, &s, NULL);
}

static void read_tables(struct mic_symbols *s) {
  if (!has_section(s->image, ".debug_info")) {
    struct mic_debugfile_search search = search_of(s);
    mic_debugfile_find(&search, s->image, &s->debug, &s->problem);
  }
  add_table(s, s->image, ".symtab", ".strtab");
  if (s->debug.elf) add_table(s, s->debug.elf, ".symtab", ".strtab");
  /* What .dynsym has, .symtab has too. */
  if (s->table.entries.count == 0) add_table(s, s->image, ".dynsym", ".dynstr");
  add_mini(s);
  mic_symtab_add_plt(&s->table, s->image);
  mic_symtab_finish(&s->table);
}

static void open_dwarf(struct mic_symbols *s) {
  struct mic_dwarf_source source = {
    .elf = s->debug.elf ? s->debug.elf : s->image,
    .image = s->image,
    .path = s->debug.elf ? s->debug.path : s->path,
    .search = search_of(s),
    .strings = &s->strings,
    .problem = &s->problem,
  };
  mic_dwarf_open(&source, &s->dwarf);
}

static int open_image(const struct mic_symbols_source *source, struct mic_symbols *s,
                      struct mic_error *err) {
  const char *name = source->path ? source->path : "image";
  if (source->fd >= 0) return mic_elf_open(source->fd, name, &s->image, err);
  return mic_elf_open_memory(source->memory, source->memory_size, name, &s->image, err);
}

int mic_symbols_open(const struct mic_symbols_source *source, struct mic_symbols **out,
                     struct mic_error *err) {
  *out = NULL;
  struct mic_symbols *s = mic_alloc(sizeof *s);
  s->path = copy_string(source->path);
  s->root = copy_string(source->root ? source->root : "");
  s->debug_dirs = copy_dirs(source->debug_dirs);
  s->name = copy_string(source->name);
  s->find_file = source->find_file;
  s->find_data = source->find_data;
  int code = open_image(source, s, err);
  if (code != MIC_OK) {
    mic_symbols_close(s);
    return code;
  }
  s->extents.elf = s->image;
  s->no_symbol = mic_intern(&s->strings, "", 0);
  read_tables(s);
  open_dwarf(s);
  *out = s;
  return MIC_OK;
}

static const char *string_at(const struct mic_symbols *s, uint32_t id) {
  return id == MIC_NONE ? NULL : mic_interner_at(&s->strings, id).bytes;
}

/* The size of a name without "@VERSION" or "@@VERSION"; what follows is "" or "@plt". */
static size_t size_without_version(const char *name, size_t size, const char **suffix) {
  const char *at = memchr(name + (size > 0), '@', size - (size > 0));
  *suffix = "";
  if (!at) return size;
  if (size > 4 && memcmp(name + size - 4, "@plt", 4) == 0) *suffix = "@plt";
  return (size_t)(at - name);
}

/* The name shown for a linkage name, found once. */
static uint32_t show(struct mic_symbols *s, uint32_t linkage) {
  uint32_t known = mic_map_get(&s->shown, linkage, 0);
  if (known != MIC_NONE) return known;
  struct mic_string full = mic_interner_at(&s->strings, linkage);
  const char *suffix;
  size_t size = size_without_version(full.bytes, full.size, &suffix);
  char *base = mic_strndup(full.bytes, size);
  char *demangled = mic_demangle(base);
  const char *name = demangled ? demangled : base;
  size_t name_size = strlen(name), suffix_size = strlen(suffix);
  char *joined = mic_alloc(name_size + suffix_size + 1);
  memcpy(joined, name, name_size);
  memcpy(joined + name_size, suffix, suffix_size);
  uint32_t shown = mic_intern(&s->strings, joined, name_size + suffix_size);
  mic_map_put(&s->shown, linkage, 0, shown);
  free(joined);
  free(demangled);
  free(base);
  return shown;
}

static uint32_t entry_linkage(struct mic_symbols *s, uint32_t entry) {
  uint32_t known = mic_map_get(&s->linkages, entry, 0);
  if (known != MIC_NONE) return known;
  size_t size;
  const char *name = mic_symtab_name(&s->table, entry, &size);
  known = mic_intern(&s->strings, name, size);
  mic_map_put(&s->linkages, entry, 0, known);
  return known;
}

static void push_frame(struct mic_symbols *s, const struct mic_dwarf_frame *f) {
  uint32_t linkage = f->linkage_name != MIC_NONE ? f->linkage_name : f->name;
  bool is_shown = f->linkage_name != MIC_NONE && f->linkage_name != s->no_symbol;
  uint32_t name = is_shown ? show(s, f->linkage_name) : f->name;
  if (name == MIC_NONE) name = linkage = mic_intern(&s->strings, UNNAMED, sizeof UNNAMED - 1);
  *mic_vec_push(&s->frames) = (struct mic_symbol){
    .name = string_at(s, name),
    .linkage_name = string_at(s, linkage),
    .file = string_at(s, f->file),
    .line = f->line,
    .decl_file = string_at(s, f->decl_file),
    .decl_line = f->decl_line,
  };
}

static bool is_named(const struct mic_dwarf_frame *f) {
  return f->name != MIC_NONE || f->linkage_name != MIC_NONE;
}

/* A file that shrank gave zeros where it had no bytes any more: nothing of it is believed. */
static bool is_damaged(struct mic_symbols *s) {
  struct mic_elf *elf = mic_elf_damaged(s->image)                       ? s->image
                        : s->debug.elf && mic_elf_damaged(s->debug.elf) ? s->debug.elf
                                                                        : NULL;
  if (elf) mic_problem_add(&s->problem, "%s: the file shrank while it was read", mic_elf_name(elf));
  return elf != NULL;
}

/* "libfoo.so+0x1130" for an address without a symbol, in code that begins there; or MIC_NONE.
 * What a symbol covers is the symbol's: an FDE that begins in one is not told by its start. */
static uint32_t extent_name(struct mic_symbols *s, uint64_t vaddr) {
  struct mic_extent extent;
  bool sized;
  if (!mic_extent_find(&s->extents, vaddr, &extent)) return MIC_NONE;
  mic_symtab_find(&s->table, extent.start, &sized);
  if (sized) return MIC_NONE;
  uint32_t known = mic_map_get(&s->pieces, extent.start, 0);
  if (known != MIC_NONE) return known;
  const char *path = s->path ? s->path : "image", *slash = strrchr(path, '/');
  const char *module = s->name ? s->name : slash && slash[1] ? slash + 1 : path;
  size_t size = strlen(module) + sizeof "+0x0123456789abcdef";
  char *text = mic_alloc(size);
  int length = snprintf(text, size, "%s+0x%" PRIx64, module, extent.start);
  uint32_t name = mic_intern(&s->strings, text, (size_t)length);
  free(text);
  mic_map_put(&s->pieces, extent.start, 0, name);
  return name;
}

/* Names the outermost frame, that of the function that holds the code, where a symbol does or,
 * when nothing else does, call-frame information. */
static size_t name_outermost(struct mic_symbols *s, uint64_t vaddr, struct mic_dwarf_frame *frames,
                             size_t count) {
  bool sized;
  uint32_t entry = mic_symtab_find(&s->table, vaddr, &sized);
  /* Code of one entry without a name proves no more than no entry does. */
  if (count == 1 && !is_named(&frames[0])) count = 0;
  /* Of so many the last may be inlined into others. */
  if (count == MIC_DWARF_FRAMES_MAX) return count;
  struct mic_dwarf_frame *outermost = &frames[count > 0 ? count - 1 : 0];
  if (entry != MIC_NONE && (sized || count == 0)) {
    outermost->linkage_name = entry_linkage(s, entry);
    return count > 0 ? count : 1;
  }
  if (count > 0 && is_named(outermost)) return count;
  uint32_t name = extent_name(s, vaddr);
  if (name == MIC_NONE) return count;
  outermost->name = name;
  outermost->linkage_name = s->no_symbol;
  return count > 0 ? count : 1;
}

static struct result find(struct mic_symbols *s, uint64_t vaddr) {
  const uint32_t none = MIC_NONE;
  struct mic_dwarf_frame frames[MIC_DWARF_FRAMES_MAX];
  frames[0] = (struct mic_dwarf_frame){none, none, none, 0, none, 0};
  size_t count = s->dwarf ? mic_dwarf_lookup(s->dwarf, vaddr, frames) : 0;
  count = name_outermost(s, vaddr, frames, count);
  if (is_damaged(s)) count = 0;
  struct result result = {s->frames.count, count};
  for (size_t i = 0; i < count; i++) push_frame(s, &frames[i]);
  return result;
}

static void empty_cache(struct mic_symbols *s) {
  s->frames.count = 0;
  s->results.count = 0;
  mic_map_free(&s->cache);
}

size_t mic_symbols_lookup(struct mic_symbols *s, uint64_t vaddr, const struct mic_symbol **out) {
  uint32_t known = mic_map_get(&s->cache, vaddr, 0);
  if (known == MIC_NONE) {
    if (s->frames.count > CACHED_FRAMES_MAX || s->results.count > CACHED_FRAMES_MAX) empty_cache(s);
    known = (uint32_t)s->results.count;
    struct result result = find(s, vaddr);
    *mic_vec_push(&s->results) = result;
    mic_map_put(&s->cache, vaddr, 0, known);
  }
  struct result result = s->results.at[known];
  *out = result.count > 0 ? s->frames.at + result.first : NULL;
  return result.count;
}

_Static_assert(offsetof(struct mic_symbol_range, start) == 0, "mic_sort_records takes it for key");

/* The code of the outermost function, as its symbol or what stands in for one bounds it. */
static bool outermost_extent(struct mic_symbols *s, uint64_t vaddr, const struct mic_symbol *frame,
                             struct mic_symbol_range *out) {
  bool sized;
  uint32_t entry = mic_symtab_find(&s->table, vaddr, &sized);
  if (entry != MIC_NONE && sized) {
    const struct mic_symtab_entry *e = &s->table.entries.at[entry];
    *out = (struct mic_symbol_range){e->value, e->value + e->size};
    return true;
  }
  struct mic_extent extent;
  if (frame->linkage_name[0] != '\0' || !mic_extent_find(&s->extents, vaddr, &extent)) return false;
  *out = (struct mic_symbol_range){extent.start, extent.end};
  return true;
}

void mic_symbols_extent(struct mic_symbols *s, uint64_t vaddr, size_t depth,
                        mic_symbol_ranges *out) {
  const struct mic_symbol *frames;
  size_t count = mic_symbols_lookup(s, vaddr, &frames), first = out->count;
  struct mic_symbol_range whole;
  if (depth >= count) return;
  bool holds_code = depth + 1 == count && count < MIC_DWARF_FRAMES_MAX;
  if (holds_code && outermost_extent(s, vaddr, &frames[depth], &whole)) {
    *mic_vec_push(out) = whole;
    return;
  }
  struct mic_dwarf_ranges ranges = {0};
  if (s->dwarf) mic_dwarf_extent(s->dwarf, vaddr, depth, &ranges);
  for (size_t i = 0; i < ranges.count; i++)
    *mic_vec_push(out) = (struct mic_symbol_range){ranges.at[i].start, ranges.at[i].end};
  mic_sort_records(out->at + first, ranges.count, sizeof *out->at);
  mic_vec_free(&ranges);
}

const char *mic_symbols_problem(const struct mic_symbols *s) {
  return s->problem.size > 0 || s->problem.more > 0 ? s->problem.text : NULL;
}

const char *mic_symbols_debug_file(const struct mic_symbols *s) { return s->debug.path; }

void mic_symbols_close(struct mic_symbols *s) {
  if (!s) return;
  mic_dwarf_close(s->dwarf);
  mic_symtab_free(&s->table);
  mic_extents_free(&s->extents);
  mic_elf_close(s->mini);
  free(s->mini_bytes);
  mic_debugfile_close(&s->debug);
  mic_elf_close(s->image);
  mic_interner_free(&s->strings);
  mic_map_free(&s->linkages);
  mic_map_free(&s->pieces);
  mic_map_free(&s->shown);
  mic_map_free(&s->cache);
  mic_vec_free(&s->results);
  mic_vec_free(&s->frames);
  for (char **dir = s->debug_dirs; dir && *dir; dir++) free(*dir);
  free(s->debug_dirs);
  free(s->path);
  free(s->name);
  free(s->root);
  free(s);
}
