/*
 * publish.h - a file that appears under its name whole or not at all.
 *
 * It is written under a temporary name beside the final one (PATH.tmp.PID), synced, and renamed.
 * A signal that ends the process removes it (leftover.h).
 *
 * Owns:    the descriptor, its names and, until it is published, the temporary file.
 * Fails:   open and finish fill the error; nothing is left after a failure and mic_publish_close.
 * Threads: one user at a time.
 */
#ifndef MIC_BASE_PUBLISH_H
#define MIC_BASE_PUBLISH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct mic_publish {
  int fd; /* to write to; the owner may also read it */
  char *path, *temp, *folder;
  bool named; /* the temporary file has its name and is to be removed */
};

/* A path that is there must be a regular file: renaming over /dev/null would replace it.  A
 * symbolic link is followed, so that the file it names is the one replaced.  mode is as
 * open(2) takes it: the umask holds. */
int mic_publish_open(struct mic_publish *publish, const char *path, mode_t mode,
                     struct mic_error *err);
/* Sync, rename a file that is there to PATH.old when keep_old, and take the final name. */
int mic_publish_finish(struct mic_publish *publish, bool keep_old, struct mic_error *err);
/* The temporary file, if it still is one, at once.  The descriptor stays open. */
void mic_publish_remove(struct mic_publish *publish);
void mic_publish_close(struct mic_publish *publish); /* removes what was not published */

#endif
