/*
 * cursor.h - read bytes that come from outside, with every bound checked.
 *
 * A cursor that is asked for more than it has goes bad and stays bad: reads give 0 from then
 * on, so a decoder checks `cursor.bad` once at the end of a group of reads.  All little-endian.
 */
#ifndef MIC_BASE_CURSOR_H
#define MIC_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mic_cursor {
  const uint8_t *start; /* borrowed */
  const uint8_t *at;
  const uint8_t *end;
  bool bad; /* something was asked for that is not there, or was malformed */
};

static inline struct mic_cursor mic_cursor(const void *bytes, size_t size) {
  const uint8_t *p = bytes;
  return (struct mic_cursor){p, p, p + size, false};
}
static inline size_t mic_cursor_left(const struct mic_cursor *c) {
  return (size_t)(c->end - c->at);
}
static inline size_t mic_cursor_offset(const struct mic_cursor *c) {
  return (size_t)(c->at - c->start);
}
/* The next size bytes, or NULL and bad. */
static inline const void *mic_cursor_take(struct mic_cursor *c, size_t size) {
  if (c->bad || size > mic_cursor_left(c)) {
    c->bad = true;
    return NULL;
  }
  const void *p = c->at;
  c->at += size;
  return p;
}
static inline bool mic_cursor_seek(struct mic_cursor *c, size_t offset) {
  if (offset > (size_t)(c->end - c->start))
    c->bad = true;
  else
    c->at = c->start + offset;
  return !c->bad;
}
#define MIC_CURSOR_READ(name, type)                            \
  static inline type mic_cursor_##name(struct mic_cursor *c) { \
    type v = 0;                                                \
    const void *p = mic_cursor_take(c, sizeof v);              \
    if (p) memcpy(&v, p, sizeof v);                            \
    return v;                                                  \
  }
MIC_CURSOR_READ(u8, uint8_t)
MIC_CURSOR_READ(u16, uint16_t)
MIC_CURSOR_READ(u32, uint32_t)
MIC_CURSOR_READ(u64, uint64_t)
#undef MIC_CURSOR_READ

/* LEB128 (DWARF 5, 7.6).  More than ten bytes, or bits past 64, are malformed. */
uint64_t mic_cursor_uleb(struct mic_cursor *c);
int64_t mic_cursor_sleb(struct mic_cursor *c);
/* A NUL-terminated string, or NULL and bad when no NUL follows. */
const char *mic_cursor_string(struct mic_cursor *c);

#endif
