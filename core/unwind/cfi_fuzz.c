/*
 * cfi_fuzz.c - any bytes as call-frame information: as .eh_frame, as .debug_frame, with a header,
 * or as a whole image; looked up by address, compiled whole, looked up again.
 */
#include <stdint.h>

#include "fixtures/unwind/synthetic.h"
#include "unwind/table_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static size_t wrap(uint8_t kind, const uint8_t *data, size_t size, uint8_t *file) {
  struct synthetic s = {0};
  size_t half = size / 2;
  switch (kind & 3) {
  case 0:
    s.eh_frame = data;
    s.eh_frame_size = size;
    break;
  case 1:
    s.debug_frame = data;
    s.debug_frame_size = size;
    break;
  case 2:
    s.eh_frame = data + half;
    s.eh_frame_size = size - half;
    s.header = data;
    s.header_size = half;
    break;
  default:
    s.eh_frame = data;
    s.eh_frame_size = half;
    s.debug_frame = data + half;
    s.debug_frame_size = size - half;
    break;
  }
  return synthetic_elf(&s, file);
}

static void look_up(struct mic_table *table) {
  for (uint64_t at = SYNTHETIC_CODE; at < SYNTHETIC_CODE + SYNTHETIC_CODE_BYTES; at += 129)
    mic_table_rule(table, at);
  mic_table_rule(table, UINT64_MAX);
  mic_table_rule(table, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t file[INPUT_MAX + 0x4000];
  if (size < 1 || size > INPUT_MAX) return 0;
  struct mic_elf *elf;
  struct mic_table *table;
  struct mic_error err;
  bool whole_image = data[0] == 0x7f;
  const uint8_t *image = whole_image ? data : file;
  size_t image_size = whole_image ? size : wrap(data[0], data + 1, size - 1, file);
  if (mic_elf_open_memory(image, image_size, "fuzz", &elf, &err) != MIC_OK) return 0;
  mic_table_new(elf, &table, &err);
  look_up(table);
  mic_table_compile_all(table, &err);
  look_up(table);
  mic_table_memory(table);
  mic_table_free(table);
  mic_elf_close(elf);
  return 0;
}
