/*
 * pprof_write.c - modules, functions, locations, samples, and each string before what names it.
 *
 * A message of the format is the concatenation of its fields in any order, so each part is written
 * as a profile of its own that holds that part alone, and nothing is held in memory but numbers of
 * strings and which samples are added up.
 */
#include "import/pprof_write.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/names.h"
#include "import/file_places.h"
#include "import/groups.h"
#include "import/pack.h"
#include "profile.pb-c.h"

typedef Mic__Pprof__Profile profile_message;

/* The numbers of the fields that are written without a message. */
enum { SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRING = 6 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3, LABEL_UNIT = 4 };
enum { PLACE_ID = 1, PLACE_MAPPING = 2, PLACE_ADDRESS = 3, PLACE_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };

enum { TYPES_MAX = 512 }; /* 256 sources (a u8), each with its count of samples */

/* A value of each sample: what its source measured, or how many samples there were. */
struct type {
  uint8_t source;
  bool counts;
};

struct place {
  uint64_t id, mapping, address;
};

struct writing {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_error *err;
  struct mic_pack out;
  MIC_VEC(uint8_t) packed;
  uint32_t string_count;     /* of the profile, so far */
  uint32_t *strings;         /* of each of the capture's the profile's; 0: not written yet */
  struct mic_interner texts; /* those that the capture has not, and */
  MIC_VEC(uint32_t) text_ids;
  MIC_VEC(struct type) types;
  uint32_t first_type[256]; /* by source */
  bool unstated;            /* no stack is known to be whole: a file that does not say */
  uint64_t *first_line;     /* of each location; lines of one lie together */
  uint32_t *row_of_module;  /* the first mapping that a module has */
  struct mic_file_places places;
  bool *module_by_file;   /* some location of it is known by file offset */
  bool *module_by_image;  /* and some by another way */
  uint64_t *module_limit; /* one past its greatest offset */
  bool *module_named;     /* some location of it has lines */
  uint64_t functions;     /* ids given out */
  uint64_t ends[256];     /* location ids of ends that were written */
  int64_t values[TYPES_MAX];
};

static void send(struct writing *w, const profile_message *part) {
  size_t size = mic__pprof__profile__get_packed_size(part);
  mic_vec_reserve(&w->packed, size);
  mic__pprof__profile__pack(part, w->packed.at);
  mic_pack_put(&w->out, w->packed.at, size);
}

/* A string that the profile does not have: it is written at once, so never while a message is. */
static int64_t put_string(struct writing *w, const char *bytes, size_t size) {
  mic_pack_bytes(&w->out, STRING, bytes, size);
  return w->string_count++;
}

static int64_t string(struct writing *w, const char *bytes, size_t size) {
  uint32_t id = mic_intern(&w->texts, bytes, size);
  if (id == w->text_ids.count) *mic_vec_push(&w->text_ids) = (uint32_t)put_string(w, bytes, size);
  return w->text_ids.at[id];
}
static int64_t text(struct writing *w, const char *bytes) {
  return string(w, bytes, strlen(bytes));
}
/* A string of the capture; the empty one is 0 in both. */
static int64_t from(struct writing *w, uint32_t id) {
  uint64_t size;
  const char *bytes = mic_capture_string(w->cap, id, &size);
  if (!bytes || !size) return 0;
  if (!w->strings[id]) w->strings[id] = (uint32_t)put_string(w, bytes, size);
  return w->strings[id];
}
static bool is_text(const struct writing *w, uint32_t id, const char *want) {
  uint64_t size;
  const char *bytes = mic_capture_string(w->cap, id, &size);
  return bytes && size == strlen(want) && memcmp(bytes, want, size) == 0;
}

/* --- types --------------------------------------------------------------------------------- */

static int64_t unit_of(struct writing *w, uint8_t source) {
  static const char *const units[] = {[MIC_UNIT_CPU_NS] = "nanoseconds",
                                      [MIC_UNIT_CYCLES] = "cycles",
                                      [MIC_UNIT_COUNT] = "count",
                                      [MIC_UNIT_BYTES] = "bytes",
                                      [MIC_UNIT_NS] = "nanoseconds"};
  uint8_t unit = w->t.sources.unit[source];
  if (w->t.sources.unit_name && !is_text(w, w->t.sources.unit_name[source], ""))
    return from(w, w->t.sources.unit_name[source]);
  return text(w, unit < sizeof units / sizeof *units ? units[unit] : "units");
}

