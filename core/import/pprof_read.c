/* pprof_read.c - from a profile's records and samples to rows. */
#include "import/pprof_read.h"

#include <stdio.h>
#include <string.h>

#include "import/build.h"
#include "import/pprof_inside.h"
#include "import/pprof_write.h"

struct label {
  uint64_t key, str, num, unit;
};

struct reading {
  struct mic_pprof p;
  struct mic_build *build;
  struct mic_pprof_result *result;
  bool ours;         /* written by microscope: threads are labels, addresses of ELF files */
  bool whole;        /* a stack without a reason is whole */
  uint32_t *modules; /* of each mapping; MIC_NONE: none */
  uint32_t *places;  /* of each location its row; MIC_NONE: not made yet */
  uint8_t *ends;     /* of each location the reason it stands for; 0: it is a frame */
  uint32_t *sources; /* of each type */
  MIC_VEC(uint64_t) stack;
  MIC_VEC(int64_t) values;
  MIC_VEC(struct label) labels;
  MIC_VEC(uint32_t) label_rows;
};

static bool is(const struct reading *r, uint64_t string, const char *want) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, (uint32_t)string, &size);
  return size == strlen(want) && memcmp(bytes, want, size) == 0;
}

/* --- facts --------------------------------------------------------------------------------- */

static void fact(struct reading *r, const char *key, uint32_t value) {
  if (!value) return;
  mic_writer_meta(r->p.w, &(struct mic_meta_row){mic_writer_text(r->p.w, key), value});
}

/* Ours are "key: value"; the mark itself stands for nothing else. */
static void comment(struct reading *r, uint32_t id) {
  uint64_t size;
  const char *bytes = mic_writer_bytes_of(r->p.w, id, &size);
  const char *colon = r->ours ? memmem(bytes, size, ": ", 2) : NULL;
  if (r->ours && (is(r, id, MIC_PPROF_MARK) || is(r, id, MIC_PPROF_UNSTATED))) return;
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
  for (size_t i = 0; i < p->comments.count; i++) comment(r, (uint32_t)p->comments.at[i]);
  if (p->period > 0) {
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)p->period);
    fact(r, "pprof.period", mic_writer_text(p->w, digits));
    fact(r, "pprof.period_type", (uint32_t)p->period_type.type);
    fact(r, "pprof.period_unit", (uint32_t)p->period_type.unit);
  }
  fact(r, "pprof.default_sample_type", (uint32_t)p->default_type);
  /* Readers show the last type first where the file does not say. */
  uint64_t shown = p->default_type ? p->default_type : p->types.at[p->types.count - 1].type;
  fact(r, "default_source", (uint32_t)shown);
  fact(r, "pprof.drop_frames", (uint32_t)p->drop_frames);
  fact(r, "pprof.keep_frames", (uint32_t)p->keep_frames);
  if (p->time_ns > 0 || p->duration_ns > 0)
    mic_writer_clocks(p->w, &(struct mic_clocks_row){
                              .realtime_ns = p->time_ns > 0 ? (uint64_t)p->time_ns : 0,
                              .duration_ns = p->duration_ns > 0 ? (uint64_t)p->duration_ns : 0,
                            });
}

static void put_sources(struct reading *r) {
  r->sources = mic_alloc(r->p.types.count * sizeof *r->sources);
  for (size_t i = 0; i < r->p.types.count; i++) {
    const struct mic_pprof_type *type = &r->p.types.at[i];
    uint64_t name_size, size;
    const char *name = mic_writer_bytes_of(r->p.w, (uint32_t)type->type, &name_size);
    const char *word = mic_writer_bytes_of(r->p.w, (uint32_t)type->unit, &size);
    uint32_t unit = mic_build_unit(name, name_size, word, size);
    bool periodic =
      r->p.period > 0 && type->type == r->p.period_type.type && type->unit == r->p.period_type.unit;
    /* A row of its own for each type, also where two are named the same. */
    bool own_word = unit == MIC_UNIT_OTHER || is(r, type->unit, "ns");
    struct mic_sources_row row = {
      .name = (uint32_t)type->type,
      .unit = (uint8_t)unit,
      .period = periodic ? (uint64_t)r->p.period : 0,
      .unit_name = own_word ? (uint32_t)type->unit : 0,
    };
    r->sources[i] = mic_writer_sources(r->p.w, &row);
  }
}

