/*
 * firefox_write.c - each column is made as it is written, by a walk over all frames.
 *
 * Functions and strings get their numbers in one walk, in the order of the frames that have them
 * first.  So later walks need no rows of them: the frame whose function is the next one is what
 * that is made of.
 */
#include "import/firefox_write.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "import/frame_text.h"
#include "import/frames.h"
#include "import/pack.h"

enum { LIBRARY = 1 }; /* a type of resources */
enum { A_LINE = 64 }; /* values */

/* What a string of the profile is: one of the capture, what a place without a function is called,
 * or an end. */
enum string_kind { OF_CAPTURE = 0, OF_PLACE = 1, OF_END = 2 };

struct mic_firefox_shared {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_frames frames;
  uint32_t *nodes, node_count;
  uint32_t *strings; /* of each of the capture's the profile's + 1; 0: none yet */
  MIC_VEC(uint8_t) kinds;
  MIC_VEC(uint32_t) refs; /* a string, a location or an end */
  uint32_t *function;     /* of each frame */
  uint32_t function_count;
  struct mic_index index;    /* of those that have rows of functions: */
  MIC_VEC(uint32_t) lines;   /* the row of lines that had it first, and */
  MIC_VEC(uint32_t) numbers; /* its number */
  uint32_t *source, sources; /* of each file its number + 1; 0: none */
  MIC_VEC(uint32_t) files;   /* in the order of their numbers */
  struct mic_pack out;
  /* While a column is written: values so far, functions and strings that walks have come by. */
  uint32_t values, functions, strings_passed;
};

/* --- strings and functions ----------------------------------------------------------------- */

static uint32_t add_string(struct mic_firefox_shared *s, enum string_kind kind, uint32_t ref) {
  *mic_vec_push(&s->kinds) = (uint8_t)kind;
  *mic_vec_push(&s->refs) = ref;
  return (uint32_t)s->refs.count - 1;
}

MIC_EXPORT uint32_t mic_firefox_shared_string(struct mic_firefox_shared *s, uint32_t id) {
  if (!s->strings[id]) s->strings[id] = add_string(s, OF_CAPTURE, id) + 1;
  return s->strings[id] - 1;
}

/* Addresses beyond 2^53 are none here, as readers in JavaScript would take others for them. */
static bool is_addressed(const struct mic_firefox_shared *s, uint32_t location, uint32_t module) {
  uint8_t kind = s->t.locations.kind[location];
  return module != MIC_NONE && (kind == MIC_LOCATION_NATIVE || kind == MIC_LOCATION_SIGNAL) &&
         s->t.locations.offset[location] < 1ULL << 53;
}

/* The library that a function is put in: the one that its address is an address of. */
static uint32_t library_of(const struct mic_firefox_shared *s,
                           const struct mic_shown_frame *frame) {
  uint32_t module = mic_frames_module(&s->frames, frame);
  if (frame->location != MIC_NONE && is_addressed(s, frame->location, module))
    module = s->t.locations.module[frame->location];
  return module;
}

struct function_key {
  uint32_t name, file, module;
};

static struct function_key key_of(const struct mic_firefox_shared *s, uint32_t line) {
  struct mic_shown_frame frame = {.location = s->t.lines.location[line], .line = line};
  return (struct function_key){s->t.functions.name[s->t.lines.function[line]],
                               s->t.lines.file[line], library_of(s, &frame)};
}

static uint32_t hash_of_key(struct function_key key) {
  return mic_index_mix((uint64_t)key.name << 32 | key.file, (uint64_t)key.module + 1);
}

static uint32_t hash_of(const void *keys, uint32_t id) {
  const struct mic_firefox_shared *s = keys;
  return hash_of_key(key_of(s, s->lines.at[id]));
}