/* How many samples a source has is said once where one source alone is taken by a period. */
static int64_t name_of(struct writing *w, const struct type *type, uint32_t periodic) {
  if (!type->counts) return from(w, w->t.sources.name[type->source]);
  if (periodic == 1) return text(w, "samples");
  uint64_t size;
  char name[256];
  const char *bytes = mic_capture_string(w->cap, w->t.sources.name[type->source], &size);
  int length = snprintf(name, sizeof name, "%.*s_samples", (int)(size < 200 ? size : 200), bytes);
  return string(w, name, (size_t)length);
}

static void put_type(struct writing *w, int64_t name, int64_t unit) {
  Mic__Pprof__ValueType type = MIC__PPROF__VALUE_TYPE__INIT, *pointer = &type;
  profile_message part = MIC__PPROF__PROFILE__INIT;
  type.type = name;
  type.unit = unit;
  part.n_sample_type = 1;
  part.sample_type = &pointer;
  send(w, &part);
}

/* What was imported brings its own count of samples. */
static bool counts_samples(const struct writing *w) {
  for (uint32_t s = 0; s < w->t.sources.rows; s++)
    if (w->t.sources.unit[s] == MIC_UNIT_COUNT) return true;
  return false;
}

static void put_types(struct writing *w) {
  uint32_t periodic = 0;
  bool counted = counts_samples(w);
  for (uint64_t s = 0; s < w->t.sources.rows; s++) periodic += w->t.sources.period[s] != 0;
  for (uint32_t s = 0; s < w->t.sources.rows && s < 256; s++) {
    w->first_type[s] = (uint32_t)w->types.count;
    if (w->t.sources.period[s] && !counted)
      *mic_vec_push(&w->types) = (struct type){(uint8_t)s, true};
    *mic_vec_push(&w->types) = (struct type){(uint8_t)s, false};
  }
  for (size_t i = 0; i < w->types.count; i++) {
    const struct type *type = &w->types.at[i];
    put_type(w, name_of(w, type, periodic),
             type->counts ? text(w, "count") : unit_of(w, type->source));
  }
}

/* --- facts --------------------------------------------------------------------------------- */

/* A fact that an imported profile brought; NULL when the capture has none. */
static const char *fact(const struct writing *w, const char *key, uint64_t *size) {
  for (uint64_t i = 0; i < w->t.meta.rows; i++)
    if (is_text(w, w->t.meta.key[i], key))
      return mic_capture_string(w->cap, w->t.meta.value[i], size);
  return NULL;
}
static int64_t fact_string(struct writing *w, const char *key) {
  uint64_t size = 0;
  const char *value = fact(w, key, &size);
  return value ? string(w, value, size) : 0;
}

/* The period's digits; facts are any text. */
static bool read_period(const char *digits, uint64_t size, int64_t *period) {
  int64_t value = 0;
  for (uint64_t i = 0; i < size; i++)
    if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, digits[i] - '0', &value))
      return false;
  *period = value;
  return true;
}

static void set_period(struct writing *w, profile_message *part, Mic__Pprof__ValueType *type) {
  for (uint32_t s = 0; s < w->t.sources.rows; s++) {
    if (!w->t.sources.period[s]) continue;
    type->type = from(w, w->t.sources.name[s]);
    type->unit = unit_of(w, (uint8_t)s);
    part->period_type = type;
    part->period = (int64_t)w->t.sources.period[s];
    return;
  }
  uint64_t size = 0;
  const char *period = fact(w, "pprof.period", &size);
  if (!period || !read_period(period, size, &part->period)) return;
  type->type = fact_string(w, "pprof.period_type");
  type->unit = fact_string(w, "pprof.period_unit");
  part->period_type = type;
}

/* What readers show first: that of CPU time; they take the last where nothing is said. */
static int64_t default_type(struct writing *w) {
  int64_t given = fact_string(w, "pprof.default_sample_type");
  if (given) return given;
  for (uint32_t s = 0; s < w->t.sources.rows; s++)
    if (w->t.sources.unit[s] == MIC_UNIT_CPU_NS) return from(w, w->t.sources.name[s]);
  return 0;
}

