/*
 * path.h - where in a JSON text a token stands: the keys of the containers around it.
 *
 *   mic_path_is(&path, "profiles", "*", "weights")   within profiles[N].weights
 */
#ifndef MIC_IMPORT_PATH_H
#define MIC_IMPORT_PATH_H

#include <stdbool.h>
#include <string.h>

#include "import/json.h"

enum { MIC_PATH_DEPTH = 8, MIC_PATH_KEY = 32 };

struct mic_path {
  uint32_t depth; /* containers that are open; those past MIC_PATH_DEPTH have no keys here */
  char keys[MIC_PATH_DEPTH][MIC_PATH_KEY]; /* "*" for an element of an array */
  uint64_t index[MIC_PATH_DEPTH];          /* of the container among its array's elements */
  uint64_t next[MIC_PATH_DEPTH];           /* elements seen of a container that is an array */
};

/* To be called first with each token: a container that begins is in the path after it, one that
 * ends no more. */
static inline void mic_path_take(struct mic_path *path, const struct mic_json_token *token) {
  if (token->kind == MIC_JSON_OBJECT_END || token->kind == MIC_JSON_ARRAY_END) {
    path->depth--;
    return;
  }
  uint64_t index = 0;
  if (path->depth && path->depth <= MIC_PATH_DEPTH) index = path->next[path->depth - 1]++;
  if (token->kind != MIC_JSON_OBJECT && token->kind != MIC_JSON_ARRAY) return;
  uint32_t at = path->depth++;
  if (at >= MIC_PATH_DEPTH) return;
  size_t size = token->key && token->key_size < MIC_PATH_KEY ? token->key_size : 0;
  path->index[at] = index;
  path->next[at] = 0;
  if (token->key) {
    memcpy(path->keys[at], token->key, size);
    path->keys[at][size] = 0;
  } else {
    memcpy(path->keys[at], "*", 2);
  }
}

/* Do the open containers under the text's own have just these keys? */
static inline bool mic_path_is_(const struct mic_path *path, const char *const *keys) {
  uint32_t depth = 1;
  for (; *keys; keys++, depth++)
    if (depth >= path->depth || depth >= MIC_PATH_DEPTH || strcmp(path->keys[depth], *keys) != 0)
      return false;
  return depth == path->depth;
}
#define mic_path_is(path, ...) mic_path_is_((path), (const char *const[]){__VA_ARGS__, NULL})

#endif
