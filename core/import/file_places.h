/*
 * file_places.h - which mapping has a place in a module's file: the first row of all that do.
 *
 * Mappings may overlap, and a module may have one for each process.  They are cut into ranges of
 * which one row is the first, so that a place is found by halving.  Takes 12 bytes for each range,
 * and 20 a mapping while it works.
 *
 * Owns: its arrays; the tables are borrowed.
 */
#ifndef MIC_IMPORT_FILE_PLACES_H
#define MIC_IMPORT_FILE_PLACES_H

#include "import/tables.h"

struct mic_file_places {
  const struct mic_tables *t;
  MIC_VEC(uint64_t)
  start;                 /* in the file, by modules; a range lasts to the next, or its row's end */
  MIC_VEC(uint32_t) row; /* of mappings */
};

/* Those of modules that are asked for, by their rows. */
void mic_file_places_of(const struct mic_tables *t, const bool *asked, struct mic_file_places *out);
void mic_file_places_free(struct mic_file_places *places);
/* The first row of a module that has an offset of its file; MIC_NONE: none has. */
uint32_t mic_file_places_find(const struct mic_file_places *places, uint32_t module,
                              uint64_t offset);

#endif
