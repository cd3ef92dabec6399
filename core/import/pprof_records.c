/* pprof_records.c - a profile's types, mappings, functions, locations and strings. */
#include <stdio.h>
#include <string.h>

#include "import/pprof_inside.h"

/* What is kept in memory between the readings; a profile of a large program has some MiB. */
#define HELD_MAX (1ULL << 30)

int mic_pprof_bad(const struct mic_pprof *p, uint64_t offset, const char *fmt, ...) {
  char what[160];
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  return mic_fail_at(p->err, offset, "%.60s: byte %llu: %s", mic_input_name(p->wire.input),
                     (unsigned long long)offset, what);
}

bool mic_pprof_string(const struct mic_pprof *p, uint64_t index, uint32_t *id) {
  if (index >= p->strings.count) return false;
  *id = p->strings.at[index];
  return true;
}

static int malformed(const struct mic_pprof *p, const char *what) {
  return mic_pprof_bad(p, p->wire.offset, "%s: it is malformed", what);
}

static int check_held(const struct mic_pprof *p) {
  if (p->held <= HELD_MAX) return 0;
  return mic_fail(p->err, MIC_ELIMIT, "%.120s: more than 1 GiB of names and places",
                  mic_input_name(p->wire.input));
}

static int take_type(struct mic_pprof *p, struct mic_cursor *m, struct mic_pprof_type *type) {
  struct mic_wire_field f;
  *type = (struct mic_pprof_type){.type = 0};
  while (mic_wire_next(m, &f)) {
    if (f.number == 1) type->type = f.value;
    if (f.number == 2) type->unit = f.value;
  }
  return m->bad ? malformed(p, "a type") : 0;
}

static int take_mapping(struct mic_pprof *p, struct mic_cursor *m) {
  struct mic_wire_field f;
  struct mic_pprof_mapping mapping = {.offset = p->wire.offset};
  while (mic_wire_next(m, &f)) {
    switch (f.number) {
    case 1: mapping.id = f.value; break;
    case 2: mapping.start = f.value; break;
    case 3: mapping.limit = f.value; break;
    case 4: mapping.file_offset = f.value; break;
    case 5: mapping.file = f.value; break;
    case 6: mapping.build_id = f.value; break;
    default: break;
    }
  }
  if (m->bad) return malformed(p, "a mapping");
  *mic_vec_push(&p->mappings) = mapping;
  return 0;
}

static int take_function(struct mic_pprof *p, struct mic_cursor *m) {
  struct mic_wire_field f;
  struct mic_pprof_function function = {.offset = p->wire.offset};
  while (mic_wire_next(m, &f)) {
    switch (f.number) {
    case 1: function.id = f.value; break;
    case 2: function.name = f.value; break;
    case 3: function.system_name = f.value; break;
    case 4: function.file = f.value; break;
    case 5: function.start_line = (int64_t)f.value; break;
    default: break;
    }
  }
  if (m->bad) return malformed(p, "a function");
  *mic_vec_push(&p->functions) = function;
  return 0;
}

static bool take_line(struct mic_pprof *p, struct mic_cursor *m) {
  struct mic_wire_field f;
  struct mic_pprof_line line = {.function = 0};
  while (mic_wire_next(m, &f)) {
    if (f.number == 1) line.function = f.value;
    if (f.number == 2) line.line = (int64_t)f.value;
  }
  *mic_vec_push(&p->lines) = line;
  p->held += sizeof line;
  return !m->bad;
}

static int take_location(struct mic_pprof *p, struct mic_cursor *m) {
  struct mic_wire_field f;
  struct mic_pprof_location location = {.offset = p->wire.offset, .first_line = p->lines.count};
  while (mic_wire_next(m, &f)) {
    switch (f.number) {
    case 1: location.id = f.value; break;
    case 2: location.mapping = f.value; break;
    case 3: location.address = f.value; break;
    case 4:
      if (f.kind != MIC_WIRE_BYTES || !take_line(p, &f.bytes)) m->bad = true;
      break;
    default: break;
    }
  }
  if (m->bad) return malformed(p, "a location");
  location.line_count = p->lines.count - location.first_line;
  *mic_vec_push(&p->locations) = location;
  return 0;
}

