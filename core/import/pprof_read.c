/* pprof_read.c - from a profile's records and samples to rows. */
#include "import/pprof_read.h"

#include <stdio.h>
#include <string.h>

#include "import/build.h"
#include "import/pprof_inside.h"
#include "import/pprof_write.h"

/* Locations of a sample's stack, the last one given first; what was given is freed as it goes, as
 * each may be a new row. */
enum { PILE_PART = 256 * 1024 }; /* pages are mapped a MiB at a time, and used as they fill */
struct pile_part {
  struct pile_part *below;
  uint32_t count;
  uint32_t at[PILE_PART];
};

/* A location that stands for a reason: it has no row, as long as no stack has it as a frame. */
struct reason {
  uint32_t location, line;
  struct mic_pprof_function function;
};
enum { REASONS_MAX = 4096 }; /* more are rows from the start; a profile has a dozen at most */

struct reading {
  struct mic_pprof p;
  struct mic_build *build;
  struct mic_pprof_result *result;
  bool ours;          /* written by microscope: threads are labels, addresses of ELF files */
  bool whole;         /* a stack without a reason is whole */
  uint32_t *modules;  /* of each mapping; MIC_NONE: none */
  uint32_t processes; /* that samples are of */
  uint32_t *places;   /* of each location its row; NULL: as they are counted */
  uint8_t *ends;      /* of each location the reason it stands for; NULL: all are frames */
  MIC_VEC(struct reason) reasons; /* those without a row, in their order */
  uint32_t *sources;              /* of each type */
  /* Of the sample that is read: */
  uint64_t offset;
  struct pile_part *stack;
  int64_t values[UINT8_MAX];
  uint64_t value_count;
  MIC_VEC(uint32_t) labels;
  uint32_t said, ids[4]; /* its thread: which of KEYS were there, and what they said */
};

static bool is(const struct reading *r, uint32_t string, const char *want) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, string, &size);
  return size == strlen(want) && memcmp(bytes, want, size) == 0;
}

/* --- facts --------------------------------------------------------------------------------- */

static void fact(struct reading *r, const char *key, uint32_t value) {
  if (!value) return;
  mic_writer_meta(r->p.w, &(struct mic_meta_row){mic_writer_text(r->p.w, key), value});
}

/* What our own writer says of the file; it is no fact of the recording. */
static bool is_about_file(const struct reading *r, uint32_t id) {
  static const char period[] = MIC_PPROF_PERIOD_OF;
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, id, &size);
  if (size >= sizeof period - 1 && memcmp(bytes, period, sizeof period - 1) == 0) return true;
  return is(r, id, MIC_PPROF_MARK) || is(r, id, MIC_PPROF_UNSTATED);
}

/* Ours are "key: value"; the mark itself stands for nothing else. */
static void comment(struct reading *r, uint32_t id) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, id, &size);
  const char *colon = r->ours ? memmem(bytes, size, ": ", 2) : NULL;
  if (r->ours && is_about_file(r, id)) return;
  if (!colon) {
    fact(r, "comment", id);
    return;
  }
  uint64_t key_size = (uint64_t)(colon - bytes);
  uint32_t key = mic_writer_string(r->p.w, bytes, key_size);
  uint32_t value = mic_writer_string(r->p.w, colon + 2, size - key_size - 2);
  mic_writer_meta(r->p.w, &(struct mic_meta_row){key, value});
}

