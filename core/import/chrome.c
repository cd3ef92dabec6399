/*
 * chrome.c - events to spans, begins and ends, and those of a thread to zones.
 *
 * The rules are of the "Trace Event Format" document and of what Perfetto and catapult do where it
 * is silent: an end closes the innermost open begin of its thread, or the innermost of its name
 * where it has one.  A begin that has a duration lasts that long, with or without an end.
 */
#include "import/chrome.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "import/build.h"
#include "import/chrome_async.h"
#include "import/chrome_samples.h"
#include "import/json_feed.h"

/* Events are numbered in the order of zones (lanes.h). */
enum { EVENTS_MAX = 1 << 30 };

enum field { NO_FIELD, PH, TS, DUR, PID, TID, NAME, CAT, SCOPE, ID, ID2, ARGS };
/* What an asynchronous event's id is one of; where there are several the highest counts. */
enum id_kind { NO_ID, PLAIN_ID, LOCAL_ID, GLOBAL_ID };

typedef MIC_VEC(char) text;

/* A process's or thread's own id: a number, or a text's number with the top bit set. */
#define TEXT_ID (1ULL << 63)

struct process {
  uint64_t id;
  uint32_t name;
};
struct thread {
  uint32_t process, name;
  uint64_t id;
  mic_lane_zones marks; /* spans, begins and ends; in the end zones */
};
struct event {
  char ph;
  bool has_ts, has_dur, has_args, bad_number;
  int64_t ts, dur;
  uint64_t pid, tid;
  text name, cat, scope, id, args_name;
  enum id_kind id_kind;
  bool has_name;
};

struct chrome {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_chrome_result *result;
  struct mic_error *err;
  uint64_t progress;
  uint32_t depth, events_depth; /* depth of what lies in the array of events; 0: not in it */
  bool found, in_samples, has_facts, in_event;
  enum field field;
  bool args_name;       /* the next value is the name in "args" */
  enum id_kind id_kind; /* and which of those in "id2" */
  text key;             /* of the object around all */
  struct event event;
  struct mic_index by_pid, by_tid;
  struct mic_map by_own_id; /* of threads, by their own ids alone */
  MIC_VEC(struct process) processes;
  MIC_VEC(struct thread) threads;
  MIC_VEC(uint32_t) site_names; /* a site's name */
  struct mic_async async;
  int64_t first, last; /* of zones and samples */
  struct mic_chrome_samples beside;
};

static void set_text(text *to, const void *bytes, size_t size) {
  mic_vec_reserve(to, size + 1);
  if (size) memcpy(to->at, bytes, size);
  to->count = size;
}

/* ---- threads ---- */

static uint32_t hash_of_process(const void *keys, uint32_t i) {
  return mic_index_mix(((const struct chrome *)keys)->processes.at[i].id, 0);
}
static uint32_t hash_of_thread(const void *keys, uint32_t i) {
  const struct thread *thread = &((const struct chrome *)keys)->threads.at[i];
  return mic_index_mix(thread->id, thread->process);
}

static uint32_t process_of(struct chrome *c, uint64_t pid) {
  uint32_t hash = mic_index_mix(pid, 0);
  uint64_t at;
  for (uint32_t i = mic_index_first(&c->by_pid, hash, &at); i != MIC_NONE;
       i = mic_index_next(&c->by_pid, hash, &at))
    if (c->processes.at[i].id == pid) return i;
  *mic_vec_push(&c->processes) = (struct process){pid, 0};
  mic_index_add(&c->by_pid, hash, hash_of_process, c);
  return c->by_pid.count - 1;
}

static uint32_t thread_of(struct chrome *c, uint64_t pid, uint64_t tid) {
  uint32_t process = process_of(c, pid), hash = mic_index_mix(tid, process);
  uint64_t at;
  for (uint32_t i = mic_index_first(&c->by_tid, hash, &at); i != MIC_NONE;
       i = mic_index_next(&c->by_tid, hash, &at))
    if (c->threads.at[i].id == tid && c->threads.at[i].process == process) return i;
  *mic_vec_push(&c->threads) = (struct thread){.process = process, .id = tid};
  mic_index_add(&c->by_tid, hash, hash_of_thread, c);
  return c->by_tid.count - 1;
}

