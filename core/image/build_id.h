/*
 * build_id.h - build IDs as proofs and as text.
 *
 * Threads: any.
 */
#ifndef MIC_IMAGE_BUILD_ID_H
#define MIC_IMAGE_BUILD_ID_H

#include "image/elf.h"

enum { MIC_BUILD_ID_TEXT = 2 * MIC_BUILD_ID_MAX + 1 };

/* Whether the image has this build ID; one of no bytes proves nothing. */
bool mic_build_id_is(const struct mic_elf *elf, const uint8_t *build_id, size_t size);
/* Two digits a byte, in lower case, as paths and captures have it; "" for none. */
void mic_build_id_text(const uint8_t *build_id, size_t size, char out[MIC_BUILD_ID_TEXT]);

#endif
