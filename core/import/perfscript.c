/* perfscript.c - lines of `perf script` to samples. */
#include "import/perfscript.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "import/build.h"
#include "import/lines.h"
#include "import/perfscript_line.h"

struct thread {
  uint32_t process, tid, name;
};
struct process {
  uint32_t pid, name;
};
struct function_line { /* of a location: what a frame's functions and lines are */
  uint32_t name, file, line;
};

/* Lines of frames that are known without being read again: what programs print over and over, not
 * a text's every address. */
enum { FRAME_LINES_MAX = 32 * 1024 };

struct script {
  struct mic_writer *w;
  struct mic_build *build;
  struct mic_perfscript_result *result;
  struct mic_map by_id; /* (pid, tid) -> thread */
  struct mic_map by_pid;
  MIC_VEC(struct thread) threads;
  MIC_VEC(struct process) processes;
  struct mic_interner frame_lines;       /* the last ones, but for blanks */
  MIC_VEC(uint32_t) places;              /* the location of each */
  struct mic_interner keys;              /* lists of function_line */
  MIC_VEC(uint32_t) locations;           /* of each */
  MIC_VEC(uint32_t) frames;              /* of the sample being read, innermost first */
  MIC_VEC(struct function_line) inlined; /* waits for the function it was inlined into */
  struct mic_script_frame last;          /* the frame whose source line may follow */
  bool last_open;                        /* it is not interned yet: its line may follow */
  bool open;                             /* a sample is being read */
  bool dropped;                          /* lines of a record that is no sample follow */
  struct mic_samples_row row;
  uint64_t start_ns, end_ns;
  bool started;
  char *last_text; /* owned: the bytes that last points into */
  size_t last_room;
};

/* ---- frames ---- */

static uint32_t name_of(struct script *s, const struct mic_script_frame *frame) {
  char address[24];
  if (frame->symbol.size) return mic_writer_string(s->w, frame->symbol.at, frame->symbol.size);
  snprintf(address, sizeof address, "0x%llx", (unsigned long long)frame->address);
  return mic_writer_text(s->w, address);
}

static uint32_t module_of(struct script *s, struct mic_text image) {
  static const char unknown[] = "[unknown]";
  bool known = image.size && !(image.size == sizeof unknown - 1 &&
                               memcmp(image.at, unknown, sizeof unknown - 1) == 0);
  if (!known) return MIC_NONE;
  return mic_build_module(s->build, mic_writer_string(s->w, image.at, image.size), 0);
}

/* "work.c:12": a file and its line. */
static bool source_of(struct script *s, struct mic_text text, struct function_line *out) {
  size_t at = text.size;
  uint64_t line = 0, unit = 1;
  while (at && text.at[at - 1] >= '0' && text.at[at - 1] <= '9' && unit <= 1000000000) {
    line += (uint64_t)(text.at[--at] - '0') * unit;
    unit *= 10;
  }
  if (at == text.size || at < 2 || text.at[at - 1] != ':' || line > UINT32_MAX) return false;
  if (at >= 3 && memcmp(text.at, "??", 2) == 0) return true;
  out->file = mic_build_file(s->build, mic_writer_string(s->w, text.at, at - 1));
  out->line = (uint32_t)line;
  return true;
}

/* The location of the functions that wait, of which the last holds the code. */
static uint32_t intern_location(struct script *s, uint32_t module) {
  struct function_line end = {module, 0, 0};
  uint32_t name = s->inlined.at[s->inlined.count - 1].name;
  *mic_vec_push(&s->inlined) = end; /* part of the key */
  size_t known = s->keys.strings.count, size = s->inlined.count * sizeof *s->inlined.at;
  uint32_t at = mic_intern(&s->keys, (const char *)s->inlined.at, size);
  s->inlined.count--;
  if (at < known) return s->locations.at[at];
  struct mic_locations_row row = {.kind = MIC_LOCATION_NAMED, .module = module, .offset = name};
  uint32_t id = mic_writer_locations(s->w, &row);
  for (size_t i = 0; i < s->inlined.count; i++) {
    const struct function_line *f = &s->inlined.at[i];
    uint32_t function = mic_build_function(s->build, f->name, f->name, module, MIC_NONE, 0);
    struct mic_lines_row line = {id, function, f->file, f->line, (uint32_t)i};
    mic_writer_lines(s->w, &line);
  }
  return *mic_vec_push(&s->locations) = id;
}

/* Finish the frame whose source line might have followed; source may be empty. */
static uint32_t close_frame(struct script *s, struct mic_text source) {
  if (!s->last_open) return MIC_NONE;
  s->last_open = false;
  struct function_line line = {.name = name_of(s, &s->last), .file = MIC_NONE};
  if (source.size) source_of(s, source, &line);
  *mic_vec_push(&s->inlined) = line;
  if (s->last.inlined) return MIC_NONE;
  uint32_t id = intern_location(s, module_of(s, s->last.image));
  s->inlined.count = 0;
  return *mic_vec_push(&s->frames) = id;
}

