/*
 * own_ids.h - ids of rows, which others' files may have many times or not at all.
 *
 * While they work they take 12 bytes for each id that differs.
 *
 * Owns: nothing.  Threads: no state.
 */
#ifndef MIC_IMPORT_OWN_IDS_H
#define MIC_IMPORT_OWN_IDS_H

#include <stdint.h>

/* ffi:begin */
/* Make ids differ: the first row that has one keeps it, each other gets one that none has, from
 * 2^22 on. */
void mic_own_ids(uint32_t *ids, uint64_t rows);
/* Tell of each row how many before it have its id. */
void mic_own_ids_repeats(const uint32_t *ids, uint64_t rows, uint32_t *repeats);
/* 1: all have ids, no two the same one; 0 is none. */
int mic_own_ids_differ(const uint32_t *ids, uint64_t rows);
/* ffi:end */

#endif
