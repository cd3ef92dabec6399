/* otlp_read.c - the dictionary first, then resources, profiles and samples. */
#include "import/otlp_read.h"

#include <stdlib.h>
#include <string.h>

#include "import/otlp_inside.h"

enum {
  VALUES_MAX = 1 << 26, /* of a sample; what has more is no sample of anything */
  /* Of a sample with those of its resource, as each is a row for each value; software development
   * kits keep 128 of either (OpenTelemetry's specification, "Attribute Limits"). */
  ATTRIBUTES_MAX = 1024
};

/* Numbers of a sample's fields. */
struct layout {
  uint32_t attributes, link, values;
};
static const struct layout now = {2, 3, 4}, before = {3, 4, 2}; /* to release 1.9 */
enum { STACK = 1, TIMES = 5 };

/* Which layout the samples show. */
struct shown {
  bool now, before;
  bool undecided;    /* a sample that either would have */
  uint64_t greatest; /* of what is an attribute's index now and was a value before */
  bool unlike;       /* there are as many of these as times: values */
};

/* What a profile says beside its samples. */
struct head {
  uint32_t type[2], period_type[2]; /* name and unit */
  uint64_t period, start_ns, duration_ns;
};

struct reading {
  struct mic_otlp p;
  struct shown shown;
  struct layout layout;
  bool put;          /* the second reading */
  bool ours, others; /* by the scopes' names: addresses of ours are those of the ELF files */
  uint64_t start_ns, end_ns; /* of all profiles */
  uint32_t source;
  /* Of each location and stack its row, and of each mapping its module + 1 (0: none), as many
   * samples have the same ones; MIC_NONE: not made yet. */
  uint32_t *places, *nodes, *modules;
  uint32_t stack;
  MIC_VEC(uint64_t) values;
  MIC_VEC(uint64_t) times;
  MIC_VEC(uint32_t) attributes;                /* indexes, of the sample */
  MIC_VEC(struct mic_otlp_attribute) resource; /* attributes of all resources */
  MIC_VEC(struct mic_otlp_run) resources;
  size_t number;              /* of the resource being read */
  MIC_VEC(struct head) heads; /* of all profiles */
  MIC_VEC(uint32_t) labels;
};

static int no_such(struct reading *r, uint64_t offset, const char *what, uint32_t index,
                   size_t count) {
  if (index == MIC_NONE) return mic_otlp_bad(&r->p, offset, "it names no %s that can be", what);
  return mic_otlp_bad(&r->p, offset, "it names %s %u, the dictionary has %zu", what, index, count);
}

static int string(struct reading *r, uint64_t offset, uint32_t index, uint32_t *id) {
  *id = 0;
  if (!index) return 0;
  if (index >= r->p.strings.count) return no_such(r, offset, "string", index, r->p.strings.count);
  *id = r->p.strings.at[index];
  return 0;
}

static bool is(const struct reading *r, uint32_t id, const char *want) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, id, &size);
  return size == strlen(want) && memcmp(bytes, want, size) == 0;
}

/* --- attributes ---------------------------------------------------------------------------- */

/* An attribute with the writer's ids in place of indexes. */
static int resolve(struct reading *r, uint64_t offset, const struct mic_otlp_attribute *a,
                   struct mic_otlp_attribute *out) {
  *out = *a;
  int code = string(r, offset, a->key, &out->key);
  if (a->own_key) out->key = a->own_key;
  if (!code) code = string(r, offset, a->unit, &out->unit);
  if (!code && a->indexed) code = string(r, offset, a->indexed - 1, &out->text);
  return code;
}

static int attribute(struct reading *r, uint64_t offset, uint32_t index,
                     struct mic_otlp_attribute *out) {
  if (index >= r->p.attributes.count)
    return no_such(r, offset, "attribute", index, r->p.attributes.count);
  return resolve(r, offset, &r->p.attributes.at[index], out);
}

struct thread {
  uint32_t pid, tid, name, program;
};

static uint32_t id_of(const struct mic_otlp_attribute *a) {
  return a->kind == MIC_LABEL_NUMBER && a->number < MIC_NONE ? (uint32_t)a->number : 0;
}

