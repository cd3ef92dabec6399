/*
 * firefox_inside.h - the columns of a Firefox profile.
 *
 * firefox_columns.c takes them from the JSON, firefox.c makes rows of them.
 */
#ifndef MIC_IMPORT_FIREFOX_INSIDE_H
#define MIC_IMPORT_FIREFOX_INSIDE_H

#include "base/alloc.h"
#include "import/path.h"

#define MIC_FIREFOX_NULL INT64_MIN

enum mic_firefox_column {
  FF_STACK_FRAME,
  FF_STACK_PREFIX,
  FF_STACK_OFFSET,
  FF_FRAME_FUNC,
  FF_FRAME_LINE,
  FF_FRAME_ADDRESS,
  FF_FRAME_INLINE,
  FF_FUNC_NAME,
  FF_FUNC_FILE,
  FF_FUNC_SOURCE,
  FF_FUNC_LINE,
  FF_FUNC_RESOURCE,
  FF_RESOURCE_NAME,
  FF_RESOURCE_LIB,
  FF_SOURCE_FILE,
  FF_SHARED_COUNT, /* tables that threads may share end here */
  FF_SAMPLE_STACK = FF_SHARED_COUNT,
  FF_SAMPLE_TIME,
  FF_SAMPLE_DELTA,
  FF_SAMPLE_WEIGHT,
  FF_MARKER_NAME,
  FF_MARKER_START,
  FF_MARKER_END,
  FF_MARKER_PHASE,
  FF_MARKER_CATEGORY,
  FF_COUNT
};

typedef MIC_VEC(int64_t) mic_firefox_values;

/* The tables of a thread, or those that all share. */
struct mic_firefox_tables {
  mic_firefox_values columns[FF_COUNT]; /* MIC_FIREFOX_NULL: null */
  MIC_VEC(uint32_t) strings;            /* the writer's ids */
};

/* Take a token into the tables when it is a value of a column: `at` is where in the path the
 * table's name stands.  weights are times 10^digits.  False when the value is no number where one
 * must be.
 */
bool mic_firefox_take(struct mic_firefox_tables *tables, const struct mic_path *path, uint32_t at,
                      uint32_t weight_digits, const struct mic_json_token *token);
void mic_firefox_clear(struct mic_firefox_tables *tables);
void mic_firefox_free(struct mic_firefox_tables *tables);

#endif
