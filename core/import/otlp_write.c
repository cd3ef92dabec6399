/*
 * otlp_write.c - profiles first, then the dictionary of all they named.
 *
 * A message is the concatenation of its fields, so the dictionary and each profile grow as bytes,
 * one packed piece after the other, and become fields of the whole in the end.
 */
#include "import/otlp_write.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/names.h"
#include "import/tables.h"
#include "otlp.pb-c.h"

typedef MIC_VEC(uint8_t) bytes;

struct group {
  uint32_t thread, stack, labels, count, first; /* its rows: order[first] and on */
};

struct writing {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_error *err;
  bytes dictionary, profiles, profile;
  struct mic_interner strings, attributes, sets;
  struct mic_map stacks; /* a capture's node -> stack_table */
  uint64_t *first_line;
  uint32_t functions, locations; /* entries so far */
  uint32_t ends[256];            /* locations of reasons; 0: not made */
  MIC_VEC(int32_t) frames;       /* scratch */
  MIC_VEC(struct group) groups;
  uint32_t *set_of_row;
};

/* Append a packed message that has one field set. */
static void append(bytes *to, const ProtobufCMessage *message) {
  size_t size = protobuf_c_message_get_packed_size(message);
  mic_vec_reserve(to, to->count + size);
  protobuf_c_message_pack(message, to->at + to->count);
  to->count += size;
}

/* --- texts --------------------------------------------------------------------------------- */

