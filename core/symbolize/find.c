/* find.c - where images may be, and the proof that they are what was recorded. */
#include "symbolize/find.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/build_id.h"
#include "image/debugfile.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

static bool is_it(const struct mic_wanted *wanted, const struct mic_elf *elf) {
  return mic_build_id_is(elf, wanted->build_id, wanted->build_id_size);
}

/* A file on this host.  One that is there and is another one is said to be. */
static bool try_path(struct mic_finder *f, const struct mic_wanted *wanted, const char *path,
                     struct mic_found *out) {
  int fd = mic_debugfile_open_fd("", path);
  if (fd < 0) return false;
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  bool found = false;
  if (mic_elf_open(fd, path, &elf, &err) != MIC_OK)
    mic_problem_add(f->problem, "%s", err.msg);
  else if (!(found = is_it(wanted, elf)))
    mic_problem_add(f->problem, "%s has another build ID", path);
  mic_elf_close(elf);
  if (!found) {
    close(fd);
    return false;
  }
  char *copy = mic_strndup(path, strlen(path));
  *out = (struct mic_found){.fd = fd, .path = copy, .label = copy};
  return true;
}

static bool try_joined(struct mic_finder *f, const struct mic_wanted *wanted, const char *folder,
                       const char *name, struct mic_found *out) {
  char path[PATH_BYTES];
  int size = snprintf(path, sizeof path, "%s/%s", folder, name);
  return size > 0 && (size_t)size < sizeof path && try_path(f, wanted, path, out);
}

static bool try_build_id(struct mic_finder *f, const struct mic_wanted *wanted, const char *folder,
                         const char *ending, struct mic_found *out) {
  char path[PATH_BYTES];
  return mic_build_id_path(folder, wanted->build_id, wanted->build_id_size, ending, path,
                           sizeof path) &&
         try_path(f, wanted, path, out);
}

/* An image by its build ID in a folder. */
static bool try_image(struct mic_finder *f, const struct mic_wanted *wanted, const char *folder,
                      struct mic_found *out) {
  for (const char *const *ending = mic_build_id_images; *ending; ending++)
    if (try_build_id(f, wanted, folder, *ending, out)) return true;
  return false;
}

static bool try_perf_folder(struct mic_finder *f, const struct mic_wanted *wanted,
                            struct mic_found *out) {
  char folder[PATH_BYTES];
  return mic_build_id_perf_folder(folder, sizeof folder) && try_image(f, wanted, folder, out);
}

static bool try_debug_files(struct mic_finder *f, const struct mic_wanted *wanted,
                            struct mic_found *out) {
  for (const char *const *folder = f->debug_dirs; folder && *folder; folder++)
    if (try_build_id(f, wanted, *folder, ".debug", out)) return true;
  return false;
}

/* A file below the folders, as a sysroot or by its own name. */
static bool try_folders(struct mic_finder *f, const struct mic_wanted *wanted,
                        struct mic_found *out) {
  for (const char *const *folder = f->folders; folder && *folder; folder++)
    if (wanted->path[0] == '/' && try_joined(f, wanted, *folder, wanted->path, out)) return true;
  for (const char *const *folder = f->debug_dirs; folder && *folder; folder++)
    if (try_image(f, wanted, *folder, out)) return true;
  return false;
}

static bool try_scan(struct mic_finder *f, const struct mic_wanted *wanted, enum mic_scan_role role,
                     struct mic_found *out) {
  const char *path = mic_scan_find(&f->scan, role, wanted->build_id, wanted->build_id_size);
  return path && try_path(f, wanted, path, out);
}

/* The vDSO of this kernel: as a file that has its debug information too, or as it is mapped. */
static bool try_vdso(struct mic_finder *f, const struct mic_wanted *wanted, struct mic_found *out) {
  glob_t files;
  bool found = false;
  struct mic_problem *problem = f->problem, unsaid = {.size = 0};
  f->problem = &unsaid; /* each installed kernel has one: others are no problem */
  if (glob("/lib/modules/*/vdso/vdso64.so", 0, NULL, &files) == 0)
    for (size_t i = 0; i < files.gl_pathc && !found; i++)
      found = try_path(f, wanted, files.gl_pathv[i], out);
  globfree(&files);
  f->problem = problem;
  if (found) return true;
  size_t size;
  const void *own = mic_elf_own_vdso(&size);
  struct mic_elf *elf = NULL;
  if (own && mic_elf_open_memory(own, size, "[vdso]", &elf, NULL) == MIC_OK)
    found = is_it(wanted, elf);
  mic_elf_close(elf);
  if (found)
    *out = (struct mic_found){
      .fd = -1, .memory = own, .memory_size = size, .label = "the running kernel"};
  return found;
}