/* What names threads and processes goes there, all else is a label. */
static void take_attribute(struct reading *r, const struct mic_otlp_attribute *a,
                           struct thread *thread) {
  bool text = a->kind == MIC_LABEL_TEXT, number = a->kind == MIC_LABEL_NUMBER;
  if (text && is(r, a->key, "thread.name"))
    thread->name = a->text;
  else if (text && is(r, a->key, "process.executable.name"))
    thread->program = a->text;
  else if (number && is(r, a->key, "thread.id"))
    thread->tid = id_of(a);
  else if (number && is(r, a->key, "process.pid"))
    thread->pid = id_of(a);
  else if (text || number)
    *mic_vec_push(&r->labels) =
      mic_build_label(r->p.build, a->key, a->kind, a->text, a->number, a->unit);
  else
    r->p.result->attributes++;
}

static int take_attributes(struct reading *r, uint64_t offset, uint32_t *thread) {
  struct thread of = {0};
  struct mic_otlp_attribute a = {0};
  int code = 0;
  r->labels.count = 0;
  struct mic_otlp_run run = r->resources.at[r->number];
  if (run.count + r->attributes.count > ATTRIBUTES_MAX)
    return mic_otlp_bad(&r->p, offset, "a sample of more than %d attributes", ATTRIBUTES_MAX);
  for (uint32_t i = 0; i < run.count && !code; i++) {
    code = resolve(r, offset, &r->resource.at[run.first + i], &a);
    if (!code) take_attribute(r, &a, &of);
  }
  for (size_t i = 0; i < r->attributes.count && !code; i++) {
    code = attribute(r, offset, r->attributes.at[i], &a);
    if (!code) take_attribute(r, &a, &of);
  }
  uint32_t process = mic_build_process(r->p.build, of.pid, of.program);
  *thread = mic_build_thread(r->p.build, process, of.tid, of.name);
  return code;
}

/* --- places and stacks --------------------------------------------------------------------- */

/* What code in anonymous memory is mapped as. */
static bool is_anonymous(const struct reading *r, uint32_t path) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, path, &size);
  return size >= 6 && memcmp(bytes, "//anon", 6) == 0;
}

/* A mapping's module: its file with the build ID that an attribute tells. */
static int module_of(struct reading *r, uint64_t offset, uint32_t index, uint32_t *module) {
  const struct mic_otlp_mapping *m = &r->p.mappings.at[index];
  uint32_t path, build_id = 0;
  *module = r->modules[index] - 1; /* MIC_NONE is -1 */
  if (r->modules[index] != MIC_NONE) return 0;
  int code = string(r, offset, m->file, &path);
  for (uint32_t i = 0; i < m->attributes.count && !code; i++) {
    struct mic_otlp_attribute a = {0};
    code = attribute(r, offset, r->p.indexes.at[m->attributes.first + i], &a);
    if (!code && a.kind == MIC_LABEL_TEXT && is(r, a.key, "process.executable.build_id.gnu"))
      build_id = a.text;
  }
  *module = MIC_NONE;
  if (!code && !is_anonymous(r, path) && (path || build_id))
    *module = mic_build_module(r->p.build, path, build_id);
  if (!code) r->modules[index] = *module + 1;
  return code;
}

static int function_of(struct reading *r, uint64_t offset, uint32_t index, uint32_t module,
                       uint32_t *function, uint32_t *file, uint32_t *name) {
  uint32_t system_name, path;
  if (index >= r->p.functions.count)
    return no_such(r, offset, "function", index, r->p.functions.count);
  const struct mic_otlp_function *f = &r->p.functions.at[index];
  int code = string(r, offset, f->name, name);
  if (!code) code = string(r, offset, f->system_name, &system_name);
  if (!code) code = string(r, offset, f->file, &path);
  if (code) return code;
  *file = path ? mic_build_file(r->p.build, path) : MIC_NONE;
  if (!*name) *name = system_name;
  *function = mic_build_function(r->p.build, *name, system_name ? system_name : *name, module,
                                 *file, f->line);
  return 0;
}

static int put_lines(struct reading *r, uint64_t offset, const struct mic_otlp_location *l,
                     uint32_t location, uint32_t module) {
  int code = 0;
  for (uint32_t i = 0; i < l->lines.count && !code; i++) {
    const struct mic_otlp_line *line = &r->p.lines.at[l->lines.first + i];
    struct mic_lines_row row = {.location = location, .line = line->line, .depth = i};
    uint32_t name;
    code = function_of(r, offset, line->function, module, &row.function, &row.file, &name);
    if (!code) mic_writer_lines(r->p.w, &row);
  }
  return code;
}