/* Bytes of a UTF-8 sequence at `at`, or 0 (RFC 3629, section 4). */
static size_t sequence(const uint8_t *at, size_t left) {
  uint8_t a = at[0];
  size_t size = a < 0x80                ? 1
                : a >= 0xc2 && a < 0xe0 ? 2
                : a >= 0xe0 && a < 0xf0 ? 3
                : a >= 0xf0 && a < 0xf5 ? 4
                                        : 0;
  if (!size || size > left) return 0;
  for (size_t i = 1; i < size; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  bool overlong = (a == 0xe0 && at[1] < 0xa0) || (a == 0xf0 && at[1] < 0x90);
  bool past = (a == 0xed && at[1] > 0x9f) || (a == 0xf4 && at[1] > 0x8f);
  return overlong || past ? 0 : size;
}

/* The text with U+FFFD for what is no UTF-8. */
static int32_t string(struct writing *w, const char *text, size_t size) {
  bytes valid = {0};
  for (size_t i = 0; i < size;) {
    size_t part = sequence((const uint8_t *)text + i, size - i);
    const char *from = part ? text + i : "\xef\xbf\xbd";
    size_t add = part ? part : 3;
    mic_vec_reserve(&valid, valid.count + add);
    memcpy(valid.at + valid.count, from, add);
    valid.count += add;
    i += part ? part : 1;
  }
  uint32_t id = mic_intern(&w->strings, (const char *)valid.at, valid.count);
  mic_vec_free(&valid);
  return (int32_t)id;
}
static int32_t text(struct writing *w, const char *line) { return string(w, line, strlen(line)); }
static int32_t from(struct writing *w, uint32_t id) {
  uint64_t size;
  const char *line = mic_capture_string(w->cap, id, &size);
  return string(w, line ? line : "", size);
}

/* --- attributes ---------------------------------------------------------------------------- */

/* An attribute's index: a text (value is a string's) or a number. */
static int32_t attribute(struct writing *w, int32_t key, bool number, int64_t value, int32_t unit) {
  int64_t parts[] = {key, number, value, unit};
  size_t known = w->attributes.strings.count;
  uint32_t id = mic_intern(&w->attributes, (const char *)parts, sizeof parts);
  if (id < known) return (int32_t)id;
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  Mic__Otlp__Attribute entry = MIC__OTLP__ATTRIBUTE__INIT, *pointer = &entry;
  Mic__Otlp__AnyValue any = MIC__OTLP__ANY_VALUE__INIT;
  entry.key_strindex = key;
  entry.unit_strindex = unit;
  entry.value = &any;
  if (number) {
    any.value_case = MIC__OTLP__ANY_VALUE__VALUE_INT_VALUE;
    any.int_value = value;
  } else {
    struct mic_string s = mic_interner_at(&w->strings, (uint32_t)value);
    any.value_case = MIC__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    any.string_value = (ProtobufCBinaryData){s.size, (uint8_t *)(uintptr_t)s.bytes};
  }
  piece.n_attribute_table = 1;
  piece.attribute_table = &pointer;
  append(&w->dictionary, &piece.base);
  return (int32_t)id;
}

static int32_t said(struct writing *w, const char *key, int32_t value) {
  return attribute(w, text(w, key), false, value, 0);
}
static int32_t counted(struct writing *w, const char *key, uint32_t value) {
  return attribute(w, text(w, key), true, value, 0);
}

/* --- the dictionary ------------------------------------------------------------------------ */

/* The empty first entry of each table. */
static void put_nothing(struct writing *w) {
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  Mic__Otlp__Mapping mapping = MIC__OTLP__MAPPING__INIT, *mappings = &mapping;
  Mic__Otlp__Location location = MIC__OTLP__LOCATION__INIT, *locations = &location;
  Mic__Otlp__Function function = MIC__OTLP__FUNCTION__INIT, *functions = &function;
  Mic__Otlp__Attribute entry = MIC__OTLP__ATTRIBUTE__INIT, *attributes = &entry;
  Mic__Otlp__Stack stack = MIC__OTLP__STACK__INIT, *stacks = &stack;
  ProtobufCBinaryData link = {0, NULL};
  piece.n_mapping_table = piece.n_location_table = piece.n_function_table = 1;
  piece.n_link_table = piece.n_attribute_table = piece.n_stack_table = 1;
  piece.mapping_table = &mappings;
  piece.location_table = &locations;
  piece.function_table = &functions;
  piece.link_table = &link;
  piece.attribute_table = &attributes;
  piece.stack_table = &stacks;
  append(&w->dictionary, &piece.base);
  text(w, "");
  mic_intern(&w->attributes, "", 0);
  w->functions = w->locations = 1;
}

static void put_mappings(struct writing *w) {
  for (uint32_t m = 0; m < w->t.modules.rows; m++) {
    Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
    Mic__Otlp__Mapping mapping = MIC__OTLP__MAPPING__INIT, *pointer = &mapping;
    int32_t id = from(w, w->t.modules.build_id[m]), index;
    mapping.filename_strindex = from(w, w->t.modules.path[m]);
    if (id) {
      index = said(w, "process.executable.build_id.gnu", id);
      mapping.n_attribute_indices = 1;
      mapping.attribute_indices = &index;
    }
    piece.n_mapping_table = 1;
    piece.mapping_table = &pointer;
    append(&w->dictionary, &piece.base);
  }
}

static int32_t put_function(struct writing *w, int32_t name, int32_t system_name, int32_t file,
                            uint32_t line) {
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  Mic__Otlp__Function function = MIC__OTLP__FUNCTION__INIT, *pointer = &function;
  function.name_strindex = name;
  function.system_name_strindex = system_name;
  function.filename_strindex = file;
  function.start_line = line;
  piece.n_function_table = 1;
  piece.function_table = &pointer;
  append(&w->dictionary, &piece.base);
  return (int32_t)w->functions++;
}

static void put_functions(struct writing *w) {
  for (uint32_t f = 0; f < w->t.functions.rows; f++) {
    uint32_t file = w->t.functions.file[f];
    put_function(w, from(w, w->t.functions.name[f]), from(w, w->t.functions.linkage_name[f]),
                 file == MIC_NONE ? 0 : from(w, w->t.files.path[file]), w->t.functions.line[f]);
  }
}

static uint32_t put_location(struct writing *w, Mic__Otlp__Location *location) {
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  piece.n_location_table = 1;
  piece.location_table = &location;
  append(&w->dictionary, &piece.base);
  return w->locations++;
}

static uint32_t put_named(struct writing *w, Mic__Otlp__Location *location, int32_t name) {
  Mic__Otlp__Line line = MIC__OTLP__LINE__INIT, *pointer = &line;
  line.function_index = put_function(w, name, name, 0, 0);
  location->n_lines = 1;
  location->lines = &pointer;
  return put_location(w, location);
}

static void put_lines(struct writing *w, uint32_t l, Mic__Otlp__Location *location) {
  uint64_t first = w->first_line[l];
  size_t count = (size_t)mic_tables_line_count(&w->t, first);
  Mic__Otlp__Line *lines = mic_alloc(count * sizeof *lines);
  Mic__Otlp__Line **pointers = mic_alloc(count * sizeof(void *));
  for (size_t i = 0; i < count; i++) {
    lines[i] = (Mic__Otlp__Line)MIC__OTLP__LINE__INIT;
    lines[i].function_index = (int32_t)w->t.lines.function[first + i] + 1;
    lines[i].line = w->t.lines.line[first + i];
    pointers[i] = &lines[i];
  }
  location->n_lines = count;
  location->lines = pointers;
  put_location(w, location);
  free(lines);
  free(pointers);
}

/* A place whose address is not known, by name. */
static void put_relative(struct writing *w, uint32_t l, Mic__Otlp__Location *location) {
  size_t size;
  char *name = mic_tables_place_name(w->cap, &w->t, l, &size);
  put_named(w, location, string(w, name, size));
  free(name);
}

static void put_locations(struct writing *w) {
  for (uint32_t l = 0; l < w->t.locations.rows; l++) {
    Mic__Otlp__Location location = MIC__OTLP__LOCATION__INIT;
    uint8_t kind = w->t.locations.kind[l];
    uint32_t module = w->t.locations.module[l];
    if (module != MIC_NONE) location.mapping_index = (int32_t)module + 1;
    if (kind != MIC_LOCATION_NAMED && kind != MIC_LOCATION_RELATIVE)
      location.address = w->t.locations.offset[l];
    if (kind == MIC_LOCATION_SIGNAL)
      put_named(w, &location, text(w, "[signal]"));
    else if (w->first_line[l] != UINT64_MAX)
      put_lines(w, l, &location);
    else if (kind == MIC_LOCATION_NAMED)
      put_named(w, &location, from(w, (uint32_t)w->t.locations.offset[l]));
    else if (kind == MIC_LOCATION_RELATIVE)
      put_relative(w, l, &location);
    else
      put_location(w, &location);
  }
}

static int32_t end_location(struct writing *w, uint8_t end) {
  if (mic_end_is_whole(end) || end == MIC_END_NOT_STATED) return 0;
  if (w->ends[end]) return (int32_t)w->ends[end];
  char name[MIC_END_NAME_SIZE];
  mic_tables_end_name(end, name);
  Mic__Otlp__Location location = MIC__OTLP__LOCATION__INIT;
  w->ends[end] = put_named(w, &location, text(w, name));
  return (int32_t)w->ends[end];
}

/* The entry of a stack, made when first needed. */
static int32_t stack_of(struct writing *w, uint32_t node) {
  bool added;
  uint32_t index = mic_map_intern(&w->stacks, node, 0, w->stacks.count + 1, &added);
  if (!added) return (int32_t)index;
  w->frames.count = 0;
  for (; w->t.stacks.parent[node] != MIC_NONE; node = w->t.stacks.parent[node])
    *mic_vec_push(&w->frames) = (int32_t)w->t.stacks.location[node] + 1;
  int32_t end = end_location(w, w->t.stacks.end[node]);
  if (end) *mic_vec_push(&w->frames) = end;
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  Mic__Otlp__Stack stack = MIC__OTLP__STACK__INIT, *pointer = &stack;
  stack.n_location_indices = w->frames.count;
  stack.location_indices = w->frames.at;
  piece.n_stack_table = 1;
  piece.stack_table = &pointer;
  append(&w->dictionary, &piece.base);
  return (int32_t)index;
}

static void put_strings(struct writing *w) {
  for (uint32_t i = 0; i < w->strings.strings.count; i++) {
    struct mic_string s = mic_interner_at(&w->strings, i);
    ProtobufCBinaryData data = {s.size, (uint8_t *)(uintptr_t)s.bytes};
    Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
    piece.n_string_table = 1;
    piece.string_table = &data;
    append(&w->dictionary, &piece.base);
  }
}

/* --- samples ------------------------------------------------------------------------------- */

/* The set of labels of each sample. */
static void find_sets(struct writing *w) {
  w->set_of_row = mic_alloc((size_t)(w->t.samples.rows + 1) * sizeof *w->set_of_row);
  mic_intern(&w->sets, "", 0);
  for (uint64_t row = 0; row < w->t.sample_labels.rows;) {
    uint32_t sample = w->t.sample_labels.sample[row];
    w->set_of_row[sample] = mic_tables_label_set(&w->t, &w->sets, sample, &row);
  }
}

/* Rows of a source by group, in their order. */
static uint32_t *sort_rows(struct writing *w, uint32_t source) {
  struct mic_map by_key = {0};
  uint64_t rows = w->t.samples.rows;
  uint32_t *group_of = mic_alloc((size_t)(rows + 1) * sizeof *group_of), first = 0;
  w->groups.count = 0;
  for (uint64_t i = 0; i < rows; i++) {
    if (w->t.samples.source[i] != source) continue;
    bool added;
    struct group group = {w->t.samples.thread[i], w->t.samples.stack[i], w->set_of_row[i], 0, 0};
    group_of[i] = mic_map_intern(&by_key, (uint64_t)group.thread << 32 | group.stack, group.labels,
                                 (uint32_t)w->groups.count, &added);
    if (added) *mic_vec_push(&w->groups) = group;
    w->groups.at[group_of[i]].count++;
  }
  for (size_t g = 0; g < w->groups.count; g++) {
    w->groups.at[g].first = first;
    first += w->groups.at[g].count;
    w->groups.at[g].count = 0;
  }
  uint32_t *order = mic_alloc(((size_t)first + 1) * sizeof *order);
  for (uint64_t i = 0; i < rows; i++) {
    if (w->t.samples.source[i] != source) continue;
    struct group *group = &w->groups.at[group_of[i]];
    order[group->first + group->count++] = (uint32_t)i;
  }
  mic_map_free(&by_key);
  free(group_of);
  return order;
}

static void add_attributes(struct writing *w, const struct group *group) {
  uint32_t process = w->t.threads.process[group->thread];
  uint32_t tid = w->t.threads.tid[group->thread], pid = w->t.processes.pid[process];
  int32_t name = from(w, w->t.threads.name[group->thread]);
  int32_t program = from(w, w->t.processes.name[process]);
  w->frames.count = 0;
#define ADD(index) *mic_vec_push(&w->frames) = (index)
  if (name) ADD(said(w, "thread.name", name));
  if (tid) ADD(counted(w, "thread.id", tid));
  if (program) ADD(said(w, "process.executable.name", program));
  if (pid) ADD(counted(w, "process.pid", pid));
  struct mic_string set = mic_interner_at(&w->sets, group->labels);
  for (uint32_t i = 0; i < set.size / sizeof(uint32_t); i++) {
    uint32_t id;
    memcpy(&id, set.bytes + i * sizeof id, sizeof id);
    bool number = w->t.labels.kind[id] == MIC_LABEL_NUMBER;
    int64_t value = number ? (int64_t)w->t.labels.number[id] : from(w, w->t.labels.text[id]);
    ADD(attribute(w, from(w, w->t.labels.key[id]), number, value, from(w, w->t.labels.unit[id])));
  }
#undef ADD
}

static int put_sample(struct writing *w, const struct group *group, const uint32_t *order,
                      uint64_t realtime_ns) {
  Mic__Otlp__Profile piece = MIC__OTLP__PROFILE__INIT;
  Mic__Otlp__Sample sample = MIC__OTLP__SAMPLE__INIT, *pointer = &sample;
  int64_t *values = mic_alloc(group->count * sizeof *values);
  uint64_t *times = mic_alloc(group->count * sizeof *times);
  int code = 0;
  for (uint32_t i = 0; i < group->count; i++) {
    uint32_t row = order[group->first + i];
    uint64_t weight = w->t.samples.weight[row];
    if (weight > INT64_MAX)
      code = mic_fail(w->err, MIC_ELIMIT, "sample %u: a value of more than 2^63 - 1", row);
    values[i] = (int64_t)(weight & INT64_MAX);
    times[i] = realtime_ns + w->t.samples.time_ns[row];
  }
  sample.stack_index = stack_of(w, group->stack);
  add_attributes(w, group);
  sample.n_attribute_indices = w->frames.count;
  sample.attribute_indices = w->frames.at;
  sample.n_values = group->count;
  sample.values = values;
  sample.n_timestamps_unix_nano = realtime_ns ? group->count : 0;
  sample.timestamps_unix_nano = times;
  piece.n_samples = 1;
  piece.samples = &pointer;
  append(&w->profile, &piece.base);
  free(values);
  free(times);
  return code;
}

static int32_t unit_of(struct writing *w, uint32_t source) {
  static const char *const words[] = {[MIC_UNIT_CPU_NS] = "nanoseconds",
                                      [MIC_UNIT_CYCLES] = "cycles",
                                      [MIC_UNIT_COUNT] = "count",
                                      [MIC_UNIT_BYTES] = "bytes",
                                      [MIC_UNIT_NS] = "nanoseconds"};
  uint8_t unit = w->t.sources.unit[source];
  int32_t own = w->t.sources.unit_name ? from(w, w->t.sources.unit_name[source]) : 0;
  if (own) return own;
  return text(w, unit < sizeof words / sizeof *words ? words[unit] : "1");
}

/* A profile's head.  Its id need only differ from others': a hash of what it is of. */
static void put_head(struct writing *w, uint32_t source, uint64_t realtime_ns) {
  Mic__Otlp__Profile head = MIC__OTLP__PROFILE__INIT;
  Mic__Otlp__ValueType type = MIC__OTLP__VALUE_TYPE__INIT;
  uint64_t duration_ns = w->t.clocks.rows ? w->t.clocks.duration_ns[0] : 0;
  uint64_t facts[] = {source, realtime_ns, duration_ns, w->t.samples.rows, w->t.stacks.rows};
  uint64_t id[2] = {mic_hash(facts, sizeof facts), 0};
  id[1] = mic_hash(id, sizeof id);
  type.type_strindex = from(w, w->t.sources.name[source]);
  type.unit_strindex = unit_of(w, source);
  head.sample_type = &type;
  head.time_unix_nano = realtime_ns;
  head.duration_nano = duration_ns;
  if (w->t.sources.period[source]) {
    head.period_type = &type;
    head.period = (int64_t)w->t.sources.period[source];
  }
  head.profile_id = (ProtobufCBinaryData){sizeof id, (uint8_t *)id};
  append(&w->profile, &head.base);
}

static int put_profile(struct writing *w, uint32_t source) {
  uint64_t realtime_ns = w->t.clocks.rows ? w->t.clocks.realtime_ns[0] : 0;
  uint32_t *order = sort_rows(w, source);
  int code = 0;
  w->profile.count = 0;
  put_head(w, source, realtime_ns);
  for (size_t g = 0; g < w->groups.count && !code; g++)
    code = put_sample(w, &w->groups.at[g], order, realtime_ns);
  free(order);
  Mic__Otlp__ScopeProfiles piece = MIC__OTLP__SCOPE_PROFILES__INIT;
  ProtobufCBinaryData data = {w->profile.count, w->profile.at};
  piece.n_profiles = 1;
  piece.profiles = &data;
  append(&w->profiles, &piece.base);
  return code;
}

/* --- the whole ----------------------------------------------------------------------------- */

static void put_whole(struct writing *w, struct mic_output *output) {
  Mic__Otlp__ScopeProfiles head = MIC__OTLP__SCOPE_PROFILES__INIT;
  Mic__Otlp__Scope scope = MIC__OTLP__SCOPE__INIT;
  Mic__Otlp__ResourceProfiles resource = MIC__OTLP__RESOURCE_PROFILES__INIT;
  Mic__Otlp__Resource nothing = MIC__OTLP__RESOURCE__INIT;
  Mic__Otlp__ProfilesData whole = MIC__OTLP__PROFILES_DATA__INIT;
  char name[] = "microscope";
  scope.name = name;
  head.scope = &scope;
  append(&w->profiles, &head.base);
  ProtobufCBinaryData scoped = {w->profiles.count, w->profiles.at};
  resource.resource = &nothing;
  resource.n_scope_profiles = 1;
  resource.scope_profiles = &scoped;
  bytes packed = {0}, all = {0};
  append(&packed, &resource.base);
  ProtobufCBinaryData of_resource = {packed.count, packed.at};
  whole.n_resource_profiles = 1;
  whole.resource_profiles = &of_resource;
  whole.dictionary = (ProtobufCBinaryData){w->dictionary.count, w->dictionary.at};
  append(&all, &whole.base);
  mic_output_write(output, (const char *)all.at, all.count);
  mic_vec_free(&packed);
  mic_vec_free(&all);
}

static void release(struct writing *w) {
  mic_vec_free(&w->dictionary);
  mic_vec_free(&w->profiles);
  mic_vec_free(&w->profile);
  mic_interner_free(&w->strings);
  mic_interner_free(&w->attributes);
  mic_interner_free(&w->sets);
  mic_map_free(&w->stacks);
  free(w->first_line);
  mic_vec_free(&w->frames);
  mic_vec_free(&w->groups);
  free(w->set_of_row);
}

MIC_EXPORT int mic_otlp_write(const struct mic_capture *cap, struct mic_output *output,
                              struct mic_error *err) {
  struct writing w = {.cap = cap, .t = mic_tables_of(cap), .err = err};
  w.first_line = mic_tables_first_lines(&w.t);
  find_sets(&w);
  put_nothing(&w);
  put_mappings(&w);
  put_functions(&w);
  put_locations(&w);
  int code = 0;
  for (uint32_t s = 0; s < w.t.sources.rows && !code; s++) code = put_profile(&w, s);
  put_strings(&w);
  if (!code) put_whole(&w, output);
  release(&w);
  return code;
}