/* The function of a name, file and library, made once. */
static uint32_t function_of(struct mic_firefox_shared *s, uint32_t line) {
  struct function_key key = key_of(s, line);
  uint32_t hash = hash_of_key(key);
  uint64_t at;
  for (uint32_t id = mic_index_first(&s->index, hash, &at); id != MIC_NONE;
       id = mic_index_next(&s->index, hash, &at)) {
    struct function_key other = key_of(s, s->lines.at[id]);
    if (other.name == key.name && other.file == key.file && other.module == key.module)
      return s->numbers.at[id];
  }
  *mic_vec_push(&s->lines) = line;
  *mic_vec_push(&s->numbers) = s->function_count;
  mic_index_add(&s->index, hash, hash_of, s);
  return s->function_count++;
}

/* Files are numbered by the functions that name them. */
static void number_file(struct mic_firefox_shared *s, uint32_t file) {
  if (file == MIC_NONE || s->source[file]) return;
  s->source[file] = ++s->sources;
  *mic_vec_push(&s->files) = file;
}

static void number(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (frame->line != MIC_NONE) {
    mic_firefox_shared_string(s, s->t.functions.name[s->t.lines.function[frame->line]]);
    s->function[frame->number] = function_of(s, frame->line);
    number_file(s, s->t.lines.file[frame->line]);
    return;
  }
  s->function[frame->number] = s->function_count++;
  if (frame->location != MIC_NONE)
    add_string(s, OF_PLACE, frame->location);
  else
    add_string(s, OF_END, frame->end);
}

/* --- values -------------------------------------------------------------------------------- */

static void put(struct mic_firefox_shared *s, const char *text) {
  mic_pack_put(&s->out, text, strlen(text));
}

static void put_number(struct mic_firefox_shared *s, uint64_t number) {
  mic_frame_text_number(&s->out, number);
}

static void begin_column(struct mic_firefox_shared *s, const char *name) {
  put(s, "\"");
  put(s, name);
  put(s, "\":[");
  s->values = s->functions = 0;
}
static void end_column(struct mic_firefox_shared *s) { put(s, "],\n"); }

static void next_value(struct mic_firefox_shared *s) {
  if (s->values) put(s, s->values % A_LINE == 0 ? ",\n" : ",");
  s->values++;
}
static void put_value(struct mic_firefox_shared *s, uint64_t number) {
  next_value(s);
  put_number(s, number);
}
static void put_word(struct mic_firefox_shared *s, const char *word) {
  next_value(s);
  put(s, word);
}
/* A number, or a word for none. */
static void put_row(struct mic_firefox_shared *s, uint32_t row, const char *none) {
  if (row == MIC_NONE)
    put_word(s, none);
  else
    put_value(s, row);
}

static void same_column(struct mic_firefox_shared *s, const char *name, uint64_t count,
                        const char *word) {
  begin_column(s, name);
  for (uint64_t i = 0; i < count; i++) put_word(s, word);
  end_column(s);
}

static void column(struct mic_firefox_shared *s, const char *name, mic_frames_told *told) {
  begin_column(s, name);
  mic_frames_each(&s->frames, told, s);
  end_column(s);
}

static void put_length(struct mic_firefox_shared *s, uint64_t count) {
  put(s, "\"length\":");
  put_number(s, count);
  put(s, "},\n");
}

/* --- stacks and frames --------------------------------------------------------------------- */

static void put_node_frame(void *data, uint32_t node, uint32_t parent, uint32_t number) {
  (void)node, (void)parent;
  put_value(data, number);
}
static void put_node_prefix(void *data, uint32_t node, uint32_t parent, uint32_t number) {
  (void)node, (void)number;
  put_row(data, parent, "null");
}

static void write_stacks(struct mic_firefox_shared *s) {
  put(s, "{\"stackTable\":{");
  begin_column(s, "frame");
  mic_frames_each_node(&s->frames, s->nodes, put_node_frame, s);
  end_column(s);
  begin_column(s, "prefix");
  mic_frames_each_node(&s->frames, s->nodes, put_node_prefix, s);
  end_column(s);
  put_length(s, s->node_count);
}

