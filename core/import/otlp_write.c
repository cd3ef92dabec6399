/*
 * otlp_write.c - the profiles, then the dictionary of all they named.
 *
 * Both are messages that stand behind their size.  They are made three times: to count, then the
 * profiles to write, then the dictionary; what holds both together are the numbers that strings,
 * stacks and attributes got, 4 bytes each.
 */
#include "import/otlp_write.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/utf8.h"
#include "capture/names.h"
#include "import/groups.h"
#include "import/pack.h"
#include "otlp.pb-c.h"

/* The numbers of the fields that are written without a message. */
enum { DATA_RESOURCE = 1, DATA_DICTIONARY = 2 };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPE = 2 };
enum { SCOPE_SCOPE = 1, SCOPE_PROFILE = 2, SCOPE_NAME = 1 };
enum { PROFILE_SAMPLE = 2 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTE = 2, SAMPLE_VALUE = 4, SAMPLE_TIME = 5 };
enum { TABLE_LOCATION = 2, TABLE_FUNCTION = 3, TABLE_STRING = 5, TABLE_ATTRIBUTE = 6 };
enum { TABLE_STACK = 7, STACK_LOCATION = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3, ANY_STRING = 1, ANY_INT = 3 };
enum { PLACE_MAPPING = 1, PLACE_ADDRESS = 2, PLACE_LINE = 3, LINE_FUNCTION = 1, LINE_LINE = 2 };

enum { SOURCES_MAX = 256 }; /* ids of sources are u8 */

/* What is said of threads, processes and modules: a text's id in the capture, or a number. */
struct said {
  uint32_t what, value;
};
enum { THREAD_NAME, THREAD_ID, PROCESS_NAME, PROCESS_ID, BUILD_ID };

struct writing {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_error *err;
  struct mic_pack *dictionary, *profiles; /* each counts or writes */
  MIC_VEC(uint8_t) packed;
  struct mic_groups groups;
  uint64_t *first_line;
  /* What got a number in the dictionary; none of these is known when it is begun. */
  uint32_t string_count, attribute_count, stack_count, functions, locations;
  uint32_t *strings;         /* of each of the capture's; 0: none yet, or the empty one */
  uint32_t *stacks, *labels; /* of each row; 0: none yet */
  struct mic_interner texts; /* strings that the capture has not, and */
  MIC_VEC(uint32_t) text_ids;
  struct mic_index said_index; /* said, and */
  MIC_VEC(struct said) said;
  MIC_VEC(uint32_t) said_ids;
  uint32_t ends[256];           /* locations of reasons; 0: not made */
  MIC_VEC(uint32_t) attributes; /* of a sample */
};

static void put_packed(struct writing *w, struct mic_pack *to, const ProtobufCMessage *message) {
  size_t size = protobuf_c_message_get_packed_size(message);
  mic_vec_reserve(&w->packed, size);
  protobuf_c_message_pack(message, w->packed.at);
  mic_pack_put(to, w->packed.at, size);
}

/* --- texts --------------------------------------------------------------------------------- */

/* The text with U+FFFD for what is no UTF-8; gives how many bytes that is. */
static size_t put_valid(struct mic_pack *to, const char *text, size_t size) {
  size_t total = 0, good = 0; /* bytes at `good` and on are valid and wait */
  for (size_t i = 0; i < size;) {
    uint32_t part = mic_utf8_length(text + i, size - i);
    if (!part) {
      total += i - good + 3;
      if (to) mic_pack_put(to, text + good, i - good);
      if (to) mic_pack_put(to, "\xef\xbf\xbd", 3);
      good = i + 1;
    }
    i += part ? part : 1;
  }
  if (to) mic_pack_put(to, text + good, size - good);
  return total + size - good;
}

