/* merge_test.c - merged captures keep every row of what they were made of. */
#include "capture/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/generate.h"
#include "capture/reader.h"

static char folder[64];

static char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void generate(const char *name, uint64_t samples, uint32_t stacks, uint64_t seed) {
  struct mic_generate_options options = {.size = sizeof options,
                                         .samples = samples,
                                         .stacks = stacks,
                                         .functions = 200,
                                         .depth_max = 20,
                                         .seed = seed};
  struct mic_error err = {0};
  assert_int_equal(mic_capture_generate(&options, path_of(name), &err), 0);
}

static struct mic_capture *open_one(const char *name) {
  struct mic_error err = {0};
  struct mic_capture *cap = NULL;
  assert_int_equal(mic_capture_open(path_of(name), &cap, &err), 0);
  return cap;
}

static int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/mic_merge_test.XXXXXX");
  if (!mkdtemp(folder)) return 1;
  generate("a.usprof", 3000, 200, 1);
  generate("b.usprof", 2000, 300, 2);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path_of("a.usprof"));
  unlink(path_of("b.usprof"));
  return rmdir(folder);
}

static uint64_t weight_of(const struct mic_capture *cap) {
  uint64_t rows, sum = 0;
  const uint64_t *weight = mic_capture_array(cap, "samples", "weight", &rows);
  for (uint64_t i = 0; i < rows; i++) sum += weight[i];
  return sum;
}

/* A sample's stack as text: locations' offsets and the end, from the leaf. */
static void stack_text(const struct mic_capture *cap, uint64_t sample, char *out, size_t size) {
  const uint32_t *stack = mic_capture_array(cap, "samples", "stack", NULL);
  const uint32_t *parent = mic_capture_array(cap, "stacks", "parent", NULL);
  const uint32_t *location = mic_capture_array(cap, "stacks", "location", NULL);
  const uint8_t *end = mic_capture_array(cap, "stacks", "end", NULL);
  const uint64_t *offset = mic_capture_array(cap, "locations", "offset", NULL);
  const uint32_t *module = mic_capture_array(cap, "locations", "module", NULL);
  const uint32_t *name = mic_capture_array(cap, "modules", "name", NULL);
  size_t at = 0;
  uint32_t node = stack[sample];
  for (; parent[node] != UINT32_MAX && at < size; node = parent[node]) {
    uint64_t length = 0;
    uint32_t of = module[location[node]];
    const char *text = of == UINT32_MAX ? "" : mic_capture_string(cap, name[of], &length);
    at += (size_t)snprintf(out + at, size - at, "%.*s+%llx ", (int)length, text,
                           (unsigned long long)offset[location[node]]);
  }
  if (at < size) snprintf(out + at, size - at, "[%u]", end[node]);
}

static void adds_up(void **state) {
  (void)state;
  struct mic_capture *a = open_one("a.usprof"), *b = open_one("b.usprof"), *all = NULL;
  struct mic_error err = {0};
  struct mic_merge *merge = mic_merge_new();
  mic_merge_add(merge, a, 0, 0);
  mic_merge_add(merge, b, 5000000000, 7);
  mic_merge_add(merge, a, 9000000000, 0);
  mic_merge_problem(merge, "said twice");
  mic_merge_problem(merge, "said twice");
  assert_int_equal(mic_merge_finish(merge, &all, &err), 0);
  assert_int_equal(mic_capture_rows(all, "samples"), 8000);
  assert_int_equal(weight_of(all), 2 * weight_of(a) + weight_of(b));
  const uint64_t *merged = mic_capture_array(all, "samples", "time_ns", NULL);
  const uint64_t *own = mic_capture_array(b, "samples", "time_ns", NULL);
  for (uint64_t i = 0; i < 2000; i++) assert_int_equal(merged[3000 + i], own[i] + 5000000000);
  uint64_t rows;
  const uint64_t *count = mic_capture_array(all, "problems", "count", &rows);
  assert_int_equal(count[rows - 1], 2);
  /* The second time round nothing of a dictionary is new. */
  assert_true(mic_capture_rows(all, "stacks") <=
              mic_capture_rows(a, "stacks") + mic_capture_rows(b, "stacks"));
  char before[8192], after[8192];
  for (uint64_t i = 0; i < 2000; i += 7) {
    stack_text(b, i, before, sizeof before);
    stack_text(all, 3000 + i, after, sizeof after);
    assert_string_equal(before, after);
    stack_text(all, i, before, sizeof before);
    stack_text(all, 5000 + i, after, sizeof after);
    assert_string_equal(before, after);
  }
  mic_capture_close(all);
  mic_capture_close(a);
  mic_capture_close(b);
}

static void opens_a_folder(void **state) {
  (void)state;
  struct mic_capture *all = NULL;
  struct mic_error err = {0};
  FILE *half = fopen(path_of("half.usprof"), "w");
  fputs("not a capture", half);
  fclose(half);
  assert_int_equal(mic_capture_open_folder(folder, &all, &err), 0);
  unlink(path_of("half.usprof"));
  assert_int_equal(mic_capture_rows(all, "samples"), 5000);
  mic_capture_close(all);
  assert_int_equal(mic_capture_open_folder("/nowhere", &all, &err), MIC_ESYS);
  assert_null(all);
}

static void without_rows_is_a_capture(void **state) {
  (void)state;
  struct mic_capture *all = NULL;
  struct mic_error err = {0};
  assert_int_equal(mic_merge_finish(mic_merge_new(), &all, &err), 0);
  assert_int_equal(mic_capture_rows(all, "samples"), 0);
  assert_int_equal(mic_capture_rows(all, "clocks"), 1);
  mic_capture_close(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(adds_up),
    cmocka_unit_test(opens_a_folder),
    cmocka_unit_test(without_rows_is_a_capture),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
