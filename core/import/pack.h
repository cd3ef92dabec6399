/*
 * pack.h - protocol buffers written as they are made: into an output, or only counted.
 *
 * A message stands behind its size, so what makes one is run twice: once to count and once to
 * write.  Neither holds it in memory.
 *
 * Owns: a small buffer; the output is borrowed.
 */
#ifndef MIC_IMPORT_PACK_H
#define MIC_IMPORT_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "import/output.h"

struct mic_pack {
  struct mic_output *output; /* NULL: count */
  uint64_t size;             /* bytes given so far */
  size_t count;
  uint8_t buffer[4096];
};

static inline void mic_pack_start(struct mic_pack *pack, struct mic_output *output) {
  pack->output = output;
  pack->size = pack->count = 0;
}

/* Bytes of a number, seven bits each. */
static inline uint32_t mic_pack_size(uint64_t value) {
  return (63 - (uint32_t)__builtin_clzll(value | 1)) / 7 + 1;
}

void mic_pack_flush(struct mic_pack *pack);
void mic_pack_put(struct mic_pack *pack, const void *bytes, size_t size);

static inline void mic_pack_varint(struct mic_pack *pack, uint64_t value) {
  pack->size += mic_pack_size(value);
  if (!pack->output) return;
  if (sizeof pack->buffer - pack->count < 10) mic_pack_flush(pack);
  for (; value > 0x7f; value >>= 7) pack->buffer[pack->count++] = (uint8_t)(value | 0x80);
  pack->buffer[pack->count++] = (uint8_t)value;
}

/* A number; none is written for 0, as readers take it so. */
void mic_pack_number(struct mic_pack *pack, uint32_t field, uint64_t value);
void mic_pack_fixed64(struct mic_pack *pack, uint64_t value);
/* The head of a message, a text or packed numbers of a size that is known: they follow. */
void mic_pack_begin(struct mic_pack *pack, uint32_t field, uint64_t size);
void mic_pack_bytes(struct mic_pack *pack, uint32_t field, const void *bytes, size_t size);

#endif
