/*
 * meanings.h - what locations mean, gathered: the files, functions and lines of a capture.
 *
 * The one place that turns what a lookup of symbols gave into rows: for a recording while it runs
 * and for one that is named later.  Equal strings, files and functions become one row each.
 *
 * Owns:    the meanings own copies of all they were given.  Zero-initialised is empty.
 * Threads: one user at a time.
 */
#ifndef MIC_TARGET_MEANINGS_H
#define MIC_TARGET_MEANINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "capture/reader.h"
#include "capture/writer.h"
#include "image/symbols.h"

struct mic_meanings_function {
  uint32_t name, linkage_name, module, file, line;
};

struct mic_meanings_line {
  uint32_t location, function, file, line, depth;
};

struct mic_meanings {
  struct mic_interner strings;
  struct mic_map files; /* string -> file */
  MIC_VEC(uint32_t) file_paths;
  struct mic_interner function_keys;
  MIC_VEC(uint32_t) function_rows; /* of each key */
  MIC_VEC(struct mic_meanings_function) functions;
  MIC_VEC(struct mic_meanings_line) lines;
  size_t known_files, known_functions; /* rows that the capture has already */
};

/* Begin with the files and functions of an open capture: their rows stay what they are, and what
 * is equal to one of them is given its row.  For empty meanings. */
void mic_meanings_seed(struct mic_meanings *meanings, const struct mic_capture *capture);
/* A line that a capture has, with the rows of its own files and functions. */
void mic_meanings_keep(struct mic_meanings *meanings, const struct mic_meanings_line *line);

/* A location of a module runs these functions, the innermost inlined one first; each location is
 * given once. */
void mic_meanings_add(struct mic_meanings *meanings, uint32_t location, uint32_t module,
                      const struct mic_symbol *frames, size_t count);
/* Append the rows of files and functions that are new, and those of lines. */
void mic_meanings_write(struct mic_meanings *meanings, struct mic_writer *writer);
void mic_meanings_free(struct mic_meanings *meanings);

#endif