static uint32_t process_unknown(struct reading *r) { return mic_build_process(r->build, 0, 0); }

static bool is_anonymous(const struct reading *r, const struct mic_pprof_mapping *m) {
  uint64_t size;
  const char *file = mic_writer_bytes_of(r->p.w, (uint32_t)m->file, &size);
  return (size == 0 && m->build_id == 0) || (size >= 6 && memcmp(file, "//anon", 6) == 0);
}

static void put_mappings(struct reading *r) {
  r->modules = mic_alloc((r->p.mappings.count + 1) * sizeof *r->modules);
  for (size_t i = 0; i < r->p.mappings.count; i++) {
    const struct mic_pprof_mapping *m = &r->p.mappings.at[i];
    r->modules[i] = MIC_NONE;
    if (is_anonymous(r, m)) continue;
    r->modules[i] = mic_build_module(r->build, (uint32_t)m->file, (uint32_t)m->build_id);
    if (r->ours && m->start == 0) continue; /* made up to have addresses of the file */
    mic_writer_mappings(r->p.w, &(struct mic_mappings_row){
                                  .process = process_unknown(r),
                                  .module = r->modules[i],
                                  .address = m->start,
                                  .size = m->limit - m->start,
                                  .file_offset = m->file_offset,
                                  .end_ns = UINT64_MAX,
                                });
  }
}

/* --- locations ----------------------------------------------------------------------------- */

static const struct mic_pprof_function *first_function(const struct reading *r,
                                                       const struct mic_pprof_location *l) {
  return l->line_count ? &r->p.functions.at[r->p.lines.at[l->first_line].function] : NULL;
}

/* Where a location is, as far as the file proves it. */
static struct mic_locations_row place_row(const struct reading *r,
                                          const struct mic_pprof_location *l) {
  const struct mic_pprof_function *named = first_function(r, l);
  const struct mic_pprof_mapping *m = l->mapping ? &r->p.mappings.at[l->mapping - 1] : NULL;
  struct mic_locations_row row = {
    .kind = MIC_LOCATION_UNMAPPED, .module = MIC_NONE, .offset = l->address};
  uint32_t module = m ? r->modules[l->mapping - 1] : MIC_NONE;
  bool within = m && l->address >= m->start && l->address < m->limit;
  if (module != MIC_NONE && within && (!r->ours || l->address)) {
    row.module = module;
    row.kind = r->ours && m->start == 0 ? MIC_LOCATION_NATIVE : MIC_LOCATION_FILE;
    if (row.kind == MIC_LOCATION_FILE) row.offset = l->address - m->start + m->file_offset;
  } else if (l->line_count && (!l->address || module != MIC_NONE)) {
    row.kind = MIC_LOCATION_NAMED;
    row.module = module;
    row.offset = named->name;
  } else if (m && module == MIC_NONE && l->address) {
    row.kind = MIC_LOCATION_ANON;
  }
  return row;
}

