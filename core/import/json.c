/* json.c - yajl's events with the keys above them. */
#include "import/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/alloc.h"

enum { PART = 64 * 1024, DEPTH_MAX = 100000 };

struct parse {
  struct mic_json *json;
  struct mic_error *err;
  int code; /* what the reader ended the parse with */
  uint32_t depth;
  MIC_VEC(bool) objects; /* of the open ones: whether it is an object */
  MIC_VEC(char) key;     /* the key of the value that comes */
};

static int give(struct parse *p, enum mic_json_kind kind, const void *bytes, size_t size) {
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

/* yajl's words: "parse error: invalid object key ..." and the text around, which is not shown. */
static int syntax_error(struct parse *p, yajl_handle yajl, uint64_t offset) {
  unsigned char *words = yajl_get_error(yajl, 0, NULL, 0);
  const char *what = words ? (const char *)words : "malformed";
  const char *colon = strstr(what, "error: ");
  if (colon) what = colon + 7;
  int code =
    mic_fail_at(p->err, offset, "%.120s: byte %llu: no JSON: %.*s", mic_input_name(p->json->input),
                (unsigned long long)offset, (int)strcspn(what, "\n"), what);
  yajl_free_error(yajl, words);
  return code;
}

static bool tolerated(const struct parse *p, bool at_end, char byte) {
  return p->json->tolerate && p->json->tolerate(p->json->data, p->depth, at_end, byte);
}

static int parse_part(struct parse *p, yajl_handle yajl, const uint8_t *part, size_t size,
                      bool *done) {
  yajl_status status = yajl_parse(yajl, part, size);
  if (status == yajl_status_ok) return 0;
  if (p->code) return p->code;
  size_t used = yajl_get_bytes_consumed(yajl);
  /* The byte at fault may be the last one taken. */
  char byte = used && used <= size ? (char)part[used - 1] : 0;
  *done = tolerated(p, false, byte);
  return *done ? 0 : syntax_error(p, yajl, p->json->offset + used);
}

static int run(struct parse *p, yajl_handle yajl) {
  uint8_t part[PART];
  bool done = false;
  while (!done) {
    uint64_t got;
    p->json->offset = mic_input_offset(p->json->input);
    int code = mic_input_read(p->json->input, part, sizeof part, &got, p->err);
    if (code) return code;
    if (!got) break;
    code = parse_part(p, yajl, part, got, &done);
    if (code) return code;
  }
  if (done || yajl_complete_parse(yajl) == yajl_status_ok) return 0;
  if (p->code) return p->code;
  if (tolerated(p, true, 0)) return 0;
  uint64_t end = mic_input_offset(p->json->input);
  return mic_fail_at(p->err, end, "%.120s: byte %llu: the text ends too early",
                     mic_input_name(p->json->input), (unsigned long long)end);
}

int mic_json_parse(struct mic_json *json, struct mic_error *err) {
  struct parse p = {.json = json, .err = err};
  yajl_handle yajl = yajl_alloc(&callbacks, NULL, &p);
  if (!yajl) return mic_fail(err, MIC_ELIMIT, "no memory to read JSON");
  yajl_config(yajl, yajl_dont_validate_strings, 1);
  int code = run(&p, yajl);
  yajl_free(yajl);
  mic_vec_free(&p.objects);
  mic_vec_free(&p.key);
  return code;
}

static bool equals(const char *bytes, size_t size, const char *word) {
  return bytes && strlen(word) == size && memcmp(bytes, word, size) == 0;
}
bool mic_json_key(const struct mic_json_token *token, const char *word) {
  return equals(token->key, token->key_size, word);
}
bool mic_json_is(const struct mic_json_token *token, const char *word) {
  return token->kind == MIC_JSON_STRING && equals(token->bytes, token->size, word);
}

/* Digits with at most one point; false leaves it to strtod. */
static bool plain(const char *bytes, size_t size, uint64_t scale, int64_t *value) {
  bool negative = size && bytes[0] == '-';
  size_t i = negative;
  uint64_t whole = 0, part = 0, unit = scale;
  for (; i < size && bytes[i] >= '0' && bytes[i] <= '9'; i++)
    if (__builtin_mul_overflow(whole, 10, &whole) ||
        __builtin_add_overflow(whole, (uint64_t)(bytes[i] - '0'), &whole))
      return false;
  if (i < size && bytes[i] == '.')
    for (i++; i < size && bytes[i] >= '0' && bytes[i] <= '9'; i++) {
      if (unit > 1)
        part += (unit /= 10) * (uint64_t)(bytes[i] - '0');
      else if (unit == 1) {
        part += bytes[i] >= '5';
        unit = 0; /* the first digit that has no place rounds, the rest says nothing */
      }
    }
  if (i != size || __builtin_mul_overflow(whole, scale, &whole) ||
      __builtin_add_overflow(whole, part, &whole) || whole > INT64_MAX)
    return false;
  *value = negative ? -(int64_t)whole : (int64_t)whole;
  return true;
}

bool mic_json_scaled(const char *bytes, size_t size, uint64_t scale, int64_t *value) {
  char text[64], *end;
  if (!size || size >= sizeof text) return false;
  if (plain(bytes, size, scale, value)) return true;
  memcpy(text, bytes, size);
  text[size] = 0;
  double number = strtod(text, &end) * (double)scale;
  if (end != text + size || !(fabs(number) < 9.2e18)) return false;
  *value = (int64_t)llround(number);
  return true;
}