static int take_number(struct mic_pprof *p, struct mic_wire_field *f) {
  uint64_t value;
  switch (f->number) {
  case MIC_PPROF_DROP_FRAMES: p->drop_frames = f->value; break;
  case MIC_PPROF_KEEP_FRAMES: p->keep_frames = f->value; break;
  case MIC_PPROF_TIME: p->time_ns = (int64_t)f->value; break;
  case MIC_PPROF_DURATION: p->duration_ns = (int64_t)f->value; break;
  case MIC_PPROF_PERIOD: p->period = (int64_t)f->value; break;
  case MIC_PPROF_DEFAULT_TYPE: p->default_type = f->value; break;
  case MIC_PPROF_COMMENT:
    while (mic_wire_packed(f, &value)) {
      *mic_vec_push(&p->comments) = value;
      p->held += sizeof value;
    }
    return check_held(p);
  default: break;
  }
  return 0;
}

static int take(struct mic_pprof *p, struct mic_wire_field *f) {
  bool message = f->number == MIC_PPROF_PERIOD_TYPE || f->number <= MIC_PPROF_STRING;
  if (!message) return take_number(p, f);
  if (f->kind != MIC_WIRE_BYTES) return malformed(p, "a record");
  p->held += mic_cursor_left(&f->bytes) + sizeof(struct mic_pprof_location);
  int code = check_held(p);
  if (code) return code;
  switch (f->number) {
  case MIC_PPROF_SAMPLE_TYPE: return take_type(p, &f->bytes, mic_vec_push(&p->types));
  case MIC_PPROF_PERIOD_TYPE: return take_type(p, &f->bytes, &p->period_type);
  case MIC_PPROF_MAPPING: return take_mapping(p, &f->bytes);
  case MIC_PPROF_FUNCTION: return take_function(p, &f->bytes);
  case MIC_PPROF_LOCATION: return take_location(p, &f->bytes);
  default: /* MIC_PPROF_STRING */
    if (!p->strings.count && mic_cursor_left(&f->bytes))
      return mic_pprof_bad(p, p->wire.offset, "the first string is not the empty one");
    *mic_vec_push(&p->strings) =
      mic_writer_string(p->w, (const char *)f->bytes.at, mic_cursor_left(&f->bytes));
    return 0;
  }
}

/* --- checks: after them every index is one ------------------------------------------------ */

static int check_string(const struct mic_pprof *p, uint64_t *text, uint64_t offset,
                        const char *whose) {
  uint32_t id;
  if (!mic_pprof_string(p, *text, &id))
    return mic_pprof_bad(p, offset, "%s: it names string %llu, the profile has %zu", whose,
                         (unsigned long long)*text, p->strings.count);
  *text = id;
  return 0;
}

/* An id that is new in a map from ids to indexes. */
static int check_id(const struct mic_pprof *p, struct mic_map *map, uint64_t id, size_t index,
                    uint64_t offset, const char *what) {
  bool added;
  if (!id) return mic_pprof_bad(p, offset, "a %s with the id 0", what);
  mic_map_intern(map, id, 0, (uint32_t)index, &added);
  if (!added)
    return mic_pprof_bad(p, offset, "%s %llu is there twice", what, (unsigned long long)id);
  return 0;
}

static int check_types(struct mic_pprof *p) {
  int code = 0;
  for (size_t i = 0; i < p->types.count && !code; i++) {
    code = check_string(p, &p->types.at[i].type, 0, "a sample type");
    if (!code) code = check_string(p, &p->types.at[i].unit, 0, "a sample type");
  }
  if (!code) code = check_string(p, &p->period_type.type, 0, "the period's type");
  if (!code) code = check_string(p, &p->period_type.unit, 0, "the period's type");
  if (!code) code = check_string(p, &p->drop_frames, 0, "drop_frames");
  if (!code) code = check_string(p, &p->keep_frames, 0, "keep_frames");
  if (!code) code = check_string(p, &p->default_type, 0, "the default sample type");
  for (size_t i = 0; i < p->comments.count && !code; i++)
    code = check_string(p, &p->comments.at[i], 0, "a comment");
  return code;
}