/* A string that the dictionary does not have. */
static uint32_t put_string(struct writing *w, const char *text, size_t size) {
  mic_pack_begin(w->dictionary, TABLE_STRING, put_valid(NULL, text, size));
  put_valid(w->dictionary, text, size);
  return w->string_count++;
}
static int32_t text(struct writing *w, const char *line) {
  uint32_t id = mic_intern(&w->texts, line, strlen(line));
  if (id == w->text_ids.count) *mic_vec_push(&w->text_ids) = put_string(w, line, strlen(line));
  return (int32_t)w->text_ids.at[id];
}
static int32_t from(struct writing *w, uint32_t id) {
  uint64_t size;
  const char *line = mic_capture_string(w->cap, id, &size);
  if (!line || !size) return 0;
  if (!w->strings[id]) w->strings[id] = put_string(w, line, size);
  return (int32_t)w->strings[id];
}

/* --- attributes ---------------------------------------------------------------------------- */

/* An attribute of a key: a text of the capture, or a number with a unit. */
static uint32_t put_attribute(struct writing *w, int32_t key, const uint32_t *string,
                              uint64_t number, int32_t unit) {
  struct mic_pack *to = w->dictionary;
  uint64_t size = 0, valid = 0, any;
  const char *line = string ? mic_capture_string(w->cap, *string, &size) : NULL;
  if (line) valid = put_valid(NULL, line, size);
  any = 1 + (string ? mic_pack_size(valid) + valid : mic_pack_size(number));
  uint64_t whole = 1 + mic_pack_size((uint32_t)key) + 1 + mic_pack_size(any) + any +
                   (unit ? 1 + mic_pack_size((uint32_t)unit) : 0);
  mic_pack_begin(to, TABLE_ATTRIBUTE, whole);
  mic_pack_number(to, ATTRIBUTE_KEY, (uint32_t)key);
  mic_pack_begin(to, ATTRIBUTE_VALUE, any);
  if (string) {
    mic_pack_begin(to, ANY_STRING, valid);
    put_valid(to, line ? line : "", size);
  } else { /* also a 0: it is one of several that a value may be */
    mic_pack_varint(to, ANY_INT << 3);
    mic_pack_varint(to, number);
  }
  mic_pack_number(to, ATTRIBUTE_UNIT, (uint32_t)unit);
  return w->attribute_count++;
}

static uint32_t hash_of_said(const void *keys, uint32_t id) {
  const struct writing *w = keys;
  return mic_index_mix(w->said.at[id].what, w->said.at[id].value);
}

/* The attribute that says it, made once. */
static uint32_t say(struct writing *w, uint32_t what, uint32_t value) {
  static const char *const keys[] = {"thread.name", "thread.id", "process.executable.name",
                                     "process.pid", "process.executable.build_id.gnu"};
  uint32_t hash = mic_index_mix(what, value);
  uint64_t at;
  for (uint32_t i = mic_index_first(&w->said_index, hash, &at); i != MIC_NONE;
       i = mic_index_next(&w->said_index, hash, &at))
    if (w->said.at[i].what == what && w->said.at[i].value == value) return w->said_ids.at[i];
  bool number = what == THREAD_ID || what == PROCESS_ID;
  uint32_t id = put_attribute(w, text(w, keys[what]), number ? NULL : &value, value, 0);
  *mic_vec_push(&w->said) = (struct said){what, value};
  *mic_vec_push(&w->said_ids) = id;
  mic_index_add(&w->said_index, hash, hash_of_said, w);
  return id;
}

static uint32_t label(struct writing *w, uint32_t row) {
  if (w->labels[row]) return w->labels[row];
  bool number = w->t.labels.kind[row] == MIC_LABEL_NUMBER;
  int32_t key = from(w, w->t.labels.key[row]), unit = from(w, w->t.labels.unit[row]);
  w->labels[row] = put_attribute(w, key, number ? NULL : &w->t.labels.text[row],
                                 number ? w->t.labels.number[row] : 0, unit);
  return w->labels[row];
}

/* --- the dictionary ------------------------------------------------------------------------ */

