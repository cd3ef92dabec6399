/*
 * symbols_problem.h - one line that says why names or lines are missing.
 *
 * Distinct reasons are joined by "; "; past the room they are counted.
 */
#ifndef MIC_IMAGE_SYMBOLS_PROBLEM_H
#define MIC_IMAGE_SYMBOLS_PROBLEM_H

#include <stddef.h>
#include <stdint.h>

struct mic_problem {
  char text[1024];
  size_t size;
  uint32_t more; /* reasons that did not fit */
};

void mic_problem_add(struct mic_problem *problem, const char *fmt, ...)
  __attribute__((format(printf, 2, 3)));

#endif
