/* symbols_problem.c - collect reasons into one line. */
#include "image/symbols_problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mic_problem_add(struct mic_problem *problem, const char *fmt, ...) {
  char line[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  for (char *c = line; *c; c++) /* names in it come from files: one line stays one line */
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  if (strstr(problem->text, line)) return;
  const char *joint = problem->size > 0 ? "; " : "";
  size_t need = strlen(joint) + strlen(line), tail = sizeof " (and 4294967295 more)";
  if (problem->more == 0 && problem->size + need + tail < sizeof problem->text) {
    problem->size += (size_t)snprintf(problem->text + problem->size,
                                      sizeof problem->text - problem->size, "%s%s", joint, line);
    return;
  }
  problem->more++;
  snprintf(problem->text + problem->size, sizeof problem->text - problem->size, " (and %u more)",
           problem->more);
}