static bool try_kept(struct mic_finder *f, const struct mic_wanted *wanted, struct mic_found *out) {
  struct mic_error err = {0};
  int fd = mic_kept_image(&f->kept, wanted->module, &err);
  if (fd < 0) {
    if (err.code != MIC_ENOENT) mic_problem_add(f->problem, "%s", err.msg);
    return false;
  }
  struct mic_elf *elf = NULL;
  bool found = mic_elf_open(fd, wanted->path, &elf, &err) == MIC_OK &&
               (wanted->build_id_size == 0 || is_it(wanted, elf));
  mic_elf_close(elf);
  if (!found) {
    mic_problem_add(f->problem, "the kept image is not what was recorded");
    close(fd);
    return false;
  }
  char *path = mic_strndup(wanted->path, strlen(wanted->path));
  *out = (struct mic_found){.fd = fd, .path = path, .label = "the capture"};
  return true;
}

static bool try_fetch(struct mic_finder *f, const struct mic_wanted *wanted,
                      enum mic_fetch_kind kind, struct mic_found *out) {
  if (!f->fetch) return false;
  char *path = mic_fetch_file(f->fetch, kind, wanted->build_id, wanted->build_id_size, f->problem);
  bool found = path && try_path(f, wanted, path, out);
  free(path);
  return found;
}

/* The image tells of stubs and of code without symbols too, and its debug file is asked for when it
 * is opened; many servers have debug files alone, which is no problem then. */
static bool try_servers(struct mic_finder *f, const struct mic_wanted *wanted,
                        struct mic_found *out) {
  struct mic_problem *problem = f->problem, of_image = {.size = 0};
  f->problem = &of_image;
  bool found = try_fetch(f, wanted, MIC_FETCH_IMAGE, out);
  f->problem = problem;
  if (found || try_fetch(f, wanted, MIC_FETCH_DEBUG, out)) return true;
  if (of_image.size) mic_problem_add(problem, "%s", of_image.text);
  return false;
}

/* What has the loaded parts. */
static bool find_image(struct mic_finder *f, const struct mic_wanted *wanted,
                       struct mic_found *out) {
  if (wanted->build_id_size == 0) return try_kept(f, wanted, out);
  if (wanted->kind == MIC_MODULE_VDSO && try_vdso(f, wanted, out)) return true;
  if (wanted->path[0] == '/' && try_path(f, wanted, wanted->path, out)) return true;
  return try_folders(f, wanted, out) || try_scan(f, wanted, MIC_SCAN_IMAGE, out) ||
         try_perf_folder(f, wanted, out) || try_kept(f, wanted, out);
}

bool mic_finder_image(struct mic_finder *f, const struct mic_wanted *wanted,
                      struct mic_found *out) {
  if (find_image(f, wanted, out)) return true;
  if (wanted->build_id_size == 0) {
    mic_problem_add(f->problem, "it has no build ID, so no file can be proven to be it");
    return false;
  }
  if (try_debug_files(f, wanted, out) || try_scan(f, wanted, MIC_SCAN_DEBUG, out) ||
      try_servers(f, wanted, out))
    return true;
  mic_problem_add(f->problem, "no file with its build ID was found");
  if (f->scan.entries > MIC_SCAN_ENTRIES_MAX)
    mic_problem_add(f->problem, "only %d entries of the folders were looked at",
                    MIC_SCAN_ENTRIES_MAX);
  return false;
}

void mic_found_release(struct mic_found *found) {
  if (found->fd >= 0) close(found->fd);
  free(found->path);
  mic_kernel_names_free(found->kernel);
  *found = (struct mic_found){.fd = -1};
}

char *mic_finder_file(void *data, const uint8_t *build_id, size_t size) {
  struct mic_finder *f = data;
  const char *path = mic_scan_find(&f->scan, MIC_SCAN_DEBUG, build_id, size);
  if (path) return mic_strndup(path, strlen(path));
  return f->fetch ? mic_fetch_file(f->fetch, MIC_FETCH_DEBUG, build_id, size, f->problem) : NULL;
}

void mic_finder_free(struct mic_finder *f) {
  mic_scan_free(&f->scan);
  mic_fetch_free(f->fetch);
  mic_kept_free(&f->kept);
  free(f->kernel_symbol);
  free(f->kernel_release);
}
