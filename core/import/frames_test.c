/* frames_test.c - frames and nodes of a few stacks with inlined functions. */
#include "import/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LOCATIONS = 5, LINES = 6, STACKS = 8, ALL = 9 };

/* Of locations: one without a function, three functions of which two are inlined, a signal frame
 * (one, whatever its lines say), one function, one without. */
static const uint8_t kind[LOCATIONS] = {[2] = MIC_LOCATION_SIGNAL};
static const uint32_t module[LOCATIONS] = {3, 4, MIC_NONE, 5, MIC_NONE};
static const uint32_t line_location[LINES] = {1, 1, 1, 2, 2, 3};
static const uint32_t line_function[LINES] = {0, 1, 0, 1, 1, 1};
static const uint32_t function_module[2] = {MIC_NONE, 8};
/* Roots are 0 (whole), 3 and 6 (the same reason) and 7 (not stated). */
static const uint32_t parent[STACKS] = {MIC_NONE, 0, 1, MIC_NONE, 3, 4, MIC_NONE, MIC_NONE};
static const uint32_t location[STACKS] = {MIC_NONE, 1, 2, MIC_NONE, 3, 1, MIC_NONE, MIC_NONE};
static uint8_t end[STACKS];

static struct mic_tables tables(void) {
  struct mic_tables t = {.locations = {.rows = LOCATIONS}};
  end[0] = MIC_END_OUTERMOST;
  end[3] = end[6] = MIC_END_DEPTH_LIMIT;
  end[7] = MIC_END_NOT_STATED;
  t.locations.kind = kind;
  t.locations.module = module;
  t.lines.rows = LINES;
  t.lines.location = line_location;
  t.lines.function = line_function;
  t.functions.rows = 2;
  t.functions.module = function_module;
  t.stacks.rows = STACKS;
  t.stacks.parent = parent;
  t.stacks.location = location;
  t.stacks.end = end;
  return t;
}

struct seen {
  const struct mic_frames *frames;
  uint32_t count;
  struct mic_shown_frame frame[ALL];
};

static void note(void *data, const struct mic_shown_frame *frame) {
  struct seen *seen = data;
  struct mic_shown_frame at = mic_frames_at(seen->frames, frame->number);
  assert_int_equal(seen->count, frame->number);
  assert_int_equal(frame->location, at.location);
  assert_int_equal(frame->line, at.line);
  if (at.location == MIC_NONE) assert_int_equal(frame->end, at.end);
  seen->frame[seen->count++] = *frame;
}

static void frames_are_told_in_order(void **state) {
  static const uint32_t locations[ALL] = {0, 1, 1, 1, 2, 3, 4, MIC_NONE};
  static const uint32_t lines[ALL] = {MIC_NONE, 2, 1, 0, MIC_NONE, 5, MIC_NONE, MIC_NONE};
  static const uint32_t modules[ALL] = {3, 4, 8, 4, MIC_NONE, 8, MIC_NONE, MIC_NONE};
  struct mic_tables t = tables();
  struct mic_frames frames;
  struct seen seen = {.frames = &frames};
  (void)state;
  mic_frames_of(&t, &frames);
  mic_frames_each(&frames, note, &seen);
  assert_int_equal(frames.count, 7);
  assert_int_equal(frames.ends, 1);
  assert_int_equal(seen.count, 8);
  for (uint32_t i = 0; i < seen.count; i++) {
    assert_int_equal(seen.frame[i].location, locations[i]);
    assert_int_equal(seen.frame[i].line, lines[i]);
    assert_int_equal(mic_frames_module(&frames, &seen.frame[i]), modules[i]);
  }
  assert_int_equal(seen.frame[7].end, MIC_END_DEPTH_LIMIT);
  mic_frames_free(&frames);
}

struct node {
  uint32_t parent, number;
};

static void note_node(void *data, uint32_t node, uint32_t up, uint32_t number) {
  ((struct node *)data)[node] = (struct node){up, number};
}

static void nodes_are_frames_with_parents(void **state) {
  static const uint32_t want[STACKS] = {MIC_NONE, 3, 4, 0, 5, 8, 0, MIC_NONE};
  static const struct node nodes_want[ALL] = {{MIC_NONE, 7}, {MIC_NONE, 1}, {1, 2}, {2, 3}, {3, 4},
                                              {0, 5},        {5, 1},        {6, 2}, {7, 3}};
  struct mic_tables t = tables();
  struct mic_frames frames;
  struct node nodes[ALL];
  uint32_t count;
  (void)state;
  mic_frames_of(&t, &frames);
  uint32_t *of_stack = mic_frames_nodes(&frames, &count);
  assert_int_equal(count, ALL);
  assert_memory_equal(of_stack, want, sizeof want);
  mic_frames_each_node(&frames, of_stack, note_node, nodes);
  assert_memory_equal(nodes, nodes_want, sizeof nodes);
  free(of_stack);
  mic_frames_free(&frames);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(frames_are_told_in_order),
    cmocka_unit_test(nodes_are_frames_with_parents),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
