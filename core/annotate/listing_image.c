/*
 * listing_image.c - open the image that was recorded, or say why it is not there.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "annotate/listing_internal.h"
#include "image/build_id.h"
#include "image/debugfile.h"

static uint64_t ns_of(const struct timespec *time) {
  return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

/* Anyone can set the time of the last write back (cp -p, tar), but not that of the last change. */
static bool is_older(const struct stat *st, uint64_t time_ns) {
  return ns_of(&st->st_mtim) < time_ns && ns_of(&st->st_ctim) < time_ns;
}

/* Is it the recorded image? */
static int prove(const struct mic_listing_source *source, const struct mic_elf *elf,
                 const struct stat *st, struct mic_error *err) {
  char id[MIC_BUILD_ID_TEXT];
  const uint8_t *bytes;
  size_t size = mic_elf_build_id(elf, &bytes);
  mic_build_id_text(bytes, size, id);
  if (strcmp(id, source->build_id) != 0)
    return mic_fail(
      err, MIC_ESTATE, "%s is not what was recorded: its build ID is %s, the recorded one %s",
      mic_elf_name(elf), *id ? id : "missing", *source->build_id ? source->build_id : "missing");
  if (*id) return MIC_OK;
  if ((uint64_t)st->st_ino != source->inode || (uint64_t)st->st_size != source->file_size ||
      !is_older(st, source->recorded_at_ns))
    return mic_fail(err, MIC_ESTATE,
                    "%s has no build ID (link it with -Wl,--build-id) and was written, replaced"
                    " or changed since the recording",
                    mic_elf_name(elf));
  return MIC_OK;
}

static int open_symbols(struct mic_listing *l, const struct mic_symbols_source *from,
                        const char *debug_dir, struct mic_error *err) {
  const char *dirs[] = {debug_dir, NULL};
  struct mic_symbols_source source = *from;
  source.path = l->path;
  source.root = "";
  source.debug_dirs = debug_dir ? dirs : NULL;
  return mic_symbols_open(&source, &l->symbols, err);
}

static int open_file(struct mic_listing *l, const struct mic_listing_source *source,
                     const char *path, struct mic_error *err) {
  struct stat st;
  int fd = mic_debugfile_open_fd("", path);
  if (fd < 0 || fstat(fd, &st) != 0) {
    if (fd >= 0) close(fd);
    return mic_fail(err, MIC_ENOENT, "%s is not there or cannot be read", path);
  }
  int code = mic_elf_open(fd, path, &l->elf, err);
  if (code == MIC_OK) code = prove(source, l->elf, &st, err);
  if (code == MIC_OK) {
    l->path = mic_strndup(path, strlen(path));
    l->written_ns = ns_of(&st.st_mtim);
    code = open_symbols(l, &(struct mic_symbols_source){.fd = fd}, source->debug_dir, err);
  } else {
    mic_elf_close(l->elf);
    l->elf = NULL;
  }
  close(fd);
  return code;
}

static int open_vdso(struct mic_listing *l, const struct mic_listing_source *source,
                     struct mic_error *err) {
  size_t size;
  const void *own = mic_elf_own_vdso(&size);
  if (!own) return mic_fail(err, MIC_ENOENT, "[vdso]: this process has none");
  int code = mic_elf_open_memory(own, size, "[vdso]", &l->elf, err);
  if (code == MIC_OK) code = prove(source, l->elf, &(struct stat){0}, err);
  if (code != MIC_OK) return code;
  l->path = mic_strndup("[vdso]", 6);
  return open_symbols(l, &(struct mic_symbols_source){.fd = -1, .memory = own, .memory_size = size},
                      source->debug_dir, err);
}

int mic_listing_open_image(struct mic_listing *l, const struct mic_listing_source *source,
                           struct mic_error *err) {
  if (strcmp(source->path, "[vdso]") == 0) return open_vdso(l, source, err);
  int code = open_file(l, source, source->path, err);
  size_t size = strlen(source->build_id);
  if ((code != MIC_ENOENT && code != MIC_ESTATE) || size < 4 ||
      strspn(source->build_id, "0123456789abcdef") != size)
    return code;
  /* The name by build ID, without ".debug": some systems link it to the program itself. */
  char by_id[4096];
  int written = snprintf(by_id, sizeof by_id, "%s/.build-id/%.2s/%s",
                         source->debug_dir ? source->debug_dir : "/usr/lib/debug", source->build_id,
                         source->build_id + 2);
  if (written < 0 || (size_t)written >= sizeof by_id) return code;
  struct mic_error other = {0};
  return open_file(l, source, by_id, &other) == MIC_OK ? MIC_OK : code;
}