/* The frame waits for its source line in a copy, as lines are borrowed. */
static bool open_frame(struct script *s, const char *line, size_t size) {
  if (size > s->last_room) {
    s->last_room = size * 2;
    s->last_text = mic_realloc(s->last_text, s->last_room);
  }
  if (size) memcpy(s->last_text, line, size);
  s->last_open = mic_script_frame(s->last_text, size, &s->last);
  if (s->last_open) s->result->addresses++;
  return s->last_open;
}

/* ---- threads ---- */

static uint32_t thread_of(struct script *s, const struct mic_script_head *head) {
  bool added;
  uint32_t name = mic_writer_string(s->w, head->name.at, head->name.size);
  uint32_t process = mic_map_intern(&s->by_pid, head->pid, 0, (uint32_t)s->processes.count, &added);
  if (added) *mic_vec_push(&s->processes) = (struct process){head->pid, 0};
  uint32_t id = mic_map_intern(&s->by_id, head->pid, head->tid, (uint32_t)s->threads.count, &added);
  if (added) *mic_vec_push(&s->threads) = (struct thread){process, head->tid, 0};
  struct thread *thread = &s->threads.at[id];
  if (head->pid && (head->pid == head->tid || !s->processes.at[process].name))
    s->processes.at[process].name = name;
  if (!added && thread->name == name) return id;
  thread->name = name;
  struct mic_thread_names_row row = {id, name, added ? 0 : s->row.time_ns};
  mic_writer_thread_names(s->w, &row);
  return id;
}

static void write_threads(struct script *s) {
  for (size_t i = 0; i < s->processes.count; i++) {
    struct mic_processes_row row = {.pid = s->processes.at[i].pid,
                                    .parent = MIC_NONE,
                                    .name = s->processes.at[i].name,
                                    .end_ns = UINT64_MAX};
    mic_writer_processes(s->w, &row);
  }
  for (size_t i = 0; i < s->threads.count; i++) {
    const struct thread *thread = &s->threads.at[i];
    struct mic_threads_row row = {
      .process = thread->process, .tid = thread->tid, .name = thread->name, .end_ns = UINT64_MAX};
    mic_writer_threads(s->w, &row);
  }
}

/* ---- samples ---- */

static bool begins(struct mic_text text, const char *word) {
  size_t size = strlen(word);
  return text.size >= size && memcmp(text.at, word, size) == 0 &&
         (text.size == size || text.at[size] == ':' || text.at[size] == '/');
}

/* An event's unit is its own; only clocks measure time. */
static bool source(struct script *s, const struct mic_script_head *head) {
  uint32_t unit = MIC_UNIT_COUNT, unit_name;
  bool named = head->event.size > 0;
  uint32_t name = named ? mic_writer_string(s->w, head->event.at, head->event.size)
                        : mic_writer_text(s->w, "samples");
  unit_name = name;
  if (!head->has_period) {
    unit_name = mic_writer_text(s->w, "samples");
  } else if (begins(head->event, "cpu-clock") || begins(head->event, "task-clock")) {
    unit = MIC_UNIT_CPU_NS;
    unit_name = 0;
  } else if (begins(head->event, "cycles") || begins(head->event, "cpu-cycles")) {
    unit = MIC_UNIT_CYCLES;
    unit_name = 0;
  }
  uint32_t id = mic_build_source(s->build, name, unit, 0, unit_name);
  s->row.source = (uint8_t)id;
  return id < 255;
}

static void close_sample(struct script *s) {
  close_frame(s, (struct mic_text){NULL, 0});
  s->inlined.count = 0; /* inlined into nothing: the text ended */
  if (!s->open) return;
  s->open = false;
  uint32_t node = mic_build_root(s->build, MIC_END_NOT_STATED);
  for (size_t i = s->frames.count; i-- > 0;) node = mic_build_node(s->build, node, s->frames.at[i]);
  s->row.stack = node;
  mic_writer_samples(s->w, &s->row);
  s->result->samples++;
}

static void note_time(struct script *s, uint64_t time_ns) {
  if (!s->started) {
    s->started = true;
    s->start_ns = s->end_ns = time_ns;
  }
  if (time_ns < s->start_ns) s->result->earlier++;
  if (time_ns > s->end_ns) s->end_ns = time_ns;
  s->row.time_ns = time_ns > s->start_ns ? time_ns - s->start_ns : 0;
}

static const char *open_sample(struct script *s, const struct mic_script_head *head) {
  s->frames.count = 0;
  s->dropped = head->event.size > 12 && memcmp(head->event.at, "PERF_RECORD_", 12) == 0;
  if (s->dropped) {
    s->result->records++;
    return NULL;
  }
  note_time(s, head->time_ns);
  if (!source(s, head)) {
    s->dropped = true;
    return "more than 255 events";
  }
  s->row.thread = thread_of(s, head);
  s->row.cpu = head->cpu;
  s->row.weight = head->has_period ? head->period : 1;
  s->open = true;
  if (!head->rest.size) return NULL;
  /* Without stacks the one frame stands here; else it is what the event tells beside. */
  if (head->rest.at[head->rest.size - 1] != ')' || !open_frame(s, head->rest.at, head->rest.size))
    s->result->fields++;
  return NULL;
}