/* The name of a location's innermost function; 0: it has none. */
static int name_of(struct reading *r, uint64_t offset, const struct mic_otlp_location *l,
                   uint32_t *name) {
  uint32_t function, file;
  *name = 0;
  if (!l->lines.count) return 0;
  return function_of(r, offset, r->p.lines.at[l->lines.first].function, MIC_NONE, &function, &file,
                     name);
}

/* Where a location is, as far as the file proves it. */
static int place_row(struct reading *r, uint64_t offset, const struct mic_otlp_location *l,
                     struct mic_locations_row *row) {
  const struct mic_otlp_mapping *m = NULL;
  uint32_t name;
  *row = (struct mic_locations_row){.kind = MIC_LOCATION_UNMAPPED, .module = MIC_NONE};
  row->offset = l->address;
  if (l->mapping >= r->p.mappings.count && l->mapping)
    return no_such(r, offset, "mapping", l->mapping, r->p.mappings.count);
  if (l->mapping) m = &r->p.mappings.at[l->mapping];
  int code = m ? module_of(r, offset, l->mapping, &row->module) : 0;
  if (!code) code = name_of(r, offset, l, &name);
  if (code) return code;
  bool within = m && l->address >= m->start && l->address < m->limit;
  if (r->ours && l->address && name && is(r, name, "[signal]")) {
    row->kind = MIC_LOCATION_SIGNAL;
  } else if (row->module != MIC_NONE && l->address && (r->ours || within)) {
    row->kind = r->ours ? MIC_LOCATION_NATIVE : MIC_LOCATION_FILE;
    if (!r->ours) row->offset = l->address - m->start + m->offset;
  } else if (l->lines.count && (!l->address || row->module != MIC_NONE)) {
    row->kind = MIC_LOCATION_NAMED;
    row->offset = name;
  } else {
    if (m && row->module == MIC_NONE && l->address) row->kind = MIC_LOCATION_ANON;
    row->module = MIC_NONE;
  }
  return 0;
}

static int place_of(struct reading *r, uint64_t offset, uint32_t index, uint32_t *place) {
  if (index >= r->p.locations.count)
    return no_such(r, offset, "location", index, r->p.locations.count);
  *place = r->places[index];
  if (*place != MIC_NONE) return 0;
  const struct mic_otlp_location *l = &r->p.locations.at[index];
  struct mic_locations_row row;
  int code = place_row(r, offset, l, &row);
  if (code) return code;
  *place = r->places[index] = mic_writer_locations(r->p.w, &row);
  return row.kind == MIC_LOCATION_SIGNAL ? 0 : put_lines(r, offset, l, *place, row.module);
}

/* The reason that a location of nothing but a name in brackets stands for. */
static int end_of(struct reading *r, uint64_t offset, uint32_t index, uint32_t *end) {
  *end = MIC_END_NONE;
  if (index >= r->p.locations.count) return 0; /* place_of tells */
  const struct mic_otlp_location *l = &r->p.locations.at[index];
  uint32_t name;
  uint64_t size;
  if (l->address || l->mapping || l->lines.count != 1) return 0;
  int code = name_of(r, offset, l, &name);
  if (code) return code;
  const char *bytes = mic_writer_bytes_of(r->p.w, name, &size);
  *end = mic_build_end(bytes, size);
  return 0;
}

/* The node of a stack, whose locations come innermost first. */
static int node_of(struct reading *r, uint64_t offset, uint32_t *node) {
  if (r->stack >= r->p.stacks.count)
    return no_such(r, offset, "stack", r->stack, r->p.stacks.count);
  *node = r->nodes[r->stack];
  if (*node != MIC_NONE) return 0;
  struct mic_otlp_run run = r->p.stacks.at[r->stack];
  uint32_t end = MIC_END_NONE, place = 0;
  int code = 0;
  if (run.count) code = end_of(r, offset, r->p.indexes.at[run.first + run.count - 1], &end);
  run.count -= end != MIC_END_NONE;
  *node = mic_build_root(r->p.build, end ? end : MIC_END_NOT_STATED);
  while (run.count && !code) {
    code = place_of(r, offset, r->p.indexes.at[run.first + --run.count], &place);
    if (!code) *node = mic_build_node(r->p.build, *node, place);
  }
  if (!code) r->nodes[r->stack] = *node;
  return code;
}

/* --- samples ------------------------------------------------------------------------------- */

