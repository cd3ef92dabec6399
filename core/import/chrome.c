/* chrome.c - events of a trace, one at a time from its JSON. */
#include "import/chrome.h"

#include <stdio.h>
#include <string.h>

#include "import/chrome_inside.h"
#include "import/json.h"

/* The fields of an event that are texts or numbers as written; others are passed over. */
enum field { PH, TS, DUR, PID, TID, NAME, CAT, ID, ARGS_NAME, FIELDS };
static const char *const field_names[] = {"ph", "ts", "dur", "pid", "tid", "name", "cat", "id"};

struct thread {
  uint32_t process, tid, name, tid_text;
};
struct process {
  uint32_t pid, name, pid_text;
};

struct reading {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_chrome_result *result;
  const char *input_name;
  struct mic_json json;
  uint32_t list_depth; /* of the array of events once it is open; 0: not yet */
  bool is_object;      /* the trace is an object with traceEvents */
  bool seen, done;     /* the array of events was there; and is closed */
  bool in_event, in_args, has_args;
  MIC_VEC(char) text[FIELDS];
  bool has[FIELDS], is_string[FIELDS];
  struct mic_map processes_by_id; /* (the writer's string of the pid as written) -> index */
  struct mic_map threads_by_id;   /* (process index, string of the tid) -> index */
  MIC_VEC(struct process) processes;
  MIC_VEC(struct thread) threads;
  MIC_VEC(uint32_t) name_of_site;
  struct mic_map tracks; /* (process; string of category and id) -> track */
  mic_chrome_edges edges;
  struct mic_zones zones;
};

static uint32_t text_id(const struct reading *r, enum field field) {
  return r->has[field] ? mic_writer_string(r->w, r->text[field].at, r->text[field].count) : 0;
}

static bool is(const struct reading *r, enum field field, const char *word) {
  size_t size = strlen(word);
  return r->has[field] && r->text[field].count == size &&
         memcmp(r->text[field].at, word, size) == 0;
}

/* An id that a u32 holds; others are told by their text. */
static uint32_t small_id(const struct reading *r, enum field field) {
  int64_t value;
  bool number = r->has[field] &&
                mic_json_scaled(r->text[field].at, r->text[field].count, 1, &value) && value >= 0 &&
                value < UINT32_MAX;
  return number ? (uint32_t)value : 0;
}

/* Microseconds as nanoseconds; strings of digits are taken too. */
static bool take_time(const struct reading *r, enum field field, int64_t *time_ns) {
  return r->has[field] && mic_json_scaled(r->text[field].at, r->text[field].count, 1000, time_ns) &&
         *time_ns > -(INT64_MAX / 4) && *time_ns < INT64_MAX / 4; /* sums and differences fit */
}

static uint32_t process_of(struct reading *r) {
  bool added;
  uint32_t text = text_id(r, PID), next = (uint32_t)r->processes.count;
  uint32_t index = mic_map_intern(&r->processes_by_id, text, r->is_string[PID], next, &added);
  if (added) {
    uint32_t pid = small_id(r, PID);
    *mic_vec_push(&r->processes) = (struct process){pid, 0, pid ? 0 : text};
  }
  return index;
}

static uint32_t thread_of(struct reading *r) {
  bool added;
  uint32_t process = process_of(r), text = text_id(r, TID);
  uint32_t next = (uint32_t)r->threads.count;
  uint32_t index = mic_map_intern(&r->threads_by_id, (uint64_t)process << 1 | r->is_string[TID],
                                  text, next, &added);
  if (added) {
    uint32_t tid = small_id(r, TID);
    *mic_vec_push(&r->threads) = (struct thread){process, tid, 0, tid ? 0 : text};
  }
  return index;
}

static uint32_t site_of(struct reading *r) {
  uint32_t name = text_id(r, NAME);
  uint32_t site = mic_build_site(r->build, name, text_id(r, CAT));
  while (r->name_of_site.count <= site) *mic_vec_push(&r->name_of_site) = 0;
  r->name_of_site.at[site] = name;
  return site;
}

static void bad(struct reading *r) {
  if (!r->result->bad++) r->result->first_bad = r->result->events;
}

static void complete(struct reading *r) {
  int64_t start_ns, length_ns = MIC_ZONE_OPEN;
  if (!take_time(r, TS, &start_ns)) {
    bad(r);
    return;
  }
  bool timed = r->has[DUR];
  if (timed && (!take_time(r, DUR, &length_ns) || length_ns < 0)) {
    bad(r);
    return;
  }
  mic_zones_add(&r->zones, thread_of(r), site_of(r), start_ns,
                timed ? start_ns + length_ns : MIC_ZONE_OPEN, false);
  r->result->unfinished += !timed;
  r->result->with_arguments += r->has_args;
}