static void put_address(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (frame->location != MIC_NONE &&
      is_addressed(s, frame->location, mic_frames_module(&s->frames, frame)))
    put_value(s, s->t.locations.offset[frame->location]);
  else
    put_word(s, "-1");
}
/* 0 for the function that holds the code, counting up to the innermost that was inlined. */
static void put_depth(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  bool of_code = frame->location != MIC_NONE;
  put_value(s, of_code ? frame->number - s->frames.first[frame->location] : 0);
}
static void put_category(void *data, const struct mic_shown_frame *frame) {
  put_value(data, frame->location == MIC_NONE ? MIC_FIREFOX_REASON : MIC_FIREFOX_USER);
}
static void put_function(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  put_value(s, s->function[frame->number]);
}
static void put_line(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  uint32_t line = frame->line == MIC_NONE ? 0 : s->t.lines.line[frame->line];
  put_row(s, line ? line : MIC_NONE, "null");
}

static void write_frames(struct mic_firefox_shared *s) {
  uint64_t count = (uint64_t)s->frames.count + s->frames.ends;
  put(s, "\"frameTable\":{");
  column(s, "address", put_address);
  column(s, "inlineDepth", put_depth);
  column(s, "category", put_category);
  same_column(s, "subcategory", count, "0");
  column(s, "func", put_function);
  same_column(s, "nativeSymbol", count, "null");
  same_column(s, "innerWindowID", count, "null");
  column(s, "line", put_line);
  same_column(s, "column", count, "null");
  put_length(s, count);
}

/* --- functions and what they name ---------------------------------------------------------- */

/* Whether a frame is the one that a function is made of. */
static bool is_next(struct mic_firefox_shared *s, const struct mic_shown_frame *frame) {
  if (s->function[frame->number] != s->functions) return false;
  s->functions++;
  return true;
}

/* Strings of places and ends stand in the order of their frames. */
static void put_name(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (!is_next(s, frame)) return;
  if (frame->line != MIC_NONE) {
    put_value(s, s->strings[s->t.functions.name[s->t.lines.function[frame->line]]] - 1);
    return;
  }
  while (s->kinds.at[s->strings_passed] == OF_CAPTURE) s->strings_passed++;
  put_value(s, s->strings_passed++);
}
static void put_resource(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (is_next(s, frame)) put_row(s, library_of(s, frame), "-1");
}
static void put_source(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (!is_next(s, frame)) return;
  uint32_t file = frame->line == MIC_NONE ? MIC_NONE : s->t.lines.file[frame->line];
  put_row(s, file == MIC_NONE ? MIC_NONE : s->source[file] - 1, "null");
}
static void put_start(void *data, const struct mic_shown_frame *frame) {
  struct mic_firefox_shared *s = data;
  if (!is_next(s, frame)) return;
  uint32_t line =
    frame->line == MIC_NONE ? 0 : s->t.functions.line[s->t.lines.function[frame->line]];
  put_row(s, line ? line : MIC_NONE, "null");
}

static void write_functions(struct mic_firefox_shared *s) {
  put(s, "\"funcTable\":{");
  s->strings_passed = 0;
  column(s, "name", put_name);
  same_column(s, "isJS", s->function_count, "false");
  same_column(s, "relevantForJS", s->function_count, "false");
  column(s, "resource", put_resource);
  column(s, "source", put_source);
  column(s, "lineNumber", put_start);
  same_column(s, "columnNumber", s->function_count, "null");
  put_length(s, s->function_count);
}

static void write_resources(struct mic_firefox_shared *s) {
  uint32_t count = (uint32_t)s->t.modules.rows;
  char type[16];
  snprintf(type, sizeof type, "%d", LIBRARY);
  put(s, "\"resourceTable\":{");
  begin_column(s, "lib");
  for (uint32_t i = 0; i < count; i++) put_value(s, i);
  end_column(s);
  begin_column(s, "name");
  for (uint32_t i = 0; i < count; i++)
    put_value(s, mic_firefox_shared_string(s, s->t.modules.name[i]));
  end_column(s);
  same_column(s, "host", count, "null");
  same_column(s, "type", count, type);
  put_length(s, count);
}

