/* gecko.c - the tables of one thread after the other, by their schemas. */
#include "import/gecko.h"

#include <string.h>

#include "base/map.h"
#include "import/build.h"
#include "import/cpu_delta.h"
#include "import/edges.h"
#include "import/numbers.h"
#include "import/path.h"

#define GECKO_NULL MIC_NUMBER_NULL /* null, or not there */

/* The columns that are read; those of one table follow one another. */
enum column {
  SAMPLE_STACK,
  SAMPLE_TIME,
  SAMPLE_WEIGHT,
  SAMPLE_CPU,
  STACK_PREFIX,
  STACK_FRAME,
  FRAME_LOCATION,
  FRAME_LINE,
  MARKER_NAME,
  MARKER_START,
  MARKER_END,
  MARKER_PHASE,
  MARKER_CATEGORY,
  COLUMNS
};
/* Digits: times are milliseconds there and nanoseconds here.  Weights may be milliseconds too;
 * which they are may come after them, so that all are read so. */
enum { MILLIS = 6, MILLI_NS = 1000000 };
enum phase { PHASE_INTERVAL = 1, PHASE_BEGIN = 2, PHASE_END = 3 };

static const struct {
  const char *table, *name;
  uint32_t digits;
} columns[COLUMNS] = {
  [SAMPLE_STACK] = {"samples", "stack", 0},
  [SAMPLE_TIME] = {"samples", "time", MILLIS},
  [SAMPLE_WEIGHT] = {"samples", "weight", MILLIS},
  [SAMPLE_CPU] = {"samples", "threadCPUDelta", 0},
  [STACK_PREFIX] = {"stackTable", "prefix", 0},
  [STACK_FRAME] = {"stackTable", "frame", 0},
  [FRAME_LOCATION] = {"frameTable", "location", 0},
  [FRAME_LINE] = {"frameTable", "line", 0},
  [MARKER_NAME] = {"markers", "name", 0},
  [MARKER_START] = {"markers", "startTime", MILLIS},
  [MARKER_END] = {"markers", "endTime", MILLIS},
  [MARKER_PHASE] = {"markers", "phase", 0},
  [MARKER_CATEGORY] = {"markers", "category", 0},
};

struct reading {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_gecko_result *result;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  int64_t start_ns, process_start_ns; /* since 1970; GECKO_NULL: not told */
  struct mic_cpu_delta cpu;
  MIC_VEC(uint32_t) categories; /* names, of the process being read */
  /* Of the thread being read. */
  uint32_t name, process_name;
  int64_t pid, tid;
  uint32_t weight_unit;    /* mic_unit */
  int64_t schema[COLUMNS]; /* the place in a row, or -1 */
  struct mic_numbers values[COLUMNS];
  MIC_VEC(uint32_t) strings; /* the writer's */
  MIC_VEC(uint32_t) places, nodes;
  MIC_VEC(uint32_t) name_of_site;
  mic_lane_zones zones;
  int64_t last_ns;
};

static int bad(const struct reading *r, const char *table, size_t row, const char *why) {
  return mic_fail_at(r->err, r->json.offset, "%.80s: thread %llu, %s %zu (near byte %llu): %s",
                     r->input_name, (unsigned long long)r->result->threads, table, row,
                     (unsigned long long)r->json.offset, why);
}

static int64_t get(const struct reading *r, enum column column, size_t row) {
  return mic_numbers_get(&r->values[column], row);
}

/* ---- a thread's stacks ---- */

/* "name (in module)", as symbolicators write it. */
static uint32_t make_place(struct reading *r, const char *text, uint64_t size, int64_t line) {
  static const char in[] = " (in ";
  uint32_t module = MIC_NONE;
  uint64_t length = size;
  if (size && text[size - 1] == ')') {
    const char *at = memmem(text, size, in, sizeof in - 1);
    if (at && at > text) {
      length = (uint64_t)(at - text);
      const char *from = at + sizeof in - 1;
      uint32_t path = mic_writer_string(r->w, from, (uint64_t)(text + size - 1 - from));
      module = mic_build_module(r->build, path, 0);
    }
  }
  uint32_t name = mic_writer_string(r->w, text, length);
  uint32_t function = mic_build_function(r->build, name, name, module, MIC_NONE, 0);
  uint32_t shown = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
  return mic_build_place(r->build, function, module, MIC_NONE, shown);
}

static int make_places(struct reading *r) {
  r->places.count = 0;
  for (size_t i = 0; i < r->values[FRAME_LOCATION].count; i++) {
    int64_t text = get(r, FRAME_LOCATION, i);
    if (text < 0 || (uint64_t)text >= r->strings.count)
      return bad(r, "frame", i, "its location is no string of the thread");
    uint64_t size;
    const char *bytes = mic_writer_bytes_of(r->w, r->strings.at[text], &size);
    /* A copy: strings that are added may move the others. */
    char *own = mic_strndup(bytes, size);
    uint32_t place = make_place(r, own, size, get(r, FRAME_LINE, i));
    free(own);
    *mic_vec_push(&r->places) = place;
  }
  return 0;
}