/* An id as the tables have it, and what it is called when that does not tell all of it. */
static uint32_t number_of(struct chrome *c, uint64_t id, uint32_t *name) {
  char digits[32];
  if (id <= UINT32_MAX) return (uint32_t)id;
  if (*name) return 0;
  if (id & TEXT_ID) {
    *name = (uint32_t)id;
  } else {
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)id);
    *name = mic_writer_text(c->w, digits);
  }
  return 0;
}

static void write_threads(struct chrome *c) {
  for (size_t i = 0; i < c->processes.count; i++) {
    struct process *process = &c->processes.at[i];
    struct mic_processes_row row = {.parent = MIC_NONE, .end_ns = UINT64_MAX};
    row.pid = number_of(c, process->id, &process->name);
    row.name = process->name;
    mic_writer_processes(c->w, &row);
  }
  for (uint32_t i = 0; i < c->threads.count; i++) {
    struct thread *thread = &c->threads.at[i];
    struct mic_threads_row row = {.process = thread->process, .end_ns = UINT64_MAX};
    row.tid = number_of(c, thread->id, &thread->name);
    row.name = thread->name;
    mic_writer_threads(c->w, &row);
    struct mic_thread_names_row name = {i, thread->name, 0};
    if (thread->name) mic_writer_thread_names(c->w, &name);
  }
}

/* ---- events ---- */

static void bad_event(struct chrome *c, const char *why) {
  if (!c->result->bad_events++) {
    c->result->first_bad = c->result->events;
    c->result->why = why;
  }
}

static uint32_t site_of(struct chrome *c, const struct event *e) {
  uint32_t name = mic_writer_string(c->w, e->name.at, e->name.count);
  uint32_t cat = mic_writer_string(c->w, e->cat.at, e->cat.count);
  uint32_t site = mic_build_site(c->build, name, cat);
  if (site == c->site_names.count) *mic_vec_push(&c->site_names) = name;
  return site;
}

static void take_span(struct chrome *c, const struct event *e) {
  int64_t end = INT64_MAX;
  if (e->has_dur && e->dur < 0) {
    bad_event(c, "a negative duration");
    return;
  }
  if (e->has_dur && (__builtin_add_overflow(e->ts, e->dur, &end) || end == INT64_MAX)) {
    bad_event(c, "an end that is out of range");
    return;
  }
  uint32_t thread = thread_of(c, e->pid, e->tid), site = site_of(c, e);
  /* V8 writes "dur":0 with each begin, whose end it writes too: 0 says nothing. */
  bool timed = e->has_dur && e->dur > 0;
  enum mic_mark kind = e->ph == 'X' ? MIC_MARK_SPAN : timed ? MIC_MARK_TIMED : MIC_MARK_BEGIN;
  mic_mark_add(&c->threads.at[thread].marks, kind, e->ts, end, site, c->result->events);
}

/* The name that an end says, or MIC_NONE. */
static uint32_t name_of(struct chrome *c, const struct event *e) {
  return e->has_name ? mic_writer_string(c->w, e->name.at, e->name.count) : MIC_NONE;
}

static void take_end(struct chrome *c, const struct event *e) {
  uint32_t thread = thread_of(c, e->pid, e->tid), name = name_of(c, e);
  mic_mark_add(&c->threads.at[thread].marks, MIC_MARK_END, e->ts, 0, name, c->result->events);
}

static void append(text *to, const void *bytes, size_t size) {
  mic_vec_reserve(to, to->count + size + 1);
  if (size) memcpy(to->at + to->count, bytes, size);
  to->count += size;
}

/* Pairs are of one category, scope and id; ids are of all processes but for id2's local ones. */
static struct mic_digest key_of(struct event *e) {
  text *key = &e->id;
  uint64_t process = e->id_kind == LOCAL_ID ? e->pid : 0;
  uint64_t sizes[] = {key->count, e->cat.count, e->id_kind == LOCAL_ID, process};
  append(key, e->cat.at, e->cat.count);
  append(key, e->scope.at, e->scope.count);
  append(key, sizes, sizeof sizes);
  return mic_digest(key->at, key->count);
}

static void take_async(struct chrome *c, struct event *e, bool begins) {
  if (e->id_kind == NO_ID) {
    bad_event(c, "no id");
    return;
  }
  struct mic_digest key = key_of(e);
  uint32_t thread = thread_of(c, e->pid, e->tid);
  if (begins)
    mic_async_begin(&c->async, key, e->ts, site_of(c, e), thread);
  else
    mic_async_end(&c->async, key, e->ts, name_of(c, e));
}

