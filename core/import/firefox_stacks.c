/*
 * firefox_stacks.c - frames to locations, stacks to nodes.
 *
 * A frame that was inlined stands in a stack of its own under the frame it was inlined into, with
 * the same address and an inlineDepth of one more: all of them are one location here, with a line
 * each.  Addresses are those that the library's first segment has as 0; in our own files they are
 * the image's.
 */
#include <stdio.h>
#include <string.h>

#include "import/firefox_inside.h"

enum {
  INLINED_MAX = 512,  /* as deep as functions are named here; what is deeper are frames */
  LINES_MAX = 1 << 24 /* of all locations: a short text could ask for as many as its square */
};

static const struct mic_firefox_tables *texts(const struct mic_firefox *r) {
  return r->shared.strings.count ? &r->shared : &r->own;
}

bool mic_firefox_has_string(const struct mic_firefox *r, int64_t index) {
  return index >= 0 && (uint64_t)index < texts(r)->strings.count;
}

/* The writer's string of an index; 0 for null and for what is none. */
uint32_t mic_firefox_string(const struct mic_firefox *r, int64_t index) {
  return mic_firefox_has_string(r, index) ? texts(r)->strings.at[index] : 0;
}

static const struct mic_firefox_tables *names(const struct mic_firefox *r) {
  return r->shares ? &r->shared : &r->own;
}

static const struct mic_firefox_tables *sources(const struct mic_firefox *r) {
  return r->shared.columns[FF_SOURCE_FILE].count ? &r->shared : &r->own;
}

static uint32_t line(int64_t value) {
  return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* --- frames -------------------------------------------------------------------------------- */

static uint32_t module_of(struct mic_firefox *r, int64_t function) {
  const struct mic_firefox_tables *t = names(r);
  int64_t resource = mic_firefox_get(t, FF_FUNC_RESOURCE, function);
  int64_t lib = mic_firefox_get(t, FF_RESOURCE_LIB, resource);
  if (lib >= 0 && (uint64_t)lib < r->libs.count) {
    const struct mic_firefox_lib *l = &r->libs.at[lib];
    return mic_build_module(r->build, l->path ? l->path : l->name, l->code_id);
  }
  uint32_t name = mic_firefox_string(r, mic_firefox_get(t, FF_RESOURCE_NAME, resource));
  return name ? mic_build_module(r->build, name, 0) : MIC_NONE;
}

/* Whether a function's name is but an address, as what was not symbolicated has: "0x1a2b". */
static bool is_address(const struct mic_firefox *r, uint32_t name, uint64_t *address) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->w, name, &size);
  if (size < 3 || size > 18 || memcmp(bytes, "0x", 2) != 0) return false;
  *address = 0;
  for (uint64_t i = 2; i < size; i++) {
    char c = bytes[i];
    bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
    if (!digit && !letter) return false;
    *address = *address << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

static bool is_signal(const struct mic_firefox *r, uint32_t name) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->w, name, &size);
  return size == 8 && memcmp(bytes, "[signal]", 8) == 0;
}

/* What a frame's function and line are, in the writer's ids. */
static struct mic_lines_row line_of(struct mic_firefox *r, int64_t frame, uint32_t module) {
  const struct mic_firefox_tables *t = names(r);
  int64_t function = mic_firefox_get(t, FF_FRAME_FUNC, frame);
  uint32_t name = mic_firefox_string(r, mic_firefox_get(t, FF_FUNC_NAME, function));
  uint32_t file = mic_firefox_string(r, mic_firefox_get(t, FF_FUNC_FILE, function));
  if (!file) {
    int64_t source = mic_firefox_get(t, FF_FUNC_SOURCE, function);
    file = mic_firefox_string(r, mic_firefox_get(sources(r), FF_SOURCE_FILE, source));
  }
  file = file ? mic_build_file(r->build, file) : MIC_NONE;
  uint32_t start = line(mic_firefox_get(t, FF_FUNC_LINE, function));
  return (struct mic_lines_row){
    .function = mic_build_function(r->build, name, name, module, file, start),
    .file = file,
    .line = line(mic_firefox_get(t, FF_FRAME_LINE, frame)),
  };
}

