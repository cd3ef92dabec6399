/* chrome_samples.c - frames by their keys, samples, and facts. */
#include "import/chrome_samples.h"

#include <string.h>

#include "import/input.h"

static int bad(const struct mic_chrome_samples *s, const char *what, uint64_t number,
               const char *why) {
  return mic_fail_at(s->err, s->json.offset, "%.100s: %s %llu: %s", s->input_name, what,
                     (unsigned long long)number, why);
}

/* The number of the frame that a key stands for, whether it was defined yet or not. */
static uint32_t frame_of(struct mic_chrome_samples *s, const char *key, size_t size) {
  uint32_t id = mic_intern(&s->keys, key, size);
  while (s->frames[MIC_FRAME_NAME].count <= id)
    for (int i = 0; i < MIC_FRAME_COLUMNS; i++) mic_numbers_push(&s->frames[i], MIC_NUMBER_NULL);
  return id;
}

static int64_t get(const struct mic_chrome_samples *s, enum mic_chrome_frame column,
                   int64_t frame) {
  return mic_numbers_get(&s->frames[column], (uint64_t)frame);
}

static uint32_t text_of(struct mic_chrome_samples *s, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  return text ? mic_writer_string(s->w, token->bytes, token->size) : 0;
}

static void take_frame_field(struct mic_chrome_samples *s, uint32_t number,
                             const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  if (mic_json_key(token, "name"))
    mic_numbers_set(&s->frames[MIC_FRAME_NAME], number, text_of(s, token));
  if (mic_json_key(token, "category"))
    mic_numbers_set(&s->frames[MIC_FRAME_CATEGORY], number, text_of(s, token));
  if (!text || !mic_json_key(token, "parent")) return;
  uint32_t parent = frame_of(s, token->bytes, token->size);
  mic_numbers_set(&s->frames[MIC_FRAME_PARENT], number, parent);
}

static int number(struct mic_chrome_samples *s, const struct mic_json_token *token, uint32_t digits,
                  int64_t *value) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  if (text && mic_json_digits(token->bytes, token->size, digits, value)) return 0;
  return bad(s, "sample", mic_chrome_samples_count(s) - 1, "no number where one must be");
}

static void set(struct mic_chrome_samples *s, enum mic_chrome_sample column, int64_t value) {
  mic_numbers_set_last(&s->samples[column], value);
}

static void begin_sample(struct mic_chrome_samples *s) {
  static const int64_t unsaid[MIC_SAMPLE_COLUMNS] = {
    [MIC_SAMPLE_TS] = MIC_NUMBER_NULL,
    [MIC_SAMPLE_WEIGHT] = 1,
    [MIC_SAMPLE_FRAME] = MIC_NUMBER_NULL,
  };
  for (int i = 0; i < MIC_SAMPLE_COLUMNS; i++) mic_numbers_push(&s->samples[i], unsaid[i]);
}

static int take_sample_field(struct mic_chrome_samples *s, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  int64_t value = 0;
  int code = 0;
  if (mic_json_key(token, "ts")) {
    code = number(s, token, 3, &value); /* microseconds */
    if (!code) set(s, MIC_SAMPLE_TS, value);
  } else if (mic_json_key(token, "name")) {
    set(s, MIC_SAMPLE_NAME, text_of(s, token));
  } else if (mic_json_key(token, "sf") && text) {
    set(s, MIC_SAMPLE_FRAME, frame_of(s, token->bytes, token->size));
  } else if (mic_json_key(token, "tid")) {
    code = number(s, token, 0, &value);
    if (!code && value >= 0) set(s, MIC_SAMPLE_TID, value);
  } else if (mic_json_key(token, "cpu")) {
    code = number(s, token, 0, &value);
    if (!code && value >= 0 && value < UINT16_MAX) set(s, MIC_SAMPLE_CPU, value);
  } else if (mic_json_key(token, "weight")) {
    code = number(s, token, 0, &value);
    if (!code && value < 0)
      code = bad(s, "sample", mic_chrome_samples_count(s) - 1, "a negative weight");
    if (!code) set(s, MIC_SAMPLE_WEIGHT, value);
    s->rounded += mic_json_rounds(token, 0);
  }
  return code;
}

