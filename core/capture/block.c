/*
 * block.c - differences, byte transposition and zstd, and their undoing.
 *
 * Differences make slowly moving numbers small; transposing brings the equal high bytes of
 * neighbours together, where zstd's fastest level finds them as long matches.
 */
#include "capture/block.h"

#include <emmintrin.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"
#include "capture/format.h"

/* Level 1: the recorder's CPU time counts, and after the two steps higher levels gain little. */
enum { LEVEL = 1 };

struct mic_encoder {
  ZSTD_CCtx *zstd;
  uint8_t *delta, *shuffled, *packed; /* a block each */
};

/* zstd's contexts are small allocations: they end the process as alloc.h's do. */
static void *or_end(void *context) { return context ? context : mic_alloc(SIZE_MAX); }

struct mic_encoder *mic_encoder_new(void) {
  struct mic_encoder *e = mic_alloc(sizeof *e);
  e->zstd = or_end(ZSTD_createCCtx());
  e->delta = mic_alloc(MIC_BLOCK_BYTES);
  e->shuffled = mic_alloc(MIC_BLOCK_BYTES);
  e->packed = mic_alloc(MIC_BLOCK_BYTES);
  return e;
}

void mic_encoder_free(struct mic_encoder *e) {
  if (!e) return;
  ZSTD_freeCCtx(e->zstd);
  free(e->delta);
  free(e->shuffled);
  free(e->packed);
  free(e);
}

#define DELTA(type)                                                          \
  static void delta_##type(const type *in, type *out, uint32_t count) {      \
    out[0] = in[0];                                                          \
    for (uint32_t i = 1; i < count; i++) out[i] = (type)(in[i] - in[i - 1]); \
  }                                                                          \
  static void undelta_##type(type *at, uint32_t count) {                     \
    type sum = 0;                                                            \
    for (uint32_t i = 0; i < count; i++) at[i] = sum = (type)(sum + at[i]);  \
  }
DELTA(uint8_t)
DELTA(uint16_t)
DELTA(uint32_t)
DELTA(uint64_t)
#undef DELTA

static void delta(const void *in, void *out, uint32_t count, uint32_t width) {
  switch (width) {
  case 1: delta_uint8_t(in, out, count); return;
  case 2: delta_uint16_t(in, out, count); return;
  case 4: delta_uint32_t(in, out, count); return;
  default: delta_uint64_t(in, out, count); return;
  }
}

static void undelta(void *at, uint32_t count, uint32_t width) {
  switch (width) {
  case 1: undelta_uint8_t(at, count); return;
  case 2: undelta_uint16_t(at, count); return;
  case 4: undelta_uint32_t(at, count); return;
  default: undelta_uint64_t(at, count); return;
  }
}

static void shuffle(const uint8_t *in, uint8_t *out, uint32_t count, uint32_t width) {
  for (uint32_t byte = 0; byte < width; byte++) {
    uint8_t *plane = out + (size_t)byte * count;
    for (uint32_t i = 0; i < count; i++) plane[i] = in[(size_t)i * width + byte];
  }
}

static __m128i load(const uint8_t *at) { return _mm_loadu_si128((const __m128i *)at); }
static void store(uint8_t *at, __m128i v) { _mm_storeu_si128((__m128i *)at, v); }

/* Sixteen rows at a time: interleaving bytes of two planes gives pairs, of pairs quads, of
 * quads rows of eight. */
static uint32_t unshuffle2(const uint8_t *in, uint8_t *out, uint32_t count) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m128i a = load(in + i), b = load(in + count + i);
    store(out + (size_t)i * 2, _mm_unpacklo_epi8(a, b));
    store(out + (size_t)i * 2 + 16, _mm_unpackhi_epi8(a, b));
  }
  return i;
}

static void quads(const uint8_t *in, size_t plane, __m128i out[4]) {
  __m128i a = load(in), b = load(in + plane), c = load(in + 2 * plane), d = load(in + 3 * plane);
  __m128i ab0 = _mm_unpacklo_epi8(a, b), ab1 = _mm_unpackhi_epi8(a, b);
  __m128i cd0 = _mm_unpacklo_epi8(c, d), cd1 = _mm_unpackhi_epi8(c, d);
  out[0] = _mm_unpacklo_epi16(ab0, cd0);
  out[1] = _mm_unpackhi_epi16(ab0, cd0);
  out[2] = _mm_unpacklo_epi16(ab1, cd1);
  out[3] = _mm_unpackhi_epi16(ab1, cd1);
}

