/* scratch.c - O_TMPFILE, bounded. */
#include "import/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A file system that does not tell its size bounds itself. */
static uint64_t room_for(int fd) {
  struct statvfs at;
  if (fstatvfs(fd, &at) != 0) return 0;
  if (at.f_blocks == 0) return UINT64_MAX;
  return (uint64_t)at.f_bavail * at.f_frsize / 2;
}

int mic_scratch_open(struct mic_scratch *scratch, const char *name, struct mic_error *err) {
  const char *folder = getenv("TMPDIR");
  *scratch = (struct mic_scratch){.name = name};
  scratch->fd =
    open(folder && folder[0] == '/' ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (scratch->fd < 0) return mic_fail_sys(err, "making room for %.150s", name);
  scratch->room = room_for(scratch->fd);
  return 0;
}

int mic_scratch_write(struct mic_scratch *scratch, const void *bytes, size_t size,
                      struct mic_error *err) {
  scratch->size += size;
  if (scratch->size > scratch->room)
    return mic_fail(err, MIC_ELIMIT,
                    "%.120s: more than %llu bytes, half of what is free where TMPDIR is",
                    scratch->name, (unsigned long long)scratch->room);
  for (const char *at = bytes; size;) {
    ssize_t done = write(scratch->fd, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return mic_fail_sys(err, "making room for %.150s", scratch->name);
    at += done;
    size -= (size_t)done;
  }
  return 0;
}
