/*
 * perfdata_parts.c - the files of a folder that perf record --threads made.
 *
 * `data` is a perf.data as others; beside it each ring had a file of its own, data.0 and on, that
 * has nothing but records (tools/perf/util/data.c).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/perfdata_inside.h"

enum { PARTS_MAX = 65536 }; /* a ring of each CPU */

/* The folder of a perf.data that is called `data`, with its "/"; false: it is called otherwise. */
static bool folder_of(const struct mic_perfdata *p, char *out, size_t size) {
  const char *slash = strrchr(p->name, '/');
  size_t length = slash ? (size_t)(slash + 1 - p->name) : 0;
  if (!p->files || !p->guard || strcmp(p->name + length, "data") != 0) return false;
  int wrote = snprintf(out, size, "%.*s", (int)length, p->name);
  return wrote >= 0 && (size_t)wrote < size;
}

/* N of "data.N", or -1. */
static int32_t number_of(const char *name) {
  static const char prefix[] = "data.";
  size_t digits = strspn(name + (strncmp(name, prefix, 5) == 0 ? 5 : 0), "0123456789");
  if (strncmp(name, prefix, 5) != 0 || digits == 0 || digits > 6 || name[5 + digits]) return -1;
  return (int32_t)strtol(name + 5, NULL, 10);
}

static int by_number(const void *a, const void *b) {
  const struct mic_perfdata_part *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* The numbers that are there, in order. */
static int list(struct mic_perfdata *p, const char *folder, struct mic_error *err) {
  DIR *dir = opendir(*folder ? folder : ".");
  if (!dir) return mic_fail_sys(err, "reading the folder of %.180s", p->name);
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    struct mic_perfdata_part part = {.number = number_of(entry->d_name), .first = UINT64_MAX};
    if (part.number >= 0 && p->parts.count <= PARTS_MAX) *mic_vec_push(&p->parts) = part;
  }
  closedir(dir);
  if (p->parts.count > PARTS_MAX)
    return mic_fail(err, MIC_ELIMIT, "%.150s: more than 65536 files beside it", p->name);
  qsort(p->parts.at + 1, p->parts.count - 1, sizeof *p->parts.at, by_number);
  return 0;
}

static int map(struct mic_perfdata_part *part, const char *path, struct mic_error *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return mic_fail_sys(err, "reading %.180s", path);
  int code = 0;
  if (fstat(fd, &st) != 0)
    code = mic_fail_sys(err, "reading %.180s", path);
  else if (!S_ISREG(st.st_mode))
    code = mic_fail(err, MIC_EFORMAT, "%.180s is no regular file", path);
  else if (st.st_size)
    code = mic_guard_map(fd, (size_t)st.st_size, path, &part->guard, err);
  close(fd);
  if (!part->guard) return code;
  part->bytes = mic_guard_bytes(part->guard);
  part->past = (uint64_t)st.st_size;
  return code;
}

int mic_perfdata_add_unpacked(struct mic_perfdata *p, size_t number, struct mic_error *err) {
  struct mic_perfdata_part part = {
    .first = UINT64_MAX, .number = p->parts.at[number].number, .unpacked = true};
  struct mic_scratch *from = &p->unpacked;
  int code = mic_guard_map(from->fd, from->size, p->name, &part.guard, err);
  close(from->fd);
  from->fd = -1;
  if (code) return code;
  part.bytes = mic_guard_bytes(part.guard);
  part.past = from->size;
  *mic_vec_push(&p->parts) = part;
  return 0;
}

bool mic_perfdata_has_parts(const struct mic_perfdata *p) {
  char folder[4096], path[4096 + 16];
  if (!folder_of(p, folder, sizeof folder)) return false;
  snprintf(path, sizeof path, "%s/data.0", *folder ? folder : ".");
  return access(path, F_OK) == 0;
}

int mic_perfdata_open_parts(struct mic_perfdata *p, struct mic_error *err) {
  char folder[4096], path[4096 + 16];
  int code = 0;
  *mic_vec_push(&p->parts) = (struct mic_perfdata_part){
    .bytes = p->bytes, .from = p->data, .past = p->data_end, .guard = p->guard, .number = -1};
  if (!p->several) return 0;
  bool known = folder_of(p, folder, sizeof folder);
  if (known) code = list(p, folder, err);
  if (!code && p->parts.count == 1)
    code = mic_fail(err, MIC_EFORMAT,
                    "%.120s: its samples lie in other files of its folder, data.0 and on (perf "
                    "record --threads), which are not beside it: give the folder",
                    p->name);
  uint64_t missing = 0;
  for (size_t i = 1; i < p->parts.count && !code; i++) {
    snprintf(path, sizeof path, "%sdata.%d", folder, p->parts.at[i].number);
    code = map(&p->parts.at[i], path, err);
    missing = (uint64_t)p->parts.at[i].number + 1 - i;
  }
  if (missing)
    mic_target_problem(p->target, "files of the perf.data's folder are missing", missing);
  return code;
}

const struct mic_perfdata_part *mic_perfdata_part_of(const struct mic_perfdata *p,
                                                     uint64_t record) {
  size_t at = 0;
  while (at + 1 < p->parts.count && p->parts.at[at + 1].first < record) at++;
  return &p->parts.at[at];
}

void mic_perfdata_close_parts(struct mic_perfdata *p) {
  for (size_t i = 1; i < p->parts.count; i++) mic_guard_unmap(p->parts.at[i].guard);
  if (p->unpacked.fd >= 0) close(p->unpacked.fd);
  mic_vec_free(&p->parts);
}