static int make_nodes(struct reading *r) {
  uint32_t root = mic_build_root(r->build, MIC_END_NOT_STATED);
  r->nodes.count = 0;
  for (size_t i = 0; i < r->values[STACK_FRAME].count; i++) {
    int64_t frame = get(r, STACK_FRAME, i), prefix = get(r, STACK_PREFIX, i);
    if (frame < 0 || (uint64_t)frame >= r->places.count)
      return bad(r, "stack", i, "it has no frame");
    if (prefix != GECKO_NULL && (prefix < 0 || (uint64_t)prefix >= i))
      return bad(r, "stack", i, "its caller is not before it");
    uint32_t parent = prefix == GECKO_NULL ? root : r->nodes.at[prefix];
    uint32_t node = mic_build_node(r->build, parent, r->places.at[frame]);
    *mic_vec_push(&r->nodes) = node;
  }
  return 0;
}

/* A time of the thread's process as one of the capture. */
static uint64_t time_of(struct reading *r, int64_t time_ns) {
  int64_t offset = 0;
  if (r->process_start_ns != GECKO_NULL && r->start_ns != GECKO_NULL)
    offset = r->process_start_ns - r->start_ns;
  if (__builtin_add_overflow(time_ns, offset, &time_ns) || time_ns < 0) {
    r->result->early++;
    time_ns = 0;
  }
  if (time_ns > r->last_ns) r->last_ns = time_ns;
  return (uint64_t)time_ns;
}

static uint32_t source_of(struct reading *r) {
  const char *name = r->weight_unit == MIC_UNIT_NS      ? "time"
                     : r->weight_unit == MIC_UNIT_BYTES ? "bytes"
                                                        : "samples";
  return mic_build_source(r->build, mic_writer_text(r->w, name), r->weight_unit,
                          r->weight_unit == MIC_UNIT_COUNT, 0);
}

static int weight_of(const struct reading *r, size_t sample, uint64_t *weight) {
  int64_t value = get(r, SAMPLE_WEIGHT, sample);
  *weight = r->weight_unit == MIC_UNIT_NS ? MILLI_NS : 1; /* one of the unit */
  if (value == GECKO_NULL) return 0;
  if (value < 0) return bad(r, "sample", sample, "a negative weight: a difference of profiles");
  *weight = (uint64_t)value;
  if (r->weight_unit == MIC_UNIT_NS) return 0;
  if (*weight % MILLI_NS) return bad(r, "sample", sample, "a weight that is no whole number");
  *weight /= MILLI_NS;
  return 0;
}

static int put_sample(struct reading *r, uint32_t thread, size_t i) {
  int64_t stack = get(r, SAMPLE_STACK, i), time_ns = get(r, SAMPLE_TIME, i);
  if (stack == GECKO_NULL) {
    r->result->empty++;
    return 0;
  }
  if (stack < 0 || (uint64_t)stack >= r->nodes.count)
    return bad(r, "sample", i, "its stack is none of the thread");
  struct mic_samples_row row = {
    .time_ns = time_ns == GECKO_NULL ? 0 : time_of(r, time_ns),
    .thread = thread,
    .stack = r->nodes.at[stack],
    .source = (uint8_t)source_of(r),
  };
  int code = weight_of(r, i, &row.weight);
  if (code) return code;
  mic_writer_samples(r->w, &row);
  r->result->samples++;
  mic_cpu_delta_put(&r->cpu, r->w, r->build, &row, get(r, SAMPLE_CPU, i));
  return 0;
}

static int put_samples(struct reading *r, uint32_t thread) {
  int code = 0;
  source_of(r); /* the first one, whatever the first sample has beside */
  for (size_t i = 0; i < r->values[SAMPLE_STACK].count && !code; i++)
    code = put_sample(r, thread, i);
  return code;
}

/* ---- its markers ---- */

static uint32_t site_of(struct reading *r, uint32_t name, size_t marker) {
  int64_t category = get(r, MARKER_CATEGORY, marker);
  bool known = category >= 0 && (uint64_t)category < r->categories.count;
  uint32_t site = mic_build_site(r->build, name, known ? r->categories.at[category] : 0);
  while (r->name_of_site.count <= site) *mic_vec_push(&r->name_of_site) = name;
  return site;
}

