/*
 * dwarf.h - functions, inlined functions and lines of an address, from DWARF.
 *
 * libdw reads units, entries and attributes.  Range lists and line programs are decoded here:
 * libdw sorts the rows of all sequences of a unit together, which mixes the sequences of
 * discarded functions, left at address 0, into live code, and it has no base address for a
 * split unit whose skeleton it did not open itself.
 *
 * Units are indexed at the first lookup; the functions and lines of one when an address first
 * falls in it.
 *
 * Owns:    what it opens; strings it hands out are interned in the caller's interner.
 * Threads: one user at a time, all in one thread.
 */
#ifndef MIC_IMAGE_DWARF_H
#define MIC_IMAGE_DWARF_H

#include "base/map.h"
#include "image/debugfile.h"
#include "image/elf.h"

struct mic_dwarf_frame { /* strings are ids of the interner, or MIC_NONE */
  uint32_t name;         /* qualified, not mangled */
  uint32_t linkage_name; /* mangled */
  uint32_t file, line;
  uint32_t decl_file, decl_line;
};

struct mic_dwarf_source {
  struct mic_elf *elf;         /* holds the debug sections; borrowed until close */
  const struct mic_elf *image; /* whose executable segments bound what can be code */
  const char *path;            /* of elf, inside root: relative names start there; may be NULL */
  struct mic_debugfile_search search;
  struct mic_interner *strings; /* borrowed until close */
  struct mic_problem *problem;  /* borrowed until close */
};

struct mic_dwarf_range {
  uint64_t start, end;
};
struct mic_dwarf_ranges { /* a MIC_VEC */
  struct mic_dwarf_range *at;
  size_t count, room;
};

enum { MIC_DWARF_FRAMES_MAX = 512 }; /* inlined one in another; compilers stay below 100 */

struct mic_dwarf;

/* False when there is no debug information; a problem says so. */
bool mic_dwarf_open(const struct mic_dwarf_source *source, struct mic_dwarf **out);
void mic_dwarf_close(struct mic_dwarf *dwarf); /* NULL is fine */
/* The frames at an address, innermost first, at most MIC_DWARF_FRAMES_MAX: of so many the last may
 * not be the function that holds the code, and a problem says so.  When the count is 0,
 * frames[0].file and .line are set all the same where a line is known. */
size_t mic_dwarf_lookup(struct mic_dwarf *dwarf, uint64_t vaddr, struct mic_dwarf_frame *frames);
/* Appends the code of the function that is number depth of mic_dwarf_lookup's, in the order of its
 * range list: for an inlined one the code of this one copy of it. */
void mic_dwarf_extent(struct mic_dwarf *dwarf, uint64_t vaddr, size_t depth,
                      struct mic_dwarf_ranges *out);

#endif