/* Where the frame's code is, and whether only that is known of it. */
static struct mic_locations_row place_of(struct mic_firefox *r, int64_t frame, bool *nameless) {
  const struct mic_firefox_tables *t = names(r);
  int64_t function = mic_firefox_get(t, FF_FRAME_FUNC, frame);
  int64_t address = mic_firefox_get(t, FF_FRAME_ADDRESS, frame);
  uint32_t name = mic_firefox_string(r, mic_firefox_get(t, FF_FUNC_NAME, function));
  uint64_t said = 0;
  bool numbered = is_address(r, name, &said);
  struct mic_locations_row row = {.evidence = MIC_EVIDENCE_CFI, .module = module_of(r, function)};
  if (r->ours && address >= 0 && is_signal(r, name)) {
    row.kind = MIC_LOCATION_SIGNAL;
    row.offset = (uint64_t)address;
    *nameless = true;
  } else if (address >= 0 && row.module != MIC_NONE) {
    row.kind = r->ours ? MIC_LOCATION_NATIVE : MIC_LOCATION_RELATIVE;
    row.offset = (uint64_t)address;
    *nameless = numbered && said == row.offset;
  } else if (numbered && row.module == MIC_NONE && !r->ours) {
    row.kind = MIC_LOCATION_UNMAPPED;
    row.offset = said;
    *nameless = true;
  } else {
    row.kind = MIC_LOCATION_NAMED;
    row.offset = name;
    *nameless = false;
    r->result->addresses += address >= 0;
  }
  return row;
}

/* --- stacks -------------------------------------------------------------------------------- */

/* The row of a stack's caller, or -1. */
static int caller_of(const struct mic_firefox *r, int64_t stack, int64_t *caller) {
  const struct mic_firefox_tables *t = names(r);
  *caller = mic_firefox_get(t, FF_STACK_PREFIX, stack);
  if (t->columns[FF_STACK_OFFSET].count) {
    int64_t offset = mic_firefox_get(t, FF_STACK_OFFSET, stack);
    *caller = offset > 0 && offset <= stack ? stack - offset : MIC_FIREFOX_NULL;
    if (offset > stack) return mic_firefox_bad(r, "stack", stack, "its caller is not before it");
  }
  if (*caller == MIC_FIREFOX_NULL) *caller = -1;
  if (*caller < stack) return 0;
  return mic_firefox_bad(r, "stack", stack, "its caller is not before it");
}

static int check_stacks(struct mic_firefox *r, int64_t stacks) {
  const struct mic_firefox_tables *t = names(r);
  size_t frames = t->columns[FF_FRAME_FUNC].count, functions = t->columns[FF_FUNC_NAME].count;
  for (int64_t i = 0; i < stacks; i++) {
    int64_t frame = mic_firefox_get(t, FF_STACK_FRAME, i), caller;
    if (frame < 0 || (uint64_t)frame >= frames)
      return mic_firefox_bad(r, "stack", i, "it has no frame");
    int64_t function = mic_firefox_get(t, FF_FRAME_FUNC, frame);
    if (function < 0 || (uint64_t)function >= functions)
      return mic_firefox_bad(r, "frame", frame, "it has no function");
    if (!mic_firefox_has_string(r, mic_firefox_get(t, FF_FUNC_NAME, function)))
      return mic_firefox_bad(r, "function", function, "it has no name");
    int code = caller_of(r, i, &caller);
    if (code) return code;
  }
  return 0;
}

/* The same of a stack that was checked. */
static int64_t caller_row(const struct mic_firefox *r, int64_t stack) {
  int64_t row;
  caller_of(r, stack, &row);
  return row < 0 ? -1 : row;
}

/* Whether a stack's frame was inlined into its caller's. */
static bool is_inlined(const struct mic_firefox *r, int64_t stack) {
  const struct mic_firefox_tables *t = names(r);
  int64_t outer_stack = caller_row(r, stack);
  if (outer_stack < 0) return false;
  int64_t frame = mic_firefox_get(t, FF_STACK_FRAME, stack);
  int64_t outer = mic_firefox_get(t, FF_STACK_FRAME, outer_stack);
  int64_t depth = mic_firefox_get(t, FF_FRAME_INLINE, frame);
  if (depth <= 0 || depth > INLINED_MAX || mic_firefox_get(t, FF_FRAME_INLINE, outer) != depth - 1)
    return false;
  return mic_firefox_get(t, FF_FRAME_ADDRESS, frame) == mic_firefox_get(t, FF_FRAME_ADDRESS, outer);
}

