/*
 * debugfile.h - find the separate debug file that is proven to belong to an image.
 *
 * Looks in the target's file system first and then in our own: DIR/.build-id/ab/cdef.debug, then
 * the name in .gnu_debuglink beside the image, in .debug/ beside it and below DIR.  A file is
 * taken when its build ID is the image's; where one of them has none, when its CRC is the
 * debuglink's.  Last, a file that the search's find_file names.  Nothing else is ever used.
 *
 * Paths come from files and the target's file system may be hostile: they are resolved inside
 * its root, and only regular files are opened, without blocking.
 *
 * Owns:    what it opens belongs to the caller.
 * Threads: free of shared state.
 */
#ifndef MIC_IMAGE_DEBUGFILE_H
#define MIC_IMAGE_DEBUGFILE_H

#include <stdbool.h>

#include "image/elf.h"
#include "image/symbols_problem.h"

struct mic_debugfile_search {
  const char *path;              /* the image's, in the target's view; may be NULL */
  const char *root;              /* the target's root, "" for our own */
  const char *const *debug_dirs; /* NULL-terminated; NULL: /usr/lib/debug */
  char *(*find_file)(void *data, const uint8_t *build_id, size_t size); /* symbols.h; or NULL */
  void *find_data;
};

struct mic_debugfile {
  struct mic_elf *elf; /* NULL: none found */
  char *path;          /* inside root */
  const char *root;    /* the search's, or "" */
};

/* Opens path inside root for reading; -1 when it is not there or not a regular file. */
int mic_debugfile_open_fd(const char *root, const char *path);
/* The separate debug file of an image; false when there is none. */
bool mic_debugfile_find(const struct mic_debugfile_search *search, struct mic_elf *image,
                        struct mic_debugfile *out, struct mic_problem *problem);
/* What .gnu_debugaltlink of a file names (dwz): the debug information it shares with others. */
bool mic_debugfile_find_alt(const struct mic_debugfile_search *search, struct mic_elf *elf,
                            const char *path, struct mic_debugfile *out,
                            struct mic_problem *problem);
void mic_debugfile_close(struct mic_debugfile *file);

#endif
