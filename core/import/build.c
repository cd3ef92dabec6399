/* build.c - what each row says, and the row that says it. */
#include "import/build.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/names.h"

/* Rows of a table that are there once: the words each says, one after the other. */
struct kept {
  struct mic_index index;
  MIC_VEC(uint32_t) words;
  uint32_t width;        /* words a row */
  MIC_VEC(uint32_t) ids; /* the row of each, where it is not simply the next; none: all are */
};

struct mic_build {
  struct mic_writer *w;
  struct kept tables[MIC_TABLE_COUNT];
};

MIC_EXPORT struct mic_build *mic_build_new(struct mic_writer *writer) {
  struct mic_build *build = mic_alloc(sizeof *build);
  build->w = writer;
  return build;
}

void mic_build_forget(struct mic_build *build, enum mic_table_id table) {
  struct kept *kept = &build->tables[table];
  mic_index_free(&kept->index);
  mic_vec_free(&kept->words);
  mic_vec_free(&kept->ids);
}

MIC_EXPORT void mic_build_free(struct mic_build *build) {
  if (!build) return;
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) mic_build_forget(build, t);
  free(build);
}

static uint32_t hash_of(const uint32_t *words, uint32_t width) {
  if (width == 2) return mic_index_mix(words[0], words[1]);
  return mic_hash_key(words, width * sizeof *words);
}
static uint32_t hash_of_row(const void *keys, uint32_t at) {
  const struct kept *kept = keys;
  return hash_of(kept->words.at + (size_t)at * kept->width, kept->width);
}

/* The row that says this, or MIC_NONE. */
static uint32_t find(const struct kept *kept, const uint32_t *words, uint32_t hash) {
  uint64_t at;
  for (uint32_t i = mic_index_first(&kept->index, hash, &at); i != MIC_NONE;
       i = mic_index_next(&kept->index, hash, &at))
    if (memcmp(kept->words.at + (size_t)i * kept->width, words, kept->width * sizeof *words) == 0)
      return kept->ids.count ? kept->ids.at[i] : i;
  return MIC_NONE;
}

/* Remember a row, which then has that id. */
static void keep(struct kept *kept, const uint32_t *words, uint32_t hash, uint32_t id) {
  uint32_t count = kept->index.count;
  if (kept->ids.count == 0 && id != count)
    for (uint32_t i = 0; i < count; i++) *mic_vec_push(&kept->ids) = i;
  if (kept->ids.count || id != count) *mic_vec_push(&kept->ids) = id;
  mic_vec_reserve(&kept->words, kept->words.count + kept->width);
  memcpy(kept->words.at + kept->words.count, words, kept->width * sizeof *words);
  kept->words.count += kept->width;
  mic_index_add(&kept->index, hash, hash_of_row, kept);
}

/* A row that says these words: give its number from here when it is there, and keep it under the
 * next of its table when it is not.  What follows appends it. */
#define ONCE(table, ...)                                       \
  struct kept *kept = &build->tables[MIC_TABLE_##table];       \
  const uint32_t words[] = {__VA_ARGS__};                      \
  kept->width = sizeof words / sizeof *words;                  \
  const uint32_t hash = hash_of(words, kept->width);           \
  uint32_t id = find(kept, words, hash);                       \
  if (id != MIC_NONE) return id;                               \
  id = (uint32_t)mic_writer_rows(build->w, MIC_TABLE_##table); \
  keep(kept, words, hash, id)
/* Both words of a number. */
#define WORDS(number) (uint32_t)(number), (uint32_t)((number) >> 32)

MIC_EXPORT uint32_t mic_build_source(struct mic_build *build, uint32_t name, uint32_t unit,
                                     uint64_t period, uint32_t unit_name) {
  ONCE(sources, name, unit, WORDS(period), unit_name);
  struct mic_sources_row row = {
    .name = name, .unit = (uint8_t)unit, .period = period, .unit_name = unit_name};
  return mic_writer_sources(build->w, &row);
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
  return mic_writer_files(build->w, &(struct mic_files_row){path});
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
  return mic_writer_modules(build->w, &row);
}

MIC_EXPORT uint32_t mic_build_function(struct mic_build *build, uint32_t name,
                                       uint32_t linkage_name, uint32_t module, uint32_t file,
                                       uint32_t line) {
  ONCE(functions, name, linkage_name, module, file, line);
  return mic_writer_functions(build->w,
                              &(struct mic_functions_row){name, linkage_name, module, file, line});
}

/* The name of a function that was built: the first of its words. */
static uint32_t name_of(const struct mic_build *build, uint32_t function) {
  const struct kept *kept = &build->tables[MIC_TABLE_functions];
  size_t low = 0, past = kept->ids.count;
  while (low < past) {
    size_t middle = low + (past - low) / 2;
    if (kept->ids.at[middle] < function)
      low = middle + 1;
    else
      past = middle;
  }
  if (!kept->ids.count) low = function;
  return low < kept->index.count ? kept->words.at[low * kept->width] : 0;
}

MIC_EXPORT uint32_t mic_build_place(struct mic_build *build, uint32_t function, uint32_t module,
                                    uint32_t file, uint32_t line) {
  ONCE(locations, function, module, file, line);
  struct mic_locations_row row = {
    .kind = MIC_LOCATION_NAMED,
    .evidence = MIC_EVIDENCE_CFI,
    .module = module,
    .offset = name_of(build, function),
  };
  mic_writer_locations(build->w, &row);
  mic_writer_lines(build->w, &(struct mic_lines_row){
                               .location = id, .function = function, .file = file, .line = line});
  return id;
}

MIC_EXPORT uint32_t mic_build_root(struct mic_build *build, uint32_t end) {
  if (end == MIC_END_NONE || end >= MIC_END_COUNT) end = MIC_END_NOT_STATED;
  ONCE(stacks, MIC_NONE, end);
  return mic_writer_stacks(build->w, &(struct mic_stacks_row){MIC_NONE, MIC_NONE, (uint8_t)end});
}

MIC_EXPORT uint32_t mic_build_node(struct mic_build *build, uint32_t parent, uint32_t location) {
  ONCE(stacks, parent, location);
  return mic_writer_stacks(build->w, &(struct mic_stacks_row){parent, location, MIC_END_NONE});
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
  return mic_writer_processes(build->w, &row);
}

MIC_EXPORT uint32_t mic_build_thread(struct mic_build *build, uint32_t process, uint32_t tid,
                                     uint32_t name) {
  ONCE(threads, process, tid, name);
  struct mic_threads_row row = {.process = process, .tid = tid, .name = name, .end_ns = UINT64_MAX};
  mic_writer_threads(build->w, &row);
  if (name) mic_writer_thread_names(build->w, &(struct mic_thread_names_row){id, name, 0});
  return id;
}

MIC_EXPORT uint32_t mic_build_label(struct mic_build *build, uint32_t key, uint32_t kind,
                                    uint32_t text, uint64_t number, uint32_t unit) {
  ONCE(labels, key, kind, text, WORDS(number), unit);
  return mic_writer_labels(build->w,
                           &(struct mic_labels_row){key, (uint8_t)kind, text, number, unit});
}

MIC_EXPORT uint32_t mic_build_site(struct mic_build *build, uint32_t name, uint32_t category) {
  ONCE(sites, name, category);
  struct mic_sites_row row = {.name = name, .category = category, .file = MIC_NONE};
  return mic_writer_sites(build->w, &row);
}
