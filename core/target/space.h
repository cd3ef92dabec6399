/*
 * space.h - the code mapped in one process at one time, as intervals that do not overlap.
 *
 * A mapping ends when another covers it, at exec, at exit, or when a read of the process's maps
 * shows it gone; what ends is handed out so that its row can be written.
 *
 * Threads: one user at a time.
 */
#ifndef MIC_TARGET_SPACE_H
#define MIC_TARGET_SPACE_H

#include "target/image.h"
#include "unwind/unwind.h"

struct mic_mapping {
  struct mic_code code;    /* first: mic_code_space_find hands out its address */
  struct mic_image *image; /* NULL: anonymous memory */
  uint64_t file_offset;
  uint64_t start_ns;
};

typedef MIC_VEC(struct mic_mapping) mic_mappings;

/* By address, in parts: of 200,000 pieces of just-in-time code, each mapped by itself, one more
 * moves a few hundred. */
enum { MIC_SPACE_PART = 512 };
struct mic_code_space {
  MIC_VEC(mic_mappings) parts; /* of 1 to MIC_SPACE_PART mappings */
  uint64_t generation;
};

/* The mapping that holds an address, or NULL.  Borrowed until the maps change. */
const struct mic_mapping *mic_code_space_find(const struct mic_code_space *maps, uint64_t address);
/* Put a mapping in; the parts of others that it covers are pushed to *ended.  False when it was
 * there already, under the same image. */
bool mic_code_space_insert(struct mic_code_space *maps, const struct mic_mapping *mapping,
                           mic_mappings *ended);
/* End all that the mappings of `kept` (by address) do not show: of an image what they show no
 * longer under that image, of anonymous memory what they show nothing at. */
bool mic_code_space_keep(struct mic_code_space *maps, const mic_mappings *kept,
                         mic_mappings *ended);
/* The same mappings, from a later time on; *to is empty. */
void mic_code_space_copy(struct mic_code_space *to, const struct mic_code_space *from,
                         uint64_t start_ns);
/* Without any; its generation stays. */
void mic_code_space_clear(struct mic_code_space *maps);

#endif