static int check_mappings(struct mic_pprof *p, struct mic_map *by_id) {
  int code = 0;
  for (size_t i = 0; i < p->mappings.count && !code; i++) {
    struct mic_pprof_mapping *m = &p->mappings.at[i];
    code = check_id(p, by_id, m->id, i, m->offset, "mapping");
    if (!code) code = check_string(p, &m->file, m->offset, "a mapping");
    if (!code) code = check_string(p, &m->build_id, m->offset, "a mapping");
    if (!code && m->limit < m->start)
      code = mic_pprof_bad(p, m->offset, "mapping %llu ends before its start",
                           (unsigned long long)m->id);
  }
  return code;
}

static int check_functions(struct mic_pprof *p, struct mic_map *by_id) {
  int code = 0;
  for (size_t i = 0; i < p->functions.count && !code; i++) {
    struct mic_pprof_function *f = &p->functions.at[i];
    code = check_id(p, by_id, f->id, i, f->offset, "function");
    if (!code) code = check_string(p, &f->name, f->offset, "a function");
    if (!code) code = check_string(p, &f->system_name, f->offset, "a function");
    if (!code) code = check_string(p, &f->file, f->offset, "a function");
  }
  return code;
}

static int check_locations(struct mic_pprof *p, const struct mic_map *mappings,
                           const struct mic_map *functions) {
  for (size_t i = 0; i < p->locations.count; i++) {
    struct mic_pprof_location *l = &p->locations.at[i];
    int code = check_id(p, &p->location_by_id, l->id, i, l->offset, "location");
    if (code) return code;
    if (l->mapping) {
      uint32_t mapping = mic_map_get(mappings, l->mapping, 0);
      if (mapping == MIC_NONE)
        return mic_pprof_bad(p, l->offset, "location %llu: there is no mapping %llu",
                             (unsigned long long)l->id, (unsigned long long)l->mapping);
      l->mapping = mapping + 1;
    }
    for (size_t k = 0; k < l->line_count; k++) {
      struct mic_pprof_line *line = &p->lines.at[l->first_line + k];
      uint32_t function = mic_map_get(functions, line->function, 0);
      if (function == MIC_NONE)
        return mic_pprof_bad(p, l->offset, "location %llu: there is no function %llu",
                             (unsigned long long)l->id, (unsigned long long)line->function);
      line->function = function;
    }
  }
  return 0;
}

static int check(struct mic_pprof *p) {
  struct mic_map mappings = {0}, functions = {0};
  if (!p->strings.count) return mic_pprof_bad(p, 0, "it has no strings: it is no pprof profile");
  if (!p->types.count) return mic_pprof_bad(p, 0, "it has no sample types");
  if (p->types.count > UINT8_MAX)
    return mic_pprof_bad(p, 0, "more than %d sample types", UINT8_MAX);
  int code = check_types(p);
  if (!code) code = check_mappings(p, &mappings);
  if (!code) code = check_functions(p, &functions);
  if (!code) code = check_locations(p, &mappings, &functions);
  mic_map_free(&mappings);
  mic_map_free(&functions);
  return code;
}

int mic_pprof_records(struct mic_pprof *p) {
  struct mic_wire_field field;
  bool more;
  int code;
  while (!(code = mic_wire_read(&p->wire, 1U << MIC_PPROF_SAMPLE, &field, &more, p->err)) && more)
    if ((code = take(p, &field)) != 0) return code;
  return code ? code : check(p);
}

void mic_pprof_free(struct mic_pprof *p) {
  mic_wire_free(&p->wire);
  mic_vec_free(&p->strings);
  mic_vec_free(&p->types);
  mic_vec_free(&p->mappings);
  mic_vec_free(&p->functions);
  mic_vec_free(&p->locations);
  mic_vec_free(&p->lines);
  mic_vec_free(&p->comments);
  mic_map_free(&p->location_by_id);
}
