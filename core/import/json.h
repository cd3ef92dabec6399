/*
 * json.h - a JSON text as a stream of tokens with the keys they stand under.
 *
 * The text is parsed as it comes; nothing is held but the token and the path to it, at most 64
 * levels deep by name.  Strings are any bytes.
 *
 * Fails:   MIC_EFORMAT with the offset in the decompressed text, unless the reader's `tolerate`
 *          says that the text may end there.
 */
#ifndef MIC_IMPORT_JSON_H
#define MIC_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "import/input.h"

enum mic_json_kind {
  MIC_JSON_NULL,
  MIC_JSON_BOOL,   /* size: 0 or 1 */
  MIC_JSON_NUMBER, /* bytes: as written */
  MIC_JSON_STRING,
  MIC_JSON_OBJECT, /* begins */
  MIC_JSON_OBJECT_END,
  MIC_JSON_ARRAY,
  MIC_JSON_ARRAY_END
};

struct mic_json_token {
  enum mic_json_kind kind;
  const char *bytes; /* borrowed for the call */
  size_t size;
  /* Open objects and arrays around it.  An object or array itself is not counted in its own
   * begin and end. */
  uint32_t depth;
  const char *key; /* in an object; NULL in an array and at the top */
  size_t key_size;
};

struct mic_json {
  struct mic_input *input;
  /* Takes a token; a code that is not 0 ends the parse with it, err being filled. */
  int (*take)(void *data, const struct mic_json_token *token, struct mic_error *err);
  /* May the text end here (at_end), or with this byte, which JSON has no place for?  NULL: no. */
  bool (*tolerate)(void *data, uint32_t depth, bool at_end, char byte);
  void *data;
  uint64_t offset; /* about where the token is that is taken: within the part read last */
};

int mic_json_parse(struct mic_json *json, struct mic_error *err);

/* Is the token's key, or a string token, this word? */
bool mic_json_key(const struct mic_json_token *token, const char *word);
bool mic_json_is(const struct mic_json_token *token, const char *word);
/* A number's value times `scale`, exact where it is whole, else rounded; false when it is no number
 * or out of range. */
bool mic_json_scaled(const char *bytes, size_t size, uint64_t scale, int64_t *value);

#endif