static void write_sources(struct mic_firefox_shared *s) {
  put(s, "\"sources\":{");
  same_column(s, "uuid", s->sources, "null");
  begin_column(s, "filename");
  for (uint32_t i = 0; i < s->sources; i++)
    put_value(s, mic_firefox_shared_string(s, s->t.files.path[s->files.at[i]]));
  end_column(s);
  put_length(s, s->sources);
}

/* --- what strings are ---------------------------------------------------------------------- */

/* A place that no function is known of.  What is known by its address alone is called by that, as
 * the format does it. */
static void put_place(struct mic_firefox_shared *s, uint32_t location) {
  if (s->t.locations.kind[location] == MIC_LOCATION_NATIVE &&
      is_addressed(s, location, s->t.locations.module[location]))
    mic_frame_text_hex(&s->out, "", s->t.locations.offset[location], "");
  else
    mic_frame_text_place(&s->out, s->cap, &s->t, location);
}

static void write_strings(struct mic_firefox_shared *s) {
  put(s, "\"stringArray\":[");
  for (size_t i = 0; i < s->refs.count; i++) {
    put(s, i ? ",\n\"" : "\n\"");
    switch ((enum string_kind)s->kinds.at[i]) {
    case OF_CAPTURE: mic_frame_text_string(&s->out, s->cap, s->refs.at[i]); break;
    case OF_PLACE: put_place(s, s->refs.at[i]); break;
    case OF_END: mic_frame_text_end(&s->out, (uint8_t)s->refs.at[i]); break;
    }
    put(s, "\"");
  }
  put(s, "]}");
}

/* --- the whole ----------------------------------------------------------------------------- */

MIC_EXPORT struct mic_firefox_shared *mic_firefox_shared_new(const struct mic_capture *cap) {
  struct mic_firefox_shared *s = mic_alloc(sizeof *s);
  s->cap = cap;
  s->t = mic_tables_of(cap);
  mic_frames_of(&s->t, &s->frames);
  s->nodes = mic_frames_nodes(&s->frames, &s->node_count);
  s->strings = mic_alloc((size_t)(s->t.strings.rows + 1) * sizeof *s->strings);
  return s;
}

MIC_EXPORT void mic_firefox_shared_free(struct mic_firefox_shared *s) {
  if (!s) return;
  mic_frames_free(&s->frames);
  free(s->nodes);
  free(s->strings);
  mic_vec_free(&s->kinds);
  mic_vec_free(&s->refs);
  free(s->function);
  mic_index_free(&s->index);
  mic_vec_free(&s->lines);
  mic_vec_free(&s->numbers);
  free(s->source);
  mic_vec_free(&s->files);
  free(s);
}

MIC_EXPORT const uint32_t *mic_firefox_shared_stacks(const struct mic_firefox_shared *s) {
  return s->nodes;
}

MIC_EXPORT void mic_firefox_shared_write(struct mic_firefox_shared *s, struct mic_output *output) {
  size_t frames = (size_t)s->frames.count + s->frames.ends;
  s->function = mic_realloc(NULL, (frames + 1) * sizeof *s->function);
  s->source = mic_alloc((size_t)(s->t.files.rows + 1) * sizeof *s->source);
  mic_frames_each(&s->frames, number, s);
  mic_index_free(&s->index);
  mic_vec_free(&s->lines);
  mic_vec_free(&s->numbers);
  mic_pack_start(&s->out, output);
  write_stacks(s);
  write_frames(s);
  write_functions(s);
  write_resources(s);
  put(s, "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
         "\"length\":0},");
  write_sources(s);
  write_strings(s);
  mic_pack_flush(&s->out);
}
