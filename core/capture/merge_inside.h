/*
 * merge_inside.h - a merge as its files share it: merge.c has dictionaries, appended tables and
 * the end, merge_lives.c processes, threads and what belongs to them.
 */
#ifndef MIC_CAPTURE_MERGE_INSIDE_H
#define MIC_CAPTURE_MERGE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/inside.h"
#include "capture/merge.h"

/* A process or thread of the merged capture, as its last segment left it. */
struct mic_merge_life {
  uint32_t segment; /* the last that it was in */
  uint32_t last;    /* its last row of process_execs or thread_names, or MIC_NONE */
};

typedef MIC_VEC(struct mic_merge_life) mic_merge_lives;

struct mic_merge_lines {
  uint32_t first, count; /* in `lines` */
};

struct mic_merge {
  const struct mic_capture *cap; /* being added */
  uint64_t shift_ns, gap_ns;
  uint64_t end_ns;    /* of what was added so far */
  uint64_t file_size; /* of all segments */
  uint32_t segment;   /* how many were added, the current one too */
  bool over;          /* an id does not fit its column */
  uint32_t skipped;   /* unknown tables and columns */
  uint64_t clocks[3]; /* monotonic, realtime, boot id's string */
  bool other_boot, other_period, long_gap;
  uint64_t gaps_ns;
  uint64_t rows[MIC_TABLE_COUNT];
  uint32_t *ids[MIC_TABLE_COUNT]; /* the current segment's rows -> merged rows */
  MIC_VEC(uint8_t) columns[MIC_COLUMN_COUNT];
  MIC_VEC(uint64_t) starts[MIC_TABLE_COUNT]; /* where each segment's rows begin */
  struct mic_interner unique[MIC_TABLE_COUNT];
  struct mic_map keyed[MIC_TABLE_COUNT]; /* rows by a key: meta, settings, problems, the living */
  struct mic_interner mappings;          /* by what they map; the id's last row: */
  MIC_VEC(uint32_t) mapping_rows;
  mic_merge_lives processes, threads; /* by merged row */
  MIC_VEC(struct mic_lines_row) lines;
  MIC_VEC(struct mic_merge_lines) lines_of; /* by merged location */
};

/* A value of the segment; of an absent column none, or 0. */
uint64_t mic_merge_read(const struct mic_merge *m, uint32_t column, uint64_t row);
/* The same as it is in the merged capture: ids mapped, points in time shifted. */
uint64_t mic_merge_value(struct mic_merge *m, uint32_t column, uint64_t row);
uint64_t mic_merge_get(const struct mic_merge *m, uint32_t column, uint64_t row);
void mic_merge_set(struct mic_merge *m, uint32_t column, uint64_t row, uint64_t value);
uint32_t mic_merge_append(struct mic_merge *m, uint32_t table, uint64_t row); /* a segment's row */
uint32_t mic_merge_string(struct mic_merge *m, const char *bytes, size_t size);

void mic_merge_add_processes(struct mic_merge *m);
void mic_merge_add_threads(struct mic_merge *m);
void mic_merge_end_threads(struct mic_merge *m); /* those of processes that have ended */
void mic_merge_add_process_execs(struct mic_merge *m);
void mic_merge_add_thread_names(struct mic_merge *m);
void mic_merge_add_mappings(struct mic_merge *m);

#endif
