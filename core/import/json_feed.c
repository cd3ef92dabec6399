/* json_feed.c - feed yajl from an input. */
#include "import/json_feed.h"

#include <string.h>

#include "base/alloc.h"

enum { PART_BYTES = 256 * 1024, VALUE_MAX_BYTES = 16 * 1024 * 1024 };

/* The place in the input that yajl stopped at, and its one line, "parse error: ...\n". */
static int malformed(const struct mic_json_feed *json, yajl_handle yajl, uint64_t base,
                     struct mic_error *err) {
  uint64_t at = base + yajl_get_bytes_consumed(yajl);
  unsigned char *said = yajl_get_error(yajl, 0, NULL, 0);
  const char *why = said ? strstr((const char *)said, ": ") : NULL;
  int size = why ? (int)strcspn(why, "\r\n") : 0;
  int code = mic_fail_at(err, at, "%.100s: byte %llu: no JSON%.*s", mic_input_name(json->input),
                         (unsigned long long)at, size, why ? why : "");
  yajl_free_error(yajl, said);
  return code;
}

/* A comma before the closing bracket: yajl stops at the bracket. */
static bool ends_with_comma(const struct mic_json_feed *json, yajl_handle yajl,
                            const uint8_t *bytes, size_t size) {
  size_t at = yajl_get_bytes_consumed(yajl);
  if (!json->may_end || !json->may_end(json->data)) return false;
  if (at < size && bytes[at] == ']') return true;
  return at > 0 && at <= size && bytes[at - 1] == ']';
}

static int feed(struct mic_json_feed *json, yajl_handle yajl, uint8_t *room,
                struct mic_error *err) {
  uint64_t got, base = 0, before = *json->progress, quiet = 0;
  for (;;) {
    int code = mic_input_read(json->input, room, PART_BYTES, &got, err);
    if (code || !got) return code;
    if (json->offset) *json->offset = base;
    yajl_status status = yajl_parse(yajl, room, (size_t)got);
    if (status == yajl_status_client_canceled) return err ? err->code : MIC_EFORMAT;
    if (status != yajl_status_ok) {
      json->cut = ends_with_comma(json, yajl, room, (size_t)got);
      return json->cut ? 0 : malformed(json, yajl, base, err);
    }
    quiet = *json->progress == before ? quiet + got : 0;
    before = *json->progress;
    if (quiet > VALUE_MAX_BYTES)
      return mic_fail(err, MIC_ELIMIT, "%.120s: byte %llu: a value of more than 16 MiB",
                      mic_input_name(json->input), (unsigned long long)base);
    base += got;
  }
}

int mic_json_feed(struct mic_json_feed *json, struct mic_error *err) {
  struct mic_error own = {0};
  if (!err) err = &own;
  yajl_handle yajl = yajl_alloc(json->callbacks, NULL, json->data);
  if (!yajl) return mic_fail(err, MIC_ELIMIT, "no memory to read JSON");
  yajl_config(yajl, yajl_dont_validate_strings, 1);
  uint8_t *room = mic_alloc(PART_BYTES);
  json->cut = false;
  int code = feed(json, yajl, room, err);
  if (!code && !json->cut) {
    yajl_status status = yajl_complete_parse(yajl);
    if (status == yajl_status_client_canceled) {
      code = err->code;
    } else if (status != yajl_status_ok) {
      uint64_t at = mic_input_offset(json->input);
      json->cut = json->may_end && json->may_end(json->data);
      if (!json->cut)
        code = mic_fail_at(err, at, "%.140s: byte %llu: the text ends too early",
                           mic_input_name(json->input), (unsigned long long)at);
    }
  }
  free(room);
  yajl_free(yajl);
  return code;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The exponent behind "e", within what any number here can need. */
static bool read_exponent(const char *at, const char *end, int64_t *out) {
  bool minus = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (at == end) return false;
  *out = 0;
  for (; at < end; at++) {
    if (!is_digit(*at) || *out > 10000) return false;
    *out = *out * 10 + (*at - '0');
  }
  if (minus) *out = -*out;
  return true;
}

bool mic_json_digits(const char *text, size_t size, uint32_t scale_digits, int64_t *out) {
  const char *at = text, *end = text + size;
  bool minus = at < end && *at == '-', point = false, any = false;
  uint64_t value = 0;
  int64_t shift = scale_digits, exponent = 0, dropped = -1;
  if (minus) at++;
  for (; at < end && (is_digit(*at) || (*at == '.' && !point)); at++) {
    if (*at == '.') {
      point = true;
      continue;
    }
    any = true;
    if (value > (UINT64_MAX - 9) / 10) { /* more digits than fit: they only move the point */
      if (dropped < 0) dropped = *at - '0';
      if (!point) shift++;
      continue;
    }
    value = value * 10 + (uint64_t)(*at - '0');
    if (point) shift--;
  }
  if (!any) return false;
  if (at < end && (*at == 'e' || *at == 'E')) {
    if (!read_exponent(at + 1, end, &exponent)) return false;
    at = end;
  }
  if (at != end) return false;
  shift += exponent;
  for (; shift > 0 && value; shift--)
    if (__builtin_mul_overflow(value, 10, &value)) return false;
  bool up = shift == 0 && dropped >= 5;
  for (; shift < 0 && value; shift++) {
    up = value % 10 >= 5;
    value /= 10;
  }
  if (shift < 0) up = false;
  value += up;
  if (value > INT64_MAX) return false;
  *out = minus ? -(int64_t)value : (int64_t)value;
  return true;
}
