/* frame_text.c - texts of frames, escaped piece by piece. */
#include "import/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/names.h"
#include "import/json_text.h"

static void put(struct mic_pack *to, const char *text) { mic_pack_put(to, text, strlen(text)); }

static void put_json(struct mic_pack *to, const char *text, uint64_t size) {
  char part[1024];
  for (uint64_t at = 0; at < size;)
    mic_pack_put(to, part, mic_json_text(text, size, &at, part, sizeof part));
}

void mic_frame_text_number(struct mic_pack *to, uint64_t number) {
  char digits[20], *at = digits + sizeof digits;
  do *--at = (char)('0' + number % 10);
  while (number /= 10);
  mic_pack_put(to, at, (size_t)(digits + sizeof digits - at));
}

void mic_frame_text_hex(struct mic_pack *to, const char *before, uint64_t number,
                        const char *after) {
  char text[48];
  snprintf(text, sizeof text, "%s0x%" PRIx64 "%s", before, number, after);
  put(to, text);
}

void mic_frame_text_string(struct mic_pack *to, const struct mic_capture *cap, uint32_t id) {
  uint64_t size;
  const char *text = mic_capture_string(cap, id, &size);
  if (text) put_json(to, text, size);
}

void mic_frame_text_place(struct mic_pack *to, const struct mic_capture *cap,
                          const struct mic_tables *t, uint32_t location) {
  uint8_t kind = t->locations.kind[location];
  uint32_t module = t->locations.module[location];
  uint64_t offset = t->locations.offset[location];
  if (mic_location_in_module(kind)) {
    if (module != MIC_NONE) mic_frame_text_string(to, cap, t->modules.name[module]);
    mic_frame_text_hex(to, "+", offset, "");
    return;
  }
  switch (kind) {
  case MIC_LOCATION_SIGNAL: put(to, "[signal]"); return;
  case MIC_LOCATION_ANON: mic_frame_text_hex(to, "[anon ", offset, "]"); return;
  case MIC_LOCATION_UNMAPPED: mic_frame_text_hex(to, "[unmapped ", offset, "]"); return;
  case MIC_LOCATION_NAMED: mic_frame_text_string(to, cap, (uint32_t)offset); return;
  default: /* of a later version */
    put(to, "[place of kind ");
    mic_frame_text_number(to, kind);
    put(to, "]");
  }
}

void mic_frame_text_end(struct mic_pack *to, uint8_t end) {
  char name[MIC_END_NAME_SIZE];
  mic_tables_end_name(end, name);
  put_json(to, name, strlen(name));
}
