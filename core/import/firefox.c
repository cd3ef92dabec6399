/* firefox.c - what threads share first, then each thread's tables, samples and markers. */
#include "import/firefox.h"

#include <ctype.h>
#include <string.h>

#include "import/firefox_inside.h"

int mic_firefox_bad(const struct mic_firefox *r, const char *table, int64_t row, const char *why) {
  return mic_fail_at(r->err, r->json.offset, "%.80s: thread %llu, %s %lld (near byte %llu): %s",
                     r->input_name, (unsigned long long)r->number, table, (long long)row,
                     (unsigned long long)r->json.offset, why);
}

/* --- threads ------------------------------------------------------------------------------- */

static uint64_t since_start(struct mic_firefox *r, int64_t time_ns) {
  if (time_ns >= 0) return (uint64_t)time_ns;
  r->result->early += time_ns != MIC_FIREFOX_NULL;
  return 0;
}

/* What began before the recording has 0. */
static uint64_t start_of(int64_t time_ns) { return time_ns > 0 ? (uint64_t)time_ns : 0; }
static uint64_t end_of(int64_t time_ns, uint64_t start_ns) {
  return time_ns >= 0 && (uint64_t)time_ns >= start_ns ? (uint64_t)time_ns : UINT64_MAX;
}

/* A pid that was used again is "PID.N": another process. */
static uint32_t process_of(struct mic_firefox *r) {
  const struct mic_firefox_thread *t = &r->thread;
  uint32_t pid = t->pid > 0 && t->pid < UINT32_MAX ? (uint32_t)t->pid : 0;
  uint32_t name = t->process_name || t->pid >= 0 ? t->process_name : t->pid_text;
  uint32_t next = (uint32_t)mic_writer_rows(r->w, MIC_TABLE_processes);
  bool added;
  uint32_t process = mic_map_intern(&r->processes, t->pid_text, name, next, &added);
  if (!added) return process;
  struct mic_processes_row row = {.pid = pid, .parent = MIC_NONE, .name = name};
  row.start_ns = start_of(t->process_start_ns);
  row.end_ns = end_of(t->process_end_ns, row.start_ns);
  return mic_writer_processes(r->w, &row);
}

static uint32_t put_thread(struct mic_firefox *r) {
  const struct mic_firefox_thread *t = &r->thread;
  uint32_t tid = t->tid > 0 && t->tid < UINT32_MAX ? (uint32_t)t->tid : 0;
  struct mic_threads_row row = {
    .process = process_of(r),
    .tid = tid,
    .name = t->name || t->tid >= 0 ? t->name : t->tid_text,
    .start_ns = start_of(t->start_ns),
  };
  row.end_ns = end_of(t->end_ns, row.start_ns);
  return mic_writer_threads(r->w, &row);
}

static uint32_t source_of(struct mic_firefox *r) {
  uint8_t unit = r->number < r->weight_units.count ? r->weight_units.at[r->number] : MIC_UNIT_COUNT;
  const char *name = unit == MIC_UNIT_NS ? "time" : unit == MIC_UNIT_BYTES ? "bytes" : "samples";
  return mic_build_source(r->build, mic_writer_text(r->w, name), unit, unit == MIC_UNIT_COUNT, 0);
}

/* The sample's rows: its weight, and the CPU time since the thread's sample before. */
static int put_sample(struct mic_firefox *r, struct mic_samples_row *sample, int64_t weight,
                      int64_t cpu) {
  if (weight < 0)
    return mic_firefox_bad(r, "sample", (int64_t)r->result->samples,
                           "a negative weight: a difference of profiles");
  sample->weight = (uint64_t)weight;
  sample->source = (uint8_t)source_of(r);
  mic_writer_samples(r->w, sample);
  r->result->samples++;
  mic_cpu_delta_put(&r->cpu, r->w, r->build, sample, cpu);
  return 0;
}

