/*
 * made.h - names of code that a program made while it ran, as its perf map gives them.
 *
 * A just-in-time compiler appends "START SIZE NAME" lines to /tmp/perf-PID.map as it makes code
 * (tools/perf/Documentation/jit-interface.txt).  A line has no time, and memory is used again: an
 * address that lines of different names cover had several names over time, and which one it had
 * when a sample was taken is not known.  Such an address has none here.
 *
 * The file is any program's own: what is no such line is left out and counted.
 *
 * Owns:    the code owns copies of its names; the descriptor is borrowed for the call.
 * Fails:   MIC_ELIMIT past the bounds, MIC_ESYS.
 * Threads: immutable once read.
 */
#ifndef MIC_TARGET_MADE_H
#define MIC_TARGET_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mic_made_code;

enum mic_made {
  MIC_MADE_NONE = 0,     /* no line covers the address */
  MIC_MADE_NAMED = 1,    /* all that do give it this name */
  MIC_MADE_AMBIGUOUS = 2 /* they give it different ones */
};

int mic_made_code_read(int fd, const char *path, struct mic_made_code **out, struct mic_error *err);
int mic_made_code_parse(const char *bytes, size_t size, const char *path,
                        struct mic_made_code **out, struct mic_error *err);
void mic_made_code_free(struct mic_made_code *code); /* NULL is fine */
enum mic_made mic_made_code_find(const struct mic_made_code *code, uint64_t address,
                                 const char **name);
uint64_t mic_made_code_odd_lines(const struct mic_made_code *code); /* that were left out */

#endif
