/* perfdata_image.c - files of this machine that have the build ID which a perf.data tells. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/build_id.h"
#include "image/debugfile.h"
#include "import/perfdata_inside.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

/* The vDSO of this kernel, when it is the one that was mapped; else -1. */
static int open_vdso(const struct mic_target_map *map) {
  size_t size;
  const void *bytes = mic_elf_own_vdso(&size);
  struct mic_elf *elf = NULL;
  if (!bytes || mic_elf_open_memory(bytes, size, "[vdso]", &elf, NULL) != 0) return -1;
  bool same = mic_build_id_is(elf, map->build_id, map->build_id_size);
  mic_elf_close(elf);
  if (!same) return -1;
  int fd = memfd_create("vdso", MFD_CLOEXEC);
  if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

struct search {
  const struct mic_target_map *map;
  bool another; /* a file with another build ID is at its path */
};

/* The file at a path when it has the build ID, else -1. */
static int open_proven(struct search *search, const char *path, bool own) {
  const struct mic_target_map *map = search->map;
  int fd = mic_debugfile_open_fd("", path);
  struct mic_elf *elf = NULL;
  if (fd < 0) return -1;
  bool same = mic_elf_open(fd, path, &elf, NULL) == 0 &&
              mic_build_id_is(elf, map->build_id, map->build_id_size);
  mic_elf_close(elf);
  if (same) return fd;
  search->another |= own;
  close(fd);
  return -1;
}

static int open_by_id(struct search *search, const char *folder) {
  const struct mic_target_map *map = search->map;
  char path[PATH_BYTES];
  int fd = -1;
  for (const char *const *ending = mic_build_id_images; *ending && fd < 0; ending++)
    if (mic_build_id_path(folder, map->build_id, map->build_id_size, *ending, path, sizeof path))
      fd = open_proven(search, path, false);
  return fd;
}

static int open_below(struct search *search, const char *folder) {
  char path[PATH_BYTES];
  int size = snprintf(path, sizeof path, "%s%s", folder, search->map->path);
  int fd = -1;
  if (size > 0 && (size_t)size < sizeof path && search->map->path[0] == '/')
    fd = open_proven(search, path, false);
  return fd < 0 ? open_by_id(search, folder) : fd;
}

static int open_cached(struct search *search) {
  char folder[PATH_BYTES];
  return mic_build_id_perf_folder(folder, sizeof folder) ? open_by_id(search, folder) : -1;
}

int mic_perfdata_open_image(void *data, const struct mic_target_map *map, const char **problem) {
  const struct mic_perfdata *p = data;
  struct search search = {.map = map};
  *problem = "the perf.data does not tell its build ID, so no file is proven to be it "
             "(perf record --buildid-all keeps those of all files)";
  if (!map->build_id_size) return -1;
  *problem = "files of this machine are not opened";
  if (!p->files) return -1;
  int fd = -1;
  if (strcmp(map->path, "[vdso]") == 0)
    fd = open_vdso(map);
  else if (map->path[0] == '/')
    fd = open_proven(&search, map->path, true);
  for (const char *const *folder = p->folders; folder && *folder && fd < 0; folder++)
    fd = open_below(&search, *folder);
  if (fd < 0) fd = open_cached(&search);
  *problem =
    search.another
      ? "the file at its path here has another build ID (convert --debug-dir looks elsewhere)"
      : "no file with its build ID was found (convert --debug-dir looks elsewhere)";
  if (fd >= 0) *problem = NULL;
  return fd;
}