static uint32_t unshuffle4(const uint8_t *in, uint8_t *out, uint32_t count) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m128i q[4];
    quads(in + i, count, q);
    for (uint32_t k = 0; k < 4; k++) store(out + (size_t)i * 4 + 16 * k, q[k]);
  }
  return i;
}

static uint32_t unshuffle8(const uint8_t *in, uint8_t *out, uint32_t count) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m128i low[4], high[4];
    quads(in + i, count, low);
    quads(in + 4 * (size_t)count + i, count, high);
    for (uint32_t k = 0; k < 4; k++) {
      store(out + (size_t)i * 8 + 32 * k, _mm_unpacklo_epi32(low[k], high[k]));
      store(out + (size_t)i * 8 + 32 * k + 16, _mm_unpackhi_epi32(low[k], high[k]));
    }
  }
  return i;
}

static void unshuffle(const uint8_t *in, uint8_t *out, uint32_t count, uint32_t width) {
  uint32_t done = width == 2   ? unshuffle2(in, out, count)
                  : width == 4 ? unshuffle4(in, out, count)
                  : width == 8 ? unshuffle8(in, out, count)
                               : 0;
  for (uint32_t i = done; i < count; i++)
    for (uint32_t byte = 0; byte < width; byte++)
      out[(size_t)i * width + byte] = in[(size_t)byte * count + i];
}

struct mic_encoded mic_encode(struct mic_encoder *e, const void *rows, uint32_t count,
                              uint32_t width, uint32_t steps) {
  uint32_t size = count * width;
  const void *in = rows;
  if (steps & MIC_ENCODING_DELTA) {
    delta(in, e->delta, count, width);
    in = e->delta;
  }
  if (steps & MIC_ENCODING_SHUFFLE) {
    shuffle(in, e->shuffled, count, width);
    in = e->shuffled;
  }
  /* Room for less than the rows themselves: more is an error, and then they are kept raw. */
  size_t packed = ZSTD_compressCCtx(e->zstd, e->packed, size - 1, in, size, LEVEL);
  if (ZSTD_isError(packed) || packed == 0) return (struct mic_encoded){rows, size, 0};
  return (struct mic_encoded){e->packed, (uint32_t)packed, steps | MIC_ENCODING_ZSTD};
}

uint32_t mic_encode_choose(struct mic_encoder *e, const void *rows, uint32_t count,
                           uint32_t width) {
  uint32_t best = 0, size = UINT32_MAX;
  for (uint32_t steps = 0; steps <= (MIC_ENCODING_DELTA | MIC_ENCODING_SHUFFLE); steps++) {
    if (width == 1 && (steps & MIC_ENCODING_SHUFFLE)) continue;
    struct mic_encoded got = mic_encode(e, rows, count, width, steps);
    if (got.size < size) {
      size = got.size;
      best = steps;
    }
  }
  return best;
}

struct mic_decoder {
  ZSTD_DCtx *zstd;
  uint8_t *planes; /* a block, decompressed but still transposed */
};

struct mic_decoder *mic_decoder_new(void) {
  struct mic_decoder *d = mic_alloc(sizeof *d);
  d->zstd = or_end(ZSTD_createDCtx());
  d->planes = mic_realloc(NULL, MIC_BLOCK_BYTES);
  return d;
}

void mic_decoder_free(struct mic_decoder *d) {
  if (!d) return;
  ZSTD_freeDCtx(d->zstd);
  free(d->planes);
  free(d);
}

bool mic_decode(struct mic_decoder *d, const void *bytes, size_t size, uint32_t encoding, void *out,
                uint32_t count, uint32_t width) {
  size_t whole = (size_t)count * width;
  if ((encoding & ~(uint32_t)MIC_ENCODING_KNOWN) || count > MIC_BLOCK_ROWS) return false;
  bool transposed = encoding & MIC_ENCODING_SHUFFLE;
  if (encoding & MIC_ENCODING_ZSTD) {
    if (ZSTD_decompressDCtx(d->zstd, transposed ? d->planes : out, whole, bytes, size) != whole)
      return false;
    if (transposed) unshuffle(d->planes, out, count, width);
  } else {
    if (size != whole) return false;
    if (transposed)
      unshuffle(bytes, out, count, width);
    else
      memcpy(out, bytes, whole);
  }
  if (encoding & MIC_ENCODING_DELTA) undelta(out, count, width);
  return true;
}
