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
  while (s->frames.count <= id)
    *mic_vec_push(&s->frames) = (struct mic_chrome_frame){.node = MIC_NONE};
  return id;
}

static uint32_t text_of(struct mic_chrome_samples *s, const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  return text ? mic_writer_string(s->w, token->bytes, token->size) : 0;
}

static void take_frame_field(struct mic_chrome_samples *s, uint32_t number,
                             const struct mic_json_token *token) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  if (mic_json_key(token, "name")) s->frames.at[number].name = text_of(s, token);
  if (mic_json_key(token, "category")) s->frames.at[number].category = text_of(s, token);
  if (!text || !mic_json_key(token, "parent")) return;
  uint32_t parent = frame_of(s, token->bytes, token->size);
  s->frames.at[number].parent = parent + 1;
}

static int number(struct mic_chrome_samples *s, const struct mic_json_token *token, uint32_t digits,
                  int64_t *value) {
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  if (text && mic_json_digits(token->bytes, token->size, digits, value)) return 0;
  return bad(s, "sample", s->samples.count - 1, "no number where one must be");
}

static int take_sample_field(struct mic_chrome_samples *s, const struct mic_json_token *token) {
  struct mic_chrome_sample *sample = &s->samples.at[s->samples.count - 1];
  bool text = token->kind == MIC_JSON_STRING || token->kind == MIC_JSON_NUMBER;
  int64_t value = 0;
  int code = 0;
  if (mic_json_key(token, "ts")) {
    code = number(s, token, 3, &sample->ts); /* microseconds */
    sample->timed = true;
  } else if (mic_json_key(token, "name")) {
    sample->name = text_of(s, token);
  } else if (mic_json_key(token, "sf") && text) {
    sample->frame = frame_of(s, token->bytes, token->size) + 1;
  } else if (mic_json_key(token, "tid")) {
    code = number(s, token, 0, &value);
    if (!code && value >= 0) sample->tid = (uint64_t)value;
  } else if (mic_json_key(token, "cpu")) {
    code = number(s, token, 0, &value);
    if (!code && value >= 0 && value < UINT16_MAX) sample->cpu = (uint16_t)value;
  } else if (mic_json_key(token, "weight")) {
    code = number(s, token, 0, &value);
    if (!code && value < 0) code = bad(s, "sample", s->samples.count - 1, "a negative weight");
    if (!code) sample->weight = (uint64_t)value;
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
  if (object && mic_path_is(path, "samples", "*"))
    *mic_vec_push(&s->samples) = (struct mic_chrome_sample){.weight = 1};
  if (scalar && token->key && mic_path_is(path, "samples", "*")) return take_sample_field(s, token);
  if (path->depth != 3 || strcmp(path->keys[1], "stackFrames") != 0) return 0;
  if (object && token->key) {
    s->number = frame_of(s, token->key, token->key_size);
    s->frames.at[s->number].defined = true;
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
static uint32_t make_node(struct mic_chrome_samples *s, const struct mic_chrome_frame *frame) {
  uint64_t size;
  uint32_t parent;
  if (frame->parent) {
    parent = s->frames.at[frame->parent - 1].node;
  } else {
    const char *bytes = mic_writer_bytes_of(s->w, frame->name, &size);
    uint32_t end = mic_build_end(bytes, size);
    parent = mic_build_root(s->build, end ? end : MIC_END_NOT_STATED);
    if (end) return parent;
  }
  uint32_t module = frame->category ? mic_build_module(s->build, frame->category, 0) : MIC_NONE;
  uint32_t function = mic_build_function(s->build, frame->name, frame->name, module, MIC_NONE, 0);
  uint32_t place = mic_build_place(s->build, function, module, MIC_NONE, 0);
  return mic_build_node(s->build, parent, place);
}

int mic_chrome_samples_node(struct mic_chrome_samples *s, size_t sample, uint32_t *node) {
  uint32_t at = s->samples.at[sample].frame;
  *node = mic_build_root(s->build, MIC_END_NOT_STATED);
  if (!at) return 0;
  s->pending.count = 0;
  for (uint32_t i = at; i && s->frames.at[i - 1].node == MIC_NONE; i = s->frames.at[i - 1].parent) {
    if (!s->frames.at[i - 1].defined) {
      *node = MIC_NONE;
      return 0;
    }
    if (s->pending.count == s->frames.count)
      return bad(s, "sample", sample, "the callers of its stack go round");
    *mic_vec_push(&s->pending) = i - 1;
  }
  while (s->pending.count) {
    struct mic_chrome_frame *frame = &s->frames.at[s->pending.at[--s->pending.count]];
    frame->node = make_node(s, frame);
  }
  *node = s->frames.at[at - 1].node;
  return 0;
}

void mic_chrome_samples_free(struct mic_chrome_samples *s) {
  mic_interner_free(&s->keys);
  mic_vec_free(&s->frames);
  mic_vec_free(&s->samples);
  mic_vec_free(&s->pending);
}