/* Texts only; what our own writer says of the file is no fact of the recording. */
static void take_fact(struct mic_chrome_samples *s, const struct mic_json_token *token) {
  if (token->kind != MIC_JSON_STRING || !token->key) return;
  if (mic_json_key(token, "exporter") && mic_json_is(token, "microscope")) {
    s->ours = true;
    return;
  }
  if (mic_json_key(token, "time_zero_ns")) {
    s->zeroed = mic_json_digits(token->bytes, token->size, 0, &s->zero_ns);
    if (s->zeroed) return;
  }
  struct mic_meta_row row = {mic_writer_string(s->w, token->key, token->key_size),
                             mic_writer_string(s->w, token->bytes, token->size)};
  mic_writer_meta(s->w, &row);
}

static int take(void *data, const struct mic_json_token *token, struct mic_error *err) {
  struct mic_chrome_samples *s = data;
  struct mic_path *path = &s->path;
  bool scalar = token->kind < MIC_JSON_OBJECT, object = token->kind == MIC_JSON_OBJECT;
  (void)err; /* the reading has it */
  mic_path_take(path, token);
  if (scalar && mic_path_is(path, "otherData")) take_fact(s, token);
  if (object && mic_path_is(path, "samples", "*")) begin_sample(s);
  if (scalar && token->key && mic_path_is(path, "samples", "*")) return take_sample_field(s, token);
  if (path->depth != 3 || strcmp(path->keys[1], "stackFrames") != 0) return 0;
  if (object && token->key) {
    s->number = frame_of(s, token->key, token->key_size);
    if (get(s, MIC_FRAME_NAME, s->number) == MIC_NUMBER_NULL)
      mic_numbers_set(&s->frames[MIC_FRAME_NAME], s->number, 0);
  } else if (scalar && token->key) {
    take_frame_field(s, s->number, token);
  }
  return 0;
}

int mic_chrome_samples_read(struct mic_chrome_samples *s, struct mic_input *input) {
  s->json = (struct mic_json){.input = input, .take = take, .data = s};
  s->input_name = mic_input_name(input);
  return mic_json_again(&s->json, s->err);
}

/* The node of a frame whose caller's is made, or which has none. */
static uint32_t make_node(struct mic_chrome_samples *s, int64_t frame) {
  uint64_t size;
  uint32_t parent, name = (uint32_t)get(s, MIC_FRAME_NAME, frame);
  int64_t caller = get(s, MIC_FRAME_PARENT, frame), category = get(s, MIC_FRAME_CATEGORY, frame);
  if (caller >= 0) {
    parent = (uint32_t)get(s, MIC_FRAME_NODE, caller);
  } else {
    const char *bytes = mic_writer_bytes_of(s->w, name, &size);
    uint32_t end = mic_build_end(bytes, size);
    parent = mic_build_root(s->build, end ? end : MIC_END_NOT_STATED);
    if (end) return parent;
  }
  uint32_t module = category > 0 ? mic_build_module(s->build, (uint32_t)category, 0) : MIC_NONE;
  uint32_t function = mic_build_function(s->build, name, name, module, MIC_NONE, 0);
  uint32_t place = mic_build_place(s->build, function, module, MIC_NONE, 0);
  return mic_build_node(s->build, parent, place);
}

int mic_chrome_samples_node(struct mic_chrome_samples *s, size_t sample, uint32_t *node) {
  int64_t at = mic_chrome_samples_get(s, sample, MIC_SAMPLE_FRAME);
  *node = mic_build_root(s->build, MIC_END_NOT_STATED);
  if (at < 0) return 0;
  s->pending.count = 0;
  for (int64_t i = at; i >= 0 && get(s, MIC_FRAME_NODE, i) == MIC_NUMBER_NULL;
       i = get(s, MIC_FRAME_PARENT, i)) {
    if (get(s, MIC_FRAME_NAME, i) == MIC_NUMBER_NULL) {
      *node = MIC_NONE;
      return 0;
    }
    if (s->pending.count == s->frames[MIC_FRAME_NAME].count)
      return bad(s, "sample", sample, "the callers of its stack go round");
    *mic_vec_push(&s->pending) = (uint32_t)i;
  }
  while (s->pending.count) {
    uint32_t frame = s->pending.at[--s->pending.count];
    mic_numbers_set(&s->frames[MIC_FRAME_NODE], frame, make_node(s, frame));
  }
  *node = (uint32_t)get(s, MIC_FRAME_NODE, at);
  return 0;
}

void mic_chrome_samples_free(struct mic_chrome_samples *s) {
  mic_interner_free(&s->keys);
  for (int i = 0; i < MIC_FRAME_COLUMNS; i++) mic_numbers_free(&s->frames[i]);
  for (int i = 0; i < MIC_SAMPLE_COLUMNS; i++) mic_numbers_free(&s->samples[i]);
  mic_vec_free(&s->pending);
}