/* ---- lines ---- */

static const char *take_frame(struct script *s, const char *line, size_t size) {
  struct mic_text none = {NULL, 0};
  close_frame(s, none);
  /* Most lines were seen before; one that belongs to inlined ones depends on these. */
  while (size && (*line == ' ' || *line == '\t')) line++, size--;
  uint32_t known = s->inlined.count ? MIC_NONE : mic_interner_find(&s->frame_lines, line, size);
  if (known != MIC_NONE) {
    *mic_vec_push(&s->frames) = s->places.at[known];
    s->result->addresses++;
    return NULL;
  }
  return open_frame(s, line, size) ? NULL : "no frame, and no source line of one";
}

/* A frame that no source line followed is known by its own line from now on. */
static void learn_frame(struct script *s) {
  bool plain = s->last_open && !s->last.inlined && !s->inlined.count && s->last.image.size;
  const char *line = s->last_text;
  size_t size = plain ? (size_t)(s->last.image.at + s->last.image.size + 1 - line) : 0;
  uint32_t id = close_frame(s, (struct mic_text){NULL, 0});
  if (!size || id == MIC_NONE) return;
  if (s->places.count == FRAME_LINES_MAX) {
    mic_interner_free(&s->frame_lines);
    s->places.count = 0;
  }
  uint32_t at = mic_intern(&s->frame_lines, line, size);
  if (at == s->places.count) *mic_vec_push(&s->places) = id;
}

/* NULL, or what is wrong with the line. */
static const char *take_line(struct script *s, const char *line, size_t size) {
  struct mic_script_head head;
  if (!size) {
    learn_frame(s);
    close_sample(s);
    s->dropped = false;
    return NULL;
  }
  if (*line == '#') return NULL;
  if (*line == '\t') {
    if (s->dropped) return NULL;
    if (!s->open) return "a frame without a sample before it";
    learn_frame(s);
    return take_frame(s, line, size);
  }
  bool indented = size > 2 && line[0] == ' ' && line[1] == ' ' && line[2] != ' ';
  if (s->last_open && indented) {
    close_frame(s, (struct mic_text){line + 2, size - 2});
    return NULL;
  }
  learn_frame(s);
  const char *why = mic_script_head(line, size, &head);
  if (why && s->open && indented) return NULL; /* the line of a frame that was known */
  close_sample(s);
  return why ? why : open_sample(s, &head);
}

static int read_lines(struct script *s, struct mic_lines *lines, struct mic_error *err) {
  const char *line;
  size_t size;
  int code;
  while (!(code = mic_lines_next(lines, &line, &size, err)) && line) {
    const char *why = take_line(s, line, size);
    if (!why || s->result->bad_lines++) continue;
    s->result->first_bad = lines->number;
    s->result->why = why;
  }
  learn_frame(s);
  close_sample(s);
  s->result->lines = lines->number;
  if (code || s->result->samples) return code;
  if (!s->result->bad_lines)
    return mic_fail(err, MIC_EFORMAT, "%.150s: no sample in it", mic_input_name(lines->input));
  return mic_fail(err, MIC_EFORMAT, "%.100s: no sample in it: line %llu: %s",
                  mic_input_name(lines->input), (unsigned long long)s->result->first_bad,
                  s->result->why);
}

static void write_facts(struct script *s) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)s->start_ns);
  struct mic_meta_row fact = {mic_writer_text(s->w, "perf_start_ns"), mic_writer_text(s->w, text)};
  mic_writer_meta(s->w, &fact);
  struct mic_clocks_row clocks = {.duration_ns = s->end_ns - s->start_ns};
  clocks.boot_id = mic_writer_text(s->w, "");
  mic_writer_clocks(s->w, &clocks);
}

MIC_EXPORT int mic_perfscript_read(struct mic_input *input, struct mic_writer *writer,
                                   struct mic_perfscript_result *result, struct mic_error *err) {
  struct mic_lines lines = {.input = input};
  struct script s = {.w = writer, .build = mic_build_new(writer), .result = result};
  *result = (struct mic_perfscript_result){.lines = 0};
  int code = read_lines(&s, &lines, err);
  if (!code) {
    write_threads(&s);
    write_facts(&s);
  }
  mic_lines_free(&lines);
  mic_build_free(s.build);
  mic_map_free(&s.by_id);
  mic_map_free(&s.by_pid);
  mic_vec_free(&s.threads);
  mic_vec_free(&s.processes);
  mic_interner_free(&s.frame_lines);
  mic_vec_free(&s.places);
  mic_interner_free(&s.keys);
  mic_vec_free(&s.locations);
  mic_vec_free(&s.frames);
  mic_vec_free(&s.inlined);
  free(s.last_text);
  return code;
}