/* "BEFORE" "KEY: VALUE" */
static int64_t pair(struct writing *w, const char *before, uint32_t key_id, const char *value,
                    uint64_t value_size) {
  uint64_t key_size;
  const char *key = mic_capture_string(w->cap, key_id, &key_size);
  size_t start = strlen(before), size = start + key_size + 2 + value_size;
  char *line = mic_alloc(size);
  memcpy(line, before, start);
  memcpy(line + start, key, key_size);
  memcpy(line + start + key_size, ": ", 2);
  memcpy(line + start + key_size + 2, value, value_size);
  int64_t id = put_string(w, line, size);
  free(line);
  return id;
}

static int64_t comment_of(struct writing *w, uint64_t row) {
  uint64_t size;
  const char *value = mic_capture_string(w->cap, w->t.meta.value[row], &size);
  return pair(w, "", w->t.meta.key[row], value, size);
}

/* The periods that the profile's own field has no room for. */
static size_t add_periods(struct writing *w, int64_t *comments) {
  size_t count = 0, seen = 0;
  for (uint32_t s = 0; s < w->t.sources.rows; s++) {
    if (!w->t.sources.period[s] || !seen++) continue;
    char digits[32];
    int size = snprintf(digits, sizeof digits, "%llu", (unsigned long long)w->t.sources.period[s]);
    comments[count++] = pair(w, MIC_PPROF_PERIOD_OF, w->t.sources.name[s], digits, (uint64_t)size);
  }
  return count;
}

/* What the reader kept of fields that have a place of their own. */
static bool is_field(const struct writing *w, uint64_t row) {
  uint64_t size;
  const char *key = mic_capture_string(w->cap, w->t.meta.key[row], &size);
  return (size > 6 && memcmp(key, "pprof.", 6) == 0) ||
         is_text(w, w->t.meta.key[row], "default_source");
}

static void put_facts(struct writing *w) {
  profile_message part = MIC__PPROF__PROFILE__INIT;
  Mic__Pprof__ValueType period = MIC__PPROF__VALUE_TYPE__INIT;
  size_t count = 0;
  int64_t *comments =
    mic_alloc((size_t)(w->t.meta.rows + w->t.sources.rows + 2) * sizeof *comments);
  comments[count++] = text(w, MIC_PPROF_MARK);
  if (w->unstated) comments[count++] = text(w, MIC_PPROF_UNSTATED);
  count += add_periods(w, comments + count);
  for (uint64_t i = 0; i < w->t.meta.rows; i++)
    if (!is_field(w, i)) comments[count++] = comment_of(w, i);
  part.n_comment = count;
  part.comment = comments;
  if (w->t.clocks.rows) {
    part.time_nanos = (int64_t)w->t.clocks.realtime_ns[0];
    part.duration_nanos = (int64_t)w->t.clocks.duration_ns[0];
  }
  set_period(w, &part, &period);
  part.default_sample_type = default_type(w);
  part.drop_frames = fact_string(w, "pprof.drop_frames");
  part.keep_frames = fact_string(w, "pprof.keep_frames");
  send(w, &part);
  free(comments);
}

/* --- modules ------------------------------------------------------------------------------- */

/* Mapping ids: modules, then all code in anonymous memory, then rows of mappings. */
static uint64_t anon_mapping(const struct writing *w) { return w->t.modules.rows + 1; }
static uint64_t row_mapping(const struct writing *w, uint32_t row) {
  return w->t.modules.rows + 2 + row;
}

static void put_mapping(struct writing *w, Mic__Pprof__Mapping *mapping, bool named) {
  profile_message part = MIC__PPROF__PROFILE__INIT;
  mapping->has_functions = mapping->has_filenames = named;
  mapping->has_line_numbers = mapping->has_inline_frames = named;
  part.n_mapping = 1;
  part.mapping = &mapping;
  send(w, &part);
}