static void put_facts(struct reading *r) {
  const struct mic_pprof *p = &r->p;
  for (size_t i = 0; i < p->comments.count; i++) comment(r, p->comments.at[i]);
  if (p->period > 0) {
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)p->period);
    fact(r, "pprof.period", mic_writer_text(p->w, digits));
    fact(r, "pprof.period_type", p->period_type.type);
    fact(r, "pprof.period_unit", p->period_type.unit);
  }
  fact(r, "pprof.default_sample_type", p->default_type);
  /* Readers show the last type first where the file does not say. */
  uint32_t shown = p->default_type ? p->default_type : p->types.at[p->types.count - 1].type;
  fact(r, "default_source", shown);
  fact(r, "pprof.drop_frames", p->drop_frames);
  fact(r, "pprof.keep_frames", p->keep_frames);
  if (p->time_ns > 0 || p->duration_ns > 0)
    mic_writer_clocks(p->w, &(struct mic_clocks_row){
                              .realtime_ns = p->time_ns > 0 ? (uint64_t)p->time_ns : 0,
                              .duration_ns = p->duration_ns > 0 ? (uint64_t)p->duration_ns : 0,
                            });
}

/* The period that a comment of ours gives the type, or 0. */
static uint64_t period_of(const struct reading *r, const char *name, uint64_t name_size) {
  static const char period[] = MIC_PPROF_PERIOD_OF;
  const size_t start = sizeof period - 1;
  for (size_t i = 0; r->ours && i < r->p.comments.count; i++) {
    uint64_t size, value = 0;
    const char *bytes = mic_writer_bytes_of(r->p.w, (uint32_t)r->p.comments.at[i], &size);
    if (size < start + name_size + 3 || memcmp(bytes, period, start) != 0 ||
        memcmp(bytes + start, name, name_size) != 0 ||
        memcmp(bytes + start + name_size, ": ", 2) != 0)
      continue;
    for (uint64_t k = start + name_size + 2; k < size; k++)
      if (bytes[k] < '0' || bytes[k] > '9' || __builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, (uint64_t)(bytes[k] - '0'), &value))
        return 0;
    return value;
  }
  return 0;
}

static void put_sources(struct reading *r) {
  r->sources = mic_alloc(r->p.types.count * sizeof *r->sources);
  for (size_t i = 0; i < r->p.types.count; i++) {
    const struct mic_pprof_type *type = &r->p.types.at[i];
    uint64_t name_size, size;
    const char *name = mic_writer_bytes_of(r->p.w, type->type, &name_size);
    const char *word = mic_writer_bytes_of(r->p.w, type->unit, &size);
    uint32_t unit = mic_build_unit(name, name_size, word, size);
    bool periodic =
      r->p.period > 0 && type->type == r->p.period_type.type && type->unit == r->p.period_type.unit;
    /* A row of its own for each type, also where two are named the same. */
    bool own_word = unit == MIC_UNIT_OTHER || is(r, type->unit, "ns");
    struct mic_sources_row row = {
      .name = type->type,
      .unit = (uint8_t)unit,
      .period = periodic ? (uint64_t)r->p.period : period_of(r, name, name_size),
      .unit_name = own_word ? type->unit : 0,
    };
    r->sources[i] = mic_writer_sources(r->p.w, &row);
  }
}

static uint32_t process_unknown(struct reading *r) { return mic_build_process(r->build, 0, 0); }

static bool is_anonymous(const struct reading *r, const struct mic_pprof_mapping *m) {
  uint64_t size;
  const char *file = mic_writer_bytes_of(r->p.w, m->file, &size);
  return (size == 0 && m->build_id == 0) || (size >= 6 && memcmp(file, "//anon", 6) == 0);
}

static void put_mappings(struct reading *r) {
  r->modules = mic_alloc((r->p.mappings.count + 1) * sizeof *r->modules);
  for (size_t i = 0; i < r->p.mappings.count; i++) {
    const struct mic_pprof_mapping *m = &r->p.mappings.at[i];
    r->modules[i] = MIC_NONE;
    if (is_anonymous(r, m)) continue;
    r->modules[i] = mic_build_module(r->build, m->file, m->build_id);
  }
}

