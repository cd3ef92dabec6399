/* perfdata_image.c - files of this machine that have the build ID which a perf.data tells. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/build_id.h"
#include "import/perfdata_inside.h"

/* The vDSO of this kernel, when it is the one that was mapped. */
static int open_vdso(const struct mic_target_map *map, const char **problem) {
  size_t size;
  const void *bytes = mic_elf_own_vdso(&size);
  struct mic_elf *elf = NULL;
  *problem = "the vDSO that was mapped is not this kernel's";
  if (!bytes || mic_elf_open_memory(bytes, size, "[vdso]", &elf, NULL) != 0) return -1;
  bool same = mic_build_id_is(elf, map->build_id, map->build_id_size);
  mic_elf_close(elf);
  if (!same) return -1;
  int fd = memfd_create("vdso", MFD_CLOEXEC);
  if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) {
    *problem = NULL;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

/* Only regular files: to open others may act, or wait. */
static int open_regular(const char *path) {
  struct stat st;
  if (path[0] != '/' || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
    close(fd);
    fd = -1;
  }
  return fd;
}

int mic_perfdata_open_image(void *data, const struct mic_target_map *map, const char **problem) {
  struct mic_perfdata *p = data;
  *problem = "the perf.data does not tell its build ID, so no file is proven to be it "
             "(perf record --buildid-all keeps those of all files)";
  if (!map->build_id_size) return -1;
  *problem = "files of this machine are not opened";
  if (!p->files) return -1;
  if (strcmp(map->path, "[vdso]") == 0) return open_vdso(map, problem);
  *problem = "there is no such file here";
  int fd = open_regular(map->path);
  if (fd < 0) return -1;
  struct mic_elf *elf = NULL;
  *problem = "the file at its path here has another build ID";
  bool same = mic_elf_open(fd, map->path, &elf, NULL) == 0 &&
              mic_build_id_is(elf, map->build_id, map->build_id_size);
  mic_elf_close(elf);
  if (same) {
    *problem = NULL;
    return fd;
  }
  close(fd);
  return -1;
}