static int take_times(struct reading *r, struct mic_wire_field *f) {
  const char *bytes;
  if (f->kind != MIC_WIRE_BYTES) {
    *mic_vec_push(&r->times) = f->value;
    return 0;
  }
  if (f->value % 8) return mic_otlp_bad(&r->p, f->offset, "times that are no whole numbers");
  int code = mic_wire_text(&r->p.wire, f, &bytes, r->p.err);
  for (uint64_t i = 0; i < f->value && !code; i += 8) memcpy(mic_vec_push(&r->times), bytes + i, 8);
  return code;
}

static int take_numbers(struct reading *r, struct mic_wire_field *f) {
  uint64_t value, offset = f->offset;
  uint32_t number = f->number;
  bool more;
  int code;
  while (!(code = mic_wire_packed(&r->p.wire, f, &value, &more, r->p.err)) && more) {
    if (r->values.count + r->attributes.count > VALUES_MAX)
      return mic_otlp_bad(&r->p, offset, "a sample of more than %d values", VALUES_MAX);
    if (number == r->layout.values) *mic_vec_push(&r->values) = value;
    if (number == r->layout.attributes) *mic_vec_push(&r->attributes) = mic_wire_index(value);
  }
  return code;
}

static int put_values(struct reading *r, uint64_t offset, uint32_t thread, uint32_t node) {
  size_t count = r->values.count ? r->values.count : r->times.count;
  if (r->times.count && r->values.count && r->times.count != r->values.count)
    return mic_otlp_bad(&r->p, offset, "a sample of %zu values and %zu times", r->values.count,
                        r->times.count);
  for (size_t i = 0; i < count; i++) {
    uint64_t value = r->values.count ? r->values.at[i] : 1, time = 0;
    if (value >> 63) return mic_otlp_bad(&r->p, offset, "a negative value");
    if (r->times.count) {
      r->p.result->early += r->times.at[i] < r->start_ns;
      time = r->times.at[i] > r->start_ns ? r->times.at[i] - r->start_ns : 0;
    }
    if (!value) continue;
    struct mic_samples_row row = {
      .time_ns = time, .thread = thread, .stack = node, .weight = value};
    row.source = (uint8_t)r->source;
    uint32_t sample = mic_writer_samples(r->p.w, &row);
    for (size_t k = 0; k < r->labels.count; k++)
      mic_writer_sample_labels(r->p.w, &(struct mic_sample_labels_row){sample, r->labels.at[k]});
  }
  return 0;
}

static int put_sample(struct reading *r, uint64_t offset) {
  struct mic_wire_field f;
  uint32_t thread = 0, node = 0;
  bool more;
  int code;
  r->stack = 0;
  r->values.count = r->times.count = r->attributes.count = 0;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.number == STACK) r->stack = mic_wire_index(f.value);
    if (f.number == r->layout.link && f.kind != MIC_WIRE_BYTES) r->p.result->links += f.value != 0;
    if (f.number == TIMES) code = take_times(r, &f);
    if (f.number == r->layout.values || f.number == r->layout.attributes)
      code = take_numbers(r, &f);
    if (code) return code;
  }
  if (!code) code = node_of(r, offset, &node);
  if (!code) code = take_attributes(r, offset, &thread);
  r->p.result->samples++;
  return code ? code : put_values(r, offset, thread, node);
}

/* Which of the two layouts a sample shows. */
static int look_at_sample(struct reading *r) {
  struct mic_wire_field f;
  struct shown *s = &r->shown;
  uint64_t twos = 0, times = 0, value;
  bool more, another, decided = false;
  int code;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    bool bytes = f.kind == MIC_WIRE_BYTES;
    if (f.number == 3 || f.number == 4) {
      bool is_now = (f.number == 4) == bytes;
      if (is_now)
        s->now = true;
      else
        s->before = true;
      decided = true;
    }
    if (f.number == TIMES) times += bytes ? f.value / 8 : 1;
    if (f.number != 2) continue;
    while (!(code = mic_wire_packed(&r->p.wire, &f, &value, &another, r->p.err)) && another) {
      twos++;
      if (value > s->greatest) s->greatest = value;
    }
    if (code) return code;
  }
  if (decided || !twos || code) return code;
  if (!times) s->before = true; /* now it would have no value */
  if (times && times != twos) s->unlike = true;
  s->undecided = true;
  return 0;
}

