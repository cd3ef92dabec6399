/* firefox.c - what threads share first, then each thread's tables, samples and markers. */
#include "import/firefox.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "import/build.h"
#include "import/edges.h"
#include "import/firefox_inside.h"

struct lib {
  uint32_t path, name, code_id; /* strings */
};
struct thread {
  uint32_t name, process_name, pid_text, tid_text;
  int64_t pid, tid;
};

struct reading {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_firefox_result *result;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  bool second, shares, seen, processed;
  struct mic_firefox_tables shared, own;
  MIC_VEC(uint8_t) weight_units; /* mic_unit of each thread's weights */
  MIC_VEC(struct lib) libs;
  MIC_VEC(uint32_t) categories; /* names */
  struct thread thread;
  uint64_t number;          /* of the thread */
  MIC_VEC(uint32_t) places; /* of frames; MIC_NONE: not made yet */
  MIC_VEC(uint32_t) nodes;  /* of stacks */
  MIC_VEC(uint32_t) name_of_site;
  mic_edges edges;
  mic_lane_zones zones; /* of the thread being read */
  int64_t start_ns;
};

static int bad(const struct reading *r, const char *table, size_t row, const char *why) {
  return mic_fail_at(r->err, r->json.offset, "%.80s: thread %llu, %s %zu (near byte %llu): %s",
                     r->input_name, (unsigned long long)r->number, table, row,
                     (unsigned long long)r->json.offset, why);
}

static const struct mic_firefox_tables *names(const struct reading *r) {
  return r->shares ? &r->shared : &r->own;
}

static const struct mic_firefox_tables *sources(const struct reading *r) {
  return r->shared.columns[FF_SOURCE_FILE].count ? &r->shared : &r->own;
}

/* A value of a column, or null where the column is shorter or not there. */
static int64_t get(const struct mic_firefox_tables *t, enum mic_firefox_column column,
                   int64_t row) {
  const mic_firefox_values *values = &t->columns[column];
  return row >= 0 && (uint64_t)row < values->count ? values->at[row] : MIC_FIREFOX_NULL;
}

/* The writer's string of an index; 0 for null and for what is none. */
static uint32_t string(const struct reading *r, int64_t index) {
  const struct mic_firefox_tables *t = r->shared.strings.count ? &r->shared : &r->own;
  return index >= 0 && (uint64_t)index < t->strings.count ? t->strings.at[index] : 0;
}

