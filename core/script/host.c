/* host.c - facts of the process, its user and its terminal. */
#include "script/host.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"

MIC_EXPORT int32_t mic_host_secure(void) { return getauxval(AT_SECURE) != 0; }

MIC_EXPORT uint32_t mic_host_uid(void) { return geteuid(); }

MIC_EXPORT int32_t mic_host_is_terminal(int32_t fd) { return isatty(fd) == 1; }

MIC_EXPORT int32_t mic_host_reads_lines(int32_t fd) {
  struct termios mode;
  return tcgetattr(fd, &mode) == 0 && (mode.c_lflag & ICANON) && (mode.c_lflag & ECHO);
}

MIC_EXPORT uint32_t mic_host_columns(int32_t fd) {
  struct winsize size = {0};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

MIC_EXPORT int32_t mic_host_stat(const char *path, struct mic_host_file *out) {
  struct stat st;
  *out = (struct mic_host_file){0};
  if (stat(path, &st) != 0) return errno;
  out->uid = st.st_uid;
  out->mode = st.st_mode;
  out->size = (uint64_t)st.st_size;
  out->kind = S_ISREG(st.st_mode)   ? MIC_HOST_FILE
              : S_ISDIR(st.st_mode) ? MIC_HOST_FOLDER
                                    : MIC_HOST_OTHER;
  out->readable = access(path, R_OK) == 0;
  return 0;
}
