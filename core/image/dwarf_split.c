/*
 * dwarf_split.c - the debug information that a skeleton unit left in a .dwo or a .dwp file.
 *
 * A split unit is proven by its 64-bit id alone; a file with another one is not used.  What it
 * refers to by index is handed to libdw as one set of sections: its own, and the part of the
 * image's .debug_addr that begins at the skeleton's base.  A package (.dwp) has the sections of
 * many units one after the other; its index says which bytes are whose (DWARF 5, 7.3.5; version 2
 * is GNU's, gcc.gnu.org/wiki/DebugFissionDWP).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image/dwarf_internal.h"

enum {
  PATH_MAX_BYTES = 4096,  /* PATH_MAX, linux/limits.h */
  INDEX_COLUMNS_MAX = 16, /* eight kinds of section exist */
};

static struct mic_elf *open_elf(struct mic_dwarf *d, const char *root, const char *path) {
  int fd = mic_debugfile_open_fd(root, path);
  if (fd < 0) return NULL;
  struct mic_elf *elf = NULL;
  struct mic_error err;
  if (mic_elf_open_debug(fd, path, &elf, &err) != MIC_OK)
    mic_problem_add(d->source.problem, "split debug file %s", err.msg);
  close(fd);
  return elf;
}

/* The file at a path in the target's view or, failing that, in ours; opened once. */
static struct mic_elf *open_once(struct mic_dwarf *d, const char *path) {
  uint32_t id = mic_intern(d->source.strings, path, strlen(path));
  uint32_t known = mic_map_get(&d->split_names, id, 0);
  if (known != MIC_NONE) return d->split_elves.at[known];
  const char *root = d->source.search.root ? d->source.search.root : "";
  struct mic_elf *elf = root[0] ? open_elf(d, root, path) : NULL;
  if (!elf) elf = open_elf(d, "", path);
  mic_map_put(&d->split_names, id, 0, (uint32_t)d->split_elves.count);
  *mic_vec_push(&d->split_elves) = elf;
  return elf;
}

/* Reads the unit with the skeleton's id out of sections; NULL when it is not there. */
static struct mic_dwarf_unit *open_unit(struct mic_dwarf_unit *skeleton,
                                        struct mic_dwarf_span *sections) {
  struct mic_dwarf *d = skeleton->file->owner;
  struct mic_dwarf_span addresses = skeleton->file->sections[MIC_SEC_ADDR];
  uint64_t base = skeleton->addr_base < addresses.size ? skeleton->addr_base : addresses.size;
  sections[MIC_SEC_ADDR] = (struct mic_dwarf_span){0};
  if (base < addresses.size)
    sections[MIC_SEC_ADDR] = (struct mic_dwarf_span){addresses.bytes + base, addresses.size - base};
  sections[MIC_SEC_LINE] = sections[MIC_SEC_LINE_STR] = (struct mic_dwarf_span){0};
  if (sections[MIC_SEC_INFO].size == 0) return NULL;
  struct mic_dwarf_file *file = mic_dwarf_file_open(d, sections, NULL, true);
  for (size_t i = 0; file && i < file->units.count; i++) {
    struct mic_dwarf_unit *unit = &file->units.at[i];
    mic_dwarf_unit_read(unit);
    if (unit->type != DW_UT_split_compile || unit->dwo_id != skeleton->dwo_id) continue;
    unit->skeleton = skeleton;
    *mic_vec_push(&d->split_files) = file;
    return unit;
  }
  mic_dwarf_file_close(file);
  return NULL;
}

struct package_index {
  struct mic_cursor bytes; /* of .debug_cu_index */
  uint32_t version, columns, units, slots;
  size_t ids, rows, kinds, offsets, sizes; /* where its tables begin */
};

static bool read_index(struct mic_elf *elf, struct package_index *index) {
  struct mic_elf_section s;
  if (!mic_elf_section(elf, ".debug_cu_index", &s, NULL)) return false;
  struct mic_cursor c = mic_cursor(s.bytes, s.size);
  index->version = mic_cursor_u32(&c) & 0xffff; /* version 5 has 16 bits and padding */
  index->columns = mic_cursor_u32(&c);
  index->units = mic_cursor_u32(&c);
  index->slots = mic_cursor_u32(&c);
  if (c.bad || (index->version != 2 && index->version != 5)) return false;
  if (index->columns > INDEX_COLUMNS_MAX || (index->slots & (index->slots - 1))) return false;
  index->ids = mic_cursor_offset(&c);
  index->rows = index->ids + (size_t)index->slots * 8;
  index->kinds = index->rows + (size_t)index->slots * 4;
  index->offsets = index->kinds + (size_t)index->columns * 4;
  index->sizes = index->offsets + (size_t)index->units * index->columns * 4;
  index->bytes = c;
  return index->sizes + (size_t)index->units * index->columns * 4 <= s.size;
}

