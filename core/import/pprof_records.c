/* pprof_records.c - a profile's types, mappings, functions, locations and strings. */
#include <string.h>

#include "import/pprof_inside.h"

int mic_pprof_bad(const struct mic_pprof *p, uint64_t offset, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int code = mic_wire_bad_record(&p->wire, offset, p->err, fmt, args);
  va_end(args);
  return code;
}

bool mic_pprof_string(const struct mic_pprof *p, uint64_t index, uint32_t *id) {
  if (index >= p->string_count) return false;
  *id = p->strings.count ? p->strings.at[index] : (uint32_t)index;
  return true;
}

/* Bytes within a record that make no message, or what kept them from being read. */
static int broken(struct mic_pprof *p, int code, uint64_t offset, const char *what) {
  return p->wire.malformed ? mic_pprof_bad(p, offset, "%s: it is malformed", what) : code;
}

/* --- records ------------------------------------------------------------------------------- */

enum { NUMBERS = 8 }; /* the fields of a record that are numbers have numbers below */

/* The numbers of a message by their fields; those that are not there are 0. */
static int take_numbers(struct mic_pprof *p, uint64_t offset, const char *what,
                        uint64_t numbers[NUMBERS]) {
  struct mic_wire_field f;
  bool more;
  int code;
  memset(numbers, 0, NUMBERS * sizeof *numbers);
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more)
    if (f.number < NUMBERS && f.kind != MIC_WIRE_BYTES) numbers[f.number] = f.value;
  mic_wire_leave(&p->wire, outer);
  return code ? broken(p, code, offset, what) : 0;
}

static int take_type(struct mic_pprof *p, uint64_t offset, struct mic_pprof_type *type) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, offset, "a type", n);
  *type = (struct mic_pprof_type){mic_wire_index(n[1]), mic_wire_index(n[2])};
  return code;
}

/* An id that is new. */
static int take_id(struct mic_pprof *p, struct mic_ids *ids, uint64_t id, uint64_t offset,
                   const char *what) {
  if (!id) return mic_pprof_bad(p, offset, "a %s with the id 0", what);
  if (!mic_ids_add(ids, id))
    return mic_pprof_bad(p, offset, "%s %llu is there twice", what, (unsigned long long)id);
  return 0;
}

static int take_mapping(struct mic_pprof *p, uint64_t offset) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, offset, "a mapping", n);
  if (!code) code = take_id(p, &p->mapping_ids, n[1], offset, "mapping");
  if (code) return code;
  if (n[3] < n[2])
    return mic_pprof_bad(p, offset, "mapping %llu ends before its start", (unsigned long long)n[1]);
  *mic_vec_push(&p->mappings) =
    (struct mic_pprof_mapping){n[2], n[3], n[4], mic_wire_index(n[5]), mic_wire_index(n[6])};
  return mic_wire_hold(&p->wire, sizeof *p->mappings.at, p->err);
}

/* 0 for a line that no table can hold; negative ones are among them. */
static uint32_t line_number(uint64_t line) { return line <= UINT32_MAX ? (uint32_t)line : 0; }

static int take_function(struct mic_pprof *p, uint64_t offset) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, offset, "a function", n);
  if (!code) code = take_id(p, &p->function_ids, n[1], offset, "function");
  if (code) return code;
  *mic_vec_push(&p->functions) = (struct mic_pprof_function){
    mic_wire_index(n[2]), mic_wire_index(n[3]), mic_wire_index(n[4]), line_number(n[5])};
  return mic_wire_hold(&p->wire, sizeof *p->functions.at, p->err);
}

static int take_line(struct mic_pprof *p, uint64_t offset) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, offset, "a location", n);
  *mic_vec_push(&p->lines) =
    (struct mic_pprof_line){{(uint32_t)n[1], (uint32_t)(n[1] >> 32)}, line_number(n[2])};
  return code ? code : mic_wire_hold(&p->wire, sizeof *p->lines.at, p->err);
}

/* The number of a mapping that a location names, + 1. */
static uint32_t want_mapping(struct mic_pprof *p, uint64_t id) {
  if (!id) return 0;
  uint32_t wanted = mic_ids_find(&p->wanted, id);
  if (wanted != MIC_NONE) return wanted + 1;
  mic_ids_add(&p->wanted, id);
  return p->wanted.count;
}

static int take_location_fields(struct mic_pprof *p, uint64_t offset, uint64_t *id,
                                struct mic_pprof_location *location) {
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t mapping = 0;
  size_t lines = p->lines.count;
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    bool number = f.kind != MIC_WIRE_BYTES;
    if (f.number == 1 && number) *id = f.value;
    if (f.number == 2 && number) mapping = f.value;
    if (f.number == 3 && number) {
      location->address[0] = (uint32_t)f.value;
      location->address[1] = (uint32_t)(f.value >> 32);
    }
    if (f.number != 4) continue;
    if (number) return mic_pprof_bad(p, offset, "a location: it is malformed");
    code = take_line(p, offset);
    if (code) return code;
  }
  if (p->lines.count - lines > UINT32_MAX)
    return mic_pprof_bad(p, offset, "a location of more than 2^32 lines");
  location->line_count = (uint32_t)(p->lines.count - lines);
  location->mapping = want_mapping(p, mapping);
  return code ? broken(p, code, offset, "a location") : 0;
}