static int put_samples(struct mic_firefox *r, uint32_t thread) {
  const struct mic_firefox_tables *t = &r->own;
  int64_t count = (int64_t)t->columns[FF_SAMPLE_STACK].count;
  bool weighed = t->columns[FF_SAMPLE_WEIGHT].count == t->columns[FF_SAMPLE_STACK].count;
  int64_t clock_ns = 0;
  int code = 0;
  source_of(r); /* the first one, whatever the first sample has beside */
  for (int64_t i = 0; i < count && !code; i++) {
    int64_t stack = mic_firefox_get(t, FF_SAMPLE_STACK, i);
    int64_t weight = weighed ? mic_firefox_get(t, FF_SAMPLE_WEIGHT, i) : 1;
    int64_t delta = mic_firefox_get(t, FF_SAMPLE_DELTA, i);
    if (delta != MIC_FIREFOX_NULL && __builtin_add_overflow(clock_ns, delta, &clock_ns))
      return mic_firefox_bad(r, "sample", i, "times beyond what 64 bits hold");
    if (stack == MIC_FIREFOX_NULL) {
      r->result->empty++;
      continue;
    }
    if (stack < 0 || (uint64_t)stack >= r->nodes.count)
      return mic_firefox_bad(r, "sample", i, "it has a stack that is not there");
    int64_t time_ns = delta != MIC_FIREFOX_NULL ? clock_ns : mic_firefox_get(t, FF_SAMPLE_TIME, i);
    struct mic_samples_row sample = {.time_ns = since_start(r, time_ns), .thread = thread};
    code = mic_firefox_node(r, stack, &sample.stack);
    if (!code) code = put_sample(r, &sample, weight, mic_firefox_get(t, FF_SAMPLE_CPU, i));
  }
  return code;
}

/* Phases: 0 an instant, 1 a span, 2 its begin, 3 its end. */
static int put_markers(struct mic_firefox *r) {
  const struct mic_firefox_tables *t = &r->own;
  for (size_t i = 0; i < t->columns[FF_MARKER_NAME].count; i++) {
    int64_t row = (int64_t)i, phase = mic_firefox_get(t, FF_MARKER_PHASE, row);
    int64_t start = mic_firefox_get(t, FF_MARKER_START, row),
            end = mic_firefox_get(t, FF_MARKER_END, row);
    int64_t category = mic_firefox_get(t, FF_MARKER_CATEGORY, row);
    int64_t named = mic_firefox_get(t, FF_MARKER_NAME, row);
    if (phase < 1 || phase > 3) {
      r->result->instants++;
      continue;
    }
    if (!mic_firefox_has_string(r, named))
      return mic_firefox_bad(r, "marker", row, "it has no name");
    uint32_t name = mic_firefox_string(r, named);
    bool known = category >= 0 && (uint64_t)category < r->categories.count;
    uint32_t site = mic_build_site(r->build, name, known ? r->categories.at[category] : 0);
    while (r->name_of_site.count <= site) *mic_vec_push(&r->name_of_site) = 0;
    r->name_of_site.at[site] = name;
    int64_t from = (int64_t)since_start(r, start), to = (int64_t)since_start(r, end);
    if (phase == 1)
      mic_mark_add(&r->zones, MIC_MARK_SPAN, from, to < from ? from : to, site, i);
    else if (phase == 2)
      mic_mark_add(&r->zones, MIC_MARK_BEGIN, from, 0, site, i);
    else
      mic_mark_add(&r->zones, MIC_MARK_END, to, 0, name ? name : MIC_NONE, i);
  }
  return 0;
}

static int put_zones(struct mic_firefox *r, uint32_t thread) {
  struct mic_edge_counts matched = {0};
  uint64_t unended = 0;
  int code = put_markers(r);
  if (code) return code;
  mic_edges_match(&r->zones, r->name_of_site.at, &matched);
  r->result->unfinished += matched.unfinished;
  r->result->unmatched_ends += matched.unmatched_ends;
  r->result->zones += r->zones.count;
  bool all = mic_lanes_write(r->w, thread, &r->zones, 0, &r->result->overlapping, &unended);
  r->zones.count = 0;
  return all ? 0 : mic_firefox_bad(r, "marker", 0, "too many markers overlap");
}