/* Of a thread's own begins and ends the track is the thread's number, twice; of asynchronous ones
 * that of their process, category and id, twice and one. */
static uint32_t track_of(struct reading *r, uint32_t thread, bool async) {
  if (!async) return thread * 2;
  char key[64 + 32];
  uint32_t process = r->threads.at[thread].process;
  int size = snprintf(key, sizeof key, "%u %u %u", text_id(r, CAT), text_id(r, ID),
                      (unsigned)r->is_string[ID]);
  uint32_t text = mic_writer_string(r->w, key, (uint64_t)size);
  return mic_map_intern(&r->tracks, process, text, r->tracks.count, NULL) * 2 + 1;
}

static void edge(struct reading *r, bool begin, bool async) {
  struct mic_chrome_edge e = {
    .duration_ns = MIC_ZONE_OPEN,
    .order = (uint32_t)r->edges.count,
    .begin = begin,
    .async = async,
  };
  bool timed = take_time(r, TS, &e.time_ns);
  if (timed && begin && r->has[DUR])
    timed = take_time(r, DUR, &e.duration_ns) && e.duration_ns >= 0;
  if (!timed) {
    bad(r);
    return;
  }
  e.thread = thread_of(r);
  e.track = track_of(r, e.thread, async);
  if (begin) e.site = site_of(r);
  e.name = begin ? 0 : text_id(r, NAME);
  r->result->with_arguments += begin && r->has_args;
  *mic_vec_push(&r->edges) = e;
}

static void name(struct reading *r) {
  if (is(r, NAME, "process_name") && r->has[ARGS_NAME]) {
    uint32_t process = process_of(r); /* may move the array */
    r->processes.at[process].name = text_id(r, ARGS_NAME);
  } else if (is(r, NAME, "thread_name") && r->has[ARGS_NAME]) {
    uint32_t thread = thread_of(r);
    r->threads.at[thread].name = text_id(r, ARGS_NAME);
  }
}

static void take_event(struct reading *r) {
  r->result->events++;
  char phase = r->has[PH] && r->text[PH].count == 1 ? r->text[PH].at[0] : 0;
  switch (phase) {
  case 'X': complete(r); break;
  case 'B': edge(r, true, false); break;
  case 'E': edge(r, false, false); break;
  case 'b':
  case 'S': edge(r, true, true); break;
  case 'e':
  case 'F': edge(r, false, true); break;
  case 'M': name(r); break;
  default:
    if (phase > 0)
      r->result->other[(int)phase]++;
    else
      bad(r);
  }
}

/* --- tokens -------------------------------------------------------------------------------- */

static void keep(struct reading *r, enum field field, const struct mic_json_token *token) {
  r->text[field].count = 0;
  mic_vec_reserve(&r->text[field], token->size + 1);
  memcpy(r->text[field].at, token->bytes, token->size);
  r->text[field].count = token->size;
  r->has[field] = true;
  r->is_string[field] = token->kind == MIC_JSON_STRING;
}

static void take_field(struct reading *r, const struct mic_json_token *token) {
  uint32_t depth = token->depth - r->list_depth; /* 1: of the event; 2: of its args */
  if (depth == 1 && mic_json_key(token, "args")) {
    r->in_args = token->kind == MIC_JSON_OBJECT;
    return;
  }
  if (r->in_args && depth == 2) {
    r->has_args = true;
    if (token->kind == MIC_JSON_STRING && mic_json_key(token, "name")) keep(r, ARGS_NAME, token);
  }
  if (depth != 1 || (token->kind != MIC_JSON_STRING && token->kind != MIC_JSON_NUMBER)) return;
  for (int field = 0; field < ARGS_NAME; field++)
    if (mic_json_key(token, field_names[field])) keep(r, (enum field)field, token);
}

static void begin_event(struct reading *r) {
  memset(r->has, 0, sizeof r->has);
  memset(r->is_string, 0, sizeof r->is_string);
  r->in_event = true;
  r->in_args = r->has_args = false;
}

static int not_a_trace(const struct reading *r, const char *what, struct mic_error *err) {
  return mic_fail_at(err, r->json.offset, "%.120s: near byte %llu: %s", r->input_name,
                     (unsigned long long)r->json.offset, what);
}

/* What stands outside of the events: the array of them, and facts that are not read. */
static int take_outside(struct reading *r, const struct mic_json_token *token,
                        struct mic_error *err) {
  if (token->depth == 0 && token->kind == MIC_JSON_OBJECT) r->is_object = true;
  bool events = token->kind == MIC_JSON_ARRAY &&
                (token->depth == 0 ||
                 (token->depth == 1 && r->is_object && mic_json_key(token, "traceEvents")));
  if (events) {
    r->list_depth = token->depth + 1;
    r->seen = true;
  } else if (token->depth == 0 && token->kind < MIC_JSON_OBJECT) {
    return not_a_trace(r, "neither a list of events nor an object with traceEvents", err);
  }
  return 0;
}