static uint32_t line_number(int64_t line) {
  return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static void put_lines(struct reading *r, const struct mic_pprof_location *l, uint32_t location,
                      uint32_t module) {
  for (size_t i = 0; i < l->line_count; i++) {
    const struct mic_pprof_line *line = &r->p.lines.at[l->first_line + i];
    const struct mic_pprof_function *f = &r->p.functions.at[line->function];
    uint32_t file = f->file ? mic_build_file(r->build, (uint32_t)f->file) : MIC_NONE;
    uint32_t linkage = (uint32_t)(f->system_name ? f->system_name : f->name);
    uint32_t function = mic_build_function(r->build, (uint32_t)f->name, linkage, module, file,
                                           line_number(f->start_line));
    mic_writer_lines(r->p.w, &(struct mic_lines_row){
                               .location = location,
                               .function = function,
                               .file = file,
                               .line = line_number(line->line),
                               .depth = (uint32_t)i,
                             });
  }
}

static uint32_t place_of(struct reading *r, size_t index) {
  if (r->places[index] != MIC_NONE) return r->places[index];
  const struct mic_pprof_location *l = &r->p.locations.at[index];
  const struct mic_pprof_function *named = first_function(r, l);
  struct mic_locations_row row = place_row(r, l);
  bool signal = r->ours && l->line_count == 1 && is(r, named->name, "[signal]");
  if (signal) row.kind = MIC_LOCATION_SIGNAL;
  uint32_t place = mic_writer_locations(r->p.w, &row);
  if (!signal) put_lines(r, l, place, row.module);
  return r->places[index] = place;
}

/* Locations that stand for why a stack ends: a name in brackets and nothing else. */
static void find_ends(struct reading *r) {
  size_t count = r->p.locations.count;
  r->places = mic_alloc((count + 1) * sizeof *r->places);
  memset(r->places, 0xff, (count + 1) * sizeof *r->places);
  r->ends = mic_alloc(count + 1);
  for (size_t i = 0; i < count; i++) {
    const struct mic_pprof_location *l = &r->p.locations.at[i];
    if (l->line_count != 1 || l->address || l->mapping) continue;
    uint64_t size;
    const char *name = mic_writer_bytes_of(r->p.w, (uint32_t)first_function(r, l)->name, &size);
    r->ends[i] = (uint8_t)mic_build_end(name, size);
  }
}

/* --- samples ------------------------------------------------------------------------------- */

static int bad_sample(const struct reading *r, const char *what) {
  return mic_pprof_bad(&r->p, r->p.wire.offset, "sample %llu: %s",
                       (unsigned long long)r->result->samples, what);
}

static bool take_label(struct reading *r, struct mic_cursor *m) {
  struct mic_wire_field f;
  struct label label = {.key = 0};
  while (mic_wire_next(m, &f)) {
    switch (f.number) {
    case 1: label.key = f.value; break;
    case 2: label.str = f.value; break;
    case 3: label.num = f.value; break;
    case 4: label.unit = f.value; break;
    default: break;
    }
  }
  *mic_vec_push(&r->labels) = label;
  return !m->bad;
}

static int take_sample(struct reading *r, struct mic_cursor *m) {
  struct mic_wire_field f;
  uint64_t value;
  r->stack.count = r->values.count = r->labels.count = 0;
  while (mic_wire_next(m, &f)) {
    if (f.number == 1)
      while (mic_wire_packed(&f, &value)) *mic_vec_push(&r->stack) = value;
    else if (f.number == 2)
      while (mic_wire_packed(&f, &value)) *mic_vec_push(&r->values) = (int64_t)value;
    else if (f.number == 3 && (f.kind != MIC_WIRE_BYTES || !take_label(r, &f.bytes)))
      m->bad = true;
    if (f.bytes.bad) m->bad = true;
  }
  if (m->bad) return bad_sample(r, "it is malformed");
  if (r->values.count != r->p.types.count) {
    char what[96];
    snprintf(what, sizeof what, "it has %zu values, the profile has %zu types", r->values.count,
             r->p.types.count);
    return bad_sample(r, what);
  }
  return 0;
}

/* The node of the stack, whose frames come innermost first. */
static int stack_node(struct reading *r, uint32_t *node) {
  size_t at = r->stack.count;
  uint32_t end = r->whole ? MIC_END_OUTERMOST : MIC_END_NOT_STATED;
  for (size_t i = 0; i < at; i++) {
    uint32_t index = mic_map_get(&r->p.location_by_id, r->stack.at[i], 0);
    if (index == MIC_NONE) {
      char what[64];
      snprintf(what, sizeof what, "there is no location %llu", (unsigned long long)r->stack.at[i]);
      return bad_sample(r, what);
    }
    r->stack.at[i] = index;
  }
  if (at && r->ends[r->stack.at[at - 1]]) end = r->ends[r->stack.at[--at]];
  *node = mic_build_root(r->build, end);
  while (at--) *node = mic_build_node(r->build, *node, place_of(r, r->stack.at[at]));
  return 0;
}

/* Our own labels of threads; each is taken once, as a program may have labels of these names. */
static bool is_of_thread(struct reading *r, const struct label *label, uint32_t *said,
                         uint32_t ids[4]) {
  static const char *const keys[] = {"thread", "tid", "process", "pid"};
  for (uint32_t i = 0; i < 4; i++) {
    if (*said >> i & 1 || !is(r, label->key, keys[i])) continue;
    *said |= 1U << i;
    ids[i] = (uint32_t)(i % 2 ? label->num : label->str);
    return true;
  }
  return false;
}

static int sort_labels(struct reading *r, uint32_t *thread) {
  uint32_t said = 0, ids[4] = {0};
  r->label_rows.count = 0;
  for (size_t i = 0; i < r->labels.count; i++) {
    struct label *l = &r->labels.at[i];
    uint32_t key, str, unit;
    if (!mic_pprof_string(&r->p, l->key, &key) || !mic_pprof_string(&r->p, l->str, &str) ||
        !mic_pprof_string(&r->p, l->unit, &unit))
      return bad_sample(r, "a label names a string that the profile does not have");
    bool text = l->str != 0;
    *l = (struct label){key, str, l->num, unit};
    if (r->ours && is_of_thread(r, l, &said, ids)) continue;
    *mic_vec_push(&r->label_rows) =
      text ? mic_build_label(r->build, key, MIC_LABEL_TEXT, str, 0, 0)
           : mic_build_label(r->build, key, MIC_LABEL_NUMBER, 0, l->num, unit);
  }
  /* What is not said is 0 and "". */
  *thread = mic_build_thread(r->build, mic_build_process(r->build, ids[3], ids[2]), ids[1], ids[0]);
  return 0;
}

static int put_values(struct reading *r, uint32_t thread, uint32_t node) {
  bool any = false;
  for (size_t i = 0; i < r->values.count; i++) {
    int64_t value = r->values.at[i];
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
    for (size_t k = 0; k < r->label_rows.count; k++)
      mic_writer_sample_labels(r->p.w,
                               &(struct mic_sample_labels_row){sample, r->label_rows.at[k]});
  }
  r->result->zero_samples += !any;
  return 0;
}

static int put_sample(struct reading *r, struct mic_cursor *m) {
  uint32_t node = 0, thread = 0;
  r->result->samples++;
  int code = take_sample(r, m);
  if (!code) code = stack_node(r, &node);
  if (!code) code = sort_labels(r, &thread);
  return code ? code : put_values(r, thread, node);
}

static int put_samples(struct reading *r) {
  struct mic_wire_field field;
  bool more;
  uint64_t others = ~0ULL ^ 1U << MIC_PPROF_SAMPLE;
  int code = mic_wire_rewind(&r->p.wire, r->p.err);
  while (!code) {
    code = mic_wire_read(&r->p.wire, others, &field, &more, r->p.err);
    if (code || !more) break;
    if (field.number != MIC_PPROF_SAMPLE) continue;
    code =
      field.kind == MIC_WIRE_BYTES ? put_sample(r, &field.bytes) : bad_sample(r, "it is malformed");
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
  mic_vec_free(&r->stack);
  mic_vec_free(&r->values);
  mic_vec_free(&r->labels);
  mic_vec_free(&r->label_rows);
}

MIC_EXPORT int mic_pprof_read(struct mic_input *input, struct mic_writer *writer,
                              struct mic_pprof_result *result, struct mic_error *err) {
  struct mic_error unseen;
  struct reading r = {
    .p = {.wire = {.input = input}, .w = writer, .err = err ? err : &unseen},
    .build = mic_build_new(writer),
    .result = result,
  };
  *result = (struct mic_pprof_result){.samples = 0};
  int code = mic_pprof_records(&r.p);
  if (!code) {
    result->types = (uint32_t)r.p.types.count;
    find_ours(&r);
    put_facts(&r);
    put_sources(&r);
    put_mappings(&r);
    find_ends(&r);
    code = put_samples(&r);
  }
  release(&r);
  return code;
}
