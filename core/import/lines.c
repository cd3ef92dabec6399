/* lines.c - find line ends in a buffer that is filled from an input. */
#include "import/lines.h"

#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

enum { FORGET_BYTES = 1024 * 1024, FIRST_ROOM = 256 * 1024, LONGEST = 16 * 1024 * 1024 };

static void grow(struct mic_lines *l) {
  l->room = l->room ? l->room * 2 : FIRST_ROOM;
  l->buffer = mic_realloc(l->buffer, l->room);
}

/* More of the input behind what is there; *got 0 at its end. */
static int fill(struct mic_lines *l, uint64_t *got, struct mic_error *err) {
  *got = 0;
  if (l->at) memmove(l->buffer, l->buffer + l->at, l->count - l->at);
  l->count -= l->at;
  l->at = 0;
  if (l->count == l->room) {
    if (l->room >= LONGEST)
      return mic_fail(err, MIC_ELIMIT, "%.120s: line %llu: more than 16 MiB long",
                      mic_input_name(l->input), (unsigned long long)l->number + 1);
    grow(l);
  }
  int code = mic_input_read(l->input, l->buffer + l->count, l->room - l->count, got, err);
  l->count += *got;
  return code;
}

static void take(struct mic_lines *l, const char *end, const char **line, size_t *size) {
  *line = l->buffer + l->at;
  *size = (size_t)(end - *line);
  if (*size && (*line)[*size - 1] == '\r') --*size;
  l->number++;
  l->forgotten = l->at;
}

int mic_lines_next(struct mic_lines *lines, const char **line, size_t *size,
                   struct mic_error *err) {
  size_t looked = 0; /* bytes that hold no line end */
  *line = NULL;
  if (!lines->buffer) grow(lines);
  for (;;) {
    const char *from = lines->buffer + lines->at;
    size_t have = lines->count - lines->at;
    const char *end = have > looked ? memchr(from + looked, '\n', have - looked) : NULL;
    if (end) {
      lines->offset = mic_input_offset(lines->input) - have;
      take(lines, end, line, size);
      lines->at = (size_t)(end + 1 - lines->buffer);
      return 0;
    }
    looked = have;
    uint64_t got;
    int code = fill(lines, &got, err);
    if (code) return code;
    if (got) continue;
    if (have) { /* the last line has no end */
      lines->offset = mic_input_offset(lines->input) - have;
      take(lines, lines->buffer + lines->count, line, size);
      lines->at = lines->count;
    }
    return 0;
  }
}

/* Whole parts only: what stands in their pages has been read, and what is read next fills them. */
void mic_lines_forget(struct mic_lines *lines, const char *before) {
  uintptr_t from = (uintptr_t)lines->buffer + lines->forgotten, past = (uintptr_t)before;
  if (past < from + 2 * FORGET_BYTES) return;
  from = (from + FORGET_BYTES - 1) & ~(uintptr_t)(FORGET_BYTES - 1);
  past &= ~(uintptr_t)(FORGET_BYTES - 1);
  madvise((void *)from, past - from, MADV_DONTNEED);
  lines->forgotten = past - (uintptr_t)lines->buffer;
}

void mic_lines_free(struct mic_lines *lines) {
  free(lines->buffer);
  lines->buffer = NULL;
  lines->at = lines->count = lines->room = 0;
}