static int choose_layout(struct reading *r) {
  const struct shown *s = &r->shown;
  bool is_now = s->now, was_before = s->before;
  if (!is_now && !was_before && s->undecided) {
    is_now = s->unlike;
    was_before = s->greatest >= r->p.attributes.count;
  }
  if (is_now && was_before)
    return mic_otlp_bad(&r->p, 0, "samples of two versions of OpenTelemetry's protocol");
  if (!is_now && !was_before && s->undecided)
    return mic_otlp_bad(&r->p, 0,
                        "its samples fit two versions of OpenTelemetry's protocol: what "
                        "is a value in one is an attribute in the other");
  r->layout = was_before ? before : now;
  return 0;
}

/* --- profiles ------------------------------------------------------------------------------ */

static int take_type(struct reading *r, uint32_t type[2]) {
  struct mic_wire_field f;
  bool more;
  int code;
  type[0] = type[1] = 0;
  uint64_t outer = mic_wire_enter(&r->p.wire);
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more)
    if ((f.number == 1 || f.number == 2) && f.kind != MIC_WIRE_BYTES)
      type[f.number - 1] = mic_wire_index(f.value);
  mic_wire_leave(&r->p.wire, outer);
  return code;
}

/* The first reading's part of a profile: all but its samples' contents. */
static int look_at_profile(struct reading *r) {
  struct head head = {.period = 0};
  struct mic_wire_field f;
  bool more;
  int code;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    bool bytes = f.kind == MIC_WIRE_BYTES;
    if (f.number == 2 && bytes) {
      uint64_t outer = mic_wire_enter(&r->p.wire);
      code = look_at_sample(r);
      mic_wire_leave(&r->p.wire, outer);
    }
    if (f.number == 1 && bytes) code = take_type(r, head.type);
    if (f.number == 5 && bytes) code = take_type(r, head.period_type);
    if (f.number == 3 && bytes)
      code =
        mic_otlp_bad(&r->p, f.offset, "a profile of a form before OpenTelemetry's release 1.8");
    if (f.number == 3) head.start_ns = f.value;
    if (f.number == 4 && !bytes) head.duration_ns = f.value;
    if (f.number == 6 && !bytes) head.period = f.value;
    if (f.number == 10 && bytes) r->p.result->payloads++;
    if (code) return code;
  }
  if (code) return code;
  uint64_t end;
  if (__builtin_add_overflow(head.start_ns, head.duration_ns, &end)) end = head.start_ns;
  if (head.start_ns && head.start_ns < r->start_ns) r->start_ns = head.start_ns;
  if (end > r->end_ns) r->end_ns = end;
  *mic_vec_push(&r->heads) = head;
  return mic_wire_hold(&r->p.wire, sizeof head, r->p.err);
}

static int take_source(struct reading *r, uint64_t offset, const struct head *head) {
  uint32_t name, unit_name;
  int code = string(r, offset, head->type[0], &name);
  if (!code) code = string(r, offset, head->type[1], &unit_name);
  if (code) return code;
  uint64_t name_size, size;
  const char *bytes = mic_writer_bytes_of(r->p.w, name, &name_size);
  const char *word = mic_writer_bytes_of(r->p.w, unit_name, &size);
  uint32_t unit = mic_build_unit(bytes, name_size, word, size);
  bool periodic = memcmp(head->type, head->period_type, sizeof head->type) == 0;
  bool own = unit == MIC_UNIT_OTHER || is(r, unit_name, "ns");
  r->source =
    mic_build_source(r->p.build, name, unit, periodic ? head->period : 0, own ? unit_name : 0);
  if (r->source <= UINT8_MAX) return 0;
  return mic_otlp_bad(&r->p, offset, "more than 256 kinds of values");
}

static int put_profile(struct reading *r, uint64_t offset) {
  struct mic_wire_field f;
  bool more;
  int code = take_source(r, offset, &r->heads.at[r->p.result->profiles++]);
  while (!code && !(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.number != 2 || f.kind != MIC_WIRE_BYTES) continue;
    uint64_t outer = mic_wire_enter(&r->p.wire);
    code = put_sample(r, f.offset);
    mic_wire_leave(&r->p.wire, outer);
  }
  return code;
}

/* --- the whole ----------------------------------------------------------------------------- */

