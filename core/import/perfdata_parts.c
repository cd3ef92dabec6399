/*
 * perfdata_parts.c - the files of a folder that perf record --threads made.
 *
 * `data` is a perf.data as others; beside it each ring had a file of its own, data.0 and on, that
 * has nothing but records (tools/perf/util/data.c).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/perfdata_inside.h"

enum {
  PARTS_MAX = 65536, /* a ring of each CPU */
  PREFIX = 5         /* bytes of "data." */
};

/* The folder of a perf.data that is called `data`, with its "/"; false: it is called otherwise. */
static bool folder_of(const struct mic_perfdata *p, char *out, size_t size) {
  const char *slash = strrchr(p->name, '/');
  size_t length = slash ? (size_t)(slash + 1 - p->name) : 0;
  if (!p->files || !p->guard || strcmp(p->name + length, "data") != 0) return false;
  int wrote = snprintf(out, size, "%.*s", (int)length, p->name);
  return wrote >= 0 && (size_t)wrote < size;
}

/* N of "data.N", or -1. */
static int64_t number_of(const char *name) {
  size_t digits = strspn(name + PREFIX, "0123456789");
  bool plain = digits > 0 && digits <= 6 && /* PARTS_MAX has 5 */ !name[PREFIX + digits];
  return plain && (digits == 1 || name[PREFIX] != '0') ? strtol(name + PREFIX, NULL, 10) : -1;
}

static bool is_named(const char *name) { return strncmp(name, "data.", PREFIX) == 0; }

static int by_name(const void *a, const void *b) {
  const struct mic_perfdata_part *x = a, *y = b;
  return strverscmp(x->name, y->name); /* data.2 before data.10 */
}

/* The names that are there, in order: all that begin so, as perf reads them. */
static int list(struct mic_perfdata *p, const char *folder, struct mic_error *err) {
  DIR *dir = opendir(*folder ? folder : ".");
  if (!dir) return mic_fail_sys(err, "reading the folder of %.180s", p->name);
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL && p->parts.count <= PARTS_MAX;)
    if (is_named(entry->d_name))
      *mic_vec_push(&p->parts) = (struct mic_perfdata_part){
        .first = UINT64_MAX, .name = mic_strndup(entry->d_name, strlen(entry->d_name))};
  closedir(dir);
  if (p->parts.count > PARTS_MAX)
    return mic_fail(err, MIC_ELIMIT, "%.150s: more than 65535 files beside it", p->name);
  qsort(p->parts.at + 1, p->parts.count - 1, sizeof *p->parts.at, by_name);
  return 0;
}

/* What is no regular file has no records; it is told. */
static int map(struct mic_perfdata *p, struct mic_perfdata_part *part, const char *path,
               struct mic_error *err) {
  struct stat st;
  int code = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (fd < 0 && errno != ENOENT && errno != ENXIO) /* a link to nothing, a socket */
    return mic_fail_sys(err, "reading %.180s", path);
  if (!regular && !p->result->left_files++)
    snprintf(p->result->left_file, sizeof p->result->left_file, "%.90s", part->name);
  if (regular && st.st_size) {
    code = mic_guard_map(fd, (size_t)st.st_size, path, &part->guard, err);
    if (!code) part->bytes = mic_guard_bytes(part->guard);
    if (!code) part->past = (uint64_t)st.st_size;
  }
  if (fd >= 0) close(fd);
  return code;
}

/* The rings' files are numbered from 0 on. */
static void find_missing(struct mic_perfdata *p) {
  int64_t next = 0;
  for (size_t i = 1; i < p->parts.count; i++) {
    int64_t number = number_of(p->parts.at[i].name);
    if (number < next) continue;
    if (number > next && !p->result->missing_files) p->result->first_missing = (uint64_t)next;
    p->result->missing_files += (uint64_t)(number - next);
    next = number + 1;
  }
  if (p->result->missing_files)
    mic_target_problem(p->target, "files of the perf.data's folder are missing",
                       p->result->missing_files);
}

int mic_perfdata_add_unpacked(struct mic_perfdata *p, size_t number, struct mic_error *err) {
  const char *name = p->parts.at[number].name ? p->parts.at[number].name : "data";
  struct mic_perfdata_part part = {
    .first = UINT64_MAX, .name = mic_strndup(name, strlen(name)), .unpacked = true};
  struct mic_scratch *from = &p->unpacked;
  int code = mic_guard_map(from->fd, from->size, p->name, &part.guard, err);
  close(from->fd);
  from->fd = -1;
  if (code) {
    free(part.name);
    return code;
  }
  part.bytes = mic_guard_bytes(part.guard);
  part.past = from->size;
  *mic_vec_push(&p->parts) = part;
  return 0;
}

bool mic_perfdata_has_parts(const struct mic_perfdata *p) {
  char folder[4096];
  bool found = false;
  if (!folder_of(p, folder, sizeof folder)) return false;
  DIR *dir = opendir(*folder ? folder : ".");
  if (!dir) return false;
  for (const struct dirent *entry; !found && (entry = readdir(dir)) != NULL;)
    found = is_named(entry->d_name) && number_of(entry->d_name) >= 0;
  closedir(dir);
  return found;
}

int mic_perfdata_open_parts(struct mic_perfdata *p, struct mic_error *err) {
  char folder[4096], path[4096 + 256];
  int code = 0;
  *mic_vec_push(&p->parts) = (struct mic_perfdata_part){
    .bytes = p->bytes, .from = p->data, .past = p->data_end, .guard = p->guard};
  if (!p->several) return 0;
  if (folder_of(p, folder, sizeof folder)) code = list(p, folder, err);
  if (!code && p->parts.count == 1)
    code = mic_fail(err, MIC_EFORMAT,
                    "%.120s: its samples lie in other files of its folder, data.0 and on (perf "
                    "record --threads), which are not beside it: give the folder",
                    p->name);
  for (size_t i = 1; i < p->parts.count && !code; i++) {
    snprintf(path, sizeof path, "%s%s", folder, p->parts.at[i].name);
    code = map(p, &p->parts.at[i], path, err);
  }
  if (!code) find_missing(p);
  return code;
}

const struct mic_perfdata_part *mic_perfdata_part_of(const struct mic_perfdata *p,
                                                     uint64_t record) {
  size_t at = 0;
  while (at + 1 < p->parts.count && p->parts.at[at + 1].first < record) at++;
  return &p->parts.at[at];
}

void mic_perfdata_part_name(const struct mic_perfdata_part *part, char *out, size_t size) {
  *out = '\0';
  if (part->name)
    snprintf(out, size, "%.60s%s", part->name, part->unpacked ? ", decompressed" : "");
}

void mic_perfdata_close_parts(struct mic_perfdata *p) {
  for (size_t i = 1; i < p->parts.count; i++) {
    mic_guard_unmap(p->parts.at[i].guard);
    free(p->parts.at[i].name);
  }
  if (p->unpacked.fd >= 0) close(p->unpacked.fd);
  mic_vec_free(&p->parts);
}