static int take_location(struct mic_pprof *p, uint64_t offset) {
  struct mic_pprof_location location = {.mapping = 0};
  uint64_t id = 0, outer = mic_wire_enter(&p->wire);
  int code = take_location_fields(p, offset, &id, &location);
  mic_wire_leave(&p->wire, outer);
  if (!code) code = take_id(p, &p->location_ids, id, offset, "location");
  if (code) return code;
  *mic_vec_push(&p->locations) = location;
  return mic_wire_hold(&p->wire, sizeof location, p->err);
}

static int take_string(struct mic_pprof *p, const struct mic_wire_field *f) {
  const char *text;
  int code = mic_wire_text(&p->wire, f, &text, p->err);
  if (code) return code;
  if (!p->string_count && f->value)
    return mic_pprof_bad(p, f->offset, "the first string is not the empty one");
  if (p->string_count == MIC_NONE) return mic_pprof_bad(p, f->offset, "more than 2^32 strings");
  uint32_t id = mic_writer_string(p->w, text, f->value);
  /* Most profiles have each string once, as the writer does. */
  if (!p->strings.count && id != p->string_count)
    for (uint32_t i = 0; i < p->string_count; i++) *mic_vec_push(&p->strings) = i;
  if (p->strings.count || id != p->string_count) *mic_vec_push(&p->strings) = id;
  p->string_count++;
  return mic_wire_hold(&p->wire, f->value + sizeof id, p->err);
}

static int take_comments(struct mic_pprof *p, struct mic_wire_field *f) {
  uint64_t value, offset = f->offset;
  bool more;
  int code;
  while (!(code = mic_wire_packed(&p->wire, f, &value, &more, p->err)) && more) {
    *mic_vec_push(&p->comments) = mic_wire_index(value);
    code = mic_wire_hold(&p->wire, sizeof *p->comments.at, p->err);
    if (code) return code;
  }
  return code ? broken(p, code, offset, "a comment") : 0;
}

static void take_number(struct mic_pprof *p, const struct mic_wire_field *f) {
  switch (f->number) {
  case MIC_PPROF_DROP_FRAMES: p->drop_frames = mic_wire_index(f->value); break;
  case MIC_PPROF_KEEP_FRAMES: p->keep_frames = mic_wire_index(f->value); break;
  case MIC_PPROF_TIME: p->time_ns = (int64_t)f->value; break;
  case MIC_PPROF_DURATION: p->duration_ns = (int64_t)f->value; break;
  case MIC_PPROF_PERIOD: p->period = (int64_t)f->value; break;
  case MIC_PPROF_DEFAULT_TYPE: p->default_type = mic_wire_index(f->value); break;
  default: break;
  }
}

static int take(struct mic_pprof *p, struct mic_wire_field *f) {
  bool message = f->number == MIC_PPROF_PERIOD_TYPE || f->number <= MIC_PPROF_STRING;
  if (message && f->kind != MIC_WIRE_BYTES)
    return mic_pprof_bad(p, f->offset, "a record: it is malformed");
  switch (f->number) {
  case MIC_PPROF_SAMPLE_TYPE: return take_type(p, f->offset, mic_vec_push(&p->types));
  case MIC_PPROF_PERIOD_TYPE: return take_type(p, f->offset, &p->period_type);
  case MIC_PPROF_MAPPING: return take_mapping(p, f->offset);
  case MIC_PPROF_FUNCTION: return take_function(p, f->offset);
  case MIC_PPROF_LOCATION: return take_location(p, f->offset);
  case MIC_PPROF_STRING: return take_string(p, f);
  case MIC_PPROF_COMMENT: return take_comments(p, f);
  default:
    if (f->kind != MIC_WIRE_BYTES) take_number(p, f);
    return 0;
  }
}

/* --- checks: after them every index is one ------------------------------------------------ */

/* Where the n-th record of a field begins: found again, as a place for each would cost as much as
 * the record. */
static uint64_t place_of(struct mic_pprof *p, uint32_t number, size_t n) {
  struct mic_wire_field field;
  struct mic_error unseen;
  bool more;
  if (mic_wire_rewind(&p->wire, &unseen) != 0) return 0;
  while (mic_wire_next(&p->wire, &field, &more, &unseen) == 0 && more)
    if (field.number == number && n-- == 0) return field.offset;
  return 0;
}

static int check_string(struct mic_pprof *p, uint32_t *text, uint32_t number, size_t n,
                        const char *whose) {
  uint32_t id;
  if (mic_pprof_string(p, *text, &id)) {
    *text = id;
    return 0;
  }
  uint64_t offset = number ? place_of(p, number, n) : 0;
  if (*text == MIC_NONE)
    return mic_pprof_bad(p, offset, "%s: it names a string past 2^32, the profile has %u", whose,
                         p->string_count);
  return mic_pprof_bad(p, offset, "%s: it names string %u, the profile has %u", whose, *text,
                       p->string_count);
}