/* What is known of modules from their locations and mappings. */
static void look_at_modules(struct writing *w) {
  uint64_t rows = w->t.modules.rows;
  w->row_of_module = mic_alloc((rows + 1) * sizeof *w->row_of_module);
  w->module_limit = mic_alloc((rows + 1) * sizeof *w->module_limit);
  w->module_named = mic_alloc((rows + 1) * sizeof *w->module_named);
  w->module_by_file = mic_alloc((rows + 1) * sizeof *w->module_by_file);
  w->module_by_image = mic_alloc((rows + 1) * sizeof *w->module_by_image);
  memset(w->row_of_module, 0xff, (rows + 1) * sizeof *w->row_of_module);
  for (uint64_t i = w->t.mappings.rows; i-- > 0;) {
    uint32_t module = w->t.mappings.module[i];
    if (module != MIC_NONE) w->row_of_module[module] = (uint32_t)i;
  }
  for (uint64_t l = 0; l < w->t.locations.rows; l++) {
    uint32_t module = w->t.locations.module[l];
    if (module == MIC_NONE) continue;
    bool by_file = w->t.locations.kind[l] == MIC_LOCATION_FILE;
    (by_file ? w->module_by_file : w->module_by_image)[module] = true;
    if (w->first_line[l] != UINT64_MAX) w->module_named[module] = true;
    uint8_t kind = w->t.locations.kind[l];
    if (by_file || kind == MIC_LOCATION_NAMED || kind == MIC_LOCATION_RELATIVE) continue;
    uint64_t limit = (w->t.locations.offset[l] | 0xfff) + 1; /* whole pages, as mappings are */
    if (limit > w->module_limit[module]) w->module_limit[module] = limit;
  }
  mic_file_places_of(&w->t, w->module_by_file, &w->places);
}

static void put_module(struct writing *w, uint32_t module) {
  Mic__Pprof__Mapping mapping = MIC__PPROF__MAPPING__INIT;
  mapping.id = module + 1;
  mapping.memory_limit = w->module_limit[module];
  mapping.filename = from(w, w->t.modules.path[module]);
  mapping.build_id = from(w, w->t.modules.build_id[module]);
  put_mapping(w, &mapping, w->module_named[module]);
}

/* The rows of mappings that locations by file offset need. */
static void put_rows(struct writing *w) {
  for (uint32_t i = 0; i < w->t.mappings.rows; i++) {
    uint32_t module = w->t.mappings.module[i];
    if (module == MIC_NONE || !w->module_by_file[module]) continue;
    Mic__Pprof__Mapping mapping = MIC__PPROF__MAPPING__INIT;
    mapping.id = row_mapping(w, i);
    mapping.memory_start = w->t.mappings.address[i];
    mapping.memory_limit = mapping.memory_start + w->t.mappings.size[i];
    mapping.file_offset = w->t.mappings.file_offset[i];
    mapping.filename = from(w, w->t.modules.path[module]);
    mapping.build_id = from(w, w->t.modules.build_id[module]);
    put_mapping(w, &mapping, w->module_named[module]);
  }
}

static void put_modules(struct writing *w) {
  bool anon = false;
  put_rows(w);
  for (uint32_t m = 0; m < w->t.modules.rows; m++)
    if (w->module_by_image[m] || w->row_of_module[m] == MIC_NONE || !w->module_by_file[m])
      put_module(w, m);
  for (uint64_t l = 0; l < w->t.locations.rows; l++)
    anon |= w->t.locations.kind[l] == MIC_LOCATION_ANON;
  if (!anon) return;
  Mic__Pprof__Mapping mapping = MIC__PPROF__MAPPING__INIT;
  mapping.id = anon_mapping(w);
  mapping.memory_limit = UINT64_MAX;
  mapping.filename = text(w, "//anon");
  put_mapping(w, &mapping, false);
}

/* --- functions and locations --------------------------------------------------------------- */

/* Strings are asked for before the function's head is written: they may be written themselves. */
static uint64_t put_function(struct writing *w, uint64_t id, int64_t name, int64_t system_name,
                             int64_t file, uint32_t line) {
  uint64_t numbers[] = {id, (uint64_t)name, (uint64_t)system_name, (uint64_t)file, line};
  struct mic_pack counted;
  mic_pack_start(&counted, NULL);
  for (struct mic_pack *to = &counted;; to = &w->out) {
    for (uint32_t i = 0; i < 5; i++) mic_pack_number(to, i + 1, numbers[i]);
    if (to == &w->out) return id;
    mic_pack_begin(&w->out, FUNCTION, counted.size);
  }
}

