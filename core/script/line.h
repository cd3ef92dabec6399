/*
 * line.h - lines that a person types: editing, history and completion, by libedit.
 *
 * Reading gives events: a line, the wish for completion, the end of input, an interrupt.  Whoever
 * reads answers a wish with mic_line_insert and reads again, so nothing is called back.
 *
 * Owns:    an editor owns its text, its history and the terminal's mode while it reads.
 * Fails:   mic_line_open with errno; a history that cannot be read or written is none.
 * Threads: one user; one editor at a time.
 */
#ifndef MIC_SCRIPT_LINE_H
#define MIC_SCRIPT_LINE_H

#include <stdint.h>

/* ffi:begin */
enum mic_line_event {
  MIC_LINE_TEXT = 0,       /* a line, without its newline */
  MIC_LINE_COMPLETE = 1,   /* Tab was pressed: the text so far, and where the cursor stands */
  MIC_LINE_END = 2,        /* end of input */
  MIC_LINE_INTERRUPTED = 3 /* Ctrl-C while the line was read; watch interrupts (host.h) for it */
};
struct mic_line;

/* history: a file of lines, kept between sessions; NULL for none. */
int32_t mic_line_open(const char *history, struct mic_line **out);
/* Read: enum mic_line_event.  The prompt is shown first, then what mic_line_insert left. */
int32_t mic_line_read(struct mic_line *line, const char *prompt);
/* What was read, borrowed until the next read; *cursor (bytes) may be NULL. */
const char *mic_line_text(const struct mic_line *line, uint32_t *size, uint32_t *cursor);
/* The next read begins with this text, which can be edited; the cursor stands `back` characters
 * before its end. */
void mic_line_insert(struct mic_line *line, const char *text, uint32_t back);
/* Add a line to the history, and to its file; the same as the last one is not added again. */
void mic_line_remember(struct mic_line *line, const char *text);
void mic_line_close(struct mic_line *line); /* NULL is fine */
/* ffi:end */

#endif
