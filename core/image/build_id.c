/* build_id.c - compare and print build IDs. */
#include "image/build_id.h"

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
