/* kept.c - make a file of kept parts. */
#include "symbolize/kept.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/parts.h"

/* Offsets beyond any file that a part can come from are a hostile capture's: the file is sparse,
 * but its reader maps all of it. */
static const uint64_t FILE_MAX = (uint64_t)1 << 36;

/* The string that is a module's build ID; MIC_NONE when that is empty. */
static uint32_t build_id_of(const struct mic_capture *capture, uint32_t module) {
  const uint32_t *build_id = mic_capture_array(capture, "modules", "build_id", NULL);
  uint64_t size;
  mic_capture_string(capture, build_id[module], &size);
  return size > 0 ? build_id[module] : MIC_NONE;
}

void mic_kept_begin(struct mic_kept *kept, const struct mic_capture *capture) {
  uint64_t rows;
  const uint32_t *of = mic_capture_array(capture, "image_parts", "module", &rows);
  *kept = (struct mic_kept){.capture = capture};
  for (uint32_t i = 0; i < rows; i++) {
    if (i > 0 && of[i] == of[i - 1]) continue;
    uint32_t build_id = build_id_of(capture, of[i]);
    mic_map_intern(&kept->by_module, of[i], 0, i, NULL);
    if (build_id != MIC_NONE) mic_map_intern(&kept->by_build_id, build_id, 0, i, NULL);
  }
}

void mic_kept_free(struct mic_kept *kept) {
  mic_map_free(&kept->by_module);
  mic_map_free(&kept->by_build_id);
}

static bool write_all(int fd, const uint8_t *bytes, uint64_t size, uint64_t offset) {
  while (size > 0) {
    ssize_t done = pwrite(fd, bytes, size, (off_t)offset);
    if (done <= 0) return false;
    bytes += done;
    offset += (uint64_t)done;
    size -= (uint64_t)done;
  }
  return true;
}

/* Puts one part into the file: parts are in order and do not overlap. */
static int put_part(int fd, mic_parts *parts, const uint8_t *bytes, struct mic_part part,
                    struct mic_error *err) {
  const struct mic_part *last = parts->count ? &parts->at[parts->count - 1] : NULL;
  if (last && (part.offset < last->offset || part.offset - last->offset < last->size))
    return mic_fail(err, MIC_EFORMAT, "the parts of the kept image overlap");
  if (part.offset > FILE_MAX || part.size > FILE_MAX - part.offset)
    return mic_fail(err, MIC_EFORMAT, "the kept image has a part at an offset that no file has");
  if (!write_all(fd, bytes, part.size, part.offset))
    return mic_fail_sys(err, "no memory for the kept image");
  *mic_vec_push(parts) = part;
  return MIC_OK;
}

int mic_kept_image(const struct mic_kept *kept, uint32_t module, struct mic_error *err) {
  uint64_t rows;
  const uint32_t *of = mic_capture_array(kept->capture, "image_parts", "module", &rows);
  const uint64_t *offset = mic_capture_array(kept->capture, "image_parts", "offset", NULL);
  const uint64_t *end = mic_capture_array(kept->capture, "image_parts", "end", NULL);
  const uint8_t *bytes = mic_capture_array(kept->capture, "image_bytes", "byte", NULL);
  uint32_t first = mic_map_get(&kept->by_module, module, 0);
  if (first == MIC_NONE)
    first = mic_map_get(&kept->by_build_id, build_id_of(kept->capture, module), 0);
  if (first == MIC_NONE) {
    mic_fail(err, MIC_ENOENT, "nothing of it was kept");
    return -1;
  }
  mic_parts parts = {0};
  int fd = memfd_create("kept-image", MFD_CLOEXEC), code = MIC_OK;
  if (fd < 0) code = mic_fail_sys(err, "no memory for the kept image");
  for (uint64_t i = first; i < rows && of[i] == of[first] && code == MIC_OK; i++) {
    uint64_t start = i ? end[i - 1] : 0;
    struct mic_part part = {offset[i], end[i] - start};
    code = put_part(fd, &parts, bytes + start, part, err);
  }
  if (code == MIC_OK)
    mic_image_blank(fd, &parts);
  else if (fd >= 0)
    close(fd);
  mic_vec_free(&parts);
  return code == MIC_OK ? fd : -1;
}