static void take_metadata(struct chrome *c, const struct event *e) {
  static const char process[] = "process_name", thread[] = "thread_name";
  if (!e->args_name.count) return;
  uint32_t name = mic_writer_string(c->w, e->args_name.at, e->args_name.count);
  if (e->name.count == sizeof process - 1 && memcmp(e->name.at, process, e->name.count) == 0) {
    uint32_t at = process_of(c, e->pid);
    c->processes.at[at].name = name;
  }
  if (e->name.count == sizeof thread - 1 && memcmp(e->name.at, thread, e->name.count) == 0) {
    uint32_t at = thread_of(c, e->pid, e->tid);
    c->threads.at[at].name = name;
  }
}

static void take_timed(struct chrome *c, struct event *e) {
  if (e->bad_number) {
    bad_event(c, "a time or duration that is no number in range");
    return;
  }
  if (!e->has_ts) {
    bad_event(c, "no time");
    return;
  }
  if (e->has_args) c->result->args++;
  switch (e->ph) {
  case 'X':
  case 'B': take_span(c, e); break;
  case 'E': take_end(c, e); break;
  case 'b':
  case 'S': take_async(c, e, true); break;
  default: take_async(c, e, false); break; /* e F */
  }
}

static void take_event(struct chrome *c) {
  struct event *e = &c->event;
  c->result->events++;
  switch (e->ph) {
  case '\0': bad_event(c, "no phase"); break;
  case 'X':
  case 'B':
  case 'E':
  case 'b':
  case 'S':
  case 'e':
  case 'F': take_timed(c, e); break;
  case 'M': take_metadata(c, e); break;
  case 'i':
  case 'I':
  case 'R':
  case 'n':
  case 'T':
  case 'p': c->result->instants++; break;
  case 'C': c->result->counters++; break;
  case 'P': c->result->profiles++; break;
  case 's':
  case 't':
  case 'f': c->result->flows++; break;
  default: c->result->others++;
  }
}

/* ---- JSON ---- */

static void begin_event(struct chrome *c) {
  struct event *e = &c->event;
  e->ph = '\0';
  e->has_ts = e->has_dur = e->has_args = e->bad_number = e->has_name = false;
  e->pid = e->tid = 0;
  e->name.count = e->cat.count = e->scope.count = e->id.count = e->args_name.count = 0;
  e->id_kind = NO_ID;
  c->in_event = true;
  c->field = NO_FIELD;
}

static bool at_event(const struct chrome *c) {
  return c->in_event && c->depth == c->events_depth + 1;
}

static enum field field_of(const char *key, size_t size) {
  static const struct {
    const char *name;
    enum field field;
  } fields[] = {{"ph", PH},   {"ts", TS},     {"dur", DUR},  {"pid", PID},
                {"tid", TID}, {"name", NAME}, {"cat", CAT},  {"scope", SCOPE},
                {"id", ID},   {"id2", ID2},   {"args", ARGS}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (strlen(fields[i].name) == size && memcmp(key, fields[i].name, size) == 0)
      return fields[i].field;
  return NO_FIELD;
}

static void take_time(struct event *e, enum field field, const char *bytes, size_t size) {
  int64_t ns;
  /* Microseconds. */
  if (!mic_json_digits(bytes, size, 3, &ns)) {
    e->bad_number = true;
  } else if (field == TS) {
    e->ts = ns;
    e->has_ts = true;
  } else {
    e->dur = ns;
    e->has_dur = true;
  }
}

static uint64_t own_id(struct chrome *c, const char *bytes, size_t size) {
  int64_t number;
  if (mic_json_digits(bytes, size, 0, &number) && number >= 0) return (uint64_t)number;
  return TEXT_ID | mic_writer_string(c->w, bytes, size);
}

/* 1, 1.0 and "1" are one id. */
static void take_id(struct event *e, enum id_kind kind, const char *bytes, size_t size,
                    bool is_string) {
  char digits[32];
  int64_t thousandths;
  if (kind < e->id_kind) return;
  e->id_kind = kind;
  if (!is_string && (memchr(bytes, '.', size) || memchr(bytes, 'e', size)) &&
      mic_json_digits(bytes, size, 3, &thousandths) && thousandths % 1000 == 0) {
    size = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)thousandths / 1000);
    bytes = digits;
  }
  set_text(&e->id, bytes, size);
}

