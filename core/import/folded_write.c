/*
 * folded_write.c - names from where they lie in the capture, straight to the output.
 *
 * Nothing is held of a line but the rows of its stack.
 */
#include "import/folded_write.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "capture/names.h"
#include "import/paths.h"

enum { PIECE = 4096 }; /* of a name that is changed */

/* What is known of a name. */
enum state { NOT_SEEN = 0, PLAIN = 1, CHANGED = 2 };

struct writing {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_output *output;
  uint64_t *first_line;
  uint8_t *functions, *places; /* a state each, of the names of functions and locations */
  uint64_t changed;
  uint64_t line_size;      /* bytes of the line so far */
  MIC_VEC(uint32_t) stack; /* its rows, the innermost first */
};

static void put(struct writing *w, const char *bytes, uint64_t size) {
  mic_output_write(w->output, bytes, size);
  w->line_size += size;
}
static void put_text(struct writing *w, const char *text) { put(w, text, strlen(text)); }

static bool separates(char byte) { return byte == ';' || byte == '\n' || byte == '\r'; }

static enum state look_at(const char *bytes, uint64_t size) {
  bool any = false;
  for (uint64_t i = 0; i < size; i++) any |= separates(bytes[i]);
  return any ? CHANGED : PLAIN;
}

/* What separates frames and lines cannot stand in a name. */
static void put_changed(struct writing *w, const char *bytes, uint64_t size) {
  char piece[PIECE];
  while (size) {
    uint64_t count = size < PIECE ? size : PIECE;
    for (uint64_t i = 0; i < count; i++)
      piece[i] = !separates(bytes[i]) ? bytes[i] : bytes[i] == ';' ? ':' : ' ';
    put(w, piece, count);
    bytes += count;
    size -= count;
  }
}

static void put_name(struct writing *w, uint8_t *state, uint32_t string) {
  uint64_t size;
  const char *bytes = mic_capture_string(w->cap, string, &size);
  if (*state == NOT_SEEN) {
    *state = (uint8_t)look_at(bytes, size);
    w->changed += *state == CHANGED;
  }
  if (*state == PLAIN)
    put(w, bytes, size);
  else
    put_changed(w, bytes, size);
}

/* A number as 0x and hex digits: frames without functions are most of some captures. */
static void put_hex(struct writing *w, uint64_t number) {
  char digits[2 + 16], *at = digits + sizeof digits;
  do {
    *--at = "0123456789abcdef"[number & 15];
    number >>= 4;
  } while (number);
  *--at = 'x';
  *--at = '0';
  put(w, at, (uint64_t)(digits + sizeof digits - at));
}

static void put_address(struct writing *w, const char *before, uint64_t address) {
  put_text(w, before);
  put_hex(w, address);
  put_text(w, "]");
}

/* A place that no function is known of. */
static void put_place(struct writing *w, uint32_t location) {
  uint8_t kind = w->t.locations.kind[location];
  uint64_t offset = w->t.locations.offset[location];
  if (mic_location_in_module(kind)) {
    put_name(w, &w->places[location], w->t.modules.name[w->t.locations.module[location]]);
    put_text(w, "+");
    put_hex(w, offset);
    return;
  }
  char other[64];
  switch (kind) {
  case MIC_LOCATION_SIGNAL: put_text(w, "[signal]"); return;
  case MIC_LOCATION_ANON: put_address(w, "[anon ", offset); return;
  case MIC_LOCATION_UNMAPPED: put_address(w, "[unmapped ", offset); return;
  case MIC_LOCATION_NAMED: put_name(w, &w->places[location], (uint32_t)offset); return;
  default: /* of a later version */
    snprintf(other, sizeof other, "[place of kind %u]", kind);
    put_text(w, other);
  }
}

/* The frames of a row: its functions from the outermost on. */
static void put_frames(struct writing *w, uint32_t location, bool is_first) {
  uint64_t first = w->first_line[location], count = 0;
  if (!is_first) put_text(w, ";");
  if (first != UINT64_MAX && w->t.locations.kind[location] != MIC_LOCATION_SIGNAL)
    count = mic_tables_line_count(&w->t, first);
  if (!count) put_place(w, location);
  while (count) {
    uint32_t function = w->t.lines.function[first + --count];
    put_name(w, &w->functions[function], w->t.functions.name[function]);
    if (count) put_text(w, ";");
  }
}

/* A silent end is none that a reader of the line would want to know. */
static bool put_end(struct writing *w, uint8_t end) {
  char name[MIC_END_NAME_SIZE];
  if (mic_end_is_silent(end)) return false;
  mic_tables_end_name(end, name);
  put_text(w, name);
  return true;
}

static void put_path(struct writing *w, uint32_t row, uint64_t value) {
  char count[32];
  w->line_size = w->stack.count = 0;
  for (; w->t.stacks.parent[row] != MIC_NONE; row = w->t.stacks.parent[row])
    *mic_vec_push(&w->stack) = row;
  bool any = put_end(w, w->t.stacks.end[row]);
  for (size_t i = w->stack.count; i-- > 0; any = true)
    put_frames(w, w->t.stacks.location[w->stack.at[i]], !any);
  if (!w->line_size) put_text(w, "[no frames]");
  snprintf(count, sizeof count, " %" PRIu64 "\n", value);
  put_text(w, count);
}

/* What is taken by a period is told in samples, all else in its own unit; rounded. */
static uint64_t value_of(uint64_t weight, uint64_t period) {
  if (!period) return weight;
  uint64_t rest = weight % period;
  return weight / period + (rest >= period - rest);
}

MIC_EXPORT int mic_folded_write(const struct mic_capture *cap, uint32_t source,
                                struct mic_output *output, uint64_t *changed,
                                struct mic_error *err) {
  struct writing w = {.cap = cap, .t = mic_tables_of(cap), .output = output};
  struct mic_paths paths;
  w.first_line = mic_tables_first_lines(&w.t);
  int code = mic_paths_of(&w.t, w.first_line, source, &paths, err);
  w.functions = mic_alloc((size_t)w.t.functions.rows + 1);
  w.places = mic_alloc((size_t)w.t.locations.rows + 1);
  for (uint32_t i = 0; i < paths.count && !mic_output_failed(output); i++) {
    uint64_t value = value_of(paths.weight[i], w.t.sources.period[source]);
    if (value) put_path(&w, paths.stack[i], value);
  }
  *changed = w.changed;
  mic_paths_free(&paths);
  mic_vec_free(&w.stack);
  free(w.functions);
  free(w.places);
  free(w.first_line);
  return code;
}
