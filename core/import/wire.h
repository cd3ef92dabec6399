/*
 * wire.h - protocol buffers' wire format from a stream, a field at a time.
 *
 * Messages are entered, not loaded: a record of any length takes no more memory than the buffer.
 * Only texts are loaded, as their bytes come and never by the length that they claim; one of more
 * than 64 MiB is refused: no field of a profile is near it.
 *
 *   while (!(code = mic_wire_next(&wire, &field, &more, err)) && more) {
 *     if (field.number != 2 || field.kind != MIC_WIRE_BYTES) continue;
 *     uint64_t outer = mic_wire_enter(&wire);
 *     ... the fields of that message, by mic_wire_next ...
 *     mic_wire_leave(&wire, outer);
 *   }
 */
#ifndef MIC_IMPORT_WIRE_H
#define MIC_IMPORT_WIRE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "import/input.h"

enum mic_wire_kind { MIC_WIRE_VARINT = 0, MIC_WIRE_64 = 1, MIC_WIRE_BYTES = 2, MIC_WIRE_32 = 5 };

struct mic_wire_field {
  uint32_t number;
  uint32_t kind;   /* enum mic_wire_kind */
  uint64_t value;  /* of a number; of bytes how many there are */
  uint64_t offset; /* where its tag is, in the decompressed file */
};

struct mic_wire {
  struct mic_input *input; /* borrowed */
  uint8_t *buffer;
  size_t at, count, room;
  uint64_t base;      /* where the buffer's first byte is, in the decompressed file */
  uint64_t limit;     /* where the message ends; UINT64_MAX: with the file */
  uint64_t bytes_end; /* where the bytes of the field given last end */
  uint64_t held;      /* bytes that mic_wire_hold counted */
  bool malformed;     /* the last failure is one of the bytes, not of reading them */
};

void mic_wire_start(struct mic_wire *wire, struct mic_input *input);
/* The next field of the message, also when of the last one's bytes not all were taken; *more is
 * false at the message's end. */
int mic_wire_next(struct mic_wire *wire, struct mic_wire_field *field, bool *more,
                  struct mic_error *err);
/* Into the message that the bytes of the field given last are, and out of it, wherever it is.
 * Entering gives what leaving wants. */
uint64_t mic_wire_enter(struct mic_wire *wire);
void mic_wire_leave(struct mic_wire *wire, uint64_t outer);
/* A repeated number, packed or not: the next value of the field; *more is false when there is
 * none.  For the first value *more must be true. */
int mic_wire_packed(struct mic_wire *wire, struct mic_wire_field *field, uint64_t *value,
                    bool *more, struct mic_error *err);
/* The field's bytes in memory, borrowed until the next call. */
int mic_wire_text(struct mic_wire *wire, const struct mic_wire_field *field, const char **text,
                  struct mic_error *err);
int mic_wire_rewind(struct mic_wire *wire, struct mic_error *err);
void mic_wire_free(struct mic_wire *wire);
int mic_wire_bad(struct mic_wire *wire, uint64_t offset, const char *what, struct mic_error *err);
/* An error of the record that begins at a byte, in the words of the reader of its format. */
int mic_wire_bad_record(const struct mic_wire *wire, uint64_t offset, struct mic_error *err,
                        const char *fmt, va_list args);
/* Count what a reader keeps in memory, in all its readings: no more than 1 GiB. */
int mic_wire_hold(struct mic_wire *wire, uint64_t bytes, struct mic_error *err);

/* A number as an index; what none can be is MIC_NONE. */
static inline uint32_t mic_wire_index(uint64_t value) {
  return value < MIC_NONE ? (uint32_t)value : MIC_NONE;
}

#endif
