/* scan.c - read folders for ELF files with build IDs. */
#include "symbolize/scan.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/elf.h"

enum {
  DEPTH_MAX = 64, /* trees of debug files mirror file systems, which are not that deep */
};

static void add_file(struct mic_scan *scan, struct mic_elf *elf, const char *path) {
  const uint8_t *id;
  size_t size = mic_elf_build_id(elf, &id);
  if (size == 0) return;
  uint32_t of = mic_intern(&scan->build_ids, (const char *)id, size);
  if (of == scan->first.count) *mic_vec_push(&scan->first) = MIC_NONE;
  *mic_vec_push(&scan->files) = (struct mic_scan_file){
    .path = mic_strndup(path, strlen(path)),
    .image = mic_elf_has_section(elf, ".eh_frame") || mic_elf_has_section(elf, ".dynsym"),
    .lines = mic_elf_has_section(elf, ".debug_info"),
    .symbols = mic_elf_has_section(elf, ".symtab"),
    .next = scan->first.at[of],
  };
  scan->first.at[of] = (uint32_t)scan->files.count - 1;
}

static void read_file(struct mic_scan *scan, int folder, const char *name, const char *path) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat st;
  char magic[SELFMAG];
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
      pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
      memcmp(magic, ELFMAG, SELFMAG) == 0 && mic_elf_open_debug(fd, path, &elf, &err) == MIC_OK)
    add_file(scan, elf, path);
  mic_elf_close(elf);
  if (fd >= 0) close(fd);
}

static void read_folder(struct mic_scan *scan, int fd, const char *path, int depth);

static void read_entry(struct mic_scan *scan, int folder, const struct dirent *entry,
                       const char *path, int depth) {
  char below[4096]; /* PATH_MAX */
  int size = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
  if (size < 0 || (size_t)size >= sizeof below) return;
  struct stat st;
  bool is_folder = entry->d_type == DT_DIR;
  /* Some file systems do not tell the type with the name. */
  if (entry->d_type == DT_UNKNOWN && fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
    is_folder = S_ISDIR(st.st_mode);
  if (!is_folder) {
    if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
      read_file(scan, folder, entry->d_name, below);
    return;
  }
  int fd = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0) read_folder(scan, fd, below, depth + 1);
}

/* Takes the descriptor. */
static void read_folder(struct mic_scan *scan, int fd, const char *path, int depth) {
  DIR *folder = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
  if (!folder) {
    close(fd);
    return;
  }
  for (struct dirent *entry; (entry = readdir(folder)) && !atomic_load(scan->cancel);) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (++scan->entries > MIC_SCAN_ENTRIES_MAX) break;
    read_entry(scan, dirfd(folder), entry, path, depth);
  }
  closedir(folder);
}

static bool is_better(const struct mic_scan_file *a, const struct mic_scan_file *b,
                      enum mic_scan_role role) {
  if (role == MIC_SCAN_IMAGE && !a->image) return false;
  if (role == MIC_SCAN_DEBUG && !a->lines && !a->symbols) return false;
  if (!b) return true;
  if (a->lines != b->lines) return a->lines;
  if (a->symbols != b->symbols) return a->symbols;
  return strcmp(a->path, b->path) < 0; /* the same answer in any order of reading */
}

const char *mic_scan_find(struct mic_scan *scan, enum mic_scan_role role, const uint8_t *build_id,
                          size_t size) {
  for (const char *const *folder = scan->folders; !scan->done && folder && *folder; folder++) {
    int fd = open(*folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) read_folder(scan, fd, *folder, 0);
  }
  scan->done = true;
  uint32_t of = mic_interner_find(&scan->build_ids, (const char *)build_id, size);
  const struct mic_scan_file *best = NULL;
  for (uint32_t i = of == MIC_NONE ? MIC_NONE : scan->first.at[of]; i != MIC_NONE;
       i = scan->files.at[i].next)
    if (is_better(&scan->files.at[i], best, role)) best = &scan->files.at[i];
  return best ? best->path : NULL;
}

void mic_scan_free(struct mic_scan *scan) {
  for (size_t i = 0; i < scan->files.count; i++) free(scan->files.at[i].path);
  mic_interner_free(&scan->build_ids);
  mic_vec_free(&scan->first);
  mic_vec_free(&scan->files);
}