static int end_thread(struct mic_firefox *r) {
  if (!r->shares || !r->result->threads) {
    int code = mic_firefox_stacks(r);
    if (code) return code;
  }
  r->result->threads++;
  uint32_t thread = put_thread(r);
  int code = put_samples(r, thread);
  return code ? code : put_zones(r, thread);
}

/* --- tokens -------------------------------------------------------------------------------- */

static void take_string(struct mic_firefox *r, struct mic_firefox_tables *tables,
                        const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING;
  *mic_vec_push(&tables->strings) = text ? mic_writer_string(r->w, token->bytes, token->size) : 0;
}

static uint32_t text_of(struct mic_firefox *r, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  return text ? mic_writer_string(r->w, token->bytes, token->size) : 0;
}

/* A build ID in hex, as ELF files' code ids are: in small letters here. */
static uint32_t code_id_of(struct mic_firefox *r, const struct mic_json_token *token) {
  enum { MOST = 2 * 64 }; /* digits of the longest build ID */
  char id[MOST];
  if (token->kind != MIC_JSON_STRING || token->size > MOST) return text_of(r, token);
  for (size_t i = 0; i < token->size; i++) {
    char c = token->bytes[i];
    if (!isxdigit((unsigned char)c)) return text_of(r, token);
    id[i] = (char)tolower((unsigned char)c);
  }
  return mic_writer_string(r->w, id, token->size);
}

static void take_lib(struct mic_firefox *r, const struct mic_json_token *token) {
  if (!token->key) return; /* in an array where a library should be */
  struct mic_firefox_lib *lib = &r->libs.at[r->libs.count - 1];
  if (mic_json_key(token, "path")) lib->path = text_of(r, token);
  if (mic_json_key(token, "name")) lib->name = text_of(r, token);
  if (mic_json_key(token, "codeId")) lib->code_id = code_id_of(r, token);
}

static void take_weight_type(struct mic_firefox *r, const struct mic_json_token *token) {
  uint64_t thread = r->path.index[2];
  while (r->weight_units.count <= thread) *mic_vec_push(&r->weight_units) = MIC_UNIT_COUNT;
  r->weight_units.at[thread] = (uint8_t)mic_weight_unit(token);
}

static int take_table(struct mic_firefox *r, struct mic_firefox_tables *tables, uint32_t at,
                      const struct mic_json_token *token) {
  bool time = r->number < r->weight_units.count && r->weight_units.at[r->number] == MIC_UNIT_NS;
  if (mic_firefox_take(tables, &r->path, at, time ? 6 : 0, token, &r->result->rounded)) return 0;
  return mic_firefox_bad(r, r->path.keys[at], (int64_t)r->path.next[at + 1] - 1,
                         "no number where one must be");
}

static void take_time(const struct mic_json_token *token, const char *key, int64_t *time_ns) {
  if (!mic_json_key(token, key) || token->kind != MIC_JSON_NUMBER) return;
  if (!mic_json_digits(token->bytes, token->size, 6, time_ns)) *time_ns = MIC_FIREFOX_NULL;
}

static void take_meta(struct mic_firefox *r, const struct mic_json_token *token) {
  int64_t start;
  if (mic_json_key(token, "preprocessedProfileVersion")) r->processed = true;
  if (mic_json_key(token, "importedFrom")) r->ours = mic_json_is(token, "microscope");
  if (mic_json_key(token, "startTime") && mic_json_digits(token->bytes, token->size, 6, &start))
    r->start_ns = start;
  take_time(token, "profilingEndTime", &r->end_ns);
}