/* A file belongs to a function here and to a line in captures: the line's is the better known. */
static void put_functions(struct writing *w) {
  uint64_t rows = w->t.functions.rows;
  uint32_t *file = mic_alloc((rows + 1) * sizeof *file);
  for (uint64_t f = 0; f < rows; f++) file[f] = w->t.functions.file[f];
  for (uint64_t i = 0; i < w->t.lines.rows; i++) {
    uint32_t *of = &file[w->t.lines.function[i]];
    if (*of == MIC_NONE) *of = w->t.lines.file[i];
  }
  for (uint64_t f = 0; f < rows; f++)
    put_function(w, f + 1, from(w, w->t.functions.name[f]), from(w, w->t.functions.linkage_name[f]),
                 file[f] == MIC_NONE ? 0 : from(w, w->t.files.path[file[f]]),
                 w->t.functions.line[f]);
  w->functions = rows;
  free(file);
}

static void put_line(struct mic_pack *to, uint64_t function, uint64_t line) {
  uint64_t size = 1 + mic_pack_size(function) + (line ? 1 + mic_pack_size(line) : 0);
  mic_pack_begin(to, PLACE_LINE, size);
  mic_pack_number(to, LINE_FUNCTION, function);
  mic_pack_number(to, LINE_LINE, line);
}

/* A location with rows of lines, or with one function without a line, or (0) none. */
static void put_location(struct writing *w, const struct place *place, uint64_t first,
                         uint64_t lines, uint64_t function) {
  struct mic_pack counted;
  mic_pack_start(&counted, NULL);
  for (struct mic_pack *to = &counted;; to = &w->out) {
    mic_pack_number(to, PLACE_ID, place->id);
    mic_pack_number(to, PLACE_MAPPING, place->mapping);
    mic_pack_number(to, PLACE_ADDRESS, place->address);
    for (uint64_t i = first; i < first + lines; i++)
      put_line(to, (uint64_t)w->t.lines.function[i] + 1, w->t.lines.line[i]);
    if (function) put_line(to, function, 0);
    if (to == &w->out) return;
    mic_pack_begin(&w->out, LOCATION, counted.size);
  }
}

/* A location that is one function without a line: what only a name is known of. */
static void put_named(struct writing *w, const struct place *place, int64_t name) {
  uint64_t function = put_function(w, ++w->functions, name, name, 0, 0);
  put_location(w, place, 0, 0, function);
}

/* Where a location by file offset was mapped. */
static void place_in_file(const struct writing *w, uint32_t module, uint64_t offset,
                          struct place *place) {
  place->mapping = module + 1;
  place->address = offset;
  if (w->row_of_module[module] == MIC_NONE) return;
  place->mapping = row_mapping(w, w->row_of_module[module]);
  uint32_t row = mic_file_places_find(&w->places, module, offset);
  if (row == MIC_NONE) return;
  place->mapping = row_mapping(w, row);
  place->address = w->t.mappings.address[row] + offset - w->t.mappings.file_offset[row];
}

static void find_place(const struct writing *w, uint64_t l, struct place *place) {
  uint32_t module = w->t.locations.module[l];
  uint64_t offset = w->t.locations.offset[l];
  switch (w->t.locations.kind[l]) {
  case MIC_LOCATION_FILE: place_in_file(w, module, offset, place); return;
  case MIC_LOCATION_ANON: place->mapping = anon_mapping(w); break;
  case MIC_LOCATION_NAMED:
  case MIC_LOCATION_RELATIVE: offset = 0; /* fall through */
  default:
    if (module != MIC_NONE) place->mapping = module + 1;
  }
  place->address = offset;
}

/* What a place is called whose address is not known: "MODULE+0xOFFSET". */
static int64_t relative_name(struct writing *w, uint64_t l) {
  size_t size;
  char *name = mic_tables_place_name(w->cap, &w->t, l, &size);
  int64_t id = put_string(w, name, size);
  free(name);
  return id;
}

