/* symbols_fuzz.c - open any bytes as an image, and ask for names at addresses spread over it. */
#include <stddef.h>
#include <stdint.h>

#include "image/elf.h"
#include "image/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 64 }; /* addresses a segment */

static void look_up(struct mic_symbols *symbols, uint64_t vaddr) {
  const struct mic_symbol *frames;
  size_t count = mic_symbols_lookup(symbols, vaddr, &frames);
  for (size_t i = 0; i < count; i++)
    if (!frames[i].name || !frames[i].linkage_name) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const no_dirs[] = {NULL};
  struct mic_symbols_source source = {
    .fd = -1, .memory = data, .memory_size = size, .debug_dirs = no_dirs};
  struct mic_elf *elf;
  struct mic_symbols *symbols;
  if (mic_elf_open_memory(data, size, "image", &elf, NULL) != MIC_OK) return 0;
  if (mic_symbols_open(&source, &symbols, NULL) == MIC_OK) {
    size_t count;
    const struct mic_elf_segment *segments = mic_elf_segments(elf, &count);
    for (size_t i = 0; i < count && i < 4; i++)
      for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t span = segments[i].file_size;
        look_up(symbols, segments[i].vaddr + span / STEPS * k);
        look_up(symbols, segments[i].vaddr + k * 5);
      }
    look_up(symbols, mic_elf_entry(elf));
  }
  mic_symbols_close(symbols);
  mic_elf_close(elf);
  return 0;
}
