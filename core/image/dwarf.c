/*
 * dwarf.c - debug information of an image: which unit, which functions, which line.
 */
#include "image/dwarf.h"

#include <fcntl.h>
#include <unistd.h>

#include "image/dwarf_internal.h"
#include "image/symbols_table.h"

static void open_alt(struct mic_dwarf *d) {
  const struct mic_dwarf_source *s = &d->source;
  if (!mic_debugfile_find_alt(&s->search, s->elf, s->path, &d->alt_file, s->problem)) return;
  struct mic_dwarf_span sections[MIC_SEC_COUNT];
  mic_dwarf_sections_of(d->alt_file.elf, "", sections, s->problem);
  d->alt = mic_dwarf_file_open(d, sections, NULL, false);
}

bool mic_dwarf_open(const struct mic_dwarf_source *source, struct mic_dwarf **out) {
  *out = NULL;
  struct mic_dwarf_span sections[MIC_SEC_COUNT];
  mic_dwarf_sections_of(source->elf, "", sections, source->problem);
  if (sections[MIC_SEC_INFO].size == 0) {
    mic_problem_add(source->problem, "no debug information");
    return false;
  }
  struct mic_dwarf *d = mic_alloc(sizeof *d);
  d->source = *source;
  d->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* libelf wants some descriptor */
  open_alt(d);
  d->main = mic_dwarf_file_open(d, sections, d->alt, false);
  if (!d->main) {
    mic_problem_add(source->problem, "debug information that cannot be read");
    mic_dwarf_close(d);
    return false;
  }
  *out = d;
  return true;
}

void mic_dwarf_close(struct mic_dwarf *d) {
  if (!d) return;
  for (size_t i = 0; i < d->split_files.count; i++) mic_dwarf_file_close(d->split_files.at[i]);
  mic_dwarf_file_close(d->main);
  mic_dwarf_file_close(d->alt);
  for (size_t i = 0; i < d->split_elves.count; i++) mic_elf_close(d->split_elves.at[i]);
  for (size_t i = 0; i < d->lines.count; i++) mic_dwarf_lines_free(d->lines.at[i]);
  mic_debugfile_close(&d->alt_file);
  mic_vec_free(&d->split_files);
  mic_vec_free(&d->split_elves);
  mic_map_free(&d->split_names);
  mic_vec_free(&d->lines);
  mic_cover_free(&d->cover);
  if (d->null_fd >= 0) close(d->null_fd);
  free(d);
}

struct index {
  struct mic_dwarf_ranges ranges; /* of one unit, reused */
  MIC_VEC(struct mic_cover_range) all;
};

/* A unit whose own entry has no ranges (assemblers', and old compilers'): those of its lines,
 * and of its functions. */
static void add_contents(struct mic_dwarf_unit *unit, struct mic_dwarf_ranges *ranges) {
  struct mic_dwarf_lines *lines = mic_dwarf_unit_lines(unit);
  for (size_t i = 0; lines && i < lines->sequences.count; i++)
    *mic_vec_push(ranges) =
      (struct mic_dwarf_range){lines->sequences.at[i].start, lines->sequences.at[i].end};
  mic_dwarf_unit_functions(unit);
  for (size_t i = 0; i + 1 < unit->cover.pieces.count; i++)
    if (unit->cover.pieces.at[i].id != MIC_NONE)
      *mic_vec_push(ranges) = (struct mic_dwarf_range){unit->cover.pieces.at[i].start,
                                                       unit->cover.pieces.at[i + 1].start};
}

static void index_unit(struct mic_dwarf_unit *unit, uint32_t id, struct index *index) {
  if (unit->type != DW_UT_compile && unit->type != DW_UT_skeleton) return;
  mic_dwarf_unit_read(unit);
  if (unit->type == DW_UT_partial) return;
  index->ranges.count = 0;
  mic_dwarf_ranges_of(unit, &unit->values, &index->ranges);
  bool says =
    mic_dwarf_has(&unit->values, MIC_AT_RANGES) || mic_dwarf_has(&unit->values, MIC_AT_HIGH_PC);
  /* Version 2 cannot say more than one range; what compilers put apart is in no range of it. */
  if (!says || unit->version == 2) add_contents(unit, &index->ranges);
  for (size_t i = 0; i < index->ranges.count; i++)
    *mic_vec_push(&index->all) =
      (struct mic_cover_range){index->ranges.at[i].start, index->ranges.at[i].end, id, 0};
}

