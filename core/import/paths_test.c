/* paths_test.c - which stacks are one path, against paths that are spelled out. */
#include "import/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "capture/names.h"
#include "capture/schema.h"

/* Tables made row by row. */
struct made {
  MIC_VEC(uint8_t) kind;
  const uint64_t *offset; /* of named places, by location */
  MIC_VEC(uint32_t) line_location;
  MIC_VEC(uint32_t) line_function;
  MIC_VEC(uint32_t) parent;
  MIC_VEC(uint32_t) location;
  MIC_VEC(uint8_t) end;
  MIC_VEC(uint32_t) sampled;
  MIC_VEC(uint64_t) weight;
  MIC_VEC(uint8_t) source;
};

static void unmake(struct made *m) {
  mic_vec_free(&m->kind);
  mic_vec_free(&m->line_location);
  mic_vec_free(&m->line_function);
  mic_vec_free(&m->parent);
  mic_vec_free(&m->location);
  mic_vec_free(&m->end);
  mic_vec_free(&m->sampled);
  mic_vec_free(&m->weight);
  mic_vec_free(&m->source);
}

/* A location of functions a digit each, the innermost first: "" is a place without any. */
static uint32_t place(struct made *m, const char *functions) {
  uint32_t id = (uint32_t)m->kind.count;
  *mic_vec_push(&m->kind) = MIC_LOCATION_NATIVE;
  for (; *functions; functions++) {
    *mic_vec_push(&m->line_location) = id;
    *mic_vec_push(&m->line_function) = (uint32_t)(*functions - '0');
  }
  return id;
}

static uint32_t add_row(struct made *m, uint32_t parent, uint32_t location, uint8_t end) {
  *mic_vec_push(&m->parent) = parent;
  *mic_vec_push(&m->location) = location;
  *mic_vec_push(&m->end) = end;
  return (uint32_t)m->parent.count - 1;
}
static uint32_t root(struct made *m, uint8_t end) { return add_row(m, MIC_NONE, MIC_NONE, end); }
static uint32_t call(struct made *m, uint32_t parent, uint32_t location) {
  return add_row(m, parent, location, MIC_END_NONE);
}

static void sample(struct made *m, uint32_t row, uint64_t weight, uint8_t source) {
  *mic_vec_push(&m->sampled) = row;
  *mic_vec_push(&m->weight) = weight;
  *mic_vec_push(&m->source) = source;
}

enum { FUNCTIONS = 128 };

/* Functions have their numbers as names, but for 'z', which is another 1. */
static const uint32_t *names(void) {
  static uint32_t name[FUNCTIONS];
  for (uint32_t i = 0; i < FUNCTIONS; i++) name[i] = i;
  name['z' - '0'] = 1;
  return name;
}

static struct mic_tables tables(const struct made *m) {
  struct mic_tables t;
  memset(&t, 0, sizeof t);
  t.functions.rows = FUNCTIONS;
  t.functions.name = names();
  t.locations.rows = m->kind.count;
  t.locations.kind = m->kind.at;
  t.locations.offset = m->offset;
  t.lines.rows = m->line_location.count;
  t.lines.location = m->line_location.at;
  t.lines.function = m->line_function.at;
  t.stacks.rows = m->parent.count;
  t.stacks.parent = m->parent.at;
  t.stacks.location = m->location.at;
  t.stacks.end = m->end.at;
  t.samples.rows = m->sampled.count;
  t.samples.stack = m->sampled.at;
  t.samples.weight = m->weight.at;
  t.samples.source = m->source.at;
  return t;
}

static int group(const struct made *m, uint32_t source, struct mic_paths *out,
                 struct mic_error *err) {
  struct mic_tables t = tables(m);
  uint64_t *first_line = mic_tables_first_lines(&t);
  int code = mic_paths_of(&t, first_line, source, out, err);
  free(first_line);
  return code;
}

struct want {
  uint32_t stack;
  uint64_t weight;
};

static void expect(struct made *m, uint32_t source, const struct want *want, uint32_t count) {
  struct mic_paths got;
  struct mic_error err = {0};
  assert_int_equal(group(m, source, &got, &err), 0);
  assert_int_equal(got.count, count);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(got.stack[i], want[i].stack);
    assert_int_equal(got.weight[i], want[i].weight);
  }
  mic_paths_free(&got);
}

#define EXPECT(m, source, ...)                          \
  expect(m, source, (const struct want[]){__VA_ARGS__}, \
         sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want))

