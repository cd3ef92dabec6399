/*
 * image_file.c - open a mapped file, with the proof that it is the one.
 */
#include "process/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"

static const char deleted_mark[] = " (deleted)";

static bool inode_known(const struct mic_mapped *mapped) {
  return mapped->inode || mapped->maj || mapped->min;
}

static void refuse(struct mic_image_file *out, uint8_t reason, int sys) {
  out->reason = reason;
  out->sys = sys;
}

static uint8_t reason_of(int sys) {
  switch (sys) {
  case EACCES:
  case EPERM: return MIC_FILE_DENIED;
  case ENOENT:
  case ENOTDIR:
  case ESRCH: return MIC_FILE_DELETED;
  default: return MIC_FILE_FAILED;
  }
}

/* A path in a process's root, where its links lead inside that root too; AT_FDCWD: in ours. */
static int look_up(int root, const char *path) {
  if (root == AT_FDCWD) return open(path, O_PATH | O_CLOEXEC);
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* What was looked up is what is opened; opening a device or a pipe may act or wait, so only a
 * regular file is. */
static int open_regular(int root, const char *path, struct stat *st, struct mic_image_file *out) {
  char again[32];
  int fd = -1, found = look_up(root, path);
  if (found < 0 || fstat(found, st) != 0) {
    refuse(out, reason_of(errno), errno);
  } else if (!S_ISREG(st->st_mode)) {
    refuse(out, MIC_FILE_NOT_REGULAR, 0);
  } else {
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    fd = open(again, O_RDONLY | O_CLOEXEC);
    if (fd < 0) refuse(out, reason_of(errno), errno);
  }
  if (found >= 0) close(found);
  return fd;
}

static bool accept_file(struct mic_image_file *out, int fd, const struct stat *st, uint8_t proof) {
  out->fd = fd;
  out->proof = proof;
  out->reason = MIC_FILE_OPEN;
  out->sys = 0;
  out->size = (uint64_t)st->st_size;
  out->dev = st->st_dev;
  out->inode = st->st_ino;
  out->mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
  return true;
}

/* The inode's generation tells a new file by an old number; few file systems give it, and it is
 * then 0 in the record, too. */
static bool generation_differs(int fd, const struct mic_mapped *mapped,
                               struct mic_image_file *out) {
  int generation = 0;
  if (mapped->generation == 0 || ioctl(fd, FS_IOC_GETVERSION, &generation) != 0) return false;
  out->generation_checked = true;
  return (uint32_t)generation != (uint32_t)mapped->generation;
}

/* Device and inode against the mapping's. */
static bool try_path(const struct mic_mapped *mapped, int root, const char *path,
                     struct mic_image_file *out) {
  struct stat st;
  int fd = open_regular(root, path, &st, out);
  if (fd < 0) return false;
  bool same_device = major(st.st_dev) == mapped->maj && minor(st.st_dev) == mapped->min;
  out->generation_checked = false;
  if (st.st_ino != mapped->inode || (same_device && generation_differs(fd, mapped, out))) {
    close(fd);
    refuse(out, MIC_FILE_REPLACED, 0);
    return false;
  }
  return accept_file(out, fd, &st, same_device ? MIC_PROOF_DEVICE : MIC_PROOF_INODE);
}

static bool try_map_files(const struct mic_mapped *mapped, struct mic_image_file *out) {
  char path[96];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", mapped->pid,
           (unsigned long long)mapped->start, (unsigned long long)mapped->end);
  int fd = open_regular(AT_FDCWD, path, &st, out);
  if (fd < 0) return false;
  /* The range may have been mapped anew since it was seen. */
  if (inode_known(mapped) && st.st_ino != mapped->inode) {
    close(fd);
    refuse(out, MIC_FILE_REPLACED, 0);
    return false;
  }
  return accept_file(out, fd, &st, MIC_PROOF_MAPPING);
}

/* The path with and without the mark of a deleted file: a name may end in it. */
static bool try_named(const struct mic_mapped *mapped, int root, struct mic_image_file *out) {
  size_t size = strlen(mapped->path), mark = sizeof deleted_mark - 1;
  bool found = try_path(mapped, root, mapped->path, out);
  if (!found && size > mark && strcmp(mapped->path + size - mark, deleted_mark) == 0) {
    char *path = mic_strndup(mapped->path, size - mark);
    found = try_path(mapped, root, path, out);
    free(path);
    /* What stands there now only took the name. */
    if (!found && out->reason == MIC_FILE_REPLACED) refuse(out, MIC_FILE_DELETED, 0);
  }
  return found;
}

static bool process_is_there(uint32_t pid) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%u", pid);
  return access(path, F_OK) == 0;
}

/* Which of two reasons tells more of why there is no file. */
static void keep_better(struct mic_image_file *out, struct mic_image_file before) {
  if (before.reason == MIC_FILE_REPLACED || before.reason == MIC_FILE_DENIED) {
    out->reason = before.reason;
    out->sys = before.sys;
  }
}

static bool try_paths(const struct mic_mapped *mapped, struct mic_image_file *out) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%u/root", mapped->pid);
  int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct mic_image_file before = *out;
  if (root < 0) {
    refuse(&before, reason_of(errno), errno);
  } else {
    bool found = try_named(mapped, root, out);
    close(root);
    if (found) return true;
    before = *out;
  }
  /* Our own view, when theirs cannot be entered or is gone: the inode decides. */
  if (try_named(mapped, AT_FDCWD, out)) return true;
  keep_better(out, before);
  return false;
}

bool mic_image_file_open(const struct mic_mapped *mapped, struct mic_image_file *out) {
  char exe[48];
  memset(out, 0, sizeof *out);
  out->fd = -1;
  if (!mapped->path || mapped->path[0] != '/') {
    refuse(out, MIC_FILE_ANON, 0);
    return false;
  }
  if (try_map_files(mapped, out)) return true;
  struct mic_image_file by_mapping = *out;
  if (!inode_known(mapped)) return false;
  if (out->reason == MIC_FILE_NOT_REGULAR) return false;
  if (try_paths(mapped, out)) return true;
  struct mic_image_file by_path = *out;
  snprintf(exe, sizeof exe, "/proc/%u/exe", mapped->pid);
  if (try_path(mapped, AT_FDCWD, exe, out)) return true;
  *out = by_path;
  if (!process_is_there(mapped->pid))
    refuse(out, MIC_FILE_GONE, 0);
  else if (out->reason == MIC_FILE_DELETED && by_mapping.reason == MIC_FILE_DENIED)
    out->sys = by_mapping.sys;
  return false;
}

void mic_image_file_close(struct mic_image_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}

const char *mic_no_file_text(uint32_t reason) {
  switch (reason) {
  case MIC_FILE_OPEN: return "the file is open";
  case MIC_FILE_ANON: return "memory without a file";
  case MIC_FILE_GONE: return "the process had ended and its path holds no such file";
  case MIC_FILE_DELETED:
    return "the file was deleted; CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN opens it while it is "
           "mapped";
  case MIC_FILE_REPLACED: return "another file has its path now";
  case MIC_FILE_DENIED: return "the file may not be read";
  case MIC_FILE_NOT_REGULAR: return "a device, not a file";
  case MIC_FILE_FAILED: return "the file could not be opened";
  default: return "?";
  }
}