/* A string or number of an event. */
static void take_value(struct chrome *c, const char *bytes, size_t size, bool is_string) {
  struct event *e = &c->event;
  if (c->depth == c->events_depth + 2) {
    if (c->field == ID2 && c->id_kind) take_id(e, c->id_kind, bytes, size, is_string);
    if (c->args_name) set_text(&e->args_name, bytes, size);
    c->args_name = false;
  }
  if (!at_event(c)) return;
  switch (c->field) {
  case PH:
    if (is_string && size == 1) e->ph = *bytes;
    break;
  case TS:
  case DUR: take_time(e, c->field, bytes, size); break;
  case PID: e->pid = own_id(c, bytes, size); break;
  case TID: e->tid = own_id(c, bytes, size); break;
  case NAME:
    set_text(&e->name, bytes, size);
    e->has_name = true;
    break;
  case CAT: set_text(&e->cat, bytes, size); break;
  case SCOPE: set_text(&e->scope, bytes, size); break;
  case ID: take_id(e, PLAIN_ID, bytes, size, is_string); break;
  default: break;
  }
}

/* What is no object has no place among events. */
static int stray_value(struct chrome *c) {
  c->progress++;
  if (!c->events_depth || c->depth != c->events_depth || c->in_event) return 1;
  c->result->events++;
  bad_event(c, "no object");
  return 1;
}

static int on_null(void *data) { return stray_value(data); }
static int on_boolean(void *data, int value) {
  (void)value;
  return stray_value(data);
}
static int on_number(void *data, const char *bytes, size_t size) {
  struct chrome *c = data;
  if (c->in_event) take_value(c, bytes, size, false);
  return stray_value(c);
}
static int on_string(void *data, const unsigned char *bytes, size_t size) {
  struct chrome *c = data;
  if (c->in_event) take_value(c, (const char *)bytes, size, true);
  return stray_value(c);
}

static int on_start_map(void *data) {
  struct chrome *c = data;
  c->progress++;
  if (c->events_depth && c->depth == c->events_depth && !c->in_event) begin_event(c);
  if (at_event(c) && c->field == ARGS) c->event.has_args = true;
  if (c->in_samples && c->depth == 2) c->result->samples++;
  c->depth++;
  return 1;
}

static bool key_is(const struct chrome *c, const char *name) {
  return c->key.count == strlen(name) && memcmp(c->key.at, name, c->key.count) == 0;
}

/* Of "args" or "id2". */
static void take_inner_key(struct chrome *c, const char *key, size_t size) {
  bool direct = c->depth == c->events_depth + 2;
  c->args_name = direct && c->field == ARGS && size == 4 && memcmp(key, "name", 4) == 0;
  c->id_kind = NO_ID;
  if (direct && size == 5 && memcmp(key, "local", 5) == 0) c->id_kind = LOCAL_ID;
  if (direct && size == 6 && memcmp(key, "global", 6) == 0) c->id_kind = GLOBAL_ID;
}

static int on_key(void *data, const unsigned char *bytes, size_t size) {
  struct chrome *c = data;
  c->progress++;
  const char *key = (const char *)bytes;
  if (at_event(c))
    c->field = field_of(key, size);
  else if (c->in_event)
    take_inner_key(c, key, size);
  else if (c->depth == 1) {
    set_text(&c->key, key, size);
    c->has_facts |= key_is(c, "otherData");
  }
  return 1;
}

static int on_end_map(void *data) {
  struct chrome *c = data;
  c->progress++;
  c->depth--;
  if (c->in_event && c->depth == c->events_depth) {
    c->in_event = false;
    if (c->result->events >= EVENTS_MAX - 1) {
      mic_fail(c->err, MIC_ELIMIT, "more than 2^30 events");
      return 0;
    }
    take_event(c);
  }
  return 1;
}

static int on_start_array(void *data) {
  struct chrome *c = data;
  if (c->depth == c->events_depth) stray_value(c);
  c->depth++;
  c->progress++;
  bool events = c->depth == 1 || (c->depth == 2 && key_is(c, "traceEvents"));
  if (events && !c->found) {
    c->events_depth = c->depth;
    c->found = true;
  }
  c->in_samples = !c->events_depth && c->depth == 2 && key_is(c, "samples");
  return 1;
}