/* Mappings do not say whose they are: they are those of the only process, or of one more. */
static void put_mapped(struct reading *r) {
  for (size_t i = 0; i < r->p.mappings.count; i++) {
    const struct mic_pprof_mapping *m = &r->p.mappings.at[i];
    if (r->modules[i] == MIC_NONE) continue;
    if (r->ours && m->start == 0) continue; /* made up to have addresses of the file */
    mic_writer_mappings(r->p.w, &(struct mic_mappings_row){
                                  .process = r->processes == 1 ? 0 : process_unknown(r),
                                  .module = r->modules[i],
                                  .address = m->start,
                                  .size = m->limit - m->start,
                                  .file_offset = m->file_offset,
                                  .end_ns = UINT64_MAX,
                                });
  }
}

/* --- locations ----------------------------------------------------------------------------- */

static uint64_t address_of(const struct mic_pprof_location *l) {
  return (uint64_t)l->address[1] << 32 | l->address[0];
}

static const struct mic_pprof_function *function_of(const struct reading *r,
                                                    const struct mic_pprof_line *line) {
  return &r->p.functions.at[line->function[0]];
}

/* Where a location is, as far as the file proves it. */
static struct mic_locations_row place_row(const struct reading *r,
                                          const struct mic_pprof_location *l,
                                          const struct mic_pprof_line *lines) {
  const struct mic_pprof_mapping *m = l->mapping ? &r->p.mappings.at[l->mapping - 1] : NULL;
  uint64_t address = address_of(l);
  struct mic_locations_row row = {
    .kind = MIC_LOCATION_UNMAPPED, .module = MIC_NONE, .offset = address};
  uint32_t module = m ? r->modules[l->mapping - 1] : MIC_NONE;
  bool within = m && address >= m->start && address < m->limit;
  if (module != MIC_NONE && within && (!r->ours || address)) {
    row.module = module;
    row.kind = r->ours && m->start == 0 ? MIC_LOCATION_NATIVE : MIC_LOCATION_FILE;
    if (row.kind == MIC_LOCATION_FILE) row.offset = address - m->start + m->file_offset;
  } else if (l->line_count && (!address || module != MIC_NONE)) {
    row.kind = MIC_LOCATION_NAMED;
    row.module = module;
    row.offset = function_of(r, lines)->name;
  } else if (m && module == MIC_NONE && address) {
    row.kind = MIC_LOCATION_ANON;
  }
  return row;
}

static uint32_t put_function(struct reading *r, const struct mic_pprof_function *f,
                             uint32_t module) {
  uint32_t file = f->file ? mic_build_file(r->build, f->file) : MIC_NONE;
  uint32_t linkage = f->system_name ? f->system_name : f->name;
  return mic_build_function(r->build, f->name, linkage, module, file, f->start_line);
}

static void put_lines(struct reading *r, const struct mic_pprof_location *l,
                      const struct mic_pprof_line *lines, uint32_t location, uint32_t module) {
  for (uint32_t i = 0; i < l->line_count; i++) {
    const struct mic_pprof_function *f = function_of(r, &lines[i]);
    mic_writer_lines(r->p.w, &(struct mic_lines_row){
                               .location = location,
                               .function = put_function(r, f, module),
                               .file = f->file ? mic_build_file(r->build, f->file) : MIC_NONE,
                               .line = lines[i].line,
                               .depth = i,
                             });
  }
}

static uint32_t put_location(struct reading *r, const struct mic_pprof_location *l,
                             const struct mic_pprof_line *lines) {
  struct mic_locations_row row = place_row(r, l, lines);
  bool signal = r->ours && l->line_count == 1 && is(r, function_of(r, lines)->name, "[signal]");
  if (signal) row.kind = MIC_LOCATION_SIGNAL;
  uint32_t place = mic_writer_locations(r->p.w, &row);
  if (!signal) put_lines(r, l, lines, place, row.module);
  return place;
}

/* The reason that a location stands for: a name in brackets and nothing else; or none. */
static uint32_t end_of(const struct reading *r, const struct mic_pprof_location *l,
                       const struct mic_pprof_line *lines) {
  if (l->line_count != 1 || address_of(l) || l->mapping) return MIC_END_NONE;
  uint64_t size;
  const char *name = mic_writer_bytes_of(r->p.w, function_of(r, lines)->name, &size);
  return mic_build_end(name, size);
}

