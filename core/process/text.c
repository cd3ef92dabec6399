/* text.c - read small files of /proc. */
#include "process/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static int fail(const char *path, struct mic_error *err) {
  if (errno == ENOENT) errno = ESRCH;
  return mic_fail_sys(err, "%s", path);
}

int mic_text_read(const char *path, char **out, size_t *size, struct mic_error *err) {
  MIC_VEC(char) text = {0};
  *out = NULL;
  *size = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(path, err);
  ssize_t got;
  do {
    mic_vec_reserve(&text, text.count + 4096 + 1);
    got = read(fd, text.at + text.count, text.room - text.count - 1);
    if (got > 0) text.count += (size_t)got;
  } while (got > 0 || (got < 0 && errno == EINTR));
  int sys = errno;
  close(fd);
  if (got < 0) {
    mic_vec_free(&text);
    errno = sys;
    return fail(path, err);
  }
  text.at[text.count] = '\0';
  *out = text.at;
  *size = text.count;
  return 0;
}

int mic_text_link(const char *path, char **out, struct mic_error *err) {
  *out = NULL;
  for (size_t room = 256;; room *= 2) {
    char *target = mic_alloc(room);
    ssize_t got = readlink(path, target, room);
    if (got >= 0 && (size_t)got < room) {
      target[got] = '\0';
      *out = target;
      return 0;
    }
    int sys = errno;
    free(target);
    errno = sys;
    if (got < 0) return fail(path, err);
  }
}

const char *mic_text_line(const char *text, const char *key) {
  size_t size = strlen(key);
  for (const char *line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, key, size) == 0) return line + size;
  }
  return NULL;
}

bool mic_text_number(const char **at, uint64_t *out) {
  while (**at == ' ' || **at == '\t') (*at)++;
  if (**at < '0' || **at > '9') return false;
  char *end;
  errno = 0;
  *out = strtoull(*at, &end, 10);
  *at = end;
  return errno == 0;
}
