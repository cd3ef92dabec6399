/*
 * scan.h - the ELF files below folders, by build ID, whatever they are called.
 *
 * Symbolic links are not followed; what is not a regular file is not opened.  The folders are read
 * at the first question.
 *
 * Threads: one user at a time; cancel may be set by any.
 */
#ifndef MIC_SYMBOLIZE_SCAN_H
#define MIC_SYMBOLIZE_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum mic_scan_role {
  MIC_SCAN_IMAGE, /* has what is loaded: call-frame information, dynamic symbols */
  MIC_SCAN_DEBUG  /* has debug information or, failing that, a symbol table */
};

struct mic_scan_file {
  char *path;
  bool image, lines, symbols;
  uint32_t next; /* another one of its build ID, or MIC_NONE */
};

/* A whole distribution's debug files are some 100,000; folders past this many are not looked at. */
enum { MIC_SCAN_ENTRIES_MAX = 4 << 20 };

struct mic_scan {
  const char *const *folders; /* borrowed; NULL-terminated */
  const atomic_bool *cancel;  /* borrowed */
  bool done;
  struct mic_interner build_ids;
  MIC_VEC(uint32_t) first; /* of each build ID, a file */
  MIC_VEC(struct mic_scan_file) files;
  uint64_t entries;
};

/* The path of a file of a build ID, borrowed; NULL when there is none. */
const char *mic_scan_find(struct mic_scan *scan, enum mic_scan_role role, const uint8_t *build_id,
                          size_t size);
void mic_scan_free(struct mic_scan *scan);

#endif