/* From a location on, of which some stands for a reason, places and ends are told apart. */
static void start_ends(struct reading *r, uint32_t location) {
  size_t count = r->p.locations.count;
  r->places = mic_alloc(count * sizeof *r->places);
  r->ends = mic_alloc(count);
  for (uint32_t i = 0; i < location; i++) r->places[i] = i;
}

static void put_place(struct reading *r, uint32_t i, const struct mic_pprof_line *lines) {
  const struct mic_pprof_location *l = &r->p.locations.at[i];
  uint32_t end = end_of(r, l, lines);
  bool rowless = end && r->reasons.count < REASONS_MAX;
  if (end && !r->ends) start_ends(r, i);
  if (r->ends) r->ends[i] = (uint8_t)end;
  if (rowless) *mic_vec_push(&r->reasons) = (struct reason){i, lines->line, *function_of(r, lines)};
  uint32_t place = rowless ? MIC_NONE : put_location(r, l, lines);
  if (r->places) r->places[i] = place;
}

/* All the file's locations are rows but those that are reasons.  Functions of no location are rows
 * too, so that what is read of a file is what its tables hold. */
static void put_locations(struct reading *r) {
  const struct mic_pprof_line *lines = r->p.lines.at;
  bool *used = mic_alloc(r->p.functions.count + 1);
  for (uint32_t i = 0; i < r->p.locations.count; i++) {
    uint32_t count = r->p.locations.at[i].line_count;
    for (uint32_t k = 0; k < count; k++) used[lines[k].function[0]] = true;
    put_place(r, i, lines);
    lines += count;
  }
  for (size_t f = 0; f < r->p.functions.count; f++)
    if (!used[f]) put_function(r, &r->p.functions.at[f], MIC_NONE);
  free(used);
  mic_pprof_forget(&r->p);
  if (!r->reasons.count) mic_build_forget(r->build, MIC_TABLE_functions);
}

/* A reason that is a frame of some stack. */
static uint32_t put_reason(struct reading *r, uint32_t location) {
  const struct reason *reason = r->reasons.at;
  while (reason->location != location) reason++;
  const struct mic_pprof_function *f = &reason->function;
  uint32_t place = mic_writer_locations(
    r->p.w,
    &(struct mic_locations_row){.kind = MIC_LOCATION_NAMED, .module = MIC_NONE, .offset = f->name});
  mic_writer_lines(r->p.w, &(struct mic_lines_row){
                             .location = place,
                             .function = put_function(r, f, MIC_NONE),
                             .file = f->file ? mic_build_file(r->build, f->file) : MIC_NONE,
                             .line = reason->line,
                           });
  return r->places[location] = place;
}

static uint32_t place_of(struct reading *r, uint32_t location) {
  if (!r->places) return location;
  uint32_t place = r->places[location];
  return place != MIC_NONE ? place : put_reason(r, location);
}

/* --- samples ------------------------------------------------------------------------------- */

static int bad_sample(const struct reading *r, const char *what) {
  return mic_pprof_bad(&r->p, r->offset, "sample %llu: %s", (unsigned long long)r->result->samples,
                       what);
}

static int broken(const struct reading *r, int code) {
  return r->p.wire.malformed ? bad_sample(r, "it is malformed") : code;
}

static void push(struct reading *r, uint32_t location) {
  if (!r->stack || r->stack->count == PILE_PART) {
    struct pile_part *part = mic_pages(sizeof *part);
    part->below = r->stack;
    r->stack = part;
  }
  r->stack->at[r->stack->count++] = location;
}