static void is_empty_where_nothing_is_sampled(void **state) {
  struct made m = {0};
  (void)state;
  expect(&m, 0, NULL, 0);
  uint32_t r = root(&m, MIC_END_OUTERMOST);
  call(&m, r, place(&m, "1"));
  expect(&m, 0, NULL, 0);
  unmake(&m);
}

static void takes_other_addresses_of_a_function_as_one(void **state) {
  struct made m = {0};
  (void)state;
  uint32_t a = place(&m, "1"), b = place(&m, "1"), c = place(&m, "2"), d = place(&m, "2");
  uint32_t r = root(&m, MIC_END_OUTERMOST);
  uint32_t ra = call(&m, r, a), rb = call(&m, r, b);
  uint32_t rac = call(&m, ra, c), rbd = call(&m, rb, d), rad = call(&m, ra, d);
  sample(&m, rbd, 3, 0);
  sample(&m, rac, 2, 0);
  sample(&m, rad, 4, 0);
  sample(&m, rb, 1, 0);
  EXPECT(&m, 0, {rb, 1}, {rac, 9});
  unmake(&m);
}

static void takes_inlined_frames_as_frames(void **state) {
  struct made m = {0};
  (void)state;
  uint32_t one = place(&m, "1"), two = place(&m, "2"), three = place(&m, "3");
  uint32_t one_two = place(&m, "21"), two_three = place(&m, "32"), all = place(&m, "321");
  uint32_t r = root(&m, MIC_END_OUTERMOST);
  uint32_t a = call(&m, call(&m, call(&m, r, one), two), three);
  uint32_t b = call(&m, call(&m, r, one_two), three);
  uint32_t c = call(&m, call(&m, r, one), two_three);
  uint32_t d = call(&m, r, all);
  uint32_t shorter = call(&m, r, two_three), longer = call(&m, d, three);
  uint32_t turned = call(&m, call(&m, r, two), one);
  uint32_t each[] = {a, b, c, d, shorter, longer, turned};
  for (uint32_t i = 0; i < 7; i++) sample(&m, each[i], 1 + i, 0);
  EXPECT(&m, 0, {a, 10}, {shorter, 5}, {longer, 6}, {turned, 7});
  unmake(&m);
}

static void tells_ends_places_and_signals_apart(void **state) {
  struct made m = {0};
  (void)state;
  uint32_t one = place(&m, "1"), nowhere = place(&m, ""), elsewhere = place(&m, "");
  uint32_t signal = place(&m, "1"), other_signal = place(&m, "23");
  m.kind.at[signal] = m.kind.at[other_signal] = MIC_LOCATION_SIGNAL;
  uint32_t whole = root(&m, MIC_END_OUTERMOST), cut = root(&m, MIC_END_DEPTH_LIMIT);
  uint32_t again = root(&m, MIC_END_OUTERMOST);
  uint32_t rows[] = {
    whole,
    cut,
    again,
    call(&m, whole, one),
    call(&m, cut, one),
    call(&m, again, one),
    call(&m, whole, nowhere),
    call(&m, again, nowhere),
    call(&m, whole, elsewhere),
    call(&m, whole, signal),
    call(&m, again, other_signal),
  };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) sample(&m, rows[i], 1, 0);
  EXPECT(&m, 0, {whole, 2}, {cut, 1}, {rows[3], 2}, {rows[4], 1}, {rows[6], 2}, {rows[8], 1},
         {rows[9], 2});
  unmake(&m);
}

static void takes_what_is_written_alike_as_one(void **state) {
  struct made m = {0};
  (void)state;
  uint32_t one = place(&m, "1"), other = place(&m, "z"), named = place(&m, "");
  uint64_t *offsets = mic_alloc(m.kind.count * sizeof *offsets);
  m.kind.at[named] = MIC_LOCATION_NAMED;
  offsets[named] = 1; /* its name, as that of a function */
  m.offset = offsets;
  uint32_t whole = root(&m, MIC_END_OUTERMOST), silent = root(&m, MIC_END_NOT_STATED);
  uint32_t entry = root(&m, MIC_END_ENTRY), cut = root(&m, MIC_END_NO_REGISTERS);
  uint32_t rows[] = {whole,
                     silent,
                     entry,
                     cut,
                     call(&m, whole, one),
                     call(&m, silent, other),
                     call(&m, entry, named),
                     call(&m, cut, one)};
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) sample(&m, rows[i], 1, 0);
  EXPECT(&m, 0, {whole, 3}, {cut, 1}, {rows[4], 3}, {rows[7], 1});
  free(offsets);
  unmake(&m);
}

