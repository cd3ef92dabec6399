/* host.c - facts of the process, its user and its terminal. */
#include "script/host.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/leftover.h"

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
  out->written_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
  return 0;
}

struct mic_host_names {
  MIC_VEC(char *) list;
};

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

MIC_EXPORT int32_t mic_host_names(const char *folder, struct mic_host_names **out) {
  *out = NULL;
  DIR *dir = opendir(folder);
  if (!dir) return errno;
  struct mic_host_names *names = mic_alloc(sizeof *names);
  const struct dirent *entry;
  while (errno = 0, (entry = readdir(dir)))
    if (entry->d_name[0] != '.')
      *mic_vec_push(&names->list) = mic_strndup(entry->d_name, strlen(entry->d_name));
  int failed = errno;
  closedir(dir);
  if (failed) {
    mic_host_names_free(names);
    return failed;
  }
  if (names->list.count) qsort(names->list.at, names->list.count, sizeof *names->list.at, by_bytes);
  *out = names;
  return 0;
}

MIC_EXPORT const char *mic_host_name(const struct mic_host_names *names, uint32_t index) {
  return index < names->list.count ? names->list.at[index] : NULL;
}

MIC_EXPORT void mic_host_names_free(struct mic_host_names *names) {
  if (!names) return;
  for (size_t i = 0; i < names->list.count; i++) free(names->list.at[i]);
  mic_vec_free(&names->list);
  free(names);
}

MIC_EXPORT int32_t mic_host_make_folder(const char *path) {
  char *copy = mic_strndup(path, strlen(path));
  int failed = 0;
  for (char *at = copy + 1; !failed; at++) {
    if (*at && *at != '/') continue;
    char kept = *at;
    *at = '\0';
    if (mkdir(copy, 0700) != 0 && errno != EEXIST) failed = errno;
    *at = kept;
    if (!kept) break;
  }
  free(copy);
  return failed;
}

static volatile sig_atomic_t interrupts;

static void note_interrupt(int number) {
  if (interrupts++ == 0) return;
  mic_leftover_remove();
  struct sigaction dying = {.sa_handler = SIG_DFL};
  sigaction(number, &dying, NULL);
  raise(number);
}

MIC_EXPORT void mic_host_watch_interrupt(int32_t on) {
  struct sigaction action = {.sa_handler =
                               on ? note_interrupt : SIG_DFL}; /* reads end: no restart */
  interrupts = 0;
  sigaction(SIGINT, &action, NULL);
}

MIC_EXPORT int32_t mic_host_interrupted(void) {
  int came = interrupts != 0;
  interrupts = 0;
  return came;
}