/* The empty first entry of each table. */
static void put_nothing(struct writing *w) {
  for (uint32_t table = 1; table <= TABLE_STACK; table++) mic_pack_begin(w->dictionary, table, 0);
  w->string_count = w->attribute_count = w->stack_count = w->functions = w->locations = 1;
}

static bool has_anonymous(const struct writing *w) {
  for (uint64_t l = 0; l < w->t.locations.rows; l++)
    if (w->t.locations.kind[l] == MIC_LOCATION_ANON) return true;
  return false;
}

/* What code in anonymous memory is in, as pprof files have it too. */
static void put_anonymous(struct writing *w) {
  Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
  Mic__Otlp__Mapping mapping = MIC__OTLP__MAPPING__INIT, *pointer = &mapping;
  mapping.memory_limit = UINT64_MAX;
  mapping.filename_strindex = text(w, "//anon");
  piece.n_mapping_table = 1;
  piece.mapping_table = &pointer;
  put_packed(w, w->dictionary, &piece.base);
}

static void put_mappings(struct writing *w) {
  for (uint32_t m = 0; m < w->t.modules.rows; m++) {
    Mic__Otlp__Dictionary piece = MIC__OTLP__DICTIONARY__INIT;
    Mic__Otlp__Mapping mapping = MIC__OTLP__MAPPING__INIT, *pointer = &mapping;
    int32_t index;
    mapping.filename_strindex = from(w, w->t.modules.path[m]);
    if (from(w, w->t.modules.build_id[m])) {
      index = (int32_t)say(w, BUILD_ID, w->t.modules.build_id[m]);
      mapping.n_attribute_indices = 1;
      mapping.attribute_indices = &index;
    }
    piece.n_mapping_table = 1;
    piece.mapping_table = &pointer;
    put_packed(w, w->dictionary, &piece.base);
  }
  if (has_anonymous(w)) put_anonymous(w);
}

static uint32_t put_function(struct writing *w, int32_t name, int32_t system_name, int32_t file,
                             uint32_t line) {
  const uint32_t numbers[] = {(uint32_t)name, (uint32_t)system_name, (uint32_t)file, line};
  uint64_t size = 0;
  for (uint32_t i = 0; i < 4; i++) size += numbers[i] ? 1 + mic_pack_size(numbers[i]) : 0;
  mic_pack_begin(w->dictionary, TABLE_FUNCTION, size);
  for (uint32_t i = 0; i < 4; i++) mic_pack_number(w->dictionary, i + 1, numbers[i]);
  return w->functions++;
}

static void put_functions(struct writing *w) {
  for (uint32_t f = 0; f < w->t.functions.rows; f++) {
    uint32_t file = w->t.functions.file[f];
    put_function(w, from(w, w->t.functions.name[f]), from(w, w->t.functions.linkage_name[f]),
                 file == MIC_NONE ? 0 : from(w, w->t.files.path[file]), w->t.functions.line[f]);
  }
}

struct place {
  uint64_t mapping, address;
};

static void put_line(struct mic_pack *to, uint32_t function, uint32_t line) {
  mic_pack_begin(to, PLACE_LINE,
                 1 + mic_pack_size(function) + (line ? 1 + mic_pack_size(line) : 0));
  mic_pack_number(to, LINE_FUNCTION, function);
  mic_pack_number(to, LINE_LINE, line);
}

/* A location with rows of lines, or with one function without a line, or (0) none. */
static uint32_t put_location(struct writing *w, const struct place *place, uint64_t first,
                             uint64_t lines, uint32_t function) {
  struct mic_pack counted;
  mic_pack_start(&counted, NULL);
  for (struct mic_pack *to = &counted;; to = w->dictionary) {
    mic_pack_number(to, PLACE_MAPPING, place->mapping);
    mic_pack_number(to, PLACE_ADDRESS, place->address);
    for (uint64_t i = first; i < first + lines; i++)
      put_line(to, w->t.lines.function[i] + 1, w->t.lines.line[i]);
    if (function) put_line(to, function, 0);
    if (to != &counted) return w->locations++;
    mic_pack_begin(w->dictionary, TABLE_LOCATION, counted.size);
  }
}

