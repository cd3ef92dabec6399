/* pack.c - tags, numbers and bytes. */
#include "import/pack.h"

#include <string.h>

enum { VARINT = 0, BYTES = 2 }; /* kinds of fields */

void mic_pack_flush(struct mic_pack *pack) {
  if (pack->output && pack->count)
    mic_output_write(pack->output, (const char *)pack->buffer, pack->count);
  pack->count = 0;
}

void mic_pack_put(struct mic_pack *pack, const void *bytes, size_t size) {
  pack->size += size;
  if (!pack->output || !size) return;
  if (sizeof pack->buffer - pack->count < size) mic_pack_flush(pack);
  if (size >= sizeof pack->buffer) {
    mic_output_write(pack->output, bytes, size);
    return;
  }
  memcpy(pack->buffer + pack->count, bytes, size);
  pack->count += size;
}

void mic_pack_number(struct mic_pack *pack, uint32_t field, uint64_t value) {
  if (!value) return;
  mic_pack_varint(pack, field << 3 | VARINT);
  mic_pack_varint(pack, value);
}

void mic_pack_fixed64(struct mic_pack *pack, uint64_t value) {
  mic_pack_put(pack, &value, sizeof value); /* little-endian, as this machine is */
}

void mic_pack_begin(struct mic_pack *pack, uint32_t field, uint64_t size) {
  mic_pack_varint(pack, field << 3 | BYTES);
  mic_pack_varint(pack, size);
}

void mic_pack_bytes(struct mic_pack *pack, uint32_t field, const void *bytes, size_t size) {
  mic_pack_begin(pack, field, size);
  mic_pack_put(pack, bytes, size);
}
