/* debugfile.c - search rules and proofs of separate debug files. */
#include "image/debugfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "image/build_id.h"

enum { PATH_MAX_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

static const char *const default_dirs[] = {"/usr/lib/debug", NULL};

struct hunt {
  const struct mic_debugfile_search *search;
  const uint8_t *build_id; /* size 0: the image has none */
  size_t build_id_size;
  bool has_crc;
  uint32_t crc;
  const char *what; /* for problems: "debug file" */
  struct mic_debugfile *out;
  struct mic_problem *problem;
};

/* Symbolic links of a target's file system are resolved in it, not in ours. */
static int open_in_root(const char *root, const char *path, int flags) {
  int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return -1;
  struct open_how how = {.flags = (unsigned)flags,
                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
  close(dir);
  return fd;
}

int mic_debugfile_open_fd(const char *root, const char *path) {
  int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* a FIFO or a tty must not hold us */
  int fd = root[0] ? open_in_root(root, path, flags) : open(path, flags);
  struct stat st;
  if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
    close(fd);
    return -1;
  }
  return fd;
}

/* The CRC-32 of a whole file, as .gnu_debuglink has it (gdb manual, "Separate Debug Files"). */
static bool has_crc(int fd, uint32_t want) {
  size_t room = 1 << 20;
  unsigned char *buffer = mic_alloc(room);
  uint32_t crc = 0; /* what libdeflate starts from */
  off_t at = 0;
  ssize_t got;
  while ((got = pread(fd, buffer, room, at)) > 0) {
    crc = libdeflate_crc32(crc, buffer, (size_t)got);
    at += got;
  }
  free(buffer);
  return got == 0 && crc == want;
}

static bool has_something(struct mic_elf *elf) {
  struct mic_elf_section s;
  return mic_elf_section(elf, ".debug_info", &s, NULL) ||
         mic_elf_section(elf, ".debug_line", &s, NULL) || mic_elf_section(elf, ".symtab", &s, NULL);
}

/* Is this file proven?  Says why not when it claims to be. */
static bool is_proven(const struct hunt *hunt, int fd, struct mic_elf *elf, const char *root,
                      const char *path) {
  const uint8_t *id;
  size_t size = mic_elf_build_id(elf, &id);
  if (size > 0 && hunt->build_id_size > 0) {
    if (mic_build_id_is(elf, hunt->build_id, hunt->build_id_size)) return true;
    mic_problem_add(hunt->problem, "%s %s%s has another build ID", hunt->what, root, path);
    return false;
  }
  if (hunt->has_crc && has_crc(fd, hunt->crc)) return true;
  mic_problem_add(hunt->problem, "%s %s%s has %s", hunt->what, root, path,
                  hunt->has_crc ? "another CRC than the debuglink" : "no build ID");
  return false;
}

static bool try_file(const struct hunt *hunt, const char *root, const char *path) {
  int fd = mic_debugfile_open_fd(root, path);
  if (fd < 0) return false;
  struct mic_elf *elf = NULL;
  struct mic_error err;
  bool found = false;
  if (mic_elf_open_debug(fd, path, &elf, &err) != MIC_OK)
    mic_problem_add(hunt->problem, "%s %s", hunt->what, err.msg);
  else
    found = has_something(elf) && is_proven(hunt, fd, elf, root, path);
  close(fd);
  if (!found) {
    mic_elf_close(elf);
    return false;
  }
  *hunt->out = (struct mic_debugfile){elf, mic_strndup(path, strlen(path)), root};
  return true;
}

static bool try_roots(const struct hunt *hunt, const char *path) {
  const char *root = hunt->search->root ? hunt->search->root : "";
  if (root[0] && try_file(hunt, root, path)) return true;
  return try_file(hunt, "", path);
}

static const char *const *dirs_of(const struct mic_debugfile_search *search) {
  return search->debug_dirs ? search->debug_dirs : default_dirs;
}

/* DIR/.build-id/ab/cdef.debug */
static bool try_build_id(const struct hunt *hunt) {
  char path[PATH_MAX_BYTES];
  for (const char *const *dir = dirs_of(hunt->search); *dir; dir++)
    if (mic_build_id_path(*dir, hunt->build_id, hunt->build_id_size, ".debug", path, sizeof path) &&
        try_roots(hunt, path))
      return true;
  return false;
}

/* A file that the caller knows of; it is proven as any other. */
static bool try_found(const struct hunt *hunt) {
  if (!hunt->search->find_file || hunt->build_id_size == 0) return false;
  char *path =
    hunt->search->find_file(hunt->search->find_data, hunt->build_id, hunt->build_id_size);
  bool found = path && try_file(hunt, "", path);
  free(path);
  return found;
}

static bool try_beside(const struct hunt *hunt, const char *before, const char *dir,
                       size_t dir_size, const char *between, const char *name) {
  char path[PATH_MAX_BYTES];
  int size = snprintf(path, sizeof path, "%s%.*s%s%s", before, (int)dir_size, dir, between, name);
  return size > 0 && size < (int)sizeof path && try_roots(hunt, path);
}

/* The size of a path's folder with its last slash, 0 when it has none. */
static size_t folder_size(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  size_t size = slash ? (size_t)(slash - path) + 1 : 0;
  return size < PATH_MAX_BYTES ? size : 0;
}

static bool try_debuglink(struct hunt *hunt, struct mic_elf *image) {
  struct mic_elf_section link;
  if (!mic_elf_section(image, ".gnu_debuglink", &link, NULL)) return false;
  const char *name = (const char *)link.bytes;
  size_t size = strnlen(name, link.size), crc_at = (size + 4) & ~(size_t)3;
  if (size == 0 || size >= PATH_MAX_BYTES || link.size < 4 || crc_at > link.size - 4) {
    mic_problem_add(hunt->problem, "malformed .gnu_debuglink");
    return false;
  }
  char base[PATH_MAX_BYTES]; /* a copy: the section is a mapped file's */
  memcpy(base, name, size);
  base[size] = 0;
  if (strchr(base, '/')) return false; /* a name, never a path */
  memcpy(&hunt->crc, link.bytes + crc_at, sizeof hunt->crc);
  hunt->has_crc = true;
  const char *dir = hunt->search->path;
  size_t dir_size = folder_size(dir);
  if (dir_size == 0) return false;
  if (try_beside(hunt, "", dir, dir_size, "", base)) return true;
  if (try_beside(hunt, "", dir, dir_size, ".debug/", base)) return true;
  for (const char *const *under = dirs_of(hunt->search); *under; under++)
    if (dir[0] == '/' && try_beside(hunt, *under, dir, dir_size, "", base)) return true;
  return false;
}

bool mic_debugfile_find(const struct mic_debugfile_search *search, struct mic_elf *image,
                        struct mic_debugfile *out, struct mic_problem *problem) {
  *out = (struct mic_debugfile){0};
  struct hunt hunt = {.search = search, .what = "debug file", .out = out, .problem = problem};
  hunt.build_id_size = mic_elf_build_id(image, &hunt.build_id);
  return try_build_id(&hunt) || try_debuglink(&hunt, image) || try_found(&hunt);
}

bool mic_debugfile_find_alt(const struct mic_debugfile_search *search, struct mic_elf *elf,
                            const char *path, struct mic_debugfile *out,
                            struct mic_problem *problem) {
  *out = (struct mic_debugfile){0};
  struct mic_elf_section link;
  if (!mic_elf_section(elf, ".gnu_debugaltlink", &link, NULL)) return false;
  char name[PATH_MAX_BYTES];
  size_t size = strnlen((const char *)link.bytes, link.size);
  if (size == 0 || size + 2 >= link.size || size >= sizeof name ||
      link.size - size - 1 > MIC_BUILD_ID_MAX) {
    mic_problem_add(problem, "malformed .gnu_debugaltlink");
    return false;
  }
  memcpy(name, link.bytes, size);
  name[size] = 0;
  struct hunt hunt = {
    .search = search, .what = "shared debug file", .out = out, .problem = problem};
  hunt.build_id = link.bytes + size + 1;
  hunt.build_id_size = link.size - size - 1;
  bool found = name[0] == '/'
                 ? try_roots(&hunt, name)
                 : try_beside(&hunt, "", path ? path : "", folder_size(path), "", name);
  if (found || try_build_id(&hunt) || try_found(&hunt)) return true;
  mic_problem_add(problem, "shared debug file %s not found", name);
  return false;
}

void mic_debugfile_close(struct mic_debugfile *file) {
  mic_elf_close(file->elf);
  free(file->path);
  *file = (struct mic_debugfile){0};
}
