/*
 * ids.h - the ids that a file gives its records, to the order in which they stand.
 *
 * Most files count from 1: of those nothing is kept.  Others cost at most 16 bytes an id.
 */
#ifndef MIC_IMPORT_IDS_H
#define MIC_IMPORT_IDS_H

#include <stdbool.h>

#include "base/index.h"

struct mic_ids {
  uint32_t count; /* ids so far */
  bool sparse;    /* the n-th is not n */
  MIC_VEC(uint64_t) ids;
  struct mic_index index;
};

/* The next record's id; false: it is there already. */
bool mic_ids_add(struct mic_ids *ids, uint64_t id);
/* Which record, from 0, has an id; MIC_NONE: none. */
uint32_t mic_ids_find(const struct mic_ids *ids, uint64_t id);
/* The id of a record. */
uint64_t mic_ids_at(const struct mic_ids *ids, uint32_t record);
void mic_ids_free(struct mic_ids *ids);

#endif
