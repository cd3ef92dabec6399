/* loaded.c - find the file of a kernel module: as it is installed, or with its debug information.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/build_id.h"
#include "image/debugfile.h"
#include "symbolize/find.h"
#include "symbolize/relocatable.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

struct hunt {
  struct mic_finder *finder;
  const struct mic_wanted *wanted;
  struct mic_found best; /* has symbols; fd -1: none yet */
};

static bool has_lines(struct mic_elf *elf) {
  struct mic_elf_section section;
  return mic_elf_section(elf, ".debug_info", &section, NULL);
}

/* Makes an image of a module's file that has the build ID. */
static bool take(struct hunt *hunt, int fd, const char *path, struct mic_error *err) {
  struct mic_relocated image;
  if (mic_relocatable_image(fd, path, &image, err) != MIC_OK) return false;
  mic_found_release(&hunt->best);
  char *copy = mic_strndup(path, strlen(path));
  hunt->best = (struct mic_found){
    .fd = image.fd,
    .path = copy,
    .label = copy,
    .slide = -image.address, /* offsets begin at 0 */
    .code_size = image.size,
    .alone = true,
  };
  return true;
}

/* Takes a file when it is better than what is there; true when none can be better. */
static bool try_file(struct hunt *hunt, const char *path) {
  int fd = mic_debugfile_open_fd("", path);
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  if (fd < 0) return false;
  int unpacked = mic_relocatable_unpack(fd, path, &err);
  int file = unpacked >= 0 ? unpacked : fd;
  if (!err.code) mic_elf_open_debug(file, path, &elf, &err);
  bool lines = elf && has_lines(elf), takes = elf && (hunt->best.fd < 0 || lines);
  const struct mic_wanted *wanted = hunt->wanted;
  if (takes && !mic_build_id_is(elf, wanted->build_id, wanted->build_id_size)) {
    mic_problem_add(hunt->finder->problem, "%s has another build ID", path);
    takes = false;
  }
  mic_elf_close(elf);
  if (takes) takes = take(hunt, file, path, &err);
  if (err.code) mic_problem_add(hunt->finder->problem, "%s", err.msg);
  if (unpacked >= 0) close(unpacked);
  close(fd);
  return takes && lines;
}

static bool try_joined(struct hunt *hunt, const char *folder, const char *rest, size_t size) {
  char path[PATH_BYTES];
  int got = snprintf(path, sizeof path, "%s%.*s", folder, (int)size, rest);
  return got > 0 && (size_t)got < sizeof path && try_file(hunt, path);
}

/* As it is installed, and its debug file, which has the same name without what compression adds. */
static bool try_installed(struct hunt *hunt, const char *folder, bool itself) {
  const char *path = hunt->wanted->path, *end = strstr(path, ".ko");
  size_t size = strlen(path), plain = end ? (size_t)(end - path) + 3 : size;
  if (path[0] != '/' || size > PATH_BYTES) return false;
  if (itself && try_joined(hunt, folder, path, size)) return true;
  return (!itself || plain != size) && try_joined(hunt, folder, path, plain);
}

static bool take_place(void *data, const char *path) { return try_file(data, path); }

/* Debug files are laid out as what they are of. */
static bool try_debug_dirs(struct hunt *hunt) {
  for (const char *const *folder = hunt->finder->debug_dirs; folder && *folder; folder++)
    if (try_installed(hunt, *folder, false)) return true;
  return false;
}

static bool try_folders(struct hunt *hunt) {
  struct mic_finder *f = hunt->finder;
  for (const char *const *folder = f->folders; folder && *folder; folder++)
    if (try_installed(hunt, *folder, true)) return true;
  const char *path =
    mic_scan_find(&f->scan, MIC_SCAN_DEBUG, hunt->wanted->build_id, hunt->wanted->build_id_size);
  return path && try_file(hunt, path);
}

static bool try_server(struct hunt *hunt, enum mic_fetch_kind kind) {
  struct mic_finder *f = hunt->finder;
  if (!f->fetch) return false;
  char *path =
    mic_fetch_file(f->fetch, kind, hunt->wanted->build_id, hunt->wanted->build_id_size, f->problem);
  bool found = path && try_file(hunt, path);
  free(path);
  return found;
}

bool mic_finder_loaded(struct mic_finder *f, const struct mic_wanted *wanted,
                       struct mic_found *out) {
  struct hunt hunt = {.finder = f, .wanted = wanted, .best = {.fd = -1}};
  if (!try_folders(&hunt) && !mic_finder_places(f, wanted, take_place, &hunt) &&
      !try_debug_dirs(&hunt) && !try_installed(&hunt, "", true) &&
      !try_server(&hunt, MIC_FETCH_DEBUG) && hunt.best.fd < 0)
    try_server(&hunt, MIC_FETCH_IMAGE);
  if (hunt.best.fd >= 0) {
    *out = hunt.best;
    return true;
  }
  mic_problem_add(f->problem, "no file with its build ID was found");
  return false;
}
