/*
 * lines.h - a text input line by line, in one buffer that grows to the longest line only.
 *
 * Owns: the buffer; a line is borrowed until the next one.
 */
#ifndef MIC_IMPORT_LINES_H
#define MIC_IMPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/input.h"

struct mic_lines {
  struct mic_input *input; /* borrowed */
  char *buffer;
  size_t at, count, room;
  uint64_t number;  /* of the line given last, from 1 */
  uint64_t offset;  /* where in the decompressed input it begins */
  size_t forgotten; /* bytes of the buffer before the line that is given, or within it */
};

/* The next line, without its "\n" or "\r\n".  *line NULL: there is none.  A line of more than
 * 16 MiB is MIC_ELIMIT: no text has such lines. */
int mic_lines_next(struct mic_lines *lines, const char **line, size_t *size, struct mic_error *err);
/* The line's bytes before one are not needed again: a long line gives their memory back. */
void mic_lines_forget(struct mic_lines *lines, const char *before);
void mic_lines_free(struct mic_lines *lines);

#endif
