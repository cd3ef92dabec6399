/* publish.c - temporary name, sync, rename. */
#include "base/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/leftover.h"

enum { NAMES_TRIED = 32 /* temporary names: leftovers of writers that were killed */ };

static int resolve(struct mic_publish *p, const char *path, struct mic_error *err) {
  struct stat st;
  if (stat(path, &st) != 0) {
    if (errno != ENOENT) return mic_fail_sys(err, "looking at %.150s", path);
    /* Neither replaced nor followed: in a folder of others' the link decides what is made. */
    if (lstat(path, &st) == 0)
      return mic_fail(err, MIC_EARG, "%.150s is a link to a file that is not there: name the file",
                      path);
    p->path = mic_strndup(path, strlen(path));
  } else if (!S_ISREG(st.st_mode)) {
    return mic_fail(err, MIC_EARG, "%.150s is not a regular file: name a file to write", path);
  } else if (!(p->path = realpath(path, NULL))) {
    return mic_fail_sys(err, "looking at %.150s", path);
  }
  const char *slash = strrchr(p->path, '/');
  p->folder = slash ? mic_strndup(p->path, (size_t)(slash - p->path) + 1) : mic_strndup(".", 1);
  return 0;
}

/* A new file beside the final name, so that the rename stays inside one file system. */
static int open_temp(struct mic_publish *p, mode_t mode, struct mic_error *err) {
  size_t room = strlen(p->path) + 32;
  p->temp = mic_alloc(room);
  for (int i = 0; i < NAMES_TRIED; i++) {
    snprintf(p->temp, room, i ? "%s.tmp.%d.%d" : "%s.tmp.%d", p->path, (int)getpid(), i);
    sigset_t before;
    mic_leftover_hold(&before);
    p->fd = open(p->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int failed = errno;
    p->named = p->fd >= 0;
    if (p->named) mic_leftover_add(p->temp);
    mic_leftover_release(&before);
    errno = failed;
    if (p->named) return 0;
    if (errno != EEXIST) break;
  }
  return mic_fail_sys(err, "creating %.150s", p->path);
}

int mic_publish_open(struct mic_publish *publish, const char *path, mode_t mode,
                     struct mic_error *err) {
  *publish = (struct mic_publish){.fd = -1};
  int code = resolve(publish, path, err);
  if (!code) code = open_temp(publish, mode, err);
  if (code) mic_publish_close(publish);
  return code;
}

/* The old file keeps its final name until the new one takes it: a link, where the file system
 * has them, and a rename where it has not. */
static int keep(struct mic_publish *p, struct mic_error *err) {
  int code = 0;
  size_t room = strlen(p->path) + 8;
  char *old = mic_alloc(room);
  snprintf(old, room, "%s.old", p->path);
  if (access(p->path, F_OK) == 0) {
    unlink(old);
    if (link(p->path, old) != 0 && rename(p->path, old) != 0)
      code = mic_fail_sys(err, "keeping the old %.150s", p->path);
  }
  free(old);
  return code;
}

/* The name itself reaches the disk with its folder; a file system that cannot sync a folder
 * (EINVAL) keeps names by its own rules. */
static int sync_folder(const struct mic_publish *p, struct mic_error *err) {
  int code = 0, folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  if (fsync(folder) != 0 && errno != EINVAL)
    code = mic_fail_sys(err, "syncing the folder of %.150s", p->path);
  close(folder);
  return code;
}

int mic_publish_finish(struct mic_publish *publish, bool keep_old, struct mic_error *err) {
  int code = 0;
  if (fsync(publish->fd) != 0) code = mic_fail_sys(err, "writing %.150s", publish->path);
  if (!code && keep_old) code = keep(publish, err);
  if (!code && rename(publish->temp, publish->path) != 0)
    code = mic_fail_sys(err, "renaming to %.150s", publish->path);
  if (code) return code;
  publish->named = false;
  mic_leftover_forget(publish->temp);
  return sync_folder(publish, err);
}

/* Once only: after that another writer may have a file of that name. */
void mic_publish_remove(struct mic_publish *publish) {
  if (!publish->named) return;
  unlink(publish->temp);
  mic_leftover_forget(publish->temp);
  publish->named = false;
}

void mic_publish_close(struct mic_publish *publish) {
  mic_publish_remove(publish);
  if (publish->fd >= 0) close(publish->fd);
  free(publish->path);
  free(publish->temp);
  free(publish->folder);
  *publish = (struct mic_publish){.fd = -1};
}
