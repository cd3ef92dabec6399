/*
 * legacy_cpu.c - gperftools' CPU profiles.
 *
 * The layout is docs/cpuprofile-fileformat.html of gperftools: words of the machine, little-endian
 * here, of 8 or 4 bytes.  A header of 0, the number of words that follow, the version 0, the period
 * in microseconds and padding; records of a count, a number of addresses and these, the sampled one
 * first; an end of 0, 1, 0; then the text of /proc/PID/maps.
 */
#include <string.h>

#include "import/legacy_inside.h"

enum {
  HEADER_MIN = 3,
  HEADER_MAX = 1024,   /* words: versions may add some */
  DEPTH_MAX = 1 << 16, /* gperftools itself keeps 254 */
  NS_PER_US = 1000
};

static uint64_t word_of(const uint8_t *bytes, size_t word) {
  uint64_t value = 0;
  memcpy(&value, bytes, word);
  return value;
}

bool mic_legacy_is_cpu(const uint8_t *head, size_t size, size_t *word) {
  for (*word = 8; *word >= 4; *word -= 4) {
    if (size < 5 * *word) continue;
    uint64_t count = word_of(head + *word, *word);
    if (word_of(head, *word) == 0 && count >= HEADER_MIN && count <= HEADER_MAX &&
        word_of(head + 2 * *word, *word) == 0 && word_of(head + 3 * *word, *word) > 0)
      return true;
  }
  return false;
}

static int cut(struct mic_legacy *r, const char *what) {
  uint64_t at = mic_input_offset(r->input);
  return mic_fail_at(r->err, at, "%.120s: byte %llu: %s", mic_input_name(r->input),
                     (unsigned long long)at, what);
}

/* The next word; *more is false where the file ends before it does. */
static int take(struct mic_legacy *r, size_t word, uint64_t *value, bool *more) {
  uint8_t bytes[8];
  uint64_t got;
  int code = mic_input_read(r->input, bytes, word, &got, r->err);
  *more = !code && got == word;
  *value = *more ? word_of(bytes, word) : 0;
  return code;
}

static int take_header(struct mic_legacy *r, size_t word, uint64_t *period_us) {
  uint64_t count = HEADER_MIN, value;
  bool more;
  for (uint64_t i = 0; i < 2 + count; i++) {
    int code = take(r, word, &value, &more);
    if (code) return code;
    if (!more) return cut(r, "the header is cut short");
    if (i == 1) count = value;
    if (i == 3) *period_us = value;
  }
  return 0;
}

/* The addresses of a record into r->addresses; callers' are return addresses. */
static int take_addresses(struct mic_legacy *r, size_t word, uint64_t depth, bool *more) {
  uint64_t value;
  int code = 0;
  r->addresses.count = 0;
  *more = true;
  for (uint64_t i = 0; i < depth && !code && *more; i++) {
    code = take(r, word, &value, more);
    *mic_vec_push(&r->addresses) = i && value ? value - 1 : value;
  }
  return code;
}

/* The records up to the end; with put as samples of a source. */
static int take_records(struct mic_legacy *r, size_t word, bool put, uint64_t period_ns) {
  uint32_t source = 0;
  if (put)
    source =
      mic_build_source(r->build, mic_writer_text(r->w, "cpu"), MIC_UNIT_CPU_NS, period_ns, 0);
  for (;;) {
    uint64_t count, depth, at = mic_input_offset(r->input), weight;
    bool more, whole;
    int code = take(r, word, &count, &more);
    if (!code) code = take(r, word, &depth, &whole);
    if (code) return code;
    if (!whole) {
      r->result->cut_offset = at;
      return 0;
    }
    if (!depth || depth > DEPTH_MAX) return cut(r, "a stack of no length that can be");
    code = take_addresses(r, word, depth, &more);
    if (code) return code;
    if (!more) {
      r->result->cut_offset = at;
      return 0;
    }
    if (!count && depth == 1 && !r->addresses.at[0]) return 0;
    if (__builtin_mul_overflow(count, period_ns, &weight))
      return cut(r, "a count that is too large");
    if (put) mic_legacy_put(r, &source, &weight, 1, MIC_NONE);
  }
}

int mic_legacy_cpu(struct mic_legacy *r, size_t word) {
  struct mic_lines lines = {.input = r->input};
  uint64_t period_us = 0;
  const char *line;
  size_t size;
  int code = take_header(r, word, &period_us);
  if (!code && period_us > UINT64_MAX / NS_PER_US) code = cut(r, "a period that is too long");
  if (!code) code = take_records(r, word, false, 0);
  while (!code && !(code = mic_lines_next(&lines, &line, &size, r->err)) && line)
    mic_legacy_map_line(r, line, size);
  mic_lines_free(&lines);
  if (!code) code = mic_input_rewind(r->input, r->err);
  if (!code) code = take_header(r, word, &period_us);
  if (code) return code;
  mic_legacy_maps_done(r);
  return take_records(r, word, true, period_us * NS_PER_US);
}
