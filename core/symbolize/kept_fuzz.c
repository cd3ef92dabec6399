/* kept_fuzz.c - open any bytes as a capture, and name its locations from what it kept of images. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "capture/forge.h"
#include "image/symbols.h"
#include "symbolize/kept.h"
#include "symbolize/renaming.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
  MODULES = 8,
  LOCATIONS = 256,
  MEMORY = 64 << 20 /* of rows: more is refused */
};

static struct mic_symbols *open_kept(const struct mic_kept *kept, uint32_t module) {
  static const char *const no_dirs[] = {NULL};
  struct mic_symbols *symbols = NULL;
  int fd = mic_kept_image(kept, module, NULL);
  struct mic_symbols_source source = {.fd = fd, .debug_dirs = no_dirs};
  if (fd < 0) return NULL;
  mic_symbols_open(&source, &symbols, NULL);
  close(fd);
  return symbols;
}

static void name_all(const struct mic_capture *capture, uint32_t module,
                     struct mic_symbols *symbols, struct mic_renaming *renaming) {
  uint64_t rows;
  const uint32_t *of = mic_capture_array(capture, "locations", "module", &rows);
  const uint64_t *offset = mic_capture_array(capture, "locations", "offset", NULL);
  for (uint32_t i = 0; i < rows && i < LOCATIONS; i++) {
    const struct mic_symbol *frames = NULL;
    if (of[i] != module) continue;
    size_t count = symbols ? mic_symbols_lookup(symbols, offset[i], &frames) : 0;
    mic_renaming_add(renaming, i, module, frames, count);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mic_capture *capture;
  uint8_t *bytes = malloc(size + 1);
  if (size) memcpy(bytes, data, size);
  forge_seal(bytes, size);
  if (mic_capture_open_memory(bytes, size, MEMORY, &capture, NULL) == 0) {
    struct mic_kept kept;
    struct mic_renaming renaming;
    uint64_t modules = mic_capture_rows(capture, "modules");
    mic_kept_begin(&kept, capture);
    mic_renaming_begin(&renaming, capture);
    for (uint32_t m = 0; m < modules && m < MODULES; m++) {
      struct mic_symbols *symbols = open_kept(&kept, m);
      name_all(capture, m, symbols, &renaming);
      mic_symbols_close(symbols);
    }
    mic_renaming_free(&renaming);
    mic_kept_free(&kept);
    mic_capture_close(capture);
  }
  free(bytes);
  return 0;
}
