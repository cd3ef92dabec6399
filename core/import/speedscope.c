/* speedscope.c - frames and units first, then samples, weights and events. */
#include "import/speedscope.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "import/build.h"
#include "import/path.h"

/* A file's unit: 10^digits of ours. */
struct unit {
  const char *word, *source;
  uint32_t unit;
  uint32_t digits;
};
static const struct unit units[] = {
  {"none", "weight", MIC_UNIT_COUNT, 0},    {"nanoseconds", "time", MIC_UNIT_NS, 0},
  {"microseconds", "time", MIC_UNIT_NS, 3}, {"milliseconds", "time", MIC_UNIT_NS, 6},
  {"seconds", "time", MIC_UNIT_NS, 9},      {"bytes", "bytes", MIC_UNIT_BYTES, 0}};

struct profile {
  const struct unit *unit;
  uint32_t name; /* the writer's string */
};
struct event {
  int64_t at;
  int64_t frame; /* -1: it names none */
  char type;     /* 'O', 'C', or 0 */
  bool timed;
};

struct reading {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_speedscope_result *result;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  bool second;                                 /* the second reading */
  bool framed;                                 /* shared.frames was there */
  uint32_t frame_name, frame_file, frame_line; /* of the frame being read */
  bool frame_named;
  MIC_VEC(uint32_t) places; /* of frames */
  MIC_VEC(uint32_t) ends;   /* of frames: the reason that one's name is, or MIC_END_NONE */
  MIC_VEC(struct profile) profiles;
  struct profile *profile; /* in the second reading: the one being read */
  MIC_VEC(uint32_t) nodes; /* of its samples */
  MIC_VEC(int64_t) weights;
  uint32_t node, thread, source;
  struct event event;
  uint64_t events;
  int64_t last;           /* where the last event was */
  MIC_VEC(uint32_t) open; /* nodes of the open frames */
  MIC_VEC(int64_t) open_frames;
};

static int bad(const struct reading *r, const char *what, uint64_t number, const char *why) {
  uint64_t profile = r->second ? (uint64_t)(r->profile - r->profiles.at) : 0;
  return mic_fail_at(r->err, r->json.offset, "%.80s: profile %llu, %s %llu (near byte %llu): %s",
                     r->input_name, (unsigned long long)profile, what, (unsigned long long)number,
                     (unsigned long long)r->json.offset, why);
}

/* --- the first reading: frames and profiles ------------------------------------------------ */

static void put_frame(struct reading *r) {
  uint32_t file = r->frame_file ? mic_build_file(r->build, r->frame_file) : MIC_NONE;
  uint32_t function = mic_build_function(r->build, r->frame_name, r->frame_name, MIC_NONE, file, 0);
  *mic_vec_push(&r->places) = mic_build_place(r->build, function, MIC_NONE, file, r->frame_line);
  uint64_t size;
  const char *name = mic_writer_bytes_of(r->w, r->frame_name, &size);
  *mic_vec_push(&r->ends) = mic_build_end(name, size);
  r->frame_name = r->frame_file = r->frame_line = 0;
  r->frame_named = false;
}

static int take_frame_field(struct reading *r, const struct mic_json_token *token) {
  int64_t line;
  if (token->kind == MIC_JSON_STRING && mic_json_key(token, "name")) {
    r->frame_name = mic_writer_string(r->w, token->bytes, token->size);
    r->frame_named = true;
  } else if (token->kind == MIC_JSON_STRING && mic_json_key(token, "file")) {
    r->frame_file = mic_writer_string(r->w, token->bytes, token->size);
  } else if (token->kind == MIC_JSON_NUMBER && mic_json_key(token, "line") &&
             mic_json_digits(token->bytes, token->size, 0, &line) && line > 0 &&
             line <= UINT32_MAX) {
    r->frame_line = (uint32_t)line;
  }
  return 0;
}

static int take_profile_field(struct reading *r, const struct mic_json_token *token) {
  /* What has no key stands in an array where a profile should be. */
  if (token->kind != MIC_JSON_STRING || !token->key) return 0;
  struct profile *profile = &r->profiles.at[r->profiles.count - 1];
  if (mic_json_key(token, "name"))
    profile->name = mic_writer_string(r->w, token->bytes, token->size);
  if (!mic_json_key(token, "unit")) return 0;
  profile->unit = NULL;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (mic_json_is(token, units[i].word)) profile->unit = &units[i];
  if (profile->unit) return 0;
  return mic_fail_at(r->err, r->json.offset, "%.80s: profile %zu (near byte %llu): no unit '%.*s'",
                     r->input_name, r->profiles.count - 1, (unsigned long long)r->json.offset,
                     token->size < 40 ? (int)token->size : 40, token->bytes);
}

