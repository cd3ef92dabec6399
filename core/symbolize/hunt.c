/* hunt.c - places, from those that were named to those that are far. */
#include "symbolize/hunt.h"

#include <stdlib.h>
#include <string.h>

#include "image/build_id.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

bool mic_hunt_has_lines(struct mic_elf *elf) { return mic_elf_has_section(elf, ".debug_info"); }

void mic_hunt_take(struct mic_hunt *hunt, int fd, const char *path) {
  char *copy = mic_strndup(path, strlen(path));
  mic_found_release(&hunt->best);
  hunt->best = (struct mic_found){.fd = fd, .path = copy, .label = copy};
}

static bool try_folders(struct mic_hunt *hunt) {
  struct mic_finder *f = hunt->finder;
  for (const char *const *folder = f->folders; folder && *folder; folder++)
    if (hunt->try_folder(hunt, *folder)) return true;
  const char *path =
    mic_scan_find(&f->scan, MIC_SCAN_DEBUG, hunt->wanted->build_id, hunt->wanted->build_id_size);
  return path && hunt->try_file(hunt, path);
}

static bool try_build_id(struct mic_hunt *hunt, const char *folder) {
  static const char *const endings[] = {".debug", "", "/debug", "/elf", NULL}; /* perf's last two */
  const struct mic_wanted *wanted = hunt->wanted;
  char path[PATH_BYTES];
  for (const char *const *ending = endings; *ending; ending++)
    if (mic_build_id_path(folder, wanted->build_id, wanted->build_id_size, *ending, path,
                          sizeof path) &&
        hunt->try_file(hunt, path))
      return true;
  return false;
}

/* Where files are laid out by their build IDs. */
static bool try_build_ids(struct mic_hunt *hunt) {
  char cache[PATH_BYTES];
  for (const char *const *folder = hunt->finder->debug_dirs; folder && *folder; folder++)
    if (try_build_id(hunt, *folder)) return true;
  return mic_build_id_perf_folder(cache, sizeof cache) && try_build_id(hunt, cache);
}

static bool try_server(struct mic_hunt *hunt, enum mic_fetch_kind kind) {
  struct mic_finder *f = hunt->finder;
  if (!f->fetch) return false;
  char *path =
    mic_fetch_file(f->fetch, kind, hunt->wanted->build_id, hunt->wanted->build_id_size, f->problem);
  bool found = path && hunt->try_file(hunt, path);
  free(path);
  return found;
}

bool mic_hunt_find(struct mic_hunt *hunt, struct mic_found *out) {
  hunt->best.fd = -1;
  if (!try_folders(hunt) && !try_build_ids(hunt) && !hunt->try_installed(hunt) &&
      !try_server(hunt, MIC_FETCH_DEBUG) && hunt->best.fd < 0)
    try_server(hunt, MIC_FETCH_IMAGE);
  if (hunt->best.fd < 0) return false;
  *out = hunt->best;
  return true;
}
