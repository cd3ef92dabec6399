/* symbols_mini.c - unpack .gnu_debugdata within bounds. */
#include "image/symbols_mini.h"

#include <lzma.h>

#include "base/alloc.h"

enum {
  UNPACKED_MAX_BYTES = 256 << 20, /* distributions' largest are a few MB */
  DECODER_MAX_BYTES = 128 << 20,  /* xz -9 asks for 65 MiB to unpack (xz manual) */
  FIRST_ROOM = 1 << 20
};

struct unpacked {
  uint8_t *at;
  size_t count, room;
};

static lzma_ret unpack_all(lzma_stream *xz, struct unpacked *to) {
  lzma_ret got = LZMA_OK;
  while (got == LZMA_OK) {
    if (to->count == to->room) {
      if (to->room >= UNPACKED_MAX_BYTES) return LZMA_MEMLIMIT_ERROR;
      mic_vec_reserve(to, to->room ? to->room * 2 : FIRST_ROOM);
    }
    xz->next_out = to->at + to->count;
    xz->avail_out = to->room - to->count;
    got = lzma_code(xz, LZMA_FINISH);
    to->count = to->room - xz->avail_out;
  }
  return got;
}

int mic_mini_unpack(const uint8_t *bytes, size_t size, uint8_t **out, size_t *out_size,
                    struct mic_error *err) {
  lzma_stream xz = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&xz, DECODER_MAX_BYTES, 0) != LZMA_OK)
    return mic_fail(err, MIC_ELIMIT, "no memory for the xz decoder");
  xz.next_in = bytes;
  xz.avail_in = size;
  struct unpacked to = {0};
  lzma_ret got = unpack_all(&xz, &to);
  lzma_end(&xz);
  if (got != LZMA_STREAM_END) {
    mic_vec_free(&to);
    return mic_fail(err, MIC_EFORMAT, ".gnu_debugdata does not unpack (%s)",
                    got == LZMA_MEMLIMIT_ERROR ? "over its limit" : "malformed or cut short");
  }
  *out = to.at;
  *out_size = to.count;
  return MIC_OK;
}