static uint32_t put_named(struct writing *w, const struct place *place, int32_t name) {
  return put_location(w, place, 0, 0, put_function(w, name, name, 0, 0));
}

/* A place whose address is not known, by name. */
static void put_relative(struct writing *w, uint32_t l, const struct place *place) {
  size_t size;
  char *name = mic_tables_place_name(w->cap, &w->t, l, &size);
  put_named(w, place, (int32_t)put_string(w, name, size));
  free(name);
}

static void put_locations(struct writing *w) {
  for (uint32_t l = 0; l < w->t.locations.rows; l++) {
    struct place place = {0, 0};
    uint8_t kind = w->t.locations.kind[l];
    uint32_t module = w->t.locations.module[l];
    uint64_t first = w->first_line[l];
    if (module != MIC_NONE) place.mapping = (uint64_t)module + 1;
    if (kind == MIC_LOCATION_ANON) place.mapping = w->t.modules.rows + 1;
    if (kind != MIC_LOCATION_NAMED && kind != MIC_LOCATION_RELATIVE && kind != MIC_LOCATION_FILE)
      place.address = w->t.locations.offset[l];
    if (kind == MIC_LOCATION_SIGNAL)
      put_named(w, &place, text(w, "[signal]"));
    else if (first != UINT64_MAX)
      put_location(w, &place, first, mic_tables_line_count(&w->t, first), 0);
    else if (kind == MIC_LOCATION_NAMED)
      put_named(w, &place, from(w, (uint32_t)w->t.locations.offset[l]));
    else if (kind == MIC_LOCATION_RELATIVE || kind == MIC_LOCATION_FILE)
      put_relative(w, l, &place);
    else
      put_location(w, &place, 0, 0, 0);
  }
}

static uint32_t end_location(struct writing *w, uint8_t end) {
  if (mic_end_is_silent(end)) return 0;
  if (w->ends[end]) return w->ends[end];
  char name[MIC_END_NAME_SIZE];
  mic_tables_end_name(end, name);
  w->ends[end] = put_named(w, &(struct place){0, 0}, text(w, name));
  return w->ends[end];
}

/* The locations of a stack, packed, to `to`; gives how many bytes they are. */
static uint64_t put_frames(struct writing *w, struct mic_pack *to, uint32_t node) {
  uint64_t size = 0;
  for (; w->t.stacks.parent[node] != MIC_NONE; node = w->t.stacks.parent[node]) {
    uint32_t index = w->t.stacks.location[node] + 1;
    size += mic_pack_size(index);
    if (to) mic_pack_varint(to, index);
  }
  uint32_t end = end_location(w, w->t.stacks.end[node]);
  if (!end) return size;
  if (to) mic_pack_varint(to, end);
  return size + mic_pack_size(end);
}

/* The entry of a stack, made when first needed. */
static uint32_t stack_of(struct writing *w, uint32_t node) {
  if (w->stacks[node]) return w->stacks[node];
  uint64_t size = put_frames(w, NULL, node);
  mic_pack_begin(w->dictionary, TABLE_STACK, size ? 1 + mic_pack_size(size) + size : 0);
  if (size) mic_pack_begin(w->dictionary, STACK_LOCATION, size);
  if (size && w->dictionary->output)
    put_frames(w, w->dictionary, node);
  else
    w->dictionary->size += size;
  w->stacks[node] = w->stack_count++;
  return w->stacks[node];
}

/* --- samples ------------------------------------------------------------------------------- */