static int take(void *data, const struct mic_json_token *token, struct mic_error *err) {
  struct reading *r = data;
  if (!r->list_depth || r->done) return take_outside(r, token, err);
  if (r->in_event) {
    if (token->kind != MIC_JSON_OBJECT_END || token->depth != r->list_depth) {
      take_field(r, token);
      return 0;
    }
    r->in_event = false;
    take_event(r);
    if (r->edges.count + r->zones.all.count >= UINT32_MAX - 1)
      return mic_fail(err, MIC_ELIMIT, "%.120s: more than 4,294,967,294 events", r->input_name);
    return 0;
  }
  if (token->depth == r->list_depth && token->kind == MIC_JSON_OBJECT) {
    begin_event(r);
  } else if (token->kind == MIC_JSON_ARRAY_END && token->depth == r->list_depth - 1) {
    r->done = true;
  } else if (token->depth == r->list_depth) {
    r->result->events++;
    bad(r); /* a number or a text where an event should be */
  }
  return 0;
}

/* Between two events; or at the "]" after a comma. */
static bool tolerate(void *data, uint32_t depth, bool at_end, char byte) {
  struct reading *r = data;
  if (r->done) return at_end && r->is_object;
  return r->list_depth && !r->in_event && depth == r->list_depth && (at_end || byte == ']');
}

/* --- rows ---------------------------------------------------------------------------------- */

static void put_threads(struct reading *r) {
  for (size_t i = 0; i < r->processes.count; i++) {
    const struct process *p = &r->processes.at[i];
    struct mic_processes_row row = {.pid = p->pid,
                                    .parent = MIC_NONE,
                                    .name = p->name ? p->name : p->pid_text,
                                    .end_ns = UINT64_MAX};
    mic_writer_processes(r->w, &row);
  }
  for (size_t i = 0; i < r->threads.count; i++) {
    const struct thread *t = &r->threads.at[i];
    struct mic_threads_row row = {.process = t->process,
                                  .tid = t->tid,
                                  .name = t->name ? t->name : t->tid_text,
                                  .end_ns = UINT64_MAX};
    mic_writer_threads(r->w, &row);
  }
}

static void put_rows(struct reading *r) {
  mic_chrome_match(&r->edges, &r->zones, r->name_of_site.at, r->result);
  mic_vec_free(&r->edges);
  put_threads(r);
  int64_t start_ns = mic_zones_start(&r->zones), end_ns = start_ns;
  for (size_t i = 0; i < r->zones.all.count; i++) {
    const struct mic_zone *zone = &r->zones.all.at[i];
    int64_t last = zone->end_ns == MIC_ZONE_OPEN ? zone->start_ns : zone->end_ns;
    if (last > end_ns) end_ns = last;
  }
  mic_writer_clocks(r->w, &(struct mic_clocks_row){
                            .monotonic_ns = start_ns > 0 ? (uint64_t)start_ns : 0,
                            .duration_ns = (uint64_t)end_ns - (uint64_t)start_ns,
                          });
  r->result->zones = r->zones.all.count;
  r->result->overlapping = mic_zones_write(&r->zones, start_ns, r->w);
}

static void release(struct reading *r) {
  for (int i = 0; i < FIELDS; i++) mic_vec_free(&r->text[i]);
  mic_map_free(&r->processes_by_id);
  mic_map_free(&r->threads_by_id);
  mic_vec_free(&r->processes);
  mic_vec_free(&r->threads);
  mic_vec_free(&r->name_of_site);
  mic_map_free(&r->tracks);
  mic_vec_free(&r->edges);
  mic_zones_free(&r->zones);
  mic_build_free(r->build);
}

MIC_EXPORT int mic_chrome_read(struct mic_input *input, struct mic_writer *writer,
                               struct mic_chrome_result *result, struct mic_error *err) {
  struct mic_error unseen;
  if (!err) err = &unseen;
  *result = (struct mic_chrome_result){.events = 0};
  struct reading r = {
    .w = writer,
    .build = mic_build_new(writer),
    .result = result,
    .input_name = mic_input_name(input),
    .json = {.input = input, .take = take, .tolerate = tolerate},
  };
  r.json.data = &r;
  int code = mic_json_parse(&r.json, err);
  if (!code && !r.seen) code = not_a_trace(&r, "no list of events in it", err);
  if (!code) put_rows(&r);
  release(&r);
  return code;
}