static int check_types(struct mic_pprof *p) {
  int code = 0;
  for (size_t i = 0; i < p->types.count && !code; i++) {
    struct mic_pprof_type *type = &p->types.at[i];
    code = check_string(p, &type->type, MIC_PPROF_SAMPLE_TYPE, i, "a sample type");
    if (!code) code = check_string(p, &type->unit, MIC_PPROF_SAMPLE_TYPE, i, "a sample type");
  }
  if (!code) code = check_string(p, &p->period_type.type, 0, 0, "the period's type");
  if (!code) code = check_string(p, &p->period_type.unit, 0, 0, "the period's type");
  if (!code) code = check_string(p, &p->drop_frames, 0, 0, "drop_frames");
  if (!code) code = check_string(p, &p->keep_frames, 0, 0, "keep_frames");
  if (!code) code = check_string(p, &p->default_type, 0, 0, "the default sample type");
  for (size_t i = 0; i < p->comments.count && !code; i++)
    code = check_string(p, &p->comments.at[i], 0, 0, "a comment");
  return code;
}

static int check_mappings(struct mic_pprof *p) {
  int code = 0;
  for (size_t i = 0; i < p->mappings.count && !code; i++) {
    struct mic_pprof_mapping *m = &p->mappings.at[i];
    code = check_string(p, &m->file, MIC_PPROF_MAPPING, i, "a mapping");
    if (!code) code = check_string(p, &m->build_id, MIC_PPROF_MAPPING, i, "a mapping");
  }
  return code;
}

static int check_functions(struct mic_pprof *p) {
  int code = 0;
  for (size_t i = 0; i < p->functions.count && !code; i++) {
    struct mic_pprof_function *f = &p->functions.at[i];
    code = check_string(p, &f->name, MIC_PPROF_FUNCTION, i, "a function");
    if (!code) code = check_string(p, &f->system_name, MIC_PPROF_FUNCTION, i, "a function");
    if (!code) code = check_string(p, &f->file, MIC_PPROF_FUNCTION, i, "a function");
  }
  return code;
}

static int no_such(struct mic_pprof *p, uint32_t location, const char *what, uint64_t id) {
  return mic_pprof_bad(
    p, place_of(p, MIC_PPROF_LOCATION, location), "location %llu: there is no %s %llu",
    (unsigned long long)mic_ids_at(&p->location_ids, location), what, (unsigned long long)id);
}

static int check_locations(struct mic_pprof *p) {
  size_t at = 0;
  for (uint32_t i = 0; i < p->locations.count; i++) {
    struct mic_pprof_location *l = &p->locations.at[i];
    if (l->mapping) {
      uint64_t id = mic_ids_at(&p->wanted, l->mapping - 1);
      uint32_t mapping = mic_ids_find(&p->mapping_ids, id);
      if (mapping == MIC_NONE) return no_such(p, i, "mapping", id);
      l->mapping = mapping + 1;
    }
    for (uint32_t k = 0; k < l->line_count; k++) {
      struct mic_pprof_line *line = &p->lines.at[at++];
      uint64_t id = (uint64_t)line->function[1] << 32 | line->function[0];
      line->function[0] = mic_ids_find(&p->function_ids, id);
      if (line->function[0] == MIC_NONE) return no_such(p, i, "function", id);
    }
  }
  return 0;
}

static int check(struct mic_pprof *p) {
  if (!p->string_count) return mic_pprof_bad(p, 0, "it has no strings: it is no pprof profile");
  if (!p->types.count) return mic_pprof_bad(p, 0, "it has no sample types");
  if (p->types.count > UINT8_MAX)
    return mic_pprof_bad(p, 0, "more than %d sample types", UINT8_MAX);
  int code = check_types(p);
  if (!code) code = check_mappings(p);
  if (!code) code = check_functions(p);
  if (!code) code = check_locations(p);
  mic_ids_free(&p->function_ids);
  mic_ids_free(&p->mapping_ids);
  mic_ids_free(&p->wanted);
  return code;
}

int mic_pprof_records(struct mic_pprof *p) {
  struct mic_wire_field field;
  bool more;
  int code;
  while (!(code = mic_wire_next(&p->wire, &field, &more, p->err)) && more)
    if (field.number != MIC_PPROF_SAMPLE && (code = take(p, &field)) != 0) return code;
  return code ? code : check(p);
}

void mic_pprof_forget(struct mic_pprof *p) {
  mic_vec_free(&p->functions);
  mic_vec_free(&p->locations);
  mic_vec_free(&p->lines);
  mic_ids_free(&p->mapping_ids);
  mic_ids_free(&p->function_ids);
  mic_ids_free(&p->wanted);
}

void mic_pprof_free(struct mic_pprof *p) {
  mic_pprof_forget(p);
  mic_vec_free(&p->mappings);
  mic_wire_free(&p->wire);
  mic_vec_free(&p->strings);
  mic_vec_free(&p->types);
  mic_vec_free(&p->comments);
  mic_ids_free(&p->location_ids);
}
