/* json_text.c - the escaping of texts in JSON. */
#include "import/json_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* What stands for itself. */
static bool is_plain(uint8_t c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

static char *put_code_point(char *out, uint32_t code_point) {
  static const char digits[] = "0123456789abcdef";
  *out++ = '\\';
  *out++ = 'u';
  for (int shift = 12; shift >= 0; shift -= 4) *out++ = digits[code_point >> shift & 15];
  return out;
}

static char *put_ascii(char *out, uint8_t c) {
  char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
  if (c == '"' || c == '\\') letter = (char)c;
  if (!letter) return put_code_point(out, c);
  *out++ = '\\';
  *out++ = letter;
  return out;
}

/* A control has two bytes or three. */
static uint32_t code_point_of(const uint8_t *at, uint32_t length) {
  if (length == 2) return (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU);
  return (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
}

/* The sequence that `text` begins with; its length, 1 for a byte of none. */
static uint32_t put_sequence(char **out, const char *text, uint64_t left) {
  uint32_t length = mic_utf8_length(text, left);
  if (!length) {
    memcpy(*out, "\xef\xbf\xbd", 3);
    *out += 3;
    return 1;
  }
  if (mic_utf8_is_control(text, length)) {
    *out = put_code_point(*out, code_point_of((const uint8_t *)text, length));
  } else {
    memcpy(*out, text, length);
    *out += length;
  }
  return length;
}

MIC_EXPORT uint64_t mic_json_text(const char *text, uint64_t size, uint64_t *at, char *out,
                                  uint64_t room) {
  char *start = out, *end = out + room;
  uint64_t i = *at;
  while (i < size && end - out >= MIC_JSON_WIDEST) {
    uint8_t c = (uint8_t)text[i];
    if (is_plain(c)) {
      *out++ = (char)c;
      i++;
    } else if (c < 0x80) {
      out = put_ascii(out, c);
      i++;
    } else {
      i += put_sequence(&out, text + i, size - i);
    }
  }
  *at = i;
  return (uint64_t)(out - start);
}