static void put_marker(struct reading *r, size_t i) {
  int64_t text = get(r, MARKER_NAME, i), phase = get(r, MARKER_PHASE, i);
  int64_t start = get(r, MARKER_START, i), end = get(r, MARKER_END, i);
  bool named = text >= 0 && (uint64_t)text < r->strings.count;
  uint32_t name = named ? r->strings.at[text] : 0;
  bool spans = phase == PHASE_INTERVAL && start != GECKO_NULL && end >= start;
  bool begins = phase == PHASE_BEGIN && start != GECKO_NULL;
  if (spans)
    mic_mark_add(&r->zones, MIC_MARK_SPAN, (int64_t)time_of(r, start), (int64_t)time_of(r, end),
                 site_of(r, name, i), i);
  else if (begins)
    mic_mark_add(&r->zones, MIC_MARK_BEGIN, (int64_t)time_of(r, start), 0, site_of(r, name, i), i);
  else if (phase == PHASE_END && end != GECKO_NULL)
    mic_mark_add(&r->zones, MIC_MARK_END, (int64_t)time_of(r, end), 0, name ? name : MIC_NONE, i);
  else
    r->result->instants++;
}

static int put_markers(struct reading *r, uint32_t thread) {
  struct mic_edge_counts matched = {0};
  uint64_t unended = 0;
  for (size_t i = 0; i < r->values[MARKER_NAME].count; i++) put_marker(r, i);
  mic_edges_match(&r->zones, r->name_of_site.at, &matched);
  r->result->unfinished += matched.unfinished;
  r->result->unmatched_ends += matched.unmatched_ends;
  r->result->zones += r->zones.count;
  bool all = mic_lanes_write(r->w, thread, &r->zones, 0, &r->result->overlapping, &unended);
  r->zones.count = 0;
  if (all) return 0;
  return mic_fail(r->err, MIC_ELIMIT, "%.120s: more than %d spans of one thread overlap",
                  r->input_name, MIC_LANES_MAX);
}

static uint32_t id_of(int64_t id) { return id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0; }

static int end_thread(struct reading *r) {
  uint32_t process = mic_build_process(r->build, id_of(r->pid), r->process_name);
  uint32_t thread = mic_build_thread(r->build, process, id_of(r->tid), r->name);
  int code = make_places(r);
  if (!code) code = make_nodes(r);
  if (!code) code = put_samples(r, thread);
  if (!code) code = put_markers(r, thread);
  r->result->threads++;
  return code;
}

/* ---- tokens ---- */

static void begin_thread(struct reading *r) {
  r->name = r->process_name = 0;
  r->pid = r->tid = 0;
  r->weight_unit = MIC_UNIT_COUNT;
  r->strings.count = 0;
  for (int i = 0; i < COLUMNS; i++) {
    r->schema[i] = -1;
    mic_numbers_clear(&r->values[i]);
  }
}

static void take_field(struct reading *r, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING;
  uint32_t string = text ? mic_writer_string(r->w, token->bytes, token->size) : 0;
  if (mic_json_key(token, "name")) r->name = string;
  if (mic_json_key(token, "processName")) r->process_name = string;
  /* Some write ids as texts. */
  if (mic_json_key(token, "pid") && !mic_json_digits(token->bytes, token->size, 0, &r->pid))
    r->pid = 0;
  if (mic_json_key(token, "tid") && !mic_json_digits(token->bytes, token->size, 0, &r->tid))
    r->tid = 0;
}

static void take_schema(struct reading *r, const char *table, const struct mic_json_token *token) {
  for (int i = 0; i < COLUMNS; i++) {
    if (strcmp(columns[i].table, table) != 0 || !mic_json_key(token, columns[i].name)) continue;
    if (!mic_json_digits(token->bytes, token->size, 0, &r->schema[i])) r->schema[i] = -1;
  }
}

static void begin_row(struct reading *r, const char *table) {
  for (int i = 0; i < COLUMNS; i++)
    if (strcmp(columns[i].table, table) == 0) mic_numbers_push(&r->values[i], GECKO_NULL);
}

/* A value of the row that was begun last. */
static int take_value(struct reading *r, const char *table, uint64_t place,
                      const struct mic_json_token *token) {
  for (int i = 0; i < COLUMNS; i++) {
    if (r->schema[i] < 0 || (uint64_t)r->schema[i] != place) continue;
    if (strcmp(columns[i].table, table) != 0 || !r->values[i].count) continue;
    if (token->kind == MIC_JSON_NULL) continue;
    int64_t value;
    if (token->kind != MIC_JSON_NUMBER ||
        !mic_json_digits(token->bytes, token->size, columns[i].digits, &value))
      return bad(r, table, r->values[i].count - 1, "no number where one must be");
    mic_numbers_set_last(&r->values[i], value);
  }
  return 0;
}