static uint32_t line(int64_t value) {
  return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* --- frames and stacks --------------------------------------------------------------------- */

static uint32_t module_of(struct reading *r, int64_t function) {
  const struct mic_firefox_tables *t = names(r);
  int64_t resource = get(t, FF_FUNC_RESOURCE, function);
  int64_t lib = get(t, FF_RESOURCE_LIB, resource);
  if (lib >= 0 && (uint64_t)lib < r->libs.count) {
    const struct lib *l = &r->libs.at[lib];
    return mic_build_module(r->build, l->path ? l->path : l->name, l->code_id);
  }
  uint32_t name = string(r, get(t, FF_RESOURCE_NAME, resource));
  return name ? mic_build_module(r->build, name, 0) : MIC_NONE;
}

static int place_of(struct reading *r, int64_t frame, uint32_t *place) {
  const struct mic_firefox_tables *t = names(r);
  int64_t function = get(t, FF_FRAME_FUNC, frame);
  if (function < 0 || (uint64_t)function >= t->columns[FF_FUNC_NAME].count)
    return bad(r, "frame", (size_t)frame, "it has no function");
  *place = r->places.at[frame];
  if (*place != MIC_NONE) return 0;
  uint32_t name = string(r, get(t, FF_FUNC_NAME, function));
  uint32_t file = string(r, get(t, FF_FUNC_FILE, function));
  if (!file) file = string(r, get(sources(r), FF_SOURCE_FILE, get(t, FF_FUNC_SOURCE, function)));
  file = file ? mic_build_file(r->build, file) : MIC_NONE;
  uint32_t module = module_of(r, function);
  uint32_t id =
    mic_build_function(r->build, name, name, module, file, line(get(t, FF_FUNC_LINE, function)));
  *place = mic_build_place(r->build, id, module, file, line(get(t, FF_FRAME_LINE, frame)));
  r->places.at[frame] = *place;
  r->result->inlined += get(t, FF_FRAME_INLINE, frame) > 0;
  r->result->addresses += get(t, FF_FRAME_ADDRESS, frame) >= 0;
  return 0;
}

/* The row of a stack's caller, or -1. */
static int caller_of(const struct reading *r, size_t stack, int64_t *caller) {
  const struct mic_firefox_tables *t = names(r);
  *caller = get(t, FF_STACK_PREFIX, (int64_t)stack);
  if (t->columns[FF_STACK_OFFSET].count) {
    int64_t offset = get(t, FF_STACK_OFFSET, (int64_t)stack);
    *caller = offset > 0 && (uint64_t)offset <= stack ? (int64_t)stack - offset : MIC_FIREFOX_NULL;
    if (offset > (int64_t)stack) return bad(r, "stack", stack, "its caller is not before it");
  }
  if (*caller == MIC_FIREFOX_NULL) *caller = -1;
  return *caller < (int64_t)stack ? 0 : bad(r, "stack", stack, "its caller is not before it");
}

static int make_node(struct reading *r, size_t stack) {
  const struct mic_firefox_tables *t = names(r);
  int64_t frame = get(t, FF_STACK_FRAME, (int64_t)stack), caller;
  uint32_t place = 0, end = MIC_END_NONE, node;
  if (frame < 0 || (uint64_t)frame >= r->places.count)
    return bad(r, "stack", stack, "it has no frame");
  int code = caller_of(r, stack, &caller);
  if (code) return code;
  if (caller < 0) {
    uint64_t size;
    uint32_t name = string(r, get(t, FF_FUNC_NAME, get(t, FF_FRAME_FUNC, frame)));
    const char *bytes = mic_writer_bytes_of(r->w, name, &size);
    end = mic_build_end(bytes, size);
  }
  if (end) {
    node = mic_build_root(r->build, end);
  } else {
    code = place_of(r, frame, &place);
    if (code) return code;
    node = caller < 0 ? mic_build_root(r->build, MIC_END_NOT_STATED) : r->nodes.at[caller];
    node = mic_build_node(r->build, node, place);
  }
  *mic_vec_push(&r->nodes) = node;
  return 0;
}

static int make_stacks(struct reading *r) {
  const struct mic_firefox_tables *t = names(r);
  size_t frames = t->columns[FF_FRAME_FUNC].count, stacks = t->columns[FF_STACK_FRAME].count;
  int code = 0;
  r->places.count = r->nodes.count = 0;
  for (size_t i = 0; i < frames; i++) *mic_vec_push(&r->places) = MIC_NONE;
  for (size_t i = 0; i < stacks && !code; i++) code = make_node(r, i);
  return code;
}

/* --- threads ------------------------------------------------------------------------------- */

static uint64_t since_start(struct reading *r, int64_t time_ns) {
  if (time_ns >= 0) return (uint64_t)time_ns;
  r->result->early += time_ns != MIC_FIREFOX_NULL;
  return 0;
}

static uint32_t put_thread(struct reading *r) {
  const struct thread *t = &r->thread;
  uint32_t pid = t->pid > 0 && t->pid < UINT32_MAX ? (uint32_t)t->pid : 0;
  uint32_t tid = t->tid > 0 && t->tid < UINT32_MAX ? (uint32_t)t->tid : 0;
  uint32_t process_name = t->process_name ? t->process_name : pid ? 0 : t->pid_text;
  struct mic_threads_row row = {
    .process = mic_build_process(r->build, pid, process_name),
    .tid = tid,
    .name = t->name ? t->name : t->tid_text,
    .end_ns = UINT64_MAX,
  };
  return mic_writer_threads(r->w, &row);
}

static uint32_t source_of(struct reading *r) {
  uint8_t unit = r->number < r->weight_units.count ? r->weight_units.at[r->number] : MIC_UNIT_COUNT;
  const char *name = unit == MIC_UNIT_NS ? "time" : unit == MIC_UNIT_BYTES ? "bytes" : "samples";
  return mic_build_source(r->build, mic_writer_text(r->w, name), unit, unit == MIC_UNIT_COUNT, 0);
}

static int put_samples(struct reading *r, uint32_t thread) {
  const struct mic_firefox_tables *t = &r->own;
  size_t count = t->columns[FF_SAMPLE_STACK].count;
  bool weighed = t->columns[FF_SAMPLE_WEIGHT].count == count;
  int64_t clock_ns = 0;
  uint32_t source = source_of(r);
  for (size_t i = 0; i < count; i++) {
    int64_t row = (int64_t)i, stack = get(t, FF_SAMPLE_STACK, row);
    int64_t weight = weighed ? get(t, FF_SAMPLE_WEIGHT, row) : 1;
    int64_t delta = get(t, FF_SAMPLE_DELTA, row);
    if (delta != MIC_FIREFOX_NULL && __builtin_add_overflow(clock_ns, delta, &clock_ns))
      return bad(r, "sample", i, "times beyond what 64 bits hold");
    if (stack == MIC_FIREFOX_NULL) {
      r->result->empty++;
      continue;
    }
    if (stack < 0 || (uint64_t)stack >= r->nodes.count)
      return bad(r, "sample", i, "it has a stack that is not there");
    if (weight < 0) return bad(r, "sample", i, "a negative weight: a difference of profiles");
    int64_t time_ns = get(t, FF_SAMPLE_TIME, row);
    struct mic_samples_row sample = {
      .time_ns = since_start(r, delta != MIC_FIREFOX_NULL ? clock_ns : time_ns),
      .thread = thread,
      .stack = r->nodes.at[stack],
      .weight = (uint64_t)weight,
      .source = (uint8_t)source,
    };
    mic_writer_samples(r->w, &sample);
    r->result->samples++;
  }
  return 0;
}

/* Phases: 0 an instant, 1 a span, 2 its begin, 3 its end. */
static void put_markers(struct reading *r) {
  const struct mic_firefox_tables *t = &r->own;
  for (size_t i = 0; i < t->columns[FF_MARKER_NAME].count; i++) {
    int64_t row = (int64_t)i, phase = get(t, FF_MARKER_PHASE, row);
    int64_t start = get(t, FF_MARKER_START, row), end = get(t, FF_MARKER_END, row);
    int64_t category = get(t, FF_MARKER_CATEGORY, row);
    uint32_t name = string(r, get(t, FF_MARKER_NAME, row));
    if (phase < 1 || phase > 3) {
      r->result->instants++;
      continue;
    }
    bool known = category >= 0 && (uint64_t)category < r->categories.count;
    uint32_t site = mic_build_site(r->build, name, known ? r->categories.at[category] : 0);
    while (r->name_of_site.count <= site) *mic_vec_push(&r->name_of_site) = 0;
    r->name_of_site.at[site] = name;
    int64_t from = (int64_t)since_start(r, start), to = (int64_t)since_start(r, end);
    if (phase == 1) {
      uint32_t order = (uint32_t)r->zones.count & ~MIC_LANE_APART;
      *mic_vec_push(&r->zones) = (struct mic_lane_zone){from, to < from ? from : to, site, order};
      continue;
    }
    *mic_vec_push(&r->edges) = (struct mic_edge){
      .time_ns = phase == 2 ? from : to,
      .site = site,
      .name = phase == 2 ? 0 : name,
      .order = (uint32_t)r->edges.count,
      .begin = phase == 2,
    };
  }
}

static int put_zones(struct reading *r, uint32_t thread) {
  struct mic_edge_counts matched = {0};
  uint64_t unended = 0;
  put_markers(r);
  mic_edges_match(&r->edges, &r->zones, r->name_of_site.at, &matched);
  r->edges.count = 0;
  r->result->unfinished += matched.unfinished;
  r->result->unmatched_ends += matched.unmatched_ends;
  r->result->zones += r->zones.count;
  bool all = mic_lanes_write(r->w, thread, &r->zones, 0, &r->result->overlapping, &unended);
  r->zones.count = 0;
  return all ? 0 : bad(r, "marker", 0, "too many markers overlap");
}

static int end_thread(struct reading *r) {
  if (!r->shares || !r->result->threads) {
    int code = make_stacks(r);
    if (code) return code;
  }
  r->result->threads++;
  uint32_t thread = put_thread(r);
  int code = put_samples(r, thread);
  return code ? code : put_zones(r, thread);
}

/* --- tokens -------------------------------------------------------------------------------- */

static void take_string(struct reading *r, struct mic_firefox_tables *tables,
                        const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING;
  *mic_vec_push(&tables->strings) = text ? mic_writer_string(r->w, token->bytes, token->size) : 0;
}

static uint32_t text_of(struct reading *r, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  return text ? mic_writer_string(r->w, token->bytes, token->size) : 0;
}

static void take_lib(struct reading *r, const struct mic_json_token *token) {
  if (!token->key) return; /* in an array where a library should be */
  struct lib *lib = &r->libs.at[r->libs.count - 1];
  if (mic_json_key(token, "path")) lib->path = text_of(r, token);
  if (mic_json_key(token, "name")) lib->name = text_of(r, token);
  if (mic_json_key(token, "codeId")) lib->code_id = text_of(r, token);
}

static void take_weight_type(struct reading *r, const struct mic_json_token *token) {
  uint64_t thread = r->path.index[2];
  while (r->weight_units.count <= thread) *mic_vec_push(&r->weight_units) = MIC_UNIT_COUNT;
  uint8_t unit = mic_json_is(token, "tracing-ms") ? MIC_UNIT_NS
                 : mic_json_is(token, "bytes")    ? MIC_UNIT_BYTES
                                                  : MIC_UNIT_COUNT;
  r->weight_units.at[thread] = unit;
}

static int take_table(struct reading *r, struct mic_firefox_tables *tables, uint32_t at,
                      const struct mic_json_token *token) {
  bool time = r->number < r->weight_units.count && r->weight_units.at[r->number] == MIC_UNIT_NS;
  if (mic_firefox_take(tables, &r->path, at, time ? 6 : 0, token)) return 0;
  return bad(r, r->path.keys[at], (size_t)(r->path.next[at + 1] - 1),
             "no number where one must be");
}

static int take_first(struct reading *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  int64_t start;
  /* From 56 on strings are shared, from 58 on sources, from 60 on all tables. */
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "shared", "stackTable")) r->shares = true;
  if (token->kind == MIC_JSON_ARRAY && mic_path_is(path, "threads")) r->seen = true;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "libs", "*"))
    *mic_vec_push(&r->libs) = (struct lib){0};
  if (token->kind >= MIC_JSON_OBJECT) return 0;
  if (mic_path_is(path, "libs", "*")) take_lib(r, token);
  if (mic_path_is(path, "meta", "categories", "*") && mic_json_key(token, "name"))
    *mic_vec_push(&r->categories) = text_of(r, token);
  if (mic_path_is(path, "meta") && mic_json_key(token, "preprocessedProfileVersion"))
    r->processed = true;
  if (mic_path_is(path, "meta") && mic_json_key(token, "startTime") &&
      mic_json_digits(token->bytes, token->size, 6, &start))
    r->start_ns = start;
  if (mic_path_is(path, "threads", "*", "samples") && mic_json_key(token, "weightType"))
    take_weight_type(r, token);
  if (path->depth < 3 || strcmp(path->keys[1], "shared") != 0) return 0;
  if (mic_path_is(path, "shared", "stringArray")) take_string(r, &r->shared, token);
  return take_table(r, &r->shared, 2, token);
}

