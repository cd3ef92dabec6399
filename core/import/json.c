/* json.c - yajl's events with the keys above them. */
#include "import/json.h"

#include <string.h>

#include "base/alloc.h"

enum { DEPTH_MAX = 100000 /* containers are a byte each; no profile is near it */ };

struct parse {
  struct mic_json *json;
  struct mic_error *err;
  int code; /* what the reader ended the parse with */
  uint64_t progress;
  uint32_t depth;
  MIC_VEC(bool) objects; /* of the open ones: whether it is an object */
  MIC_VEC(char) key;     /* the key of the value that comes */
};

static int give(struct parse *p, enum mic_json_kind kind, const void *bytes, size_t size) {
  p->progress++;
  bool keyed = p->depth && p->objects.at[p->depth - 1];
  struct mic_json_token token = {
    .kind = kind,
    .bytes = bytes,
    .size = size,
    .depth = p->depth,
    .key = keyed ? p->key.at : NULL,
    .key_size = keyed ? p->key.count : 0,
  };
  p->code = p->json->take(p->json->data, &token, p->err);
  return p->code == 0;
}

static int on_null(void *data) { return give(data, MIC_JSON_NULL, "", 0); }
static int on_bool(void *data, int value) { return give(data, MIC_JSON_BOOL, "", value != 0); }
static int on_number(void *data, const char *bytes, size_t size) {
  return give(data, MIC_JSON_NUMBER, bytes, size);
}
static int on_string(void *data, const unsigned char *bytes, size_t size) {
  return give(data, MIC_JSON_STRING, bytes, size);
}

static int enter(struct parse *p, enum mic_json_kind kind) {
  if (p->depth == DEPTH_MAX) {
    p->code = mic_fail(p->err, MIC_ELIMIT, "%.120s: nested more than %d deep",
                       mic_input_name(p->json->input), DEPTH_MAX);
    return 0;
  }
  if (!give(p, kind, "", 0)) return 0;
  p->objects.count = p->depth++;
  *mic_vec_push(&p->objects) = kind == MIC_JSON_OBJECT;
  return 1;
}
static int leave(struct parse *p, enum mic_json_kind kind) {
  p->depth--;
  p->key.count = 0; /* what the object's own key was is not kept */
  return give(p, kind, "", 0);
}
static int on_object(void *data) { return enter(data, MIC_JSON_OBJECT); }
static int on_object_end(void *data) { return leave(data, MIC_JSON_OBJECT_END); }
static int on_array(void *data) { return enter(data, MIC_JSON_ARRAY); }
static int on_array_end(void *data) { return leave(data, MIC_JSON_ARRAY_END); }

static int on_key(void *data, const unsigned char *bytes, size_t size) {
  struct parse *p = data;
  p->progress++;
  p->key.count = 0;
  mic_vec_reserve(&p->key, size + 1);
  memcpy(p->key.at, bytes, size);
  p->key.at[size] = 0;
  p->key.count = size;
  return 1;
}

static const yajl_callbacks callbacks = {
  .yajl_null = on_null,
  .yajl_boolean = on_bool,
  .yajl_number = on_number,
  .yajl_string = on_string,
  .yajl_start_map = on_object,
  .yajl_map_key = on_key,
  .yajl_end_map = on_object_end,
  .yajl_start_array = on_array,
  .yajl_end_array = on_array_end,
};

int mic_json_parse(struct mic_json *json, struct mic_error *err) {
  struct parse p = {.json = json, .err = err};
  struct mic_json_feed feed = {
    .input = json->input,
    .callbacks = &callbacks,
    .data = &p,
    .progress = &p.progress,
    .offset = &json->offset,
  };
  int code = mic_json_feed(&feed, err);
  mic_vec_free(&p.objects);
  mic_vec_free(&p.key);
  return p.code ? p.code : code;
}

static bool equals(const char *bytes, size_t size, const char *word) {
  return bytes && strlen(word) == size && memcmp(bytes, word, size) == 0;
}
int mic_json_again(struct mic_json *json, struct mic_error *err) {
  int code = mic_input_rewind(json->input, err);
  return code ? code : mic_json_parse(json, err);
}

bool mic_json_key(const struct mic_json_token *token, const char *word) {
  return equals(token->key, token->key_size, word);
}
bool mic_json_is(const struct mic_json_token *token, const char *word) {
  return token->kind == MIC_JSON_STRING && equals(token->bytes, token->size, word);
}

bool mic_json_rounds(const struct mic_json_token *token, uint32_t digits) {
  int64_t exact;
  if (!memchr(token->bytes, '.', token->size) && !memchr(token->bytes, 'e', token->size) &&
      !memchr(token->bytes, 'E', token->size))
    return false;
  return mic_json_digits(token->bytes, token->size, digits + 3, &exact) && exact % 1000 != 0;
}