/* The location that was pushed last; false when there is none. */
static bool pop(struct reading *r, uint32_t *location) {
  struct pile_part *part = r->stack;
  if (part && part->count == 0 && part->below) {
    r->stack = part->below;
    mic_pages_free(part, sizeof *part);
    part = r->stack;
  }
  if (!part || part->count == 0) return false;
  *location = part->at[--part->count];
  return true;
}

static int take_stack(struct reading *r, struct mic_wire_field *f) {
  uint64_t id;
  bool more;
  int code;
  while (!(code = mic_wire_packed(&r->p.wire, f, &id, &more, r->p.err)) && more) {
    uint32_t location = mic_ids_find(&r->p.location_ids, id);
    if (location == MIC_NONE) {
      char what[64];
      snprintf(what, sizeof what, "there is no location %llu", (unsigned long long)id);
      return bad_sample(r, what);
    }
    push(r, location);
  }
  return code;
}

static int take_values(struct reading *r, struct mic_wire_field *f) {
  uint64_t value;
  bool more;
  int code;
  while (!(code = mic_wire_packed(&r->p.wire, f, &value, &more, r->p.err)) && more)
    if (r->value_count++ < UINT8_MAX) r->values[r->value_count - 1] = (int64_t)value;
  return code;
}

/* Our own labels of threads; each is taken once, as a program may have labels of these names. */
static bool is_of_thread(struct reading *r, uint32_t key, uint32_t text, uint64_t number) {
  static const char *const keys[] = {"thread", "tid", "process", "pid"};
  for (uint32_t i = 0; i < 4; i++) {
    if (r->said >> i & 1 || !is(r, key, keys[i])) continue;
    r->said |= 1U << i;
    r->ids[i] = i % 2 ? (uint32_t)number : text;
    return true;
  }
  return false;
}

static int put_label(struct reading *r, const uint64_t said[5]) {
  uint32_t key, text, unit, row;
  if (!mic_pprof_string(&r->p, said[1], &key) || !mic_pprof_string(&r->p, said[2], &text) ||
      !mic_pprof_string(&r->p, said[4], &unit))
    return bad_sample(r, "a label names a string that the profile does not have");
  if (r->ours && is_of_thread(r, key, text, said[3])) return 0;
  if (said[2])
    row = mic_build_label(r->build, key, MIC_LABEL_TEXT, text, 0, 0);
  else
    row = mic_build_label(r->build, key, MIC_LABEL_NUMBER, 0, said[3], unit);
  *mic_vec_push(&r->labels) = row;
  return 0;
}

static int take_label(struct reading *r) {
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t said[5] = {0}, outer = mic_wire_enter(&r->p.wire); /* key, text, number, unit */
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more)
    if (f.number < 5 && f.kind != MIC_WIRE_BYTES) said[f.number] = f.value;
  mic_wire_leave(&r->p.wire, outer);
  return code ? code : put_label(r, said);
}

static int take_sample(struct reading *r) {
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t outer = mic_wire_enter(&r->p.wire);
  while (!(code = mic_wire_next(&r->p.wire, &f, &more, r->p.err)) && more) {
    if (f.number == 1) code = take_stack(r, &f);
    if (f.number == 2) code = take_values(r, &f);
    if (f.number == 3) code = f.kind == MIC_WIRE_BYTES ? take_label(r) : MIC_EFORMAT;
    if (f.number == 3 && f.kind != MIC_WIRE_BYTES) r->p.wire.malformed = true;
    if (code) break;
  }
  mic_wire_leave(&r->p.wire, outer);
  if (code) return broken(r, code);
  if (r->value_count == r->p.types.count) return 0;
  char what[96];
  snprintf(what, sizeof what, "it has %llu values, the profile has %zu types",
           (unsigned long long)r->value_count, r->p.types.count);
  return bad_sample(r, what);
}

