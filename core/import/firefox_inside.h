/*
 * firefox_inside.h - the columns of a Firefox profile.
 *
 * firefox_columns.c takes them from the JSON, firefox_stacks.c makes rows of frames and stacks,
 * firefox.c of threads, samples and markers.
 */
#ifndef MIC_IMPORT_FIREFOX_INSIDE_H
#define MIC_IMPORT_FIREFOX_INSIDE_H

#include "base/alloc.h"
#include "base/map.h"
#include "import/build.h"
#include "import/cpu_delta.h"
#include "import/edges.h"
#include "import/firefox.h"
#include "import/numbers.h"
#include "import/path.h"

#define MIC_FIREFOX_NULL MIC_NUMBER_NULL

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
  FF_SAMPLE_CPU,
  FF_MARKER_NAME,
  FF_MARKER_START,
  FF_MARKER_END,
  FF_MARKER_PHASE,
  FF_MARKER_CATEGORY,
  FF_COUNT
};

/* The tables of a thread, or those that all share. */
struct mic_firefox_tables {
  struct mic_numbers columns[FF_COUNT]; /* MIC_FIREFOX_NULL: null */
  MIC_VEC(uint32_t) strings;            /* the writer's ids */
};

struct mic_firefox_lib {
  uint32_t path, name, code_id; /* strings */
};
struct mic_firefox_thread {
  uint32_t name, process_name, pid_text, tid_text;
  int64_t pid, tid;
  int64_t start_ns, end_ns, process_start_ns, process_end_ns; /* MIC_FIREFOX_NULL: not told */
};

struct mic_firefox {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_firefox_result *result;
  const char *input_name;
  struct mic_error *err;
  struct mic_json json;
  struct mic_path path;
  bool second, shares, seen, processed;
  bool ours; /* written by microscope: addresses are those of the ELF files */
  struct mic_firefox_tables shared, own;
  MIC_VEC(uint8_t) weight_units; /* mic_unit of each thread's weights */
  struct mic_cpu_delta cpu;
  MIC_VEC(struct mic_firefox_lib) libs;
  MIC_VEC(uint32_t) categories; /* names */
  struct mic_firefox_thread thread;
  uint64_t number;          /* of the thread */
  struct mic_map processes; /* (pid's text, name) -> row */
  MIC_VEC(uint32_t) name_of_site;
  mic_lane_zones zones; /* of the thread being read */
  int64_t start_ns, end_ns;
  /* firefox_stacks.c */
  MIC_VEC(uint32_t) nodes;    /* of stacks; MIC_NONE: not made yet */
  MIC_VEC(int64_t) pending;   /* stacks whose nodes are to be made, callers last */
  MIC_VEC(char) key;          /* what a location says */
  struct mic_interner places; /* of all locations */
  MIC_VEC(uint32_t) locations;
  MIC_VEC(struct mic_lines_row) lines;
  uint64_t line_rows;
};

/* A value of a column, or null where the column is shorter or not there. */
static inline int64_t mic_firefox_get(const struct mic_firefox_tables *t,
                                      enum mic_firefox_column column, int64_t row) {
  return row >= 0 ? mic_numbers_get(&t->columns[column], (uint64_t)row) : MIC_FIREFOX_NULL;
}
bool mic_firefox_has_string(const struct mic_firefox *r, int64_t index);
uint32_t mic_firefox_string(const struct mic_firefox *r, int64_t index);
/* An error of a table's row. */
int mic_firefox_bad(const struct mic_firefox *r, const char *table, int64_t row, const char *why);
/* Check the stacks of the thread, or those that all share; their nodes are made when asked for. */
int mic_firefox_stacks(struct mic_firefox *r);
/* The node of a stack that is there. */
int mic_firefox_node(struct mic_firefox *r, int64_t stack, uint32_t *node);

/* Take a token into the tables when it is a value of a column: `at` is where in the path the
 * table's name stands.  weights are times 10^digits; *rounded counts those that lost digits.  False
 * when the value is no number where one must be.
 */
bool mic_firefox_take(struct mic_firefox_tables *tables, const struct mic_path *path, uint32_t at,
                      uint32_t weight_digits, const struct mic_json_token *token,
                      uint64_t *rounded);
void mic_firefox_clear(struct mic_firefox_tables *tables);
void mic_firefox_free(struct mic_firefox_tables *tables);

#endif
