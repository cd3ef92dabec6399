/* symbols_mini.h - .gnu_debugdata: a small ELF image of symbols, packed with xz ("MiniDebugInfo").
 */
#ifndef MIC_IMAGE_SYMBOLS_MINI_H
#define MIC_IMAGE_SYMBOLS_MINI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Unpacks xz bytes into memory that the caller frees. */
int mic_mini_unpack(const uint8_t *bytes, size_t size, uint8_t **out, size_t *out_size,
                    struct mic_error *err);

#endif
