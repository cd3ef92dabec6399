/*
 * hunt.h - the best file of the kernel or of a module of it, among all places that may have one.
 *
 * The best has lines; else it is the first that has symbols.  vmlinux.c and loaded.c tell how a
 * file is proven and what it is called; the places and their order are the same.
 */
#ifndef MIC_SYMBOLIZE_HUNT_H
#define MIC_SYMBOLIZE_HUNT_H

#include "symbolize/find.h"

struct mic_hunt {
  struct mic_finder *finder;
  const struct mic_wanted *wanted;
  struct mic_found best; /* fd -1: none yet */
  bool quiet;            /* another file at a place is no problem */
  /* Each is true when no other file can be better.  A file, which is taken when it is better: */
  bool (*try_file)(struct mic_hunt *hunt, const char *path);
  /* files by their names below a folder that was given, */
  bool (*try_folder)(struct mic_hunt *hunt, const char *folder);
  /* and where they are installed here. */
  bool (*try_installed)(struct mic_hunt *hunt);
};

bool mic_hunt_find(struct mic_hunt *hunt, struct mic_found *out);
bool mic_hunt_has_lines(struct mic_elf *elf);
/* Make a file the best; the descriptor is the hunt's from here on. */
void mic_hunt_take(struct mic_hunt *hunt, int fd, const char *path);

#endif
