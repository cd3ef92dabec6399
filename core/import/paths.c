/*
 * paths.c - a hash of each row's path, and rows of one hash compared frame by frame.
 *
 * The hash is a polynomial in a secret number, so that a row's follows from its parent's and its
 * location's, however many functions are inlined there, and does not depend on how rows share out
 * frames.  Its modulus is a prime: paths that differ and then go on alike differ all the way, and
 * recursion comes back to no hash for as long as there are rows.
 *
 * Rows that were found to be one path are joined with each other, and so are their callers, as far
 * as frames of both begin together: no two rows are compared again whose callers have been.  Of
 * rows whose frames never begin together a file of a few kilobytes can make comparisons without
 * end; those are counted.
 */
#include "import/paths.h"

#include <string.h>

#include "base/alloc.h"
#include "capture/names.h"
#include "capture/schema.h"

#define MODULUS 4294967291ULL /* 2^32 - 5, the greatest prime below 2^32 */
#define NO_LINE UINT64_MAX
/* Frames that are compared, at most: rows that begin together are walked twice, others meet again
 * after a few frames.  This many take a second or two. */
#define STEPS (1ULL << 28)
#define STEPS_A_ROW 256

/* Keys of frames: names of functions are below 2^32. */
#define PLACE (1ULL << 32)
#define SIGNAL (2ULL << 32)
#define END (3ULL << 32)

struct grouping {
  const struct mic_tables *t;
  const uint64_t *first_line;
  uint64_t factor;    /* of the polynomial */
  uint32_t *in_lines; /* what a location's first line adds to a hash, the second's what it is
                         multiplied by before */
  uint32_t *hash;     /* of each row's path; of the first row of one, in the end, its number */
  uint32_t *joined;   /* a row above with the same path, plus 1; 0: none is known */
  uint8_t *weighs;    /* a bit for each row: samples have it */
  struct mic_index index;
  struct mic_paths *out;
  uint64_t steps; /* frames that may still be compared; 0: too many are */
};

/* --- hashes -------------------------------------------------------------------------------- */

static uint64_t term(uint64_t key) { return mic_index_mix(key, 0); }

static uint64_t times_plus(uint64_t hash, uint64_t factor, uint64_t more) {
  return (hash * factor + more) % MODULUS;
}

static uint64_t function_key(const struct mic_tables *t, uint64_t line) {
  return t->functions.name[t->lines.function[line]];
}

/* Of a location without a function. */
static uint64_t place_key(const struct mic_tables *t, uint32_t location) {
  if (t->locations.kind[location] == MIC_LOCATION_NAMED) return t->locations.offset[location];
  return PLACE | location;
}

/* Ends that no reader of a stack would want to know are one. */
static uint64_t end_key(const struct mic_tables *t, uint32_t row) {
  uint8_t end = t->stacks.end[row];
  return END | (mic_end_is_silent(end) ? MIC_END_NOT_STATED : end);
}

static bool goes_on(const struct mic_tables *t, uint64_t line) {
  return line + 1 < t->lines.rows && t->lines.location[line + 1] == t->lines.location[line];
}

/* The innermost of a location's lines comes first, and last into the hash. */
static void hash_lines(struct grouping *g) {
  const struct mic_tables *t = g->t;
  for (uint64_t first = 0, past; first < t->lines.rows; first = past) {
    for (past = first + 1; goes_on(t, past - 1);) past++;
    uint64_t sum = 0, factor = 1;
    for (uint64_t i = past; i-- > first;) {
      sum = times_plus(sum, g->factor, term(function_key(t, i)));
      factor = times_plus(factor, g->factor, 0);
    }
    g->in_lines[first] = (uint32_t)sum;
    if (past - first > 1) g->in_lines[first + 1] = (uint32_t)factor;
  }
}