static uint32_t u32_at(struct package_index *index, size_t at) {
  mic_cursor_seek(&index->bytes, at);
  return mic_cursor_u32(&index->bytes);
}

static uint64_t u64_at(struct package_index *index, size_t at) {
  mic_cursor_seek(&index->bytes, at);
  return mic_cursor_u64(&index->bytes);
}

/* The row, from 0, of the unit with an id; false when the package has none. */
static bool find_row(struct package_index *index, uint64_t id, uint32_t *row) {
  uint32_t mask = index->slots - 1;
  uint32_t slot = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;
  for (uint32_t tried = 0; tried < index->slots; tried++, slot = (slot + step) & mask) {
    uint32_t found = u32_at(index, index->rows + (size_t)slot * 4);
    if (found == 0) return false;
    if (u64_at(index, index->ids + (size_t)slot * 8) != id) continue;
    *row = found - 1;
    return found <= index->units;
  }
  return false;
}

/* The section that a column's number stands for, or MIC_SEC_COUNT for one we do not read. */
static enum mic_dwarf_section kind_of(uint32_t version, uint32_t number) {
  switch (number) {
  case 1: return MIC_SEC_INFO;
  case 3: return MIC_SEC_ABBREV;
  case 6: return MIC_SEC_STR_OFFSETS;
  case 8: return version == 5 ? MIC_SEC_RNGLISTS : MIC_SEC_COUNT;
  default: return MIC_SEC_COUNT;
  }
}

static struct mic_dwarf_unit *unit_of_package(struct mic_dwarf_unit *skeleton,
                                              struct mic_elf *package) {
  struct package_index index;
  uint32_t row;
  if (!read_index(package, &index)) {
    mic_problem_add(skeleton->file->owner->source.problem, "split debug package %s has no index",
                    mic_elf_name(package));
    return NULL;
  }
  if (!find_row(&index, skeleton->dwo_id, &row)) return NULL;
  struct mic_dwarf_span whole[MIC_SEC_COUNT], sections[MIC_SEC_COUNT] = {{0}};
  mic_dwarf_sections_of(package, ".dwo", whole, skeleton->file->owner->source.problem);
  sections[MIC_SEC_STR] = whole[MIC_SEC_STR]; /* shared by all */
  for (uint32_t i = 0; i < index.columns; i++) {
    enum mic_dwarf_section kind = kind_of(index.version, u32_at(&index, index.kinds + i * 4));
    if (kind == MIC_SEC_COUNT) continue;
    size_t cell = ((size_t)row * index.columns + i) * 4;
    uint32_t offset = u32_at(&index, index.offsets + cell),
             size = u32_at(&index, index.sizes + cell);
    if (offset > whole[kind].size || size > whole[kind].size - offset) return NULL;
    sections[kind] = (struct mic_dwarf_span){whole[kind].bytes + offset, size};
  }
  return open_unit(skeleton, sections);
}

static struct mic_dwarf_unit *try_package(struct mic_dwarf_unit *skeleton, const char *of) {
  char path[PATH_MAX_BYTES];
  if (!of || (size_t)snprintf(path, sizeof path, "%s.dwp", of) >= sizeof path) return NULL;
  struct mic_elf *package = open_once(skeleton->file->owner, path);
  return package ? unit_of_package(skeleton, package) : NULL;
}