/* The location of a stack's frame and of those it was inlined into, once for what says the same. */
static uint32_t location_of(struct mic_firefox *r, int64_t stack) {
  const struct mic_firefox_tables *t = names(r);
  int64_t at = stack;
  bool nameless = false;
  struct mic_locations_row row = place_of(r, mic_firefox_get(t, FF_STACK_FRAME, stack), &nameless);
  r->lines.count = 0;
  for (bool more = !nameless; more; at = caller_row(r, at)) {
    int64_t frame = mic_firefox_get(t, FF_STACK_FRAME, at);
    *mic_vec_push(&r->lines) = line_of(r, frame, row.module);
    r->lines.at[r->lines.count - 1].depth = (uint32_t)r->lines.count - 1;
    more = is_inlined(r, at);
    if (!more) r->result->inlined += mic_firefox_get(t, FF_FRAME_INLINE, frame) > 0;
  }
  const uint64_t key[] = {row.kind, row.module, row.offset};
  size_t size = sizeof key + r->lines.count * sizeof *r->lines.at;
  mic_vec_reserve(&r->key, size);
  memcpy(r->key.at, key, sizeof key);
  if (r->lines.count)
    memcpy(r->key.at + sizeof key, r->lines.at, r->lines.count * sizeof *r->lines.at);
  size_t known = r->places.strings.count;
  uint32_t id = mic_intern(&r->places, r->key.at, size);
  if (id < known) return r->locations.at[id];
  uint32_t location = mic_writer_locations(r->w, &row);
  for (size_t i = 0; i < r->lines.count; i++) {
    r->lines.at[i].location = location;
    mic_writer_lines(r->w, &r->lines.at[i]);
  }
  r->line_rows += r->lines.count;
  *mic_vec_push(&r->locations) = location;
  return location;
}

/* The reason that an outermost frame stands for, or MIC_END_NONE. */
static uint32_t end_of(const struct mic_firefox *r, int64_t stack) {
  const struct mic_firefox_tables *t = names(r);
  uint64_t size;
  int64_t function = mic_firefox_get(t, FF_FRAME_FUNC, mic_firefox_get(t, FF_STACK_FRAME, stack));
  uint32_t name = mic_firefox_string(r, mic_firefox_get(t, FF_FUNC_NAME, function));
  const char *bytes = mic_writer_bytes_of(r->w, name, &size);
  return mic_build_end(bytes, size);
}

/* A stack's node, when its caller's is there: callers stand before those they call. */
static uint32_t make_node(struct mic_firefox *r, int64_t stack, int64_t outer) {
  uint32_t end = outer < 0 && caller_row(r, stack) < 0 ? end_of(r, stack) : MIC_END_NONE;
  if (end) return mic_build_root(r->build, end);
  uint32_t parent = outer < 0 ? mic_build_root(r->build, MIC_END_NOT_STATED) : r->nodes.at[outer];
  return mic_build_node(r->build, parent, location_of(r, stack));
}

/* The stack that called a stack's location: of inlined frames that of the outermost. */
static int64_t outer_of(const struct mic_firefox *r, int64_t stack) {
  while (is_inlined(r, stack)) stack = caller_row(r, stack);
  return caller_row(r, stack);
}

int mic_firefox_node(struct mic_firefox *r, int64_t stack, uint32_t *node) {
  r->pending.count = 0;
  for (int64_t at = stack; at >= 0 && r->nodes.at[at] == MIC_NONE; at = outer_of(r, at))
    *mic_vec_push(&r->pending) = at;
  while (r->pending.count && r->line_rows < LINES_MAX) {
    int64_t at = r->pending.at[--r->pending.count];
    r->nodes.at[at] = make_node(r, at, outer_of(r, at));
  }
  *node = r->nodes.at[stack];
  if (!r->pending.count) return 0;
  return mic_fail(r->err, MIC_ELIMIT, "%.120s: more than %d lines of inlined functions",
                  r->input_name, LINES_MAX);
}

int mic_firefox_stacks(struct mic_firefox *r) {
  size_t stacks = names(r)->columns[FF_STACK_FRAME].count;
  r->nodes.count = 0;
  for (size_t i = 0; i < stacks; i++) *mic_vec_push(&r->nodes) = MIC_NONE;
  return check_stacks(r, (int64_t)stacks);
}