static int take_first(struct reading *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  if (token->kind == MIC_JSON_ARRAY && mic_path_is(path, "shared", "frames")) r->framed = true;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "profiles", "*"))
    *mic_vec_push(&r->profiles) = (struct profile){&units[0], 0};
  else if (token->kind == MIC_JSON_OBJECT_END && mic_path_is(path, "shared", "frames"))
    put_frame(r);
  else if (token->kind < MIC_JSON_OBJECT && mic_path_is(path, "shared", "frames", "*"))
    return take_frame_field(r, token);
  else if (token->kind < MIC_JSON_OBJECT && mic_path_is(path, "profiles", "*"))
    return take_profile_field(r, token);
  return 0;
}

/* --- the second: samples ------------------------------------------------------------------- */

static uint32_t root(struct reading *r) { return mic_build_root(r->build, MIC_END_NOT_STATED); }

static void put_sample(struct reading *r, uint32_t node, uint64_t weight, int64_t time_ns) {
  struct mic_samples_row row = {
    .time_ns = (uint64_t)time_ns,
    .thread = r->thread,
    .stack = node,
    .weight = weight,
    .source = (uint8_t)r->source,
  };
  mic_writer_samples(r->w, &row);
  r->result->samples++;
}

static void begin_profile(struct reading *r) {
  r->profile = &r->profiles.at[r->result->profiles]; /* the first reading counted them */
  const struct unit *unit = r->profile->unit;
  uint32_t process = mic_build_process(r->build, 0, 0);
  struct mic_threads_row row = {.process = process, .name = r->profile->name, .end_ns = UINT64_MAX};
  r->thread = mic_writer_threads(r->w, &row);
  r->source = mic_build_source(r->build, mic_writer_text(r->w, unit->source), unit->unit, 0, 0);
  r->nodes.count = r->weights.count = r->open.count = r->open_frames.count = 0;
  r->events = 0;
  r->result->profiles++;
}

static int end_profile(struct reading *r) {
  if (r->weights.count && r->weights.count != r->nodes.count) {
    char why[96];
    snprintf(why, sizeof why, "there are %zu samples and %zu weights", r->nodes.count,
             r->weights.count);
    return bad(r, "sample", r->nodes.count, why);
  }
  for (size_t i = 0; i < r->nodes.count; i++)
    put_sample(r, r->nodes.at[i], r->weights.count ? (uint64_t)r->weights.at[i] : 1, 0);
  if (r->open.count) return bad(r, "event", r->events, "the events end with frames open");
  return 0;
}

static int take_number(struct reading *r, const struct mic_json_token *token, uint32_t digits,
                       const char *what, uint64_t number, int64_t *value) {
  if (token->kind != MIC_JSON_NUMBER || !mic_json_digits(token->bytes, token->size, digits, value))
    return bad(r, what, number, "no number where one must be");
  return 0;
}

/* A frame's number, which has no parts. */
static int take_frame(struct reading *r, const struct mic_json_token *token, const char *what,
                      uint64_t number, int64_t *frame) {
  int code = take_number(r, token, 3, what, number, frame);
  if (!code && *frame % 1000) code = bad(r, what, number, "no number where one must be");
  *frame /= 1000;
  return code;
}

static int place_of(struct reading *r, int64_t frame, const char *what, uint64_t number,
                    uint32_t *place) {
  char why[64];
  if (frame >= 0 && (uint64_t)frame < r->places.count) {
    *place = r->places.at[frame];
    return 0;
  }
  snprintf(why, sizeof why, "there is no frame %lld", (long long)frame);
  return bad(r, what, number, why);
}

/* A frame under a node; an outermost one that is a reason is the root itself. */
static uint32_t node_of(struct reading *r, uint32_t parent, bool outermost, int64_t frame,
                        uint32_t place) {
  uint32_t end = outermost ? r->ends.at[frame] : MIC_END_NONE;
  if (end) return mic_build_root(r->build, end);
  return mic_build_node(r->build, outermost ? root(r) : parent, place);
}

static int take_sample_frame(struct reading *r, const struct mic_json_token *token) {
  int64_t frame = -1;
  uint32_t place = 0;
  int code = take_frame(r, token, "sample", r->nodes.count, &frame);
  if (!code) code = place_of(r, frame, "sample", r->nodes.count, &place);
  if (!code) r->node = node_of(r, r->node, r->path.next[r->path.depth - 1] == 1, frame, place);
  return code;
}

static int take_weight(struct reading *r, const struct mic_json_token *token) {
  int64_t weight = 0, exact = 0;
  const struct unit *unit = r->profile->unit;
  int code = take_number(r, token, unit->digits, "weight", r->weights.count, &weight);
  if (code) return code;
  if (weight < 0) return bad(r, "weight", r->weights.count, "a negative weight");
  /* More digits than the unit has show when they are kept. */
  if (mic_json_digits(token->bytes, token->size, unit->digits + 3, &exact))
    r->result->rounded += exact % 1000 != 0;
  *mic_vec_push(&r->weights) = weight;
  return 0;
}

