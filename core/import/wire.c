/* wire.c - tags, numbers and lengths, all bounded by what is there. */
#include "import/wire.h"

#include <string.h>

#include "base/alloc.h"

enum {
  FIRST_ROOM = 256 * 1024,
  LARGEST = 64 * 1024 * 1024,
  VARINT_MAX = 10, /* bytes: 64 bits, seven a byte */
  NUMBER_MAX = (1 << 29) - 1
};

static bool split_tag(uint64_t tag, struct mic_wire_field *field) {
  field->number = (uint32_t)(tag >> 3);
  field->kind = tag & 7;
  return tag >> 3 >= 1 && tag >> 3 <= NUMBER_MAX &&
         (field->kind <= MIC_WIRE_BYTES || field->kind == MIC_WIRE_32);
}

/* What follows a tag. */
static void take_value(struct mic_cursor *c, struct mic_wire_field *field) {
  switch (field->kind) {
  case MIC_WIRE_VARINT: field->value = mic_cursor_uleb(c); return;
  case MIC_WIRE_64: field->value = mic_cursor_u64(c); return;
  case MIC_WIRE_32: field->value = mic_cursor_u32(c); return;
  default: break;
  }
  uint64_t size = mic_cursor_uleb(c);
  const void *bytes = mic_cursor_take(c, size);
  field->bytes = mic_cursor(bytes ? bytes : "", bytes ? size : 0);
}

bool mic_wire_next(struct mic_cursor *message, struct mic_wire_field *field) {
  *field = (struct mic_wire_field){.number = 0};
  if (message->bad || mic_cursor_left(message) == 0) return false;
  if (!split_tag(mic_cursor_uleb(message), field)) message->bad = true;
  if (!message->bad) take_value(message, field);
  return !message->bad;
}

bool mic_wire_packed(struct mic_wire_field *field, uint64_t *value) {
  if (field->kind != MIC_WIRE_BYTES) {
    *value = field->value;
    bool more = field->number != 0;
    field->number = 0; /* one value, given once */
    return more;
  }
  if (mic_cursor_left(&field->bytes) == 0) return false;
  *value = mic_cursor_uleb(&field->bytes);
  return !field->bytes.bad;
}

int mic_wire_bad(const struct mic_wire *wire, const char *what, struct mic_error *err) {
  return mic_fail_at(err, wire->offset, "%.120s: byte %llu: %s", mic_input_name(wire->input),
                     (unsigned long long)wire->offset, what);
}

/* Have `want` bytes from `at` on, or as many as there are. */
static int fill(struct mic_wire *w, size_t want, struct mic_error *err) {
  while (w->count - w->at < want) {
    if (w->at) memmove(w->buffer, w->buffer + w->at, w->count - w->at);
    w->count -= w->at;
    w->at = 0;
    if (w->count == w->room) {
      w->room = w->room ? w->room * 2 : FIRST_ROOM;
      w->buffer = mic_realloc(w->buffer, w->room);
    }
    uint64_t got;
    int code = mic_input_read(w->input, w->buffer + w->count, w->room - w->count, &got, err);
    if (code) return code;
    if (!got) return 0;
    w->count += got;
  }
  return 0;
}

/* Pass over bytes without keeping them. */
static int skip_bytes(struct mic_wire *w, uint64_t size, struct mic_error *err) {
  while (size) {
    int code = fill(w, 1, err);
    if (code) return code;
    uint64_t have = w->count - w->at;
    if (!have) return mic_wire_bad(w, "the file ends within a field", err);
    uint64_t part = have < size ? have : size;
    w->at += part;
    size -= part;
  }
  return 0;
}

static int read_bytes(struct mic_wire *w, uint64_t size, struct mic_wire_field *field,
                      struct mic_error *err) {
  if (size > LARGEST) return mic_wire_bad(w, "a field of more than 64 MiB", err);
  int code = fill(w, size, err);
  if (code) return code;
  if (w->count - w->at < size) return mic_wire_bad(w, "the file ends within a field", err);
  field->bytes = mic_cursor(w->buffer + w->at, size);
  w->at += size;
  return 0;
}

int mic_wire_read(struct mic_wire *wire, uint64_t skip, struct mic_wire_field *field, bool *more,
                  struct mic_error *err) {
  *more = false;
  for (;;) {
    *field = (struct mic_wire_field){.number = 0};
    int code = fill(wire, (size_t)2 * VARINT_MAX, err);
    if (code) return code;
    struct mic_cursor c = mic_cursor(wire->buffer + wire->at, wire->count - wire->at);
    wire->offset = mic_input_offset(wire->input) - mic_cursor_left(&c);
    if (mic_cursor_left(&c) == 0) return 0;
    bool known = split_tag(mic_cursor_uleb(&c), field);
    if (!c.bad && known && field->kind != MIC_WIRE_BYTES) take_value(&c, field);
    uint64_t size = known && field->kind == MIC_WIRE_BYTES ? mic_cursor_uleb(&c) : 0;
    if (c.bad || !known) return mic_wire_bad(wire, "no field of a protocol buffer", err);
    wire->at += mic_cursor_offset(&c);
    if (field->number < 64 && skip >> field->number & 1) {
      code = skip_bytes(wire, size, err);
      if (code) return code;
      continue;
    }
    *more = true;
    return field->kind == MIC_WIRE_BYTES ? read_bytes(wire, size, field, err) : 0;
  }
}

int mic_wire_rewind(struct mic_wire *wire, struct mic_error *err) {
  wire->at = wire->count = 0;
  return mic_input_rewind(wire->input, err);
}

void mic_wire_free(struct mic_wire *wire) {
  free(wire->buffer);
  wire->buffer = NULL;
  wire->at = wire->count = wire->room = 0;
}