static void find_attributes(struct writing *w, uint32_t sample) {
  uint32_t thread = w->t.samples.thread[sample], process = w->t.threads.process[thread];
  uint32_t tid = w->t.threads.tid[thread], pid = w->t.processes.pid[process];
  uint32_t name = w->t.threads.name[thread], program = w->t.processes.name[process];
  w->attributes.count = 0;
  if (from(w, name)) *mic_vec_push(&w->attributes) = say(w, THREAD_NAME, name);
  if (tid) *mic_vec_push(&w->attributes) = say(w, THREAD_ID, tid);
  if (from(w, program)) *mic_vec_push(&w->attributes) = say(w, PROCESS_NAME, program);
  if (pid) *mic_vec_push(&w->attributes) = say(w, PROCESS_ID, pid);
  uint64_t row = mic_tables_first_label(&w->t, sample);
  for (; row < w->t.sample_labels.rows && w->t.sample_labels.sample[row] == sample; row++)
    *mic_vec_push(&w->attributes) = label(w, w->t.sample_labels.label[row]);
}

struct group {
  uint32_t first, stack;
  uint64_t count, attribute_bytes, value_bytes, realtime_ns;
};

/* What its parts take, also what they take in the dictionary. */
static int measure(struct writing *w, struct group *group) {
  for (uint32_t row = group->first; row != MIC_NONE; row = w->groups.next[row]) {
    uint64_t weight = w->t.samples.weight[row];
    if (weight > INT64_MAX)
      return mic_fail(w->err, MIC_ELIMIT, "sample %u: a value of more than 2^63 - 1", row);
    group->value_bytes += mic_pack_size(weight);
    group->count++;
  }
  group->stack = stack_of(w, w->t.samples.stack[group->first]);
  find_attributes(w, group->first);
  for (size_t i = 0; i < w->attributes.count; i++)
    group->attribute_bytes += mic_pack_size(w->attributes.at[i]);
  return 0;
}

static uint64_t size_of(uint64_t bytes) { return bytes ? 1 + mic_pack_size(bytes) + bytes : 0; }

static int put_sample(struct writing *w, uint32_t first, uint64_t realtime_ns) {
  struct mic_pack *to = w->profiles;
  struct group group = {.first = first};
  int code = measure(w, &group);
  if (code) return code;
  uint64_t time_bytes = realtime_ns ? group.count * sizeof(uint64_t) : 0;
  uint64_t size = 1 + mic_pack_size(group.stack) + size_of(group.attribute_bytes) +
                  size_of(group.value_bytes) + size_of(time_bytes);
  mic_pack_begin(to, PROFILE_SAMPLE, size);
  if (!to->output) {
    to->size += size;
    return 0;
  }
  mic_pack_number(to, SAMPLE_STACK, group.stack);
  if (w->attributes.count) mic_pack_begin(to, SAMPLE_ATTRIBUTE, group.attribute_bytes);
  for (size_t i = 0; i < w->attributes.count; i++) mic_pack_varint(to, w->attributes.at[i]);
  mic_pack_begin(to, SAMPLE_VALUE, group.value_bytes);
  for (uint32_t row = first; row != MIC_NONE; row = w->groups.next[row])
    mic_pack_varint(to, w->t.samples.weight[row]);
  if (time_bytes) mic_pack_begin(to, SAMPLE_TIME, time_bytes);
  for (uint32_t row = first; time_bytes && row != MIC_NONE; row = w->groups.next[row])
    mic_pack_fixed64(to, realtime_ns + w->t.samples.time_ns[row]);
  return 0;
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
  put_packed(w, w->profiles, &head.base);
}

static int put_profile(struct writing *w, uint32_t source) {
  uint64_t realtime_ns = w->t.clocks.rows ? w->t.clocks.realtime_ns[0] : 0;
  int code = 0;
  put_head(w, source, realtime_ns);
  for (uint32_t row = 0; row < w->t.samples.rows && !code; row++)
    if (w->t.samples.source[row] == source && mic_groups_begins(&w->groups, row))
      code = put_sample(w, row, realtime_ns);
  return code;
}

/* --- the whole ----------------------------------------------------------------------------- */

