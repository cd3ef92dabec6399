/*
 * maps_fuzz.c - bytes as the text of /proc/PID/maps, in pieces whose size the first byte gives.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct mic_maps *maps, const uint8_t *text, size_t size, size_t piece) {
  for (size_t at = 0; at < size; at += piece)
    mic_maps_feed(maps, (const char *)text + at, size - at < piece ? size - at : piece);
  mic_maps_end(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  struct mic_maps whole = {0}, pieces = {0};
  feed(&whole, data + 1, size - 1, size);
  feed(&pieces, data + 1, size - 1, data[0] ? data[0] : 1);
  /* How it is cut makes no difference. */
  if (whole.rows.count != pieces.rows.count || whole.lines != pieces.lines ||
      whole.bad_lines != pieces.bad_lines || whole.first_bad_line != pieces.first_bad_line)
    abort();
  if (whole.rows.count + whole.bad_lines != whole.lines) abort();
  for (size_t i = 0; i < whole.rows.count; i++) {
    const struct mic_map_row *a = &whole.rows.at[i], *b = &pieces.rows.at[i];
    if (a->start >= a->end || a->start != b->start || a->inode != b->inode || a->kind != b->kind ||
        strlen(a->name) != a->name_size || a->path_size > a->name_size || strcmp(a->name, b->name))
      abort();
  }
  mic_maps_find(&whole, 0x1000);
  mic_maps_free(&whole);
  mic_maps_free(&pieces);
  return 0;
}
