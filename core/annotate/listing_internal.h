/* listing_internal.h - what the listing's files share. */
#ifndef MIC_ANNOTATE_LISTING_INTERNAL_H
#define MIC_ANNOTATE_LISTING_INTERNAL_H

#include "annotate/listing.h"
#include "base/alloc.h"
#include "image/elf.h"
#include "image/symbols.h"

struct mic_listing_code { /* an instruction */
  uint64_t address;
  const char *text;
  uint32_t range;
  uint8_t length; /* at most 15 (Intel SDM, volume 2, 2.3.11) */
};

struct mic_listing {
  struct mic_elf *elf;
  struct mic_symbols *symbols;
  char *path;
  uint64_t written_ns;
  bool intel;
  mic_symbol_ranges ranges;
  MIC_VEC(struct mic_listing_code) rows;
  struct mic_arena texts;
};

/* listing_image.c: fills elf, symbols, path and written_ns. */
int mic_listing_open_image(struct mic_listing *l, const struct mic_listing_source *source,
                           struct mic_error *err);

#endif