static void weighs_one_source_alone(void **state) {
  struct made m = {0};
  (void)state;
  uint32_t one = place(&m, "1"), same = place(&m, "1"), r = root(&m, MIC_END_OUTERMOST);
  uint32_t a = call(&m, r, one), b = call(&m, r, same), deep = call(&m, b, one);
  sample(&m, a, 0, 1);
  sample(&m, a, 7, 0);
  sample(&m, b, 5, 1);
  sample(&m, deep, 0, 0);
  sample(&m, b, 2, 1);
  EXPECT(&m, 0, {a, 7});
  EXPECT(&m, 1, {b, 7});
  expect(&m, 2, NULL, 0);
  unmake(&m);
}

static void refuses_what_no_number_holds(void **state) {
  struct made m = {0};
  struct mic_paths got;
  struct mic_error err = {0};
  (void)state;
  uint32_t one = place(&m, "1"), same = place(&m, "1"), r = root(&m, MIC_END_OUTERMOST);
  uint32_t a = call(&m, r, one), b = call(&m, r, same);
  sample(&m, a, UINT64_MAX - 1, 0);
  sample(&m, b, 1, 0);
  EXPECT(&m, 0, {a, UINT64_MAX});
  sample(&m, r, 1, 0);
  sample(&m, b, 1, 0);
  assert_int_equal(group(&m, 0, &got, &err), MIC_ELIMIT);
  assert_string_equal(err.msg, "sample 3: its stack's samples weigh more than 2^64 - 1");
  assert_int_equal(got.count, 0);
  mic_paths_free(&got);
  unmake(&m);
}

/* --- against paths spelled out ------------------------------------------------------------- */

/* A path from the innermost frame on, each frame a letter, and the end. */
static void spell(const struct made *m, uint32_t row, char *out) {
  struct mic_tables t = tables(m);
  for (; m->parent.at[row] != MIC_NONE; row = m->parent.at[row]) {
    uint32_t l = m->location.at[row];
    bool any = false;
    for (size_t i = 0; i < t.lines.rows && m->kind.at[l] != MIC_LOCATION_SIGNAL; i++)
      if (m->line_location.at[i] == l) {
        *out++ = (char)('0' + m->line_function.at[i]);
        any = true;
      }
    if (!any) *out++ = m->kind.at[l] == MIC_LOCATION_SIGNAL ? '!' : (char)('A' + l);
  }
  *out++ = '/';
  *out++ = mic_end_is_whole(m->end.at[row]) ? (char)MIC_END_NOT_STATED : (char)m->end.at[row];
  *out = 0;
}

enum { ROWS = 300, SAMPLES = 400, DEEPEST = 3 * ROWS + 3 };

/* Few functions, so that most rows meet others. */
static void fill(struct made *m, unsigned functions, unsigned width) {
  static const char *const inlined[] = {"", "1", "2", "11", "12", "21", "22", "112", "221", "3"};
  for (unsigned i = 0; i < 12; i++) place(m, inlined[(unsigned)rand() % functions]);
  m->kind.at[11] = MIC_LOCATION_SIGNAL;
  for (unsigned i = 0; i < 4; i++) root(m, (uint8_t)(1 + i % 3));
  while (m->parent.count < ROWS) {
    uint32_t rows = (uint32_t)m->parent.count, back = (uint32_t)rand() % width;
    call(m, back < rows ? rows - 1 - back : 0, (uint32_t)rand() % 12);
  }
  for (unsigned i = 0; i < SAMPLES; i++)
    sample(m, (uint32_t)rand() % ROWS, (uint64_t)rand() % 4, (uint8_t)(rand() % 2));
}

static void compare(const struct made *m, uint32_t source) {
  struct mic_paths got;
  char(*paths)[DEEPEST] = mic_alloc(ROWS * sizeof *paths);
  uint64_t weight[ROWS] = {0}, total[ROWS] = {0};
  for (uint32_t row = 0; row < ROWS; row++) spell(m, row, paths[row]);
  for (uint32_t i = 0; i < SAMPLES; i++)
    if (m->source.at[i] == source) weight[m->sampled.at[i]] += m->weight.at[i];
  assert_int_equal(group(m, source, &got, NULL), 0);
  uint32_t count = 0;
  for (uint32_t row = 0; row < ROWS; row++) {
    if (!weight[row]) continue;
    uint32_t first = 0;
    while (!weight[first] || strcmp(paths[first], paths[row]) != 0) first++;
    total[first] += weight[row];
  }
  for (uint32_t row = 0; row < ROWS; row++) {
    if (!total[row]) continue;
    assert_true(count < got.count);
    assert_int_equal(got.stack[count], row);
    assert_int_equal(got.weight[count], total[row]);
    count++;
  }
  assert_int_equal(got.count, count);
  mic_paths_free(&got);
  free(paths);
}