static void put_locations(struct writing *w) {
  for (uint64_t l = 0; l < w->t.locations.rows; l++) {
    struct place place = {.id = l + 1};
    uint8_t kind = w->t.locations.kind[l];
    uint64_t first = w->first_line[l];
    find_place(w, l, &place);
    if (kind == MIC_LOCATION_SIGNAL)
      put_named(w, &place, text(w, "[signal]"));
    else if (first != UINT64_MAX)
      put_location(w, &place, first, mic_tables_line_count(&w->t, first), 0);
    else if (kind == MIC_LOCATION_NAMED)
      put_named(w, &place, from(w, (uint32_t)w->t.locations.offset[l]));
    else if (kind == MIC_LOCATION_RELATIVE)
      put_named(w, &place, relative_name(w, l));
    else
      put_location(w, &place, 0, 0, 0);
  }
}

/* --- samples ------------------------------------------------------------------------------- */

/* How many samples a weight stands for: most rows are one. */
static uint64_t samples_of(uint64_t weight, uint64_t period) {
  uint64_t count = weight / period + (weight % period > period / 2);
  return count ? count : 1;
}

/* False when the sum is more than a value can hold. */
static bool add(int64_t *sum, uint64_t value) { return !__builtin_add_overflow(*sum, value, sum); }

/* The values of a group, from its first row on. */
static int add_up(struct writing *w, const struct mic_groups *groups, uint32_t first) {
  memset(w->values, 0, w->types.count * sizeof *w->values);
  for (uint32_t row = first; row != MIC_NONE; row = groups->next[row]) {
    uint8_t source = w->t.samples.source[row];
    uint32_t type = w->first_type[source];
    uint64_t weight = w->t.samples.weight[row];
    bool counts = w->types.at[type].counts;
    bool fits = !counts || add(&w->values[type], samples_of(weight, w->t.sources.period[source]));
    if (!add(&w->values[type + counts], weight) || !fits)
      return mic_fail(w->err, MIC_ELIMIT,
                      "sample %u: a value of more than 2^63 - 1, which pprof cannot hold", row);
  }
  return 0;
}

static void put_label(struct mic_pack *to, const uint64_t fields[4]) {
  struct mic_pack counted;
  mic_pack_start(&counted, NULL);
  for (uint32_t i = 0; i < 4; i++) mic_pack_number(&counted, i + 1, fields[i]);
  mic_pack_begin(to, SAMPLE_LABEL, counted.size);
  for (uint32_t i = 0; i < 4; i++) mic_pack_number(to, i + 1, fields[i]);
}

static void put_text_label(struct mic_pack *to, int64_t key, int64_t value) {
  if (value) put_label(to, (const uint64_t[4]){(uint64_t)key, (uint64_t)value, 0, 0});
}
static void put_number_label(struct mic_pack *to, int64_t key, uint64_t value) {
  if (value) put_label(to, (const uint64_t[4]){(uint64_t)key, 0, value, 0});
}

/* Threads and processes that have neither a name nor an id stand for nothing. */
static void put_thread(struct writing *w, struct mic_pack *to, uint32_t thread) {
  uint32_t process = w->t.threads.process[thread];
  uint32_t tid = w->t.threads.tid[thread], pid = w->t.processes.pid[process];
  int64_t name = from(w, w->t.threads.name[thread]);
  int64_t process_name = from(w, w->t.processes.name[process]);
  if (name) put_text_label(to, text(w, "thread"), name);
  if (tid) put_number_label(to, text(w, "tid"), tid);
  if (process_name) put_text_label(to, text(w, "process"), process_name);
  if (pid) put_number_label(to, text(w, "pid"), pid);
}

static void put_labels(struct writing *w, struct mic_pack *to, uint32_t sample) {
  uint64_t row = mic_tables_first_label(&w->t, sample);
  for (; row < w->t.sample_labels.rows && w->t.sample_labels.sample[row] == sample; row++) {
    uint32_t id = w->t.sample_labels.label[row];
    bool is_text = w->t.labels.kind[id] == MIC_LABEL_TEXT;
    uint64_t fields[4] = {
      [LABEL_KEY - 1] = (uint64_t)from(w, w->t.labels.key[id]),
      [LABEL_STR - 1] = is_text ? (uint64_t)from(w, w->t.labels.text[id]) : 0,
      [LABEL_NUM - 1] = is_text ? 0 : w->t.labels.number[id],
      [LABEL_UNIT - 1] = is_text ? 0 : (uint64_t)from(w, w->t.labels.unit[id]),
    };
    put_label(to, fields);
  }
}

