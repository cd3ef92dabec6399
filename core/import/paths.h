/*
 * paths.h - stacks by their paths: all whose frames have the same names, and end the same.
 *
 * Frames are told apart by the names of functions, inlined ones too, and by place where no function
 * is known; ends by their reasons, of which those that say no more than "whole" or nothing are one.
 * Rows of stacks may be one path although they have other places, or share them out otherwise:
 * what is one row's inlined function is a row of its own elsewhere.
 *
 * While it works it takes 8 bytes a row of stacks, 4 a line and up to 12 a path.
 *
 * Owns:    its arrays; the tables are borrowed.
 * Fails:   MIC_ELIMIT for samples of a path that weigh more than 2^64 - 1 together, and for rows
 *          that are one in so many ways that comparing them would take minutes.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_PATHS_H
#define MIC_IMPORT_PATHS_H

#include "import/tables.h"

/* In order of their first rows. */
struct mic_paths {
  uint32_t count;
  uint32_t *stack;  /* of each path the first row of stacks that is it and that samples have */
  uint64_t *weight; /* what all samples of it weigh, not 0 */
  uint64_t room;    /* paths that there is memory for */
};

/* The paths of one source's samples.  first_line is of mic_tables_first_lines.  On failure *out is
 * empty. */
int mic_paths_of(const struct mic_tables *t, const uint64_t *first_line, uint32_t source,
                 struct mic_paths *out, struct mic_error *err);
void mic_paths_free(struct mic_paths *paths);

#endif