static void take_thread_field(struct reading *r, const struct mic_json_token *token) {
  struct thread *t = &r->thread;
  if (mic_json_key(token, "name")) t->name = text_of(r, token);
  if (mic_json_key(token, "processName")) t->process_name = text_of(r, token);
  if (mic_json_key(token, "pid")) {
    t->pid_text = text_of(r, token);
    if (!mic_json_digits(token->bytes, token->size, 0, &t->pid)) t->pid = 0;
  }
  if (mic_json_key(token, "tid")) {
    t->tid_text = text_of(r, token);
    if (!mic_json_digits(token->bytes, token->size, 0, &t->tid)) t->tid = 0;
  }
}

static int take_second(struct reading *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "threads", "*")) {
    mic_firefox_clear(&r->own);
    r->thread = (struct thread){0};
    r->number = path->index[2];
  }
  if (token->kind == MIC_JSON_OBJECT_END && mic_path_is(path, "threads")) return end_thread(r);
  if (token->kind >= MIC_JSON_OBJECT || path->depth < 3 || strcmp(path->keys[1], "threads") != 0)
    return 0;
  if (mic_path_is(path, "threads", "*")) take_thread_field(r, token);
  if (mic_path_is(path, "threads", "*", "stringArray") ||
      mic_path_is(path, "threads", "*", "stringTable"))
    take_string(r, &r->own, token);
  return take_table(r, &r->own, 3, token);
}

