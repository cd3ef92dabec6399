/* build.c - maps from what a row says to its number. */
#include "import/build.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/names.h"

struct mic_build {
  struct mic_writer *w;
  struct mic_interner rows;      /* the bytes of rows, each with its table's number before it */
  MIC_VEC(uint32_t) ids;         /* the row of each */
  struct mic_map nodes;          /* (parent, location) -> node */
  uint32_t roots[MIC_END_COUNT]; /* node + 1 */
  MIC_VEC(uint32_t) names;       /* of functions, by their row */
};

MIC_EXPORT struct mic_build *mic_build_new(struct mic_writer *writer) {
  struct mic_build *build = mic_alloc(sizeof *build);
  build->w = writer;
  return build;
}

MIC_EXPORT void mic_build_free(struct mic_build *build) {
  if (!build) return;
  mic_interner_free(&build->rows);
  mic_vec_free(&build->ids);
  mic_map_free(&build->nodes);
  mic_vec_free(&build->names);
  free(build);
}

/* The row of a table with these values; *id gets its number, or is where to put it. */
static bool is_known(struct mic_build *build, uint32_t table, const uint64_t *values, size_t count,
                     uint32_t **id) {
  uint64_t key[8] = {table};
  memcpy(key + 1, values, count * sizeof *values);
  size_t known = build->rows.strings.count;
  uint32_t at = mic_intern(&build->rows, (const char *)key, (count + 1) * sizeof *key);
  if (at == known) *mic_vec_push(&build->ids) = MIC_NONE;
  *id = &build->ids.at[at];
  return at < known;
}