static uint64_t hash_row(const struct grouping *g, uint32_t row) {
  const struct mic_tables *t = g->t;
  if (t->stacks.parent[row] == MIC_NONE) return term(end_key(t, row)) % MODULUS;
  uint64_t hash = g->hash[t->stacks.parent[row]];
  uint32_t location = t->stacks.location[row];
  uint64_t line = g->first_line[location];
  if (t->locations.kind[location] == MIC_LOCATION_SIGNAL)
    return times_plus(hash, g->factor, term(SIGNAL));
  if (line == NO_LINE) return times_plus(hash, g->factor, term(place_key(t, location)));
  return times_plus(hash, goes_on(t, line) ? g->in_lines[line + 1] : g->factor, g->in_lines[line]);
}

static void hash_rows(struct grouping *g) {
  uint64_t lines_size = (g->t->lines.rows + 1) * sizeof *g->in_lines;
  g->factor = 2 + term(UINT64_MAX) % (MODULUS - 3);
  g->in_lines = mic_pages(lines_size);
  hash_lines(g);
  for (uint32_t row = 0; row < g->t->stacks.rows; row++) g->hash[row] = (uint32_t)hash_row(g, row);
  mic_pages_free(g->in_lines, lines_size);
}

/* --- which are one ------------------------------------------------------------------------- */

/* The first of the rows that are known to be this one's path. */
static uint32_t first_of(const struct grouping *g, uint32_t row) {
  while (g->joined[row]) {
    uint32_t above = g->joined[row] - 1;
    if (g->joined[above]) g->joined[row] = g->joined[above]; /* half the way next time */
    row = above;
  }
  return row;
}

/* Gives false when they were joined already. */
static bool join(struct grouping *g, uint32_t a, uint32_t b) {
  a = first_of(g, a);
  b = first_of(g, b);
  if (a == b) return false;
  if (a < b)
    g->joined[b] = a + 1;
  else
    g->joined[a] = b + 1;
  return true;
}

/* A frame on the way out: of a row the innermost, or that of a line after the first. */
struct frame {
  uint32_t row;
  uint64_t line; /* NO_LINE: the innermost */
};

static bool is_root(const struct grouping *g, const struct frame *at) {
  return at->line == NO_LINE && g->t->stacks.parent[at->row] == MIC_NONE;
}

/* What tells a frame from others; then *at is its caller. */
static uint64_t step_out(const struct grouping *g, struct frame *at) {
  const struct mic_tables *t = g->t;
  uint32_t location = t->stacks.location[at->row];
  uint64_t line = at->line != NO_LINE ? at->line : g->first_line[location];
  bool signal = t->locations.kind[location] == MIC_LOCATION_SIGNAL;
  if (!signal && line != NO_LINE && goes_on(t, line)) {
    at->line = line + 1;
  } else {
    at->line = NO_LINE;
    at->row = t->stacks.parent[at->row];
  }
  if (signal) return SIGNAL;
  return line == NO_LINE ? place_key(t, location) : function_key(t, line);
}

/* Whether two rows are one path, from the innermost frame on to callers that are known to be.
 * joins: it is known that they are, and they and their callers are joined. */
static bool are_one(struct grouping *g, uint32_t row, uint32_t other, bool joins) {
  const struct mic_tables *t = g->t;
  struct frame a = {row, NO_LINE}, b = {other, NO_LINE};
  while (g->steps && g->steps--) {
    bool together = a.line == NO_LINE && b.line == NO_LINE;
    if (together && joins && !join(g, a.row, b.row)) return true;
    if (together && !joins && first_of(g, a.row) == first_of(g, b.row)) return true;
    if (is_root(g, &a) || is_root(g, &b))
      return is_root(g, &a) && is_root(g, &b) && end_key(t, a.row) == end_key(t, b.row);
    if (together && t->stacks.location[a.row] == t->stacks.location[b.row]) {
      a.row = t->stacks.parent[a.row];
      b.row = t->stacks.parent[b.row];
    } else if (step_out(g, &a) != step_out(g, &b)) {
      return false;
    }
  }
  return false;
}