/* dir/name, or name alone when dir is NULL. */
static struct mic_dwarf_unit *try_object(struct mic_dwarf_unit *skeleton, const char *dir,
                                         size_t dir_size, const char *name) {
  char path[PATH_MAX_BYTES];
  int size = snprintf(path, sizeof path, "%.*s%s%s", (int)dir_size, dir ? dir : "",
                      dir && dir_size > 0 && dir[dir_size - 1] != '/' ? "/" : "", name);
  if (size < 0 || size >= (int)sizeof path || path[0] != '/') return NULL;
  struct mic_dwarf *d = skeleton->file->owner;
  struct mic_elf *elf = open_once(d, path);
  if (!elf) return NULL;
  struct mic_dwarf_span sections[MIC_SEC_COUNT];
  mic_dwarf_sections_of(elf, ".dwo", sections, d->source.problem);
  struct mic_dwarf_unit *unit = open_unit(skeleton, sections);
  if (!unit) mic_problem_add(d->source.problem, "split debug file %s is of another build", path);
  return unit;
}

/* Where the compiler wrote it, or beside the image. */
static struct mic_dwarf_unit *try_objects(struct mic_dwarf_unit *skeleton, const char *name) {
  const struct mic_dwarf_source *source = &skeleton->file->owner->source;
  if (name[0] == '/') return try_object(skeleton, NULL, 0, name);
  struct mic_dwarf_unit *unit = NULL;
  if (skeleton->comp_dir != MIC_NONE) {
    struct mic_string dir = mic_interner_at(source->strings, skeleton->comp_dir);
    if (dir.size < PATH_MAX_BYTES) unit = try_object(skeleton, dir.bytes, dir.size, name);
  }
  const char *slash = source->search.path ? strrchr(source->search.path, '/') : NULL;
  if (!unit && slash)
    unit = try_object(skeleton, source->search.path, (size_t)(slash - source->search.path), name);
  return unit;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* In a folder of debug files: the package by the image's path or name, the object by its path
 * below the folder or by its name. */
static struct mic_dwarf_unit *try_folder(struct mic_dwarf_unit *skeleton, const char *folder,
                                         const char *name) {
  const struct mic_dwarf_source *source = &skeleton->file->owner->source;
  const char *image = source->search.path;
  struct mic_dwarf_unit *unit = NULL;
  char path[PATH_MAX_BYTES];
  for (int whole = 1; image && !unit && whole >= 0; whole--) {
    int size = snprintf(path, sizeof path, "%s/%s", folder, whole ? image : base_name(image));
    if (size > 0 && (size_t)size < sizeof path) unit = try_package(skeleton, path);
  }
  if (!unit && skeleton->comp_dir != MIC_NONE && name[0] != '/') {
    struct mic_string dir = mic_interner_at(source->strings, skeleton->comp_dir);
    int size = snprintf(path, sizeof path, "%s/%s", folder, dir.bytes);
    if (size > 0 && (size_t)size < sizeof path)
      unit = try_object(skeleton, path, (size_t)size, name);
  }
  size_t size = strlen(folder);
  if (!unit) unit = try_object(skeleton, folder, size, name);
  if (!unit && strchr(name, '/')) unit = try_object(skeleton, folder, size, base_name(name));
  return unit;
}

/* The default folders hold what distributions install: separate debug files, no split ones. */
static struct mic_dwarf_unit *try_folders(struct mic_dwarf_unit *skeleton, const char *name) {
  const char *const *folder = skeleton->file->owner->source.search.debug_dirs;
  struct mic_dwarf_unit *unit = NULL;
  for (; folder && *folder && !unit; folder++)
    if ((*folder)[0] == '/') unit = try_folder(skeleton, *folder, name);
  return unit;
}

struct mic_dwarf_unit *mic_dwarf_split(struct mic_dwarf_unit *skeleton) {
  if (skeleton->split_tried) return skeleton->split;
  skeleton->split_tried = true;
  if (skeleton->type != DW_UT_skeleton) return NULL;
  mic_dwarf_unit_names(skeleton);
  if (skeleton->dwo_name == MIC_NONE) return NULL;
  const struct mic_dwarf_source *source = &skeleton->file->owner->source;
  const char *name = mic_interner_at(source->strings, skeleton->dwo_name).bytes;
  skeleton->split = try_package(skeleton, source->search.path);
  if (!skeleton->split && source->path != source->search.path)
    skeleton->split = try_package(skeleton, source->path);
  if (!skeleton->split) skeleton->split = try_objects(skeleton, name);
  if (!skeleton->split) skeleton->split = try_folders(skeleton, name);
  if (!skeleton->split) mic_problem_add(source->problem, "split debug file %s not found", name);
  return skeleton->split;
}