static void index_units(struct mic_dwarf *d) {
  struct index index = {0};
  d->indexed = true;
  for (size_t i = 0; i < d->main->units.count; i++)
    index_unit(&d->main->units.at[i], (uint32_t)i, &index);
  mic_cover_build(&d->cover, index.all.at, index.all.count);
  mic_vec_free(&index.ranges);
  mic_vec_free(&index.all);
}

static void name_once(struct mic_dwarf_unit *unit, struct mic_dwarf_function *f) {
  if (f->is_named) return;
  struct mic_dwarf_frame frame;
  mic_dwarf_name(unit, f->entry, &frame);
  f->is_named = true;
  f->name = frame.name;
  f->linkage_name = frame.linkage_name;
  f->decl_file = frame.decl_file;
  f->decl_line = frame.decl_line;
}

/* The functions at an address: the innermost first, then those it is inlined into. */
static size_t find_functions(struct mic_dwarf_unit *unit, uint64_t vaddr,
                             struct mic_dwarf_frame *frames) {
  uint32_t file = frames[0].file, line = frames[0].line; /* of the code itself */
  mic_dwarf_unit_functions(unit);
  size_t count = 0;
  for (uint32_t id = mic_cover_find(&unit->cover, vaddr); id != MIC_NONE;) {
    struct mic_dwarf_function *f = &unit->functions.at[id];
    struct mic_dwarf_frame *frame = &frames[count++];
    name_once(unit, f);
    *frame = (struct mic_dwarf_frame){.name = f->name,
                                      .linkage_name = f->linkage_name,
                                      .file = file,
                                      .line = line,
                                      .decl_file = f->decl_file,
                                      .decl_line = f->decl_line};
    if (f->parent == MIC_NONE) break;
    if (count == MIC_DWARF_FRAMES_MAX) {
      mic_problem_add(unit->file->owner->source.problem,
                      "functions inlined deeper than %d: the outer ones are left out",
                      MIC_DWARF_FRAMES_MAX);
      break;
    }
    file = mic_dwarf_unit_path(unit, f->call_file);
    line = f->call_line;
    id = f->parent;
  }
  return count;
}

/* The unit that has the functions of an address, or NULL. */
static struct mic_dwarf_unit *unit_of(struct mic_dwarf *d, uint64_t vaddr) {
  if (!d->indexed) index_units(d);
  uint32_t id = mic_cover_find(&d->cover, vaddr);
  return id == MIC_NONE ? NULL : &d->main->units.at[id];
}

size_t mic_dwarf_lookup(struct mic_dwarf *d, uint64_t vaddr, struct mic_dwarf_frame *frames) {
  const uint32_t none = MIC_NONE;
  frames[0] = (struct mic_dwarf_frame){none, none, none, 0, none, 0};
  struct mic_dwarf_unit *unit = unit_of(d, vaddr);
  if (!unit) return 0;
  const struct mic_dwarf_lines *lines = mic_dwarf_unit_lines(unit);
  uint32_t file;
  if (lines && mic_dwarf_lines_find(lines, vaddr, &file, &frames[0].line))
    frames[0].file = mic_dwarf_unit_path(unit, file);
  struct mic_dwarf_unit *split = mic_dwarf_split(unit);
  return find_functions(split ? split : unit, vaddr, frames);
}

void mic_dwarf_extent(struct mic_dwarf *d, uint64_t vaddr, size_t depth,
                      struct mic_dwarf_ranges *out) {
  struct mic_dwarf_unit *unit = unit_of(d, vaddr);
  if (!unit) return;
  struct mic_dwarf_unit *split = mic_dwarf_split(unit);
  if (split) unit = split;
  mic_dwarf_unit_functions(unit);
  uint32_t id = mic_cover_find(&unit->cover, vaddr);
  for (; id != MIC_NONE && depth > 0; depth--) id = unit->functions.at[id].parent;
  struct mic_dwarf_values values;
  uint32_t tag;
  if (id != MIC_NONE && mic_dwarf_values_at(unit, unit->functions.at[id].entry, &tag, &values))
    mic_dwarf_ranges_of(unit, &values, out);
}
