/* build_id.c - compare and print build IDs. */
#include "image/build_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mic_build_id_is(const struct mic_elf *elf, const uint8_t *build_id, size_t size) {
  const uint8_t *own;
  return mic_elf_build_id(elf, &own) == size && size > 0 && memcmp(own, build_id, size) == 0;
}

void mic_build_id_text(const uint8_t *build_id, size_t size, char out[MIC_BUILD_ID_TEXT]) {
  static const char digits[] = "0123456789abcdef";
  if (size > MIC_BUILD_ID_MAX) size = MIC_BUILD_ID_MAX;
  for (size_t i = 0; i < size; i++) {
    out[2 * i] = digits[build_id[i] >> 4];
    out[2 * i + 1] = digits[build_id[i] & 15];
  }
  out[2 * size] = '\0';
}

const char *const mic_build_id_images[] = {"", "/elf", "/vdso", NULL};

static bool fits(int size, size_t room) { return size > 0 && (size_t)size < room; }

bool mic_build_id_path(const char *folder, const uint8_t *build_id, size_t size, const char *ending,
                       char *out, size_t room) {
  char hex[MIC_BUILD_ID_TEXT];
  if (size < 2) return false; /* a folder's name and a file's */
  mic_build_id_text(build_id, size, hex);
  return fits(snprintf(out, room, "%s/.build-id/%.2s/%s%s", folder, hex, hex + 2, ending), room);
}

bool mic_build_id_perf_folder(char *out, size_t room) {
  const char *told = secure_getenv("PERF_BUILDID_DIR"), *home = secure_getenv("HOME");
  if (told && *told) return fits(snprintf(out, room, "%s", told), room);
  return home && fits(snprintf(out, room, "%s/.debug", home), room);
}