/* The node of the stack, whose frames came innermost first. */
static uint32_t stack_node(struct reading *r) {
  uint32_t end = r->whole ? MIC_END_OUTERMOST : MIC_END_NOT_STATED, location;
  bool any = pop(r, &location);
  if (any && r->ends && r->ends[location]) {
    end = r->ends[location];
    any = pop(r, &location);
  }
  uint32_t node = mic_build_root(r->build, end);
  for (; any; any = pop(r, &location)) node = mic_build_node(r->build, node, place_of(r, location));
  return node;
}

static int put_values(struct reading *r, uint32_t thread, uint32_t node) {
  bool any = false;
  for (size_t i = 0; i < r->p.types.count; i++) {
    int64_t value = r->values[i];
    if (value < 0)
      return bad_sample(r, "a negative value: this is a difference of profiles; convert those it "
                           "was made from");
    if (!value) continue;
    any = true;
    struct mic_samples_row row = {
      .thread = thread,
      .stack = node,
      .weight = (uint64_t)value,
      .source = (uint8_t)r->sources[i],
    };
    uint32_t sample = mic_writer_samples(r->p.w, &row);
    for (size_t k = 0; k < r->labels.count; k++)
      mic_writer_sample_labels(r->p.w, &(struct mic_sample_labels_row){sample, r->labels.at[k]});
  }
  r->result->zero_samples += !any;
  return 0;
}

static int put_sample(struct reading *r, uint64_t offset) {
  r->result->samples++;
  r->offset = offset;
  r->value_count = r->labels.count = 0;
  r->said = 0;
  memset(r->ids, 0, sizeof r->ids); /* what is not said is 0 and "" */
  int code = take_sample(r);
  if (code) return code;
  uint32_t node = stack_node(r);
  uint32_t process = mic_build_process(r->build, r->ids[3], r->ids[2]);
  if (process >= r->processes) r->processes = process + 1;
  return put_values(r, mic_build_thread(r->build, process, r->ids[1], r->ids[0]), node);
}

static int put_samples(struct reading *r) {
  struct mic_wire_field field;
  bool more;
  int code = mic_wire_rewind(&r->p.wire, r->p.err);
  while (!code && !(code = mic_wire_next(&r->p.wire, &field, &more, r->p.err)) && more) {
    if (field.number != MIC_PPROF_SAMPLE) continue;
    r->offset = field.offset;
    code =
      field.kind == MIC_WIRE_BYTES ? put_sample(r, field.offset) : bad_sample(r, "it is malformed");
  }
  return code;
}

static void find_ours(struct reading *r) {
  bool unstated = false;
  for (size_t i = 0; i < r->p.comments.count; i++) {
    r->ours |= is(r, r->p.comments.at[i], MIC_PPROF_MARK);
    unstated |= is(r, r->p.comments.at[i], MIC_PPROF_UNSTATED);
  }
  r->whole = r->ours && !unstated;
}

static void release(struct reading *r) {
  mic_pprof_free(&r->p);
  mic_build_free(r->build);
  free(r->modules);
  free(r->places);
  free(r->ends);
  free(r->sources);
  for (struct pile_part *part = r->stack, *below; part; part = below) {
    below = part->below;
    mic_pages_free(part, sizeof *part);
  }
  mic_vec_free(&r->reasons);
  mic_vec_free(&r->labels);
}

MIC_EXPORT int mic_pprof_read(struct mic_input *input, struct mic_writer *writer,
                              struct mic_pprof_result *result, struct mic_error *err) {
  struct mic_error unseen;
  struct reading r = {
    .p = {.w = writer, .err = err ? err : &unseen},
    .build = mic_build_new(writer),
    .result = result,
  };
  *result = (struct mic_pprof_result){.samples = 0};
  mic_wire_start(&r.p.wire, input);
  int code = mic_pprof_records(&r.p);
  if (!code) {
    result->types = (uint32_t)r.p.types.count;
    find_ours(&r);
    put_facts(&r);
    put_sources(&r);
    put_mappings(&r);
    put_locations(&r);
    code = put_samples(&r);
    if (!code) put_mapped(&r);
  }
  release(&r);
  return code;
}