/* Give the row's number from here when it was appended before. */
#define ONCE(table, ...)                   \
  uint32_t *id;                            \
  const uint64_t values[] = {__VA_ARGS__}; \
  if (is_known(build, MIC_TABLE_##table, values, sizeof values / sizeof *values, &id)) return *id

MIC_EXPORT uint32_t mic_build_source(struct mic_build *build, uint32_t name, uint32_t unit,
                                     uint64_t period, uint32_t unit_name) {
  ONCE(sources, name, unit, period, unit_name);
  struct mic_sources_row row = {
    .name = name, .unit = (uint8_t)unit, .period = period, .unit_name = unit_name};
  return *id = mic_writer_sources(build->w, &row);
}

static bool is(const char *word, const char *bytes, uint64_t size) {
  return strlen(word) == size && memcmp(word, bytes, size) == 0;
}

MIC_EXPORT uint32_t mic_build_unit(const char *name, uint64_t name_size, const char *unit,
                                   uint64_t size) {
  if (is("nanoseconds", unit, size) || is("ns", unit, size))
    return name_size >= 3 && memcmp(name, "cpu", 3) == 0 ? MIC_UNIT_CPU_NS : MIC_UNIT_NS;
  if (is("bytes", unit, size)) return MIC_UNIT_BYTES;
  if (is("count", unit, size)) return MIC_UNIT_COUNT;
  if (is("cycles", unit, size)) return MIC_UNIT_CYCLES;
  return MIC_UNIT_OTHER;
}

MIC_EXPORT uint32_t mic_build_file(struct mic_build *build, uint32_t path) {
  ONCE(files, path);
  return *id = mic_writer_files(build->w, &(struct mic_files_row){path});
}

MIC_EXPORT uint32_t mic_build_module(struct mic_build *build, uint32_t path, uint32_t build_id) {
  ONCE(modules, path, build_id);
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(build->w, path, &size);
  uint64_t from = size;
  while (from && bytes[from - 1] != '/') from--;
  struct mic_modules_row row = {
    .kind = MIC_MODULE_OTHER,
    .path = path,
    .name = mic_writer_string(build->w, bytes + from, size - from),
    .build_id = build_id,
  };
  if (is("[vdso]", bytes, size))
    row.kind = MIC_MODULE_VDSO;
  else if (build_id)
    row.kind = MIC_MODULE_ELF;
  return *id = mic_writer_modules(build->w, &row);
}

MIC_EXPORT uint32_t mic_build_function(struct mic_build *build, uint32_t name,
                                       uint32_t linkage_name, uint32_t module, uint32_t file,
                                       uint32_t line) {
  ONCE(functions, name, linkage_name, module, file, line);
  *mic_vec_push(&build->names) = name;
  return *id = mic_writer_functions(
           build->w, &(struct mic_functions_row){name, linkage_name, module, file, line});
}

MIC_EXPORT uint32_t mic_build_place(struct mic_build *build, uint32_t function, uint32_t module,
                                    uint32_t file, uint32_t line) {
  ONCE(locations, function, module, file, line);
  struct mic_locations_row row = {
    .kind = MIC_LOCATION_NAMED,
    .evidence = MIC_EVIDENCE_CFI,
    .module = module,
    .offset = function < build->names.count ? build->names.at[function] : 0,
  };
  *id = mic_writer_locations(build->w, &row);
  mic_writer_lines(build->w, &(struct mic_lines_row){
                               .location = *id, .function = function, .file = file, .line = line});
  return *id;
}

MIC_EXPORT uint32_t mic_build_root(struct mic_build *build, uint32_t end) {
  if (end == MIC_END_NONE || end >= MIC_END_COUNT) end = MIC_END_NOT_STATED;
  if (!build->roots[end])
    build->roots[end] =
      mic_writer_stacks(build->w, &(struct mic_stacks_row){MIC_NONE, MIC_NONE, (uint8_t)end}) + 1;
  return build->roots[end] - 1;
}

MIC_EXPORT uint32_t mic_build_node(struct mic_build *build, uint32_t parent, uint32_t location) {
  bool added;
  uint32_t next = (uint32_t)mic_writer_rows(build->w, MIC_TABLE_stacks);
  uint32_t node = mic_map_intern(&build->nodes, parent, location, next, &added);
  if (added) mic_writer_stacks(build->w, &(struct mic_stacks_row){parent, location, MIC_END_NONE});
  return node;
}

MIC_EXPORT uint32_t mic_build_end(const char *name, uint64_t size) {
  if (size < 3 || name[0] != '[' || name[size - 1] != ']') return MIC_END_NONE;
  for (uint32_t end = MIC_END_NONE + 1; end < MIC_END_COUNT; end++) {
    const char *text = mic_end_text(end);
    if (text && is(text, name + 1, size - 2)) return end;
  }
  return MIC_END_NONE;
}

MIC_EXPORT uint32_t mic_build_process(struct mic_build *build, uint32_t pid, uint32_t name) {
  ONCE(processes, pid, name);
  struct mic_processes_row row = {
    .pid = pid, .parent = MIC_NONE, .name = name, .end_ns = UINT64_MAX};
  return *id = mic_writer_processes(build->w, &row);
}

MIC_EXPORT uint32_t mic_build_thread(struct mic_build *build, uint32_t process, uint32_t tid,
                                     uint32_t name) {
  ONCE(threads, process, tid, name);
  struct mic_threads_row row = {.process = process, .tid = tid, .name = name, .end_ns = UINT64_MAX};
  *id = mic_writer_threads(build->w, &row);
  if (name) mic_writer_thread_names(build->w, &(struct mic_thread_names_row){*id, name, 0});
  return *id;
}

MIC_EXPORT uint32_t mic_build_label(struct mic_build *build, uint32_t key, uint32_t kind,
                                    uint32_t text, uint64_t number, uint32_t unit) {
  ONCE(labels, key, kind, text, number, unit);
  return *id = mic_writer_labels(build->w,
                                 &(struct mic_labels_row){key, (uint8_t)kind, text, number, unit});
}

MIC_EXPORT uint32_t mic_build_site(struct mic_build *build, uint32_t name, uint32_t category) {
  ONCE(sites, name, category);
  struct mic_sites_row row = {.name = name, .category = category, .file = MIC_NONE};
  return *id = mic_writer_sites(build->w, &row);
}
