/*
 * wire.h - protocol buffers' wire format, a field at a time: from a stream and within a message.
 *
 * A message is loaded as its bytes come, never by the length it claims, and a message of more
 * than 64 MiB is refused: no field of a profile is near it.
 */
#ifndef MIC_IMPORT_WIRE_H
#define MIC_IMPORT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"
#include "import/input.h"

enum mic_wire_kind { MIC_WIRE_VARINT = 0, MIC_WIRE_64 = 1, MIC_WIRE_BYTES = 2, MIC_WIRE_32 = 5 };

struct mic_wire_field {
  uint32_t number;
  uint32_t kind;           /* enum mic_wire_kind */
  uint64_t value;          /* of a number */
  struct mic_cursor bytes; /* of MIC_WIRE_BYTES */
};

/* The next field of a message; false at its end, or bad when it is malformed. */
bool mic_wire_next(struct mic_cursor *message, struct mic_wire_field *field);

/* A repeated number, packed or not: takes the next value; false when there are no more. */
bool mic_wire_packed(struct mic_wire_field *field, uint64_t *value);

/* The top level of a file. */
struct mic_wire {
  struct mic_input *input; /* borrowed */
  uint8_t *buffer;
  size_t at, count, room;
  uint64_t offset; /* of the field given last, in the decompressed file */
};

/* The next field; *more is false at the end.  Of a field whose number is in `skip` (bit n) the
 * bytes are passed over and not given. */
int mic_wire_read(struct mic_wire *wire, uint64_t skip, struct mic_wire_field *field, bool *more,
                  struct mic_error *err);
int mic_wire_rewind(struct mic_wire *wire, struct mic_error *err);
void mic_wire_free(struct mic_wire *wire);
int mic_wire_bad(const struct mic_wire *wire, const char *what, struct mic_error *err);

#endif