static int take_first(struct mic_firefox *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  /* From 56 on strings are shared, from 58 on sources, from 60 on all tables. */
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "shared", "stackTable")) r->shares = true;
  if (token->kind == MIC_JSON_ARRAY && mic_path_is(path, "threads")) r->seen = true;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "libs", "*"))
    *mic_vec_push(&r->libs) = (struct mic_firefox_lib){0};
  if (token->kind >= MIC_JSON_OBJECT) return 0;
  if (mic_path_is(path, "libs", "*")) take_lib(r, token);
  if (mic_path_is(path, "meta", "categories", "*") && mic_json_key(token, "name"))
    *mic_vec_push(&r->categories) = mic_json_is(token, "Other") ? 0 : text_of(r, token);
  if (mic_path_is(path, "meta")) take_meta(r, token);
  if (mic_path_is(path, "meta", "sampleUnits") && mic_json_key(token, "threadCPUDelta"))
    mic_cpu_delta_unit(&r->cpu, token);
  if (mic_path_is(path, "threads", "*", "samples") && mic_json_key(token, "weightType"))
    take_weight_type(r, token);
  if (path->depth < 3 || strcmp(path->keys[1], "shared") != 0) return 0;
  if (mic_path_is(path, "shared", "stringArray")) take_string(r, &r->shared, token);
  return take_table(r, &r->shared, 2, token);
}

/* An id, before the point of one that was used again; -1 for what is no number. */
static int64_t id_of(const struct mic_json_token *token) {
  const char *point = memchr(token->bytes, '.', token->size);
  size_t size = point ? (size_t)(point - token->bytes) : token->size;
  int64_t id;
  return mic_json_digits(token->bytes, size, 0, &id) && id >= 0 ? id : -1;
}

static void take_thread_field(struct mic_firefox *r, const struct mic_json_token *token) {
  struct mic_firefox_thread *t = &r->thread;
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  if (mic_json_key(token, "name")) t->name = text_of(r, token);
  if (mic_json_key(token, "processName")) t->process_name = text_of(r, token);
  if (mic_json_key(token, "pid") && text) {
    t->pid_text = text_of(r, token);
    t->pid = id_of(token);
  }
  if (mic_json_key(token, "tid") && text) {
    t->tid_text = text_of(r, token);
    t->tid = id_of(token);
  }
  take_time(token, "registerTime", &t->start_ns);
  take_time(token, "unregisterTime", &t->end_ns);
  take_time(token, "processStartupTime", &t->process_start_ns);
  take_time(token, "processShutdownTime", &t->process_end_ns);
}

static int take_second(struct mic_firefox *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "threads", "*")) {
    mic_firefox_clear(&r->own);
    r->thread = (struct mic_firefox_thread){.start_ns = MIC_FIREFOX_NULL,
                                            .end_ns = MIC_FIREFOX_NULL,
                                            .process_start_ns = MIC_FIREFOX_NULL,
                                            .process_end_ns = MIC_FIREFOX_NULL};
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
  struct mic_firefox *r = data;
  (void)err; /* the reading has it */
  mic_path_take(&r->path, token);
  return r->second ? take_second(r, token) : take_first(r, token);
}

static void put_clocks(struct mic_firefox *r) {
  struct mic_clocks_row clocks = {.realtime_ns = start_of(r->start_ns),
                                  .duration_ns = start_of(r->end_ns)};
  if (clocks.realtime_ns || clocks.duration_ns) mic_writer_clocks(r->w, &clocks);
}

static void release(struct mic_firefox *r) {
  mic_firefox_free(&r->shared);
  mic_firefox_free(&r->own);
  mic_vec_free(&r->weight_units);
  mic_vec_free(&r->libs);
  mic_vec_free(&r->categories);
  mic_vec_free(&r->nodes);
  mic_vec_free(&r->pending);
  mic_vec_free(&r->key);
  mic_vec_free(&r->locations);
  mic_vec_free(&r->lines);
  mic_interner_free(&r->places);
  mic_map_free(&r->processes);
  mic_vec_free(&r->name_of_site);
  mic_vec_free(&r->zones);
  mic_build_free(r->build);
}

MIC_EXPORT int mic_firefox_read(struct mic_input *input, struct mic_writer *writer,
                                struct mic_firefox_result *result, struct mic_error *err) {
  struct mic_error unseen;
  *result = (struct mic_firefox_result){.threads = 0};
  struct mic_firefox r = {
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
  r.second = true;
  if (!code) code = mic_json_again(&r.json, r.err);
  if (!code) put_clocks(&r);
  release(&r);
  return code;
}