static int take_scope_name(struct reading *r) {
  struct mic_wire_field f;
  bool more, ours = false;
  const char *text;
  int code;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.number != 1 || f.kind != MIC_WIRE_BYTES) continue;
    code = mic_wire_text(&r->p.wire, &f, &text, r->p.err);
    if (code) return code;
    ours = f.value == 10 && memcmp(text, "microscope", 10) == 0;
  }
  if (ours)
    r->ours = true;
  else
    r->others = true;
  return code;
}

static int take_resource(struct reading *r) {
  struct mic_wire_field f;
  bool more;
  int code;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.number != 1 || f.kind != MIC_WIRE_BYTES) continue;
    code = mic_otlp_attribute(&r->p, false, mic_vec_push(&r->resource));
    if (!code) code = mic_wire_hold(&r->p.wire, sizeof *r->resource.at, r->p.err);
    if (code) return code;
    r->resources.at[r->resources.count - 1].count++;
  }
  return code;
}

/* Into each message of a field: 0 of ProfilesData, 1 of ResourceProfiles, 2 of ScopeProfiles. */
static int take_level(struct reading *r, int level) {
  struct mic_wire_field f;
  bool more;
  int code;
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.kind != MIC_WIRE_BYTES || f.number > 2) continue;
    if (level == 0 && f.number == 2) {
      code = r->put ? 0 : mic_otlp_dictionary(&r->p);
      if (code) return code;
      continue;
    }
    uint64_t outer = mic_wire_enter(&r->p.wire);
    if (level == 0) {
      if (!r->put)
        *mic_vec_push(&r->resources) = (struct mic_otlp_run){(uint32_t)r->resource.count, 0};
      code = take_level(r, 1);
      r->number++;
    } else if (level == 1 && f.number == 2) {
      code = take_level(r, 2);
    } else if (level == 2 && f.number == 2) {
      code = r->put ? put_profile(r, f.offset) : look_at_profile(r);
    } else if (!r->put && level == 1) {
      code = take_resource(r);
    } else if (!r->put && level == 2) {
      code = take_scope_name(r);
    }
    mic_wire_leave(&r->p.wire, outer);
    if (code) return code;
  }
  return code;
}

static void put_clocks(struct reading *r) {
  if (r->start_ns == UINT64_MAX) r->start_ns = 0;
  struct mic_clocks_row clocks = {.realtime_ns = r->start_ns};
  if (r->end_ns > r->start_ns) clocks.duration_ns = r->end_ns - r->start_ns;
  if (clocks.realtime_ns || clocks.duration_ns) mic_writer_clocks(r->p.w, &clocks);
}

/* A row for each, none made yet. */
static uint32_t *rows_of(size_t count) {
  uint32_t *rows = mic_alloc((count + 1) * sizeof *rows);
  memset(rows, 0xff, (count + 1) * sizeof *rows);
  return rows;
}

static int read_twice(struct reading *r) {
  int code = take_level(r, 0);
  if (!code && !r->heads.count) code = mic_otlp_bad(&r->p, 0, "no profile of OpenTelemetry in it");
  if (!code) code = choose_layout(r);
  if (!code) code = mic_wire_rewind(&r->p.wire, r->p.err);
  if (code) return code;
  r->put = true;
  r->ours &= !r->others;
  r->number = 0;
  r->places = rows_of(r->p.locations.count);
  r->nodes = rows_of(r->p.stacks.count);
  r->modules = rows_of(r->p.mappings.count);
  put_clocks(r);
  return take_level(r, 0);
}

MIC_EXPORT int mic_otlp_read(struct mic_input *input, struct mic_writer *writer,
                             struct mic_otlp_result *result, struct mic_error *err) {
  struct mic_error unseen;
  struct reading r = {
    .p = {.w = writer, .result = result, .err = err ? err : &unseen},
    .start_ns = UINT64_MAX,
  };
  *result = (struct mic_otlp_result){.samples = 0};
  r.p.build = mic_build_new(writer);
  mic_wire_start(&r.p.wire, input);
  int code = read_twice(&r);
  free(r.places);
  free(r.nodes);
  free(r.modules);
  mic_vec_free(&r.values);
  mic_vec_free(&r.times);
  mic_vec_free(&r.attributes);
  mic_vec_free(&r.resource);
  mic_vec_free(&r.resources);
  mic_vec_free(&r.heads);
  mic_vec_free(&r.labels);
  mic_build_free(r.p.build);
  mic_otlp_free(&r.p);
  return code;
}