static uint32_t hash_of_path(const void *keys, uint32_t path) {
  const struct grouping *g = keys;
  return g->hash[g->out->stack[path]];
}

static void put(struct grouping *g, uint32_t row) {
  struct mic_paths *out = g->out;
  uint32_t hash = g->hash[row];
  uint64_t at;
  for (uint32_t path = mic_index_first(&g->index, hash, &at); path != MIC_NONE;
       path = mic_index_next(&g->index, hash, &at)) {
    uint32_t other = out->stack[path];
    if (g->hash[other] != hash || !are_one(g, row, other, false)) continue;
    are_one(g, row, other, true);
    return;
  }
  out->stack[out->count++] = row;
  mic_index_add(&g->index, hash, hash_of_path, g);
}

/* --- weights ------------------------------------------------------------------------------- */

static bool weighs(const struct grouping *g, uint32_t row) {
  return g->weighs[row / 8] >> row % 8 & 1;
}

/* How many rows samples of the source have that weigh anything. */
static uint64_t mark_rows(struct grouping *g, uint32_t source) {
  const struct mic_tables *t = g->t;
  uint64_t count = 0;
  for (uint64_t i = 0; i < t->samples.rows; i++) {
    if (t->samples.source[i] != source || !t->samples.weight[i]) continue;
    uint32_t row = t->samples.stack[i];
    count += !weighs(g, row);
    g->weighs[row / 8] |= (uint8_t)(1U << row % 8);
  }
  return count;
}

static int add_weights(struct grouping *g, uint32_t source, struct mic_error *err) {
  const struct mic_tables *t = g->t;
  struct mic_paths *out = g->out;
  for (uint32_t path = 0; path < out->count; path++) g->hash[first_of(g, out->stack[path])] = path;
  out->weight = mic_pages((out->room + 1) * sizeof *out->weight);
  for (uint64_t i = 0; i < t->samples.rows; i++) {
    if (t->samples.source[i] != source || !t->samples.weight[i]) continue;
    uint64_t *sum = &out->weight[g->hash[first_of(g, t->samples.stack[i])]];
    if (__builtin_add_overflow(*sum, t->samples.weight[i], sum))
      return mic_fail(err, MIC_ELIMIT, "sample %llu: its stack's samples weigh more than 2^64 - 1",
                      (unsigned long long)i);
  }
  return 0;
}

int mic_paths_of(const struct mic_tables *t, const uint64_t *first_line, uint32_t source,
                 struct mic_paths *out, struct mic_error *err) {
  uint64_t rows = t->stacks.rows, each = (rows + 1) * sizeof(uint32_t);
  struct grouping g = {.t = t, .first_line = first_line, .out = out};
  g.weighs = mic_pages(rows / 8 + 1);
  *out = (struct mic_paths){.room = mark_rows(&g, source)};
  out->stack = mic_pages((out->room + 1) * sizeof *out->stack);
  g.hash = mic_pages(each);
  g.joined = mic_pages(each);
  hash_rows(&g);
  g.steps = STEPS + STEPS_A_ROW * (rows + t->lines.rows);
  for (uint32_t row = 0; row < rows && g.steps; row++)
    if (weighs(&g, row)) put(&g, row);
  mic_pages_free(g.weighs, rows / 8 + 1);
  mic_index_free(&g.index);
  int code = g.steps ? add_weights(&g, source, err)
                     : mic_fail(err, MIC_ELIMIT,
                                "the same frames are inlined in too many ways to tell which stacks "
                                "are one");
  mic_pages_free(g.hash, each);
  mic_pages_free(g.joined, each);
  if (code) mic_paths_free(out);
  return code;
}

void mic_paths_free(struct mic_paths *paths) {
  mic_pages_free(paths->stack, (paths->room + 1) * sizeof *paths->stack);
  mic_pages_free(paths->weight, (paths->room + 1) * sizeof *paths->weight);
  *paths = (struct mic_paths){0};
}