static int take_event_field(struct reading *r, const struct mic_json_token *token) {
  struct event *e = &r->event;
  if (mic_json_key(token, "type")) {
    e->type = token->kind == MIC_JSON_STRING && token->size == 1 ? token->bytes[0] : 0;
  } else if (mic_json_key(token, "frame")) {
    return take_frame(r, token, "event", r->events, &e->frame);
  } else if (mic_json_key(token, "at")) {
    e->timed = true;
    return take_number(r, token, r->profile->unit->digits, "event", r->events, &e->at);
  }
  return 0;
}

/* The span since the last event was spent in the frames that are open. */
static void put_span(struct reading *r) {
  if (r->open.count && r->event.at > r->last) {
    bool time = r->profile->unit->unit == MIC_UNIT_NS && r->last >= 0;
    uint64_t weight = (uint64_t)r->event.at - (uint64_t)r->last;
    put_sample(r, r->open.at[r->open.count - 1], weight, time ? r->last : 0);
  }
  r->last = r->event.at;
}

static int take_event(struct reading *r) {
  const struct event *e = &r->event;
  uint32_t place = 0;
  if (!e->timed) return bad(r, "event", r->events, "it says no place in time (at)");
  if (r->events && e->at < r->last) return bad(r, "event", r->events, "it is before the last one");
  if (!r->events) r->last = e->at;
  put_span(r);
  int code = place_of(r, e->frame, "event", r->events, &place);
  if (code) return code;
  if (e->type == 'O') {
    uint32_t parent = r->open.count ? r->open.at[r->open.count - 1] : 0;
    uint32_t node = node_of(r, parent, r->open.count == 0, e->frame, place);
    *mic_vec_push(&r->open) = node;
    *mic_vec_push(&r->open_frames) = e->frame;
  } else if (e->type != 'C') {
    return bad(r, "event", r->events, "it neither opens (O) nor closes (C) a frame");
  } else if (!r->open.count || r->open_frames.at[r->open.count - 1] != e->frame) {
    return bad(r, "event", r->events, "it closes a frame that is not the innermost open one");
  } else {
    r->open.count--;
    r->open_frames.count--;
  }
  r->events++;
  return 0;
}

static int take_second(struct reading *r, const struct mic_json_token *token) {
  const struct mic_path *path = &r->path;
  bool value = token->kind < MIC_JSON_OBJECT;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "profiles", "*")) {
    if (r->result->profiles == r->profiles.count)
      return mic_fail(r->err, MIC_EFORMAT, "%.150s changed while it was read", r->input_name);
    begin_profile(r);
  }
  if (token->kind == MIC_JSON_OBJECT_END && mic_path_is(path, "profiles")) return end_profile(r);
  if (token->kind == MIC_JSON_ARRAY && mic_path_is(path, "profiles", "*", "samples", "*"))
    r->node = root(r);
  if (token->kind == MIC_JSON_ARRAY_END && mic_path_is(path, "profiles", "*", "samples"))
    *mic_vec_push(&r->nodes) = r->node;
  if (token->kind == MIC_JSON_OBJECT && mic_path_is(path, "profiles", "*", "events", "*"))
    r->event = (struct event){.frame = -1};
  if (token->kind == MIC_JSON_OBJECT_END && mic_path_is(path, "profiles", "*", "events"))
    return take_event(r);
  if (value && mic_path_is(path, "profiles", "*", "samples", "*"))
    return take_sample_frame(r, token);
  if (value && mic_path_is(path, "profiles", "*", "weights")) return take_weight(r, token);
  if (value && mic_path_is(path, "profiles", "*", "events", "*")) return take_event_field(r, token);
  return 0;
}

static int take(void *data, const struct mic_json_token *token, struct mic_error *err) {
  struct reading *r = data;
  (void)err; /* the reading has it */
  mic_path_take(&r->path, token);
  return r->second ? take_second(r, token) : take_first(r, token);
}

static void release(struct reading *r) {
  mic_vec_free(&r->places);
  mic_vec_free(&r->ends);
  mic_vec_free(&r->profiles);
  mic_vec_free(&r->nodes);
  mic_vec_free(&r->weights);
  mic_vec_free(&r->open);
  mic_vec_free(&r->open_frames);
  mic_build_free(r->build);
}

MIC_EXPORT int mic_speedscope_read(struct mic_input *input, struct mic_writer *writer,
                                   struct mic_speedscope_result *result, struct mic_error *err) {
  struct mic_error unseen;
  *result = (struct mic_speedscope_result){.profiles = 0};
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
  if (!code && !r.framed)
    code = mic_fail(r.err, MIC_EFORMAT, "%.150s: it has no shared.frames: no speedscope file",
                    r.input_name);
  r.second = true;
  if (!code) code = mic_json_again(&r.json, r.err);
  release(&r);
  return code;
}
