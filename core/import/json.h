/*
 * json.h - a JSON text as a stream of tokens with the keys they stand under.
 *
 * The text is parsed as it comes (json_feed.h); nothing is held but the token and its key.
 *
 * Fails:   as mic_json_feed; MIC_ELIMIT for 100,000 containers within one another.
 */
#ifndef MIC_IMPORT_JSON_H
#define MIC_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "import/json_feed.h"

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
  void *data;
  uint64_t offset; /* about where the token is that is taken: within the part read last */
};

int mic_json_parse(struct mic_json *json, struct mic_error *err);
/* Parse it from the first byte again: what a second reading begins with. */
int mic_json_again(struct mic_json *json, struct mic_error *err);

/* Is the token's key, or a string token, this word? */
bool mic_json_key(const struct mic_json_token *token, const char *word);
bool mic_json_is(const struct mic_json_token *token, const char *word);
/* Does a number have more digits behind the point than so many?  Three of them tell. */
bool mic_json_rounds(const struct mic_json_token *token, uint32_t digits);

#endif
