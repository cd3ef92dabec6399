/* keep.c - the parts of images that go into the capture. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image/parts.h"
#include "target/image.h"

/* Symbols and unwind tables of what a recording goes through take some megabytes; of the largest
 * programs (browsers, compilers with their symbols) up to a hundred.  A recorder's memory and a
 * capture's size stay bounded by this, before the writer packs them. */
static const uint64_t KEPT_MAX = (uint64_t)256 << 20;

struct keeping {
  struct mic_writer *writer;
  struct mic_interner build_ids;
  uint64_t kept; /* bytes so far */
};

static void add_problem(struct keeping *k, const struct mic_image *image, const char *why) {
  char text[768];
  snprintf(text, sizeof text, "%.300s: its parts were not kept: %s", image->path, why);
  mic_writer_problems(k->writer, &(struct mic_problems_row){mic_writer_text(k->writer, text), 1});
}

static void write_part(struct keeping *k, const struct mic_image *image, uint64_t offset,
                       const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    mic_writer_image_bytes(k->writer, &(struct mic_image_bytes_row){bytes[i]});
  k->kept += size;
  struct mic_image_parts_row row = {.module = image->module, .offset = offset, .end = k->kept};
  mic_writer_image_parts(k->writer, &row);
}

/* All of a file's parts in one piece of memory: nothing is written of one that changed meanwhile.
 */
static uint8_t *read_parts(const struct mic_image *image, const mic_parts *parts, uint64_t size) {
  uint8_t *bytes = mic_try_alloc(1, size), *to = bytes;
  for (size_t i = 0; bytes && i < parts->count; i++) {
    const struct mic_part *part = &parts->at[i];
    for (uint64_t done = 0; done < part->size;) {
      ssize_t got = pread(image->fd, to + done, part->size - done, (off_t)(part->offset + done));
      if (got <= 0) {
        free(bytes);
        return NULL;
      }
      done += (uint64_t)got;
    }
    to += part->size;
  }
  if (bytes && mic_image_unchanged(image)) return bytes;
  free(bytes);
  return NULL;
}

static void keep_file(struct keeping *k, const struct mic_image *image) {
  mic_parts parts;
  struct mic_error err = {0};
  uint64_t size = 0;
  if (mic_image_parts(image->fd, false, &parts, &err) != MIC_OK) {
    add_problem(k, image, err.msg);
    return;
  }
  for (size_t i = 0; i < parts.count; i++) size += parts.at[i].size;
  /* A vDSO is kept in any case, also past the most. */
  bool fits = k->kept <= KEPT_MAX && size <= KEPT_MAX - k->kept;
  uint8_t *bytes = fits ? read_parts(image, &parts, size) : NULL;
  if (!fits)
    add_problem(k, image, "256 MiB of parts are kept at most");
  else if (!bytes)
    add_problem(k, image, "the file could not be read any more");
  const uint8_t *from = bytes;
  for (size_t i = 0; bytes && i < parts.count; from += parts.at[i++].size)
    write_part(k, image, parts.at[i].offset, from, parts.at[i].size);
  free(bytes);
  mic_vec_free(&parts);
}

/* Whether an image of its build ID is kept already. */
static bool is_kept(struct keeping *k, const struct mic_image *image) {
  const uint8_t *id;
  size_t size = mic_elf_build_id(image->elf, &id), before = k->build_ids.strings.count;
  return size > 0 && mic_intern(&k->build_ids, (const char *)id, size) < before;
}

static int most_locations_first(const void *a, const void *b) {
  const struct mic_image *const *x = a, *const *y = b;
  if ((*x)->locations != (*y)->locations) return (*x)->locations > (*y)->locations ? -1 : 1;
  return (*x)->module < (*y)->module ? -1 : (*x)->module > (*y)->module;
}

void mic_images_keep(const struct mic_images *images, struct mic_writer *writer, bool all) {
  MIC_VEC(struct mic_image *) wanted = {0};
  for (size_t i = 0; i < images->all.count; i++) {
    struct mic_image *image = images->all.at[i];
    if (image->elf && image->locations && (all || image->kind == MIC_MODULE_VDSO))
      *mic_vec_push(&wanted) = image;
  }
  if (wanted.count) qsort(wanted.at, wanted.count, sizeof *wanted.at, most_locations_first);
  struct keeping k = {.writer = writer};
  for (size_t i = 0; i < wanted.count; i++) {
    const struct mic_image *image = wanted.at[i];
    if (is_kept(&k, image)) continue;
    if (image->fd < 0)
      write_part(&k, image, 0, image->memory, image->memory_size);
    else
      keep_file(&k, image);
  }
  mic_interner_free(&k.build_ids);
  mic_vec_free(&wanted);
}
