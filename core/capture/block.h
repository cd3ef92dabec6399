/*
 * block.h - encode and decode one block of a column.
 *
 * Owns:    an encoder and a decoder own their scratch memory and zstd state.
 * Fails:   encoding cannot fail; decoding says false for bytes that are no such block.
 * Threads: one user at a time each.
 */
#ifndef MIC_CAPTURE_BLOCK_H
#define MIC_CAPTURE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mic_encoder;
struct mic_encoded {
  const void *bytes; /* borrowed from the encoder, or the rows themselves; until the next encode */
  uint32_t size;
  uint32_t encoding;
};

struct mic_encoder *mic_encoder_new(void);
void mic_encoder_free(struct mic_encoder *e);
/* Encode rows (1 to MIC_BLOCK_ROWS) of the width.  steps: the DELTA and SHUFFLE steps to take
 * before compressing. */
struct mic_encoded mic_encode(struct mic_encoder *e, const void *rows, uint32_t count,
                              uint32_t width, uint32_t steps);
/* The steps that make these rows smallest; the first of equals. */
uint32_t mic_encode_choose(struct mic_encoder *e, const void *rows, uint32_t count, uint32_t width);

struct mic_decoder;
struct mic_decoder *mic_decoder_new(void);
void mic_decoder_free(struct mic_decoder *d);
/* Decode stored bytes to exactly count rows at out (aligned to the width). */
bool mic_decode(struct mic_decoder *d, const void *bytes, size_t size, uint32_t encoding, void *out,
                uint32_t count, uint32_t width);

#endif