static void compare_many(unsigned rounds) {
  srand(1);
  for (unsigned round = 0; round < rounds; round++) {
    struct made m = {0};
    fill(&m, 4 + round % 7, 1 + round % 50 * 6);
    compare(&m, round % 2);
    unmake(&m);
  }
}

static void agrees_with_paths_spelled_out(void **state) {
  (void)state;
  compare_many(300);
}

/* With this secret all hashes are 0: what is one is told by frames alone. */
static void trusts_no_hash(void **state) {
  (void)state;
  uint64_t secret = mic_index_secret[1];
  mic_index_secret[1] = 0;
  compare_many(100);
  mic_index_secret[1] = secret;
}

/* --- how long it takes --------------------------------------------------------------------- */

/* Chains of the same functions at addresses of their own, a leaf below each row: comparing each row
 * up to its root would be 10^11 steps. */
static void takes_equal_chains_once(void **state) {
  enum { CHAINS = 20, DEPTH = 50000 };
  struct made m = {0};
  struct mic_paths got;
  (void)state;
  uint32_t leaf = place(&m, "2"), r = root(&m, MIC_END_OUTERMOST);
  for (uint32_t c = 0; c < CHAINS; c++) {
    uint32_t at = r, own = place(&m, "1");
    for (uint32_t i = 0; i < DEPTH; i++) {
      at = call(&m, at, own);
      sample(&m, call(&m, at, leaf), 1, 0);
    }
  }
  assert_int_equal(group(&m, 0, &got, NULL), 0);
  assert_int_equal(got.count, DEPTH);
  for (uint32_t i = 0; i < DEPTH; i++) assert_int_equal(got.weight[i], CHAINS);
  mic_paths_free(&got);
  unmake(&m);
}

/* A location of very many inlined functions below very many rows. */
static void takes_many_lines_once(void **state) {
  enum { LINES = 200000, CALLS = 200000 };
  struct made m = {0};
  struct mic_paths got;
  (void)state;
  uint32_t wide = place(&m, ""), r = root(&m, MIC_END_OUTERMOST);
  for (uint32_t i = 0; i < LINES; i++) {
    *mic_vec_push(&m.line_location) = wide;
    *mic_vec_push(&m.line_function) = i % 3;
  }
  for (uint32_t i = 0; i < CALLS; i++) sample(&m, call(&m, r, wide), 1, 0);
  assert_int_equal(group(&m, 0, &got, NULL), 0);
  assert_int_equal(got.count, 1);
  assert_int_equal(got.weight[0], CALLS);
  mic_paths_free(&got);
  unmake(&m);
}

/* As many functions inlined into each other at one place and, but for the last, at another, whose
 * rows are no one's callers but one row's each: their frames never begin together. */
static void refuses_to_compare_for_minutes(void **state) {
  enum { LINES = 20000, CALLS = 20000 };
  struct made m = {0};
  struct mic_paths got;
  struct mic_error err = {0};
  (void)state;
  uint32_t all = place(&m, ""), but_one = place(&m, ""), r = root(&m, MIC_END_OUTERMOST);
  for (uint32_t i = 0; i < 2 * LINES - 1; i++) {
    *mic_vec_push(&m.line_location) = i < LINES ? all : but_one;
    *mic_vec_push(&m.line_function) = 1;
  }
  uint32_t last = place(&m, "1");
  sample(&m, call(&m, r, all), 1, 0);
  for (uint32_t i = 0; i < CALLS; i++) sample(&m, call(&m, call(&m, r, but_one), last), 1, 0);
  assert_int_equal(group(&m, 0, &got, &err), MIC_ELIMIT);
  assert_string_equal(err.msg,
                      "the same frames are inlined in too many ways to tell which stacks are one");
  assert_int_equal(got.count, 0);
  mic_paths_free(&got);
  unmake(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_empty_where_nothing_is_sampled),
    cmocka_unit_test(takes_other_addresses_of_a_function_as_one),
    cmocka_unit_test(takes_inlined_frames_as_frames),
    cmocka_unit_test(tells_ends_places_and_signals_apart),
    cmocka_unit_test(takes_what_is_written_alike_as_one),
    cmocka_unit_test(weighs_one_source_alone),
    cmocka_unit_test(refuses_what_no_number_holds),
    cmocka_unit_test(agrees_with_paths_spelled_out),
    cmocka_unit_test(trusts_no_hash),
    cmocka_unit_test(takes_equal_chains_once),
    cmocka_unit_test(takes_many_lines_once),
    cmocka_unit_test(refuses_to_compare_for_minutes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
