/* utf8.c - RFC 3629, section 4: neither overlong forms nor surrogates, nothing past U+10FFFF. */
#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

MIC_EXPORT uint32_t mic_utf8_length(const char *text, uint64_t size) {
  const uint8_t *at = (const uint8_t *)text;
  if (!size) return 0;
  uint8_t a = at[0];
  if (a < 0x80) return 1;
  uint32_t length = a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
  if (!length || length > size) return 0;
  for (uint32_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  bool overlong = (a == 0xe0 && at[1] < 0xa0) || (a == 0xf0 && at[1] < 0x90);
  bool past = (a == 0xed && at[1] > 0x9f) || (a == 0xf4 && at[1] > 0x8f);
  return overlong || past ? 0 : length;
}

MIC_EXPORT int mic_utf8_is_control(const char *sequence, uint64_t size) {
  const uint8_t *at = (const uint8_t *)sequence;
  if (size == 2) return at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
  if (size != 3 || at[0] != 0xe2) return 0;
  uint8_t last = at[2];
  if (at[1] == 0x80) return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
  return at[1] == 0x81 && last >= 0xa6 && last <= 0xa9;
}

/* How many bytes from the start are ASCII, eight at a time; it may stop before. */
static uint64_t ascii(const char *text, uint64_t size) {
  uint64_t i = 0, word;
  for (; i + sizeof word <= size; i += sizeof word) {
    memcpy(&word, text + i, sizeof word);
    if (word & 0x8080808080808080ULL) break;
  }
  return i;
}

MIC_EXPORT uint64_t mic_utf8_find_odd(const char *text, uint64_t size) {
  uint64_t i = 0;
  while (i < size) {
    i += ascii(text + i, size - i);
    if (i == size) break;
    uint32_t length = mic_utf8_length(text + i, size - i);
    if (!length) return i;
    i += length;
  }
  return size;
}
