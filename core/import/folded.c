/* folded.c - lines to stacks. */
#include "import/folded.h"

#include <stdbool.h>
#include <string.h>

#include "base/map.h"
#include "import/lines.h"

struct folded {
  struct mic_lines lines;
  struct mic_writer *w;
  struct mic_build *build;
  MIC_VEC(uint32_t) places; /* by a name's string; MIC_NONE: it has no location */
  uint32_t thread, source;
};

static uint32_t place_of(struct folded *f, const char *name, size_t size) {
  uint32_t id = mic_writer_string(f->w, name, size);
  while (f->places.count <= id) *mic_vec_push(&f->places) = MIC_NONE;
  if (f->places.at[id] != MIC_NONE) return f->places.at[id];
  uint32_t function = mic_build_function(f->build, id, id, MIC_NONE, MIC_NONE, 0);
  return f->places.at[id] = mic_build_place(f->build, function, MIC_NONE, MIC_NONE, 0);
}

/* The node of frames from the outermost; a reason in brackets before them is the root. */
static uint32_t stack_of(struct folded *f, const char *at, size_t size) {
  const char *past = at + size;
  uint32_t node = MIC_NONE;
  while (at <= past) {
    const char *end = memchr(at, ';', (size_t)(past - at));
    if (!end) end = past;
    size_t length = (size_t)(end - at);
    if (node == MIC_NONE) {
      uint32_t reason = mic_build_end(at, length);
      node = mic_build_root(f->build, reason);
      if (!reason) node = mic_build_node(f->build, node, place_of(f, at, length));
    } else {
      node = mic_build_node(f->build, node, place_of(f, at, length));
    }
    at = end + 1;
    mic_lines_forget(&f->lines, end);
  }
  return node;
}

/* The count behind the last blank: NULL, or what is wrong. */
static const char *count_of(const char *digits, size_t size, uint64_t *count) {
  *count = 0;
  if (!size) return "no count behind the last blank";
  for (size_t i = 0; i < size; i++) {
    if (digits[i] < '0' || digits[i] > '9') return "no whole number behind the last blank";
    if (__builtin_mul_overflow(*count, 10, count) ||
        __builtin_add_overflow(*count, (uint64_t)(digits[i] - '0'), count))
      return "a count of 2^64 or more";
  }
  return NULL;
}

/* NULL, or why the line is no stack. */
static const char *read_line(struct folded *f, const char *line, size_t size) {
  uint64_t count;
  const char *blank = memrchr(line, ' ', size);
  const char *tab = memrchr(line, '\t', size);
  if (!blank || (tab && tab > blank)) blank = tab;
  if (!blank) return "no blank that separates stack and count";
  size_t length = (size_t)(blank - line);
  const char *why = count_of(blank + 1, size - length - 1, &count);
  if (why) return why;
  while (length && (line[length - 1] == ' ' || line[length - 1] == '\t')) length--;
  if (!length) return "a count without a stack";
  struct mic_samples_row row = {
    .thread = f->thread,
    .stack = stack_of(f, line, length),
    .weight = count,
    .source = (uint8_t)f->source,
  };
  mic_writer_samples(f->w, &row);
  return NULL;
}

static int read_lines(struct folded *f, struct mic_folded_result *result, struct mic_error *err) {
  struct mic_lines *lines = &f->lines;
  const char *line;
  size_t size;
  int code;
  while (!(code = mic_lines_next(lines, &line, &size, err)) && line) {
    while (size && (line[size - 1] == ' ' || line[size - 1] == '\t')) size--;
    if (!size) continue;
    const char *why = read_line(f, line, size);
    if (!why) {
      result->stacks++;
      continue;
    }
    if (!result->bad_lines++) {
      result->first_bad = lines->number;
      result->why = why;
    }
  }
  result->lines = lines->number;
  if (code || result->stacks) return code;
  if (!result->bad_lines)
    return mic_fail(err, MIC_EFORMAT, "%.150s: no folded stack in it",
                    mic_input_name(lines->input));
  return mic_fail(err, MIC_EFORMAT, "%.120s: no folded stack in it: line %llu: %s",
                  mic_input_name(lines->input), (unsigned long long)result->first_bad, result->why);
}

MIC_EXPORT int mic_folded_read(struct mic_input *input, struct mic_writer *writer,
                               struct mic_folded_result *result, struct mic_error *err) {
  struct folded f = {.lines = {.input = input}, .w = writer, .build = mic_build_new(writer)};
  *result = (struct mic_folded_result){.lines = 0};
  f.source = mic_build_source(f.build, mic_writer_text(writer, "samples"), MIC_UNIT_COUNT, 0, 0);
  f.thread = mic_build_thread(f.build, mic_build_process(f.build, 0, 0), 0, 0);
  int code = read_lines(&f, result, err);
  mic_lines_free(&f.lines);
  mic_vec_free(&f.places);
  mic_build_free(f.build);
  return code;
}