/* What is within a thread's object, whose keys stand from `at` on. */
static int take_thread(struct reading *r, uint32_t at, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  const char *table = path->keys[at];
  bool scalar = token->kind < MIC_JSON_OBJECT;
  uint32_t depth = path->depth;
  if (depth == at && scalar) take_field(r, token);
  if (depth == at + 1 && strcmp(table, "samples") == 0 && mic_json_key(token, "weightType"))
    r->weight_unit = mic_weight_unit(token);
  if (depth == at + 1 && scalar && strcmp(table, "stringTable") == 0)
    *mic_vec_push(&r->strings) =
      token->kind == MIC_JSON_STRING ? mic_writer_string(r->w, token->bytes, token->size) : 0;
  if (depth < at + 2 || at + 2 >= MIC_PATH_DEPTH) return 0;
  if (depth == at + 2 && scalar && strcmp(path->keys[at + 1], "schema") == 0)
    take_schema(r, table, token);
  if (depth < at + 3 || strcmp(path->keys[at + 1], "data") != 0) return 0;
  if (depth == at + 3 && token->kind == MIC_JSON_ARRAY) begin_row(r, table);
  if (depth == at + 3 && scalar) return take_value(r, table, path->next[at + 2] - 1, token);
  return 0;
}

static void take_start(struct reading *r, bool nested, const struct mic_json_token *token) {
  int64_t start;
  if (!mic_json_key(token, "startTime") || token->kind != MIC_JSON_NUMBER ||
      !mic_json_digits(token->bytes, token->size, MILLIS, &start))
    return;
  if (!nested) r->start_ns = start;
  r->process_start_ns = start;
}

/* What is within "meta", whose keys stand from `at` on. */
static void take_meta(struct reading *r, uint32_t at, bool nested,
                      const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  if (path->depth == at) take_start(r, nested, token);
  if (path->depth == at + 1 && strcmp(path->keys[at], "sampleUnits") == 0 &&
      mic_json_key(token, "threadCPUDelta"))
    mic_cpu_delta_unit(&r->cpu, token);
  if (strcmp(path->keys[at], "categories") != 0) return;
  if (path->depth == at + 1 && token->kind == MIC_JSON_ARRAY) r->categories.count = 0;
  if (path->depth == at + 2 && mic_json_key(token, "name") && token->kind == MIC_JSON_STRING)
    *mic_vec_push(&r->categories) =
      mic_json_is(token, "Other") ? 0 : mic_writer_string(r->w, token->bytes, token->size);
}

static int take(void *data, const struct mic_json_token *token, struct mic_error *err) {
  struct reading *r = data;
  struct mic_path *path = &r->path;
  (void)err; /* the reading has it */
  mic_path_take(path, token);
  bool nested = path->depth > 2 && strcmp(path->keys[1], "processes") == 0;
  uint32_t base = nested ? 3 : 1; /* where "threads" or "meta" stands */
  if (path->depth <= base) return 0;
  if (strcmp(path->keys[base], "meta") == 0) take_meta(r, base + 1, nested, token);
  if (strcmp(path->keys[base], "threads") != 0) return 0;
  if (path->depth == base + 1 && token->kind == MIC_JSON_OBJECT_END) return end_thread(r);
  if (path->depth == base + 2 && token->kind == MIC_JSON_OBJECT) begin_thread(r);
  return path->depth >= base + 2 ? take_thread(r, base + 2, token) : 0;
}

/* ---- the whole ---- */

static void put_clocks(struct reading *r) {
  struct mic_clocks_row clocks = {.duration_ns = (uint64_t)r->last_ns};
  if (r->start_ns > 0) clocks.realtime_ns = (uint64_t)r->start_ns;
  mic_writer_clocks(r->w, &clocks);
}

static void release(struct reading *r) {
  for (int i = 0; i < COLUMNS; i++) mic_numbers_free(&r->values[i]);
  mic_vec_free(&r->strings);
  mic_vec_free(&r->places);
  mic_vec_free(&r->nodes);
  mic_vec_free(&r->categories);
  mic_vec_free(&r->name_of_site);
  mic_vec_free(&r->zones);
  mic_build_free(r->build);
}

MIC_EXPORT int mic_gecko_read(struct mic_input *input, struct mic_writer *writer,
                              struct mic_gecko_result *result, struct mic_error *err) {
  struct mic_error unseen;
  *result = (struct mic_gecko_result){.threads = 0};
  struct reading r = {
    .w = writer,
    .build = mic_build_new(writer),
    .result = result,
    .input_name = mic_input_name(input),
    .err = err ? err : &unseen,
    .json = {.input = input, .take = take},
    .start_ns = GECKO_NULL,
    .process_start_ns = GECKO_NULL,
  };
  r.json.data = &r;
  begin_thread(&r);
  int code = mic_json_parse(&r.json, r.err);
  if (!code && !result->threads)
    code =
      mic_fail(r.err, MIC_EFORMAT, "%.150s: it has no threads: no Gecko profile", r.input_name);
  if (!code) put_clocks(&r);
  release(&r);
  return code;
}
