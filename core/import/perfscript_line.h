/*
 * perfscript_line.h - one line of `perf script` taken apart.
 *
 * Owns:    nothing: all parts borrow from the line.
 */
#ifndef MIC_IMPORT_PERFSCRIPT_LINE_H
#define MIC_IMPORT_PERFSCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mic_text {
  const char *at;
  size_t size;
};

/* "name 7/8 [003] 12.345678: 1000 cycles:u: rest" */
struct mic_script_head {
  struct mic_text name, event, rest;
  uint32_t pid, tid; /* pid 0: only one id is there, the thread's */
  uint64_t time_ns, period;
  uint16_t cpu;
  bool has_period;
};
/* NULL, or why the line is no sample's first; static text. */
const char *mic_script_head(const char *line, size_t size, struct mic_script_head *out);

/* "\t  1260 cmp+0x0 (/bin/spin)" */
struct mic_script_frame {
  struct mic_text symbol, image; /* image: empty where there is none */
  uint64_t address;
  bool inlined;
};
bool mic_script_frame(const char *line, size_t size, struct mic_script_frame *out);

#endif
