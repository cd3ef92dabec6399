/* firefox_columns.c - values of a profile's JSON into columns. */
#include <string.h>

#include "import/firefox_inside.h"

/* Times are milliseconds there and nanoseconds here. */
enum { MILLIS = 6 /* digits */, WEIGHT = 7 /* as many as the thread's weights have */ };

static const struct {
  const char *table, *column;
  uint8_t digits;
} places[FF_COUNT] = {
  [FF_STACK_FRAME] = {"stackTable", "frame", 0},
  [FF_STACK_PREFIX] = {"stackTable", "prefix", 0},
  [FF_STACK_OFFSET] = {"stackTable", "prefixOffset", 0},
  [FF_FRAME_FUNC] = {"frameTable", "func", 0},
  [FF_FRAME_LINE] = {"frameTable", "line", 0},
  [FF_FRAME_ADDRESS] = {"frameTable", "address", 0},
  [FF_FRAME_INLINE] = {"frameTable", "inlineDepth", 0},
  [FF_FUNC_NAME] = {"funcTable", "name", 0},
  [FF_FUNC_FILE] = {"funcTable", "fileName", 0},
  [FF_FUNC_SOURCE] = {"funcTable", "source", 0},
  [FF_FUNC_LINE] = {"funcTable", "lineNumber", 0},
  [FF_FUNC_RESOURCE] = {"funcTable", "resource", 0},
  [FF_RESOURCE_NAME] = {"resourceTable", "name", 0},
  [FF_RESOURCE_LIB] = {"resourceTable", "lib", 0},
  [FF_SOURCE_FILE] = {"sources", "filename", 0},
  [FF_SAMPLE_STACK] = {"samples", "stack", 0},
  [FF_SAMPLE_TIME] = {"samples", "time", MILLIS},
  [FF_SAMPLE_DELTA] = {"samples", "timeDeltas", MILLIS},
  [FF_SAMPLE_WEIGHT] = {"samples", "weight", WEIGHT},
  [FF_SAMPLE_CPU] = {"samples", "threadCPUDelta", 0},
  [FF_MARKER_NAME] = {"markers", "name", 0},
  [FF_MARKER_START] = {"markers", "startTime", MILLIS},
  [FF_MARKER_END] = {"markers", "endTime", MILLIS},
  [FF_MARKER_PHASE] = {"markers", "phase", 0},
  [FF_MARKER_CATEGORY] = {"markers", "category", 0},
};

bool mic_firefox_take(struct mic_firefox_tables *tables, const struct mic_path *path, uint32_t at,
                      uint32_t weight_digits, const struct mic_json_token *token,
                      uint64_t *rounded) {
  if (path->depth != at + 2 || path->depth > MIC_PATH_DEPTH || token->kind >= MIC_JSON_OBJECT)
    return true;
  for (int c = 0; c < FF_COUNT; c++) {
    if (strcmp(places[c].table, path->keys[at]) != 0 ||
        strcmp(places[c].column, path->keys[at + 1]) != 0)
      continue;
    int64_t value = MIC_FIREFOX_NULL;
    uint32_t digits = places[c].digits == WEIGHT ? weight_digits : places[c].digits;
    if (token->kind != MIC_JSON_NULL &&
        (token->kind != MIC_JSON_NUMBER ||
         !mic_json_digits(token->bytes, token->size, digits, &value)))
      return false;
    if (token->kind == MIC_JSON_NUMBER && digits != MILLIS && mic_json_rounds(token, digits)) {
      /* A part of a unit may be lost; the rest are indexes, lines and addresses. */
      if (c != FF_SAMPLE_WEIGHT && c != FF_SAMPLE_CPU) return false;
      ++*rounded;
    }
    mic_numbers_push(&tables->columns[c], value);
  }
  return true;
}

void mic_firefox_clear(struct mic_firefox_tables *tables) {
  for (int c = 0; c < FF_COUNT; c++) mic_numbers_clear(&tables->columns[c]);
  tables->strings.count = 0;
}

void mic_firefox_free(struct mic_firefox_tables *tables) {
  for (int c = 0; c < FF_COUNT; c++) mic_numbers_free(&tables->columns[c]);
  mic_vec_free(&tables->strings);
}
