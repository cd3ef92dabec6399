/*
 * text.h - whole files of /proc, and the words in them.
 *
 * Internal to core/process.  Owns: the text is the caller's (free).  Fails: errno of the call;
 * ENOENT, for a task that is not there, as MIC_EGONE.  Threads: no state.
 */
#ifndef MIC_PROCESS_TEXT_H
#define MIC_PROCESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* *out is NUL-terminated, *size without it. */
int mic_text_read(const char *path, char **out, size_t *size, struct mic_error *err);
/* As readlink, of any length. */
int mic_text_link(const char *path, char **out, struct mic_error *err);
/* The rest of the line that starts with key in text, or NULL; not ended by NUL. */
const char *mic_text_line(const char *text, const char *key);
/* A decimal number at *at, after blanks; moves *at.  False when there is none. */
bool mic_text_number(const char **at, uint64_t *out);

#endif