static int on_end_array(void *data) {
  struct chrome *c = data;
  c->progress++;
  if (c->events_depth == c->depth) c->events_depth = 0;
  if (c->depth == 2) c->in_samples = false;
  c->depth--;
  return 1;
}

static bool may_end(void *data) {
  const struct chrome *c = data;
  if (!c->found) return false;
  if (c->in_event) return c->result->events > 0;
  return c->events_depth ? c->depth == c->events_depth : c->depth <= 1;
}

/* ---- zones ---- */

static void on_async(void *data, uint32_t thread, const struct mic_lane_zone *zone) {
  struct chrome *c = data;
  *mic_mark_push(&c->threads.at[thread].marks) = *zone;
}

static void match_ends(struct chrome *c) {
  struct mic_edge_counts counts = {0};
  for (size_t i = 0; i < c->threads.count; i++)
    mic_edges_match(&c->threads.at[i].marks, c->site_names.at, &counts);
  mic_async_match(&c->async, c->site_names.at, on_async, c, &counts);
  c->result->unmatched_ends += counts.unmatched_ends;
}

static void note_spans(struct chrome *c, const mic_lane_zones *zones) {
  for (size_t i = 0; i < zones->count; i++) {
    const struct mic_lane_zone *zone = &zones->at[i];
    int64_t end = zone->end == INT64_MAX ? zone->start : zone->end;
    if (zone->start < c->first) c->first = zone->start;
    if (end > c->last) c->last = end;
  }
  c->result->zones += zones->count;
}

/* ---- samples ---- */

/* A sample's thread is known by its id alone. */
static uint32_t thread_of_id(struct chrome *c, uint64_t tid) {
  uint32_t thread = mic_map_get(&c->by_own_id, tid, 0);
  if (thread != MIC_NONE) return thread;
  thread = thread_of(c, 0, tid);
  mic_map_put(&c->by_own_id, tid, 0, thread);
  return thread;
}

/* Read them, and which times they have. */
static int read_samples(struct chrome *c, struct mic_input *input) {
  struct mic_chrome_samples *s = &c->beside;
  s->w = c->w;
  s->build = c->build;
  s->err = c->err;
  int code = mic_chrome_samples_read(s, input);
  for (size_t i = 0; i < mic_chrome_samples_count(s) && !code; i++) {
    int64_t ts = mic_chrome_samples_get(s, i, MIC_SAMPLE_TS);
    if (ts == MIC_NUMBER_NULL) continue;
    if (ts < c->first) c->first = ts;
    if (ts > c->last) c->last = ts;
  }
  for (uint32_t i = 0; i < c->threads.count; i++)
    if (mic_map_get(&c->by_own_id, c->threads.at[i].id, 0) == MIC_NONE)
      mic_map_put(&c->by_own_id, c->threads.at[i].id, 0, i);
  return code;
}

static int write_samples(struct chrome *c) {
  struct mic_chrome_samples *s = &c->beside;
  for (size_t i = 0; i < mic_chrome_samples_count(s); i++) {
    struct mic_samples_row row = {
      .weight = (uint64_t)mic_chrome_samples_get(s, i, MIC_SAMPLE_WEIGHT),
      .cpu = (uint16_t)mic_chrome_samples_get(s, i, MIC_SAMPLE_CPU),
    };
    int64_t ts = mic_chrome_samples_get(s, i, MIC_SAMPLE_TS);
    uint32_t name = (uint32_t)mic_chrome_samples_get(s, i, MIC_SAMPLE_NAME);
    uint32_t source =
      mic_build_source(c->build, name, MIC_UNIT_OTHER, 0, mic_writer_text(c->w, "weight"));
    if (source > UINT8_MAX) return mic_fail(c->err, MIC_ELIMIT, "samples of more than 256 names");
    row.source = (uint8_t)source;
    row.thread = thread_of_id(c, (uint64_t)mic_chrome_samples_get(s, i, MIC_SAMPLE_TID));
    if (ts != MIC_NUMBER_NULL) row.time_ns = (uint64_t)ts - (uint64_t)c->first;
    int code = mic_chrome_samples_node(s, i, &row.stack);
    if (code) return code;
    if (row.stack == MIC_NONE) {
      c->result->left_samples++;
      continue;
    }
    mic_writer_samples(c->w, &row);
  }
  c->result->samples = mic_chrome_samples_count(s) - c->result->left_samples;
  c->result->rounded = s->rounded;
  return 0;
}

