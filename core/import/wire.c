/* wire.c - tags, numbers and lengths, all bounded by what is there. */
#include "import/wire.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
  ROOM = 256 * 1024,
  LARGEST = 64 * 1024 * 1024,
  VARINT_MAX = 10, /* bytes: 64 bits, seven a byte */
  NUMBER_MAX = (1 << 29) - 1
};

static const char cut_short[] = "the file ends within a field";
static const char no_field[] = "no field of a protocol buffer";

/* What readers keep beside the tables; a profile of a large program has some MiB. */
#define HELD_MAX (1ULL << 30)

int mic_wire_bad(struct mic_wire *wire, uint64_t offset, const char *what, struct mic_error *err) {
  wire->malformed = true;
  return mic_fail_at(err, offset, "%.120s: byte %llu: %s", mic_input_name(wire->input),
                     (unsigned long long)offset, what);
}

int mic_wire_bad_record(const struct mic_wire *wire, uint64_t offset, struct mic_error *err,
                        const char *fmt, va_list args) {
  char what[160];
  vsnprintf(what, sizeof what, fmt, args);
  return mic_fail_at(err, offset, "%.60s: byte %llu: %s", mic_input_name(wire->input),
                     (unsigned long long)offset, what);
}

int mic_wire_hold(struct mic_wire *wire, uint64_t bytes, struct mic_error *err) {
  wire->held += bytes;
  if (wire->held <= HELD_MAX) return 0;
  return mic_fail(err, MIC_ELIMIT, "%.120s: more than 1 GiB of names and places",
                  mic_input_name(wire->input));
}

static uint64_t position(const struct mic_wire *w) { return w->base + w->at; }

/* Have `want` bytes from `at` on, or as many as there are. */
static int fill(struct mic_wire *w, size_t want, struct mic_error *err) {
  while (w->count - w->at < want) {
    if (w->at) memmove(w->buffer, w->buffer + w->at, w->count - w->at);
    w->base += w->at;
    w->count -= w->at;
    w->at = 0;
    if (w->count == w->room) {
      w->room = w->room ? w->room * 2 : ROOM;
      w->buffer = mic_realloc(w->buffer, w->room);
    }
    /* No more than a large field has: the rest of a buffer made for it stays untouched. */
    size_t ask = w->room - w->count, need = want - w->count;
    if (want > ROOM && need < ask) ask = need;
    uint64_t got;
    int code = mic_input_read(w->input, w->buffer + w->count, ask, &got, err);
    if (code) return code;
    if (!got) return 0;
    w->count += got;
  }
  return 0;
}

/* Forward to a place in the file. */
static int skip_to(struct mic_wire *w, uint64_t to, struct mic_error *err) {
  while (position(w) < to) {
    int code = fill(w, 1, err);
    if (code) return code;
    uint64_t have = w->count - w->at, want = to - position(w);
    if (!have) return mic_wire_bad(w, position(w), cut_short, err);
    w->at += have < want ? have : want;
  }
  return 0;
}

/* A number of 7 bits a byte that ends before the message does. */
static int read_varint(struct mic_wire *w, uint64_t *value, struct mic_error *err) {
  if (w->count - w->at < VARINT_MAX) {
    int code = fill(w, VARINT_MAX, err);
    if (code) return code;
  }
  const uint8_t *bytes = w->buffer + w->at;
  uint64_t have = w->count - w->at, left = w->limit - position(w);
  uint32_t most = (uint32_t)(have < left ? have : left), size = 0;
  if (most > VARINT_MAX) most = VARINT_MAX;
  *value = 0;
  while (size < most) {
    uint8_t byte = bytes[size];
    *value |= (uint64_t)(byte & 0x7f) << 7 * size;
    size++;
    if (byte & 0x80) continue;
    w->at += size;
    return 0;
  }
  return mic_wire_bad(w, position(w), have < left && have < VARINT_MAX ? cut_short : no_field, err);
}

