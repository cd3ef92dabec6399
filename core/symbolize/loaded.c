/* loaded.c - find the file of a kernel module: as it is installed, or with its debug information.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image/build_id.h"
#include "image/debugfile.h"
#include "symbolize/hunt.h"
#include "symbolize/relocatable.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

/* Makes an image of a module's file that has the build ID. */
static bool take(struct mic_hunt *hunt, int fd, const char *path, struct mic_error *err) {
  struct mic_relocated image;
  if (mic_relocatable_image(fd, path, &image, err) != MIC_OK) return false;
  mic_hunt_take(hunt, image.fd, path);
  hunt->best.slide = -image.address; /* offsets begin at 0 */
  hunt->best.code_size = image.size;
  hunt->best.alone = true;
  return true;
}

/* Takes a file when it is better than what is there; true when none can be better. */
static bool try_file(struct mic_hunt *hunt, const char *path) {
  int fd = mic_debugfile_open_fd("", path);
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  if (fd < 0) return false;
  int unpacked = mic_relocatable_unpack(fd, path, &err);
  int file = unpacked >= 0 ? unpacked : fd;
  if (!err.code) mic_elf_open_debug(file, path, &elf, &err);
  bool lines = elf && mic_hunt_has_lines(elf), takes = elf && (hunt->best.fd < 0 || lines);
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

static bool try_joined(struct mic_hunt *hunt, const char *folder, const char *rest, size_t size) {
  char path[PATH_BYTES];
  int got = snprintf(path, sizeof path, "%s%.*s", folder, (int)size, rest);
  return got > 0 && (size_t)got < sizeof path && try_file(hunt, path);
}

/* As it is installed, and its debug file, which has the same name without what compression adds. */
static bool try_path(struct mic_hunt *hunt, const char *folder, bool itself) {
  const char *path = hunt->wanted->path, *end = strstr(path, ".ko");
  size_t size = strlen(path), plain = end ? (size_t)(end - path) + 3 : size;
  if (path[0] != '/' || size > PATH_BYTES) return false;
  if (itself && try_joined(hunt, folder, path, size)) return true;
  return (!itself || plain != size) && try_joined(hunt, folder, path, plain);
}

static bool try_folder(struct mic_hunt *hunt, const char *folder) {
  return try_path(hunt, folder, true);
}

/* Debug files are laid out as what they are of. */
static bool try_installed(struct mic_hunt *hunt) {
  for (const char *const *folder = hunt->finder->debug_dirs; folder && *folder; folder++)
    if (try_path(hunt, *folder, false)) return true;
  return try_path(hunt, "", true);
}

bool mic_finder_loaded(struct mic_finder *f, const struct mic_wanted *wanted,
                       struct mic_found *out) {
  struct mic_hunt hunt = {.finder = f,
                          .wanted = wanted,
                          .try_file = try_file,
                          .try_folder = try_folder,
                          .try_installed = try_installed};
  if (mic_hunt_find(&hunt, out)) return true;
  mic_problem_add(f->problem, "no file with its build ID was found");
  return false;
}