static int take(void *data, const struct mic_json_token *token, struct mic_error *err) {
  struct reading *r = data;
  (void)err; /* the reading has it */
  mic_path_take(&r->path, token);
  return r->second ? take_second(r, token) : take_first(r, token);
}

static void put_clocks(struct reading *r) {
  if (r->start_ns > 0)
    mic_writer_clocks(r->w, &(struct mic_clocks_row){.realtime_ns = (uint64_t)r->start_ns});
}

static void release(struct reading *r) {
  mic_firefox_free(&r->shared);
  mic_firefox_free(&r->own);
  mic_vec_free(&r->weight_units);
  mic_vec_free(&r->libs);
  mic_vec_free(&r->categories);
  mic_vec_free(&r->places);
  mic_vec_free(&r->nodes);
  mic_vec_free(&r->name_of_site);
  mic_vec_free(&r->edges);
  mic_vec_free(&r->zones);
  mic_build_free(r->build);
}

MIC_EXPORT int mic_firefox_read(struct mic_input *input, struct mic_writer *writer,
                                struct mic_firefox_result *result, struct mic_error *err) {
  struct mic_error unseen;
  *result = (struct mic_firefox_result){.threads = 0};
  struct reading r = {
    .w = writer,
    .build = mic_build_new(writer),
    .result = result,
    .input_name = mic_input_name(input),
    .err = err ? err : &unseen,
    .json = {.input = input, .take = take},
  };
  r.json.data = &r;
  int code = mic_json_parse(&r.json, r.err);
  if (!code && (!r.seen || !r.processed))
    code = mic_fail(r.err, MIC_EFORMAT, "%.120s: no processed Firefox profile: it has no %s",
                    r.input_name, r.seen ? "meta.preprocessedProfileVersion" : "threads");
  if (!code) code = mic_input_rewind(input, r.err);
  if (!code) {
    r.second = true;
    r.path = (struct mic_path){.depth = 0};
    code = mic_json_parse(&r.json, r.err);
  }
  if (!code) put_clocks(&r);
  release(&r);
  return code;
}