static int read_fixed(struct mic_wire *w, size_t size, uint64_t *value, struct mic_error *err) {
  int code = fill(w, size, err);
  if (code) return code;
  *value = 0;
  if (w->limit - position(w) < size) return mic_wire_bad(w, position(w), no_field, err);
  if (w->count - w->at < size) return mic_wire_bad(w, position(w), cut_short, err);
  memcpy(value, w->buffer + w->at, size);
  w->at += size;
  return 0;
}

/* What follows a tag; of bytes their number. */
static int read_value(struct mic_wire *w, struct mic_wire_field *field, struct mic_error *err) {
  switch (field->kind) {
  case MIC_WIRE_64: return read_fixed(w, 8, &field->value, err);
  case MIC_WIRE_32: return read_fixed(w, 4, &field->value, err);
  case MIC_WIRE_VARINT: return read_varint(w, &field->value, err);
  default: break;
  }
  int code = read_varint(w, &field->value, err);
  if (code) return code;
  if (field->value > w->limit - position(w)) return mic_wire_bad(w, field->offset, no_field, err);
  w->bytes_end = position(w) + field->value;
  return 0;
}

int mic_wire_next(struct mic_wire *wire, struct mic_wire_field *field, bool *more,
                  struct mic_error *err) {
  int code = position(wire) < wire->bytes_end ? skip_to(wire, wire->bytes_end, err) : 0;
  *more = false;
  *field = (struct mic_wire_field){.offset = position(wire)};
  if (code || field->offset == wire->limit) return code;
  if (wire->at == wire->count) {
    code = fill(wire, 1, err);
    if (code) return code;
    if (wire->at == wire->count)
      return wire->limit == UINT64_MAX ? 0 : mic_wire_bad(wire, field->offset, cut_short, err);
  }
  uint64_t tag;
  code = read_varint(wire, &tag, err);
  if (code) return code;
  field->kind = tag & 7;
  bool known = field->kind <= MIC_WIRE_BYTES || field->kind == MIC_WIRE_32;
  if (!known || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
    return mic_wire_bad(wire, field->offset, no_field, err);
  field->number = (uint32_t)(tag >> 3);
  *more = true;
  return read_value(wire, field, err);
}

uint64_t mic_wire_enter(struct mic_wire *wire) {
  uint64_t outer = wire->limit;
  wire->limit = wire->bytes_end;
  wire->bytes_end = 0;
  return outer;
}

void mic_wire_leave(struct mic_wire *wire, uint64_t outer) {
  wire->bytes_end = wire->limit;
  wire->limit = outer;
}

int mic_wire_packed(struct mic_wire *wire, struct mic_wire_field *field, uint64_t *value,
                    bool *more, struct mic_error *err) {
  if (field->kind != MIC_WIRE_BYTES) {
    *value = field->value;
    *more = field->number != 0;
    field->number = 0; /* one value, given once */
    return 0;
  }
  *more = position(wire) < wire->bytes_end;
  if (!*more) return 0;
  uint64_t outer = wire->limit;
  wire->limit = wire->bytes_end;
  int code = read_varint(wire, value, err);
  wire->limit = outer;
  return code;
}

int mic_wire_text(struct mic_wire *wire, const struct mic_wire_field *field, const char **text,
                  struct mic_error *err) {
  if (field->value > LARGEST)
    return mic_wire_bad(wire, field->offset, "a field of more than 64 MiB", err);
  int code = fill(wire, (size_t)field->value, err);
  if (code) return code;
  if (wire->count - wire->at < field->value)
    return mic_wire_bad(wire, field->offset, cut_short, err);
  *text = (const char *)wire->buffer + wire->at;
  wire->at += (size_t)field->value;
  return 0;
}

void mic_wire_start(struct mic_wire *wire, struct mic_input *input) {
  *wire = (struct mic_wire){.input = input, .limit = UINT64_MAX};
}

int mic_wire_rewind(struct mic_wire *wire, struct mic_error *err) {
  struct mic_input *input = wire->input;
  uint64_t held = wire->held;
  mic_wire_free(wire);
  mic_wire_start(wire, input);
  wire->held = held;
  return mic_input_rewind(input, err);
}

void mic_wire_free(struct mic_wire *wire) {
  free(wire->buffer);
  wire->buffer = NULL;
  wire->at = wire->count = wire->room = 0;
}