static void begin_dictionary(struct writing *w) {
  memset(w->strings, 0, (size_t)w->t.strings.rows * sizeof *w->strings);
  memset(w->stacks, 0, (size_t)w->t.stacks.rows * sizeof *w->stacks);
  memset(w->labels, 0, (size_t)w->t.labels.rows * sizeof *w->labels);
  memset(w->ends, 0, sizeof w->ends);
  mic_interner_free(&w->texts);
  mic_index_free(&w->said_index);
  w->text_ids.count = w->said.count = w->said_ids.count = 0;
  put_nothing(w);
  put_mappings(w);
  put_functions(w);
  put_locations(w);
}

/* The dictionary and all profiles; sizes gets what each profile takes. */
static int put_all(struct writing *w, uint64_t sizes[SOURCES_MAX]) {
  int code = 0;
  begin_dictionary(w);
  for (uint32_t s = 0; s < w->t.sources.rows && s < SOURCES_MAX && !code; s++) {
    uint64_t before = w->profiles->size;
    code = put_profile(w, s);
    sizes[s] = w->profiles->size - before;
  }
  return code;
}

/* The head of what holds all profiles; they follow, each behind its own. */
static void put_scope(const struct writing *w, struct mic_pack *out, const uint64_t *sizes) {
  static const char name[] = "microscope";
  uint64_t scope = size_of(sizeof name - 1), scoped = size_of(scope);
  for (uint32_t s = 0; s < w->t.sources.rows && s < SOURCES_MAX; s++)
    scoped += 1 + mic_pack_size(sizes[s]) + sizes[s];
  mic_pack_begin(out, DATA_RESOURCE, 2 + size_of(scoped));
  mic_pack_begin(out, RESOURCE_RESOURCE, 0);
  mic_pack_begin(out, RESOURCE_SCOPE, scoped);
  mic_pack_begin(out, SCOPE_SCOPE, scope);
  mic_pack_bytes(out, SCOPE_NAME, name, sizeof name - 1);
}

static int put_whole(struct writing *w, struct mic_output *output) {
  struct mic_pack dictionary, profiles, out;
  uint64_t sizes[SOURCES_MAX] = {0};
  mic_pack_start(&dictionary, NULL);
  mic_pack_start(&profiles, NULL);
  mic_pack_start(&out, output);
  w->dictionary = &dictionary;
  w->profiles = &profiles;
  int code = put_all(w, sizes);
  if (code) return code;
  uint64_t size = dictionary.size;
  put_scope(w, &out, sizes);
  w->profiles = &out;
  for (uint32_t s = 0; s < w->t.sources.rows && s < SOURCES_MAX; s++) {
    mic_pack_begin(&out, SCOPE_PROFILE, sizes[s]);
    put_profile(w, s);
  }
  mic_pack_begin(&out, DATA_DICTIONARY, size);
  w->dictionary = &out;
  w->profiles = &profiles;
  put_all(w, sizes);
  mic_pack_flush(&out);
  return 0;
}

static void release(struct writing *w) {
  mic_vec_free(&w->packed);
  mic_groups_free(&w->groups);
  free(w->first_line);
  free(w->strings);
  free(w->stacks);
  free(w->labels);
  mic_interner_free(&w->texts);
  mic_vec_free(&w->text_ids);
  mic_index_free(&w->said_index);
  mic_vec_free(&w->said);
  mic_vec_free(&w->said_ids);
  mic_vec_free(&w->attributes);
}

MIC_EXPORT int mic_otlp_write(const struct mic_capture *cap, struct mic_output *output,
                              struct mic_error *err) {
  struct writing w = {.cap = cap, .t = mic_tables_of(cap), .err = err};
  w.first_line = mic_tables_first_lines(&w.t);
  w.strings = mic_alloc((size_t)(w.t.strings.rows + 1) * sizeof *w.strings);
  w.stacks = mic_alloc((size_t)(w.t.stacks.rows + 1) * sizeof *w.stacks);
  w.labels = mic_alloc((size_t)(w.t.labels.rows + 1) * sizeof *w.labels);
  w.groups = mic_groups_of(&w.t, true);
  int code = put_whole(&w, output);
  release(&w);
  return code;
}
