/* cursor.c - the reads that are not one memcpy. */
#include "base/cursor.h"

uint64_t mic_cursor_uleb(struct mic_cursor *c) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    uint8_t byte = mic_cursor_u8(c);
    if (c->bad) return 0;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  c->bad = true;
  return 0;
}

int64_t mic_cursor_sleb(struct mic_cursor *c) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    uint8_t byte = mic_cursor_u8(c);
    if (c->bad) return 0;
    /* The tenth byte holds one bit and its sign extension. */
    if (shift == 63 && byte != 0 && byte != 0x7f) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if ((byte & 0x40) && shift + 7 < 64) value |= ~0ULL << (shift + 7);
    return (int64_t)value;
  }
  c->bad = true;
  return 0;
}

const char *mic_cursor_string(struct mic_cursor *c) {
  if (c->bad) return NULL;
  const uint8_t *nul = memchr(c->at, 0, mic_cursor_left(c));
  if (!nul) {
    c->bad = true;
    return NULL;
  }
  const char *s = (const char *)c->at;
  c->at = nul + 1;
  return s;
}