/* The reason of a stack that ends short, as a location of its own. */
static uint64_t end_location(struct writing *w, uint8_t end) {
  if (mic_end_is_whole(end)) return 0;
  if (end == MIC_END_NOT_STATED && w->unstated) return 0;
  if (w->ends[end]) return w->ends[end];
  char name[MIC_END_NAME_SIZE];
  mic_tables_end_name(end, name);
  struct place place = {.id = w->t.locations.rows + 1 + end};
  w->ends[end] = place.id;
  put_named(w, &place, text(w, name));
  return place.id;
}

/* A stack's locations, packed: all of them to `to`; gives how many bytes they are. */
static uint64_t put_frames(struct writing *w, struct mic_pack *to, uint32_t node) {
  uint64_t size = 0;
  for (; w->t.stacks.parent[node] != MIC_NONE; node = w->t.stacks.parent[node]) {
    uint64_t id = (uint64_t)w->t.stacks.location[node] + 1;
    size += mic_pack_size(id);
    if (to) mic_pack_varint(to, id);
  }
  uint64_t end = end_location(w, w->t.stacks.end[node]);
  if (!end) return size;
  if (to) mic_pack_varint(to, end);
  return size + mic_pack_size(end);
}

static void put_values(struct writing *w, struct mic_pack *to) {
  uint64_t size = 0;
  for (size_t i = 0; i < w->types.count; i++) size += mic_pack_size((uint64_t)w->values[i]);
  mic_pack_begin(to, SAMPLE_VALUE, size);
  for (size_t i = 0; i < w->types.count; i++) mic_pack_varint(to, (uint64_t)w->values[i]);
}

static void put_group(struct writing *w, uint32_t row) {
  struct mic_pack counted;
  mic_pack_start(&counted, NULL);
  uint32_t stack = w->t.samples.stack[row];
  uint64_t frames = put_frames(w, NULL, stack);
  for (struct mic_pack *to = &counted;; to = &w->out) {
    if (frames) mic_pack_begin(to, SAMPLE_LOCATION, frames);
    if (frames && to != &counted) put_frames(w, to, stack);
    if (to == &counted) to->size += frames;
    put_values(w, to);
    put_thread(w, to, w->t.samples.thread[row]);
    put_labels(w, to, row);
    if (to == &w->out) return;
    mic_pack_begin(&w->out, SAMPLE, counted.size);
  }
}

static int put_samples(struct writing *w) {
  int code = 0;
  struct mic_groups groups = mic_groups_of(&w->t, false);
  for (uint32_t row = 0; row < w->t.samples.rows && !code; row++) {
    if (!mic_groups_begins(&groups, row)) continue;
    code = add_up(w, &groups, row);
    if (!code) put_group(w, row);
  }
  mic_groups_free(&groups);
  return code;
}

static void release(struct writing *w) {
  mic_vec_free(&w->packed);
  mic_interner_free(&w->texts);
  mic_vec_free(&w->text_ids);
  mic_vec_free(&w->types);
  free(w->strings);
  free(w->first_line);
  free(w->row_of_module);
  mic_file_places_free(&w->places);
  free(w->module_limit);
  free(w->module_named);
  free(w->module_by_file);
  free(w->module_by_image);
}

static bool is_unstated(const struct writing *w) {
  bool unstated = false;
  for (uint64_t i = 0; i < w->t.stacks.rows; i++) {
    uint8_t end = w->t.stacks.end[i];
    if (mic_end_is_whole(end)) return false;
    unstated |= end == MIC_END_NOT_STATED;
  }
  return unstated;
}

MIC_EXPORT int mic_pprof_write(const struct mic_capture *cap, struct mic_output *output,
                               struct mic_error *err) {
  struct writing w = {.cap = cap, .t = mic_tables_of(cap), .err = err, .out = {.output = output}};
  w.strings = mic_alloc((size_t)(w.t.strings.rows + 1) * sizeof *w.strings);
  text(&w, ""); /* string 0 is the empty one */
  w.unstated = is_unstated(&w);
  w.first_line = mic_tables_first_lines(&w.t);
  look_at_modules(&w);
  put_types(&w);
  put_facts(&w);
  put_modules(&w);
  put_functions(&w);
  put_locations(&w);
  int code = put_samples(&w);
  mic_pack_flush(&w.out);
  release(&w);
  return code;
}
