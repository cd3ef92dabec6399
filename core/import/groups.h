/*
 * groups.h - samples that other formats hold as one: of the same thread, stack and labels.
 *
 * No group is an object: its rows are a chain through all samples, 4 bytes each.
 *
 *   for (uint64_t row = 0; row < t->samples.rows; row++) {
 *     if (!mic_groups_begins(&groups, row)) continue;
 *     for (uint32_t r = (uint32_t)row; r != MIC_NONE; r = groups.next[r]) ...
 *   }
 *
 * Owns: its arrays; the tables are borrowed.
 */
#ifndef MIC_IMPORT_GROUPS_H
#define MIC_IMPORT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "import/tables.h"

struct mic_groups {
  uint32_t *next;  /* of each row the next of its group; MIC_NONE: it is the last */
  uint8_t *begins; /* a bit for each row */
};

/* Group all rows, those of different sources apart or not: each is in one group, in its order. */
struct mic_groups mic_groups_of(const struct mic_tables *t, bool apart);
void mic_groups_free(struct mic_groups *groups);

static inline bool mic_groups_begins(const struct mic_groups *groups, uint64_t row) {
  return groups->begins[row / 8] >> row % 8 & 1;
}

#endif
