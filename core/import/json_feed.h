/*
 * json_feed.h - JSON of any size from an input, as yajl's own events: for what has so many that
 * tokens with their keys (json.h) cost too much.
 *
 * Strings may hold any bytes, as other tools write what they were given.  A single value of more
 * than 16 MiB is refused, so that memory does not follow what a small file decompresses to.
 *
 * Fails:   MIC_EFORMAT with the offset in the decompressed input, MIC_ELIMIT; what a callback that
 *          returns 0 has put into *err.
 */
#ifndef MIC_IMPORT_JSON_FEED_H
#define MIC_IMPORT_JSON_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yajl/yajl_parse.h>

#include "import/input.h"

struct mic_json_feed {
  struct mic_input *input; /* borrowed */
  const yajl_callbacks *callbacks;
  void *data;         /* for the callbacks */
  uint64_t *progress; /* a counter that the callbacks move with every value */
  uint64_t *offset;   /* is kept at where the part begins that is parsed; NULL: no one asks */
  /* Where the text may end without more, or with a comma too many before its bracket. */
  bool (*may_end)(void *data);
  bool cut; /* out: it ended so */
};

int mic_json_feed(struct mic_json_feed *json, struct mic_error *err);

/* A decimal number times `scale` (a power of ten), rounded to a whole one; false when it is none or
 * does not fit. */
bool mic_json_digits(const char *text, size_t size, uint32_t scale_digits, int64_t *out);

#endif