static int write_zones(struct chrome *c, const char *name, struct mic_error *err) {
  bool all = true;
  match_ends(c);
  for (size_t i = 0; i < c->threads.count; i++) note_spans(c, &c->threads.at[i].marks);
  if (c->beside.ours && c->beside.zeroed && c->beside.zero_ns <= c->first)
    c->first = c->beside.zero_ns;
  if (c->first == INT64_MAX) c->first = c->last = 0;
  for (uint32_t i = 0; i < c->threads.count && all; i++) {
    mic_lane_zones *zones = &c->threads.at[i].marks;
    all =
      mic_lanes_write(c->w, i, zones, c->first, &c->result->overlapping, &c->result->unfinished);
    mic_vec_free(zones);
  }
  if (all) return 0;
  return mic_fail(err, MIC_ELIMIT, "%.120s: more than %d zones of one thread overlap", name,
                  MIC_LANES_MAX);
}

static int finish(struct chrome *c, struct mic_input *input, struct mic_error *err) {
  char text_of[32];
  const char *name = mic_input_name(input);
  if (!c->found && !c->result->samples)
    return mic_fail_at(err, 0, "%.150s: no trace events in it", name);
  int code = c->result->samples || c->has_facts ? read_samples(c, input) : 0;
  if (!code) code = write_zones(c, name, err);
  if (!code) code = write_samples(c);
  if (code) return code;
  if (c->result->events && c->result->bad_events == c->result->events)
    return mic_fail_at(err, 0, "%.120s: no event of a trace in it: event %llu has %s", name,
                       (unsigned long long)c->result->first_bad, c->result->why);
  write_threads(c);
  struct mic_clocks_row clocks = {.boot_id = 0};
  /* What Chrome and perf's kin stamp events with on Linux; our own writer gives it back. */
  clocks.monotonic_ns = c->first > 0 ? (uint64_t)c->first : 0;
  if (c->last > c->first) clocks.duration_ns = (uint64_t)c->last - (uint64_t)c->first;
  mic_writer_clocks(c->w, &clocks);
  if (c->beside.ours) return 0;
  snprintf(text_of, sizeof text_of, "%lld", (long long)c->first);
  struct mic_meta_row fact = {mic_writer_text(c->w, "trace_start_ns"),
                              mic_writer_text(c->w, text_of)};
  mic_writer_meta(c->w, &fact);
  return 0;
}

static void release(struct chrome *c) {
  for (size_t i = 0; i < c->threads.count; i++) mic_vec_free(&c->threads.at[i].marks);
  mic_vec_free(&c->threads);
  mic_vec_free(&c->processes);
  mic_vec_free(&c->site_names);
  mic_vec_free(&c->key);
  mic_vec_free(&c->event.name);
  mic_vec_free(&c->event.cat);
  mic_vec_free(&c->event.scope);
  mic_vec_free(&c->event.id);
  mic_vec_free(&c->event.args_name);
  mic_index_free(&c->by_pid);
  mic_index_free(&c->by_tid);
  mic_map_free(&c->by_own_id);
  mic_chrome_samples_free(&c->beside);
  mic_async_free(&c->async);
  mic_build_free(c->build);
}

MIC_EXPORT int mic_chrome_read(struct mic_input *input, struct mic_writer *writer,
                               struct mic_chrome_result *result, struct mic_error *err) {
  static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
  };
  struct mic_error own = {0};
  if (!err) err = &own;
  struct chrome c = {.w = writer, .build = mic_build_new(writer), .result = result, .err = err};
  c.first = INT64_MAX;
  c.last = INT64_MIN;
  *result = (struct mic_chrome_result){.events = 0};
  struct mic_json_feed json = {.input = input,
                               .callbacks = &callbacks,
                               .data = &c,
                               .progress = &c.progress,
                               .may_end = may_end};
  int code = mic_json_feed(&json, err);
  result->cut = json.cut && c.in_event;
  if (json.cut) { /* what stands beside the events cannot be read by itself */
    c.has_facts = false;
    result->left_samples = result->samples;
    result->samples = 0;
  }
  if (!code) code = finish(&c, input, err);
  release(&c);
  return code;
}
