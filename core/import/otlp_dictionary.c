/* otlp_dictionary.c - the tables that profiles share. */
#include <string.h>

#include "import/otlp_inside.h"

enum { MAPPINGS = 1, LOCATIONS = 2, FUNCTIONS = 3, STRINGS = 5, ATTRIBUTES = 6, STACKS = 7 };
enum { NUMBERS = 8 }; /* fields of entries that are numbers have numbers below */

int mic_otlp_bad(const struct mic_otlp *p, uint64_t offset, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int code = mic_wire_bad_record(&p->wire, offset, p->err, fmt, args);
  va_end(args);
  return code;
}

void mic_otlp_free(struct mic_otlp *p) {
  mic_wire_free(&p->wire);
  mic_vec_free(&p->strings);
  mic_vec_free(&p->mappings);
  mic_vec_free(&p->locations);
  mic_vec_free(&p->lines);
  mic_vec_free(&p->functions);
  mic_vec_free(&p->attributes);
  mic_vec_free(&p->stacks);
  mic_vec_free(&p->indexes);
}

/* --- entries ------------------------------------------------------------------------------- */

/* A repeated number's values as indexes, behind those of the run. */
static int take_indexes(struct mic_otlp *p, struct mic_wire_field *f, struct mic_otlp_run *run) {
  uint64_t value;
  bool more;
  int code;
  while (!(code = mic_wire_packed(&p->wire, f, &value, &more, p->err)) && more) {
    *mic_vec_push(&p->indexes) = mic_wire_index(value);
    run->count++;
    code = mic_wire_hold(&p->wire, sizeof *p->indexes.at, p->err);
    if (code) return code;
  }
  return code;
}

/* The numbers of an entry by their fields, and its one list of indexes. */
static int take_numbers(struct mic_otlp *p, uint32_t list, struct mic_otlp_run *run,
                        uint64_t numbers[NUMBERS]) {
  struct mic_wire_field f;
  bool more;
  int code;
  memset(numbers, 0, NUMBERS * sizeof *numbers);
  if (run) *run = (struct mic_otlp_run){(uint32_t)p->indexes.count, 0};
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    if (run && f.number == list) {
      code = take_indexes(p, &f, run);
      if (code) break;
    } else if (f.number < NUMBERS && f.kind != MIC_WIRE_BYTES) {
      numbers[f.number] = f.value;
    }
  }
  mic_wire_leave(&p->wire, outer);
  return code;
}

static int take_mapping(struct mic_otlp *p) {
  uint64_t n[NUMBERS];
  struct mic_otlp_mapping *mapping = mic_vec_push(&p->mappings);
  *mapping = (struct mic_otlp_mapping){.start = 0};
  int code = take_numbers(p, 5, &mapping->attributes, n);
  mapping->start = n[1];
  mapping->limit = n[2];
  mapping->offset = n[3];
  mapping->file = mic_wire_index(n[4]);
  return code ? code : mic_wire_hold(&p->wire, sizeof *mapping, p->err);
}

static uint32_t line_number(uint64_t line) { return line <= UINT32_MAX ? (uint32_t)line : 0; }

static int take_function(struct mic_otlp *p) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, 0, NULL, n);
  *mic_vec_push(&p->functions) = (struct mic_otlp_function){
    mic_wire_index(n[1]), mic_wire_index(n[2]), mic_wire_index(n[3]), line_number(n[4])};
  return code ? code : mic_wire_hold(&p->wire, sizeof *p->functions.at, p->err);
}

static int take_line(struct mic_otlp *p) {
  uint64_t n[NUMBERS];
  int code = take_numbers(p, 0, NULL, n);
  *mic_vec_push(&p->lines) = (struct mic_otlp_line){mic_wire_index(n[1]), line_number(n[2])};
  return code ? code : mic_wire_hold(&p->wire, sizeof *p->lines.at, p->err);
}

static int take_location(struct mic_otlp *p) {
  struct mic_otlp_location location = {.lines = {(uint32_t)p->lines.count, 0}};
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    if (f.number == 1) location.mapping = mic_wire_index(f.value);
    if (f.number == 2) location.address = f.value;
    if (f.number != 3 || f.kind != MIC_WIRE_BYTES) continue;
    code = take_line(p);
    location.lines.count++;
    if (code) break;
  }
  mic_wire_leave(&p->wire, outer);
  *mic_vec_push(&p->locations) = location;
  return code ? code : mic_wire_hold(&p->wire, sizeof location, p->err);
}

static int take_stack(struct mic_otlp *p) {
  uint64_t n[NUMBERS];
  struct mic_otlp_run run;
  int code = take_numbers(p, 1, &run, n);
  *mic_vec_push(&p->stacks) = run;
  return code ? code : mic_wire_hold(&p->wire, sizeof run, p->err);
}

/* --- attributes ---------------------------------------------------------------------------- */

static int take_text(struct mic_otlp *p, const struct mic_wire_field *f, uint32_t *id) {
  const char *text;
  int code = mic_wire_text(&p->wire, f, &text, p->err);
  if (!code) *id = mic_writer_string(p->w, text, f->value);
  return code ? code : mic_wire_hold(&p->wire, f->value, p->err);
}

/* common.v1.AnyValue */
static int take_value(struct mic_otlp *p, struct mic_otlp_attribute *out) {
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    bool bytes = f.kind == MIC_WIRE_BYTES;
    out->kind = MIC_OTLP_OTHER;
    if (f.number == 1 && bytes) {
      out->kind = MIC_LABEL_TEXT;
      code = take_text(p, &f, &out->text);
      if (code) break;
    } else if (f.number == 2 && !bytes) {
      out->kind = MIC_LABEL_TEXT;
      out->text = mic_writer_text(p->w, f.value ? "true" : "false");
    } else if (f.number == 3 && !bytes) {
      out->kind = MIC_LABEL_NUMBER;
      out->number = f.value;
    } else if (f.number == 8 && !bytes) {
      out->kind = MIC_LABEL_TEXT;
      out->indexed = mic_wire_index(f.value);
      out->indexed += out->indexed != MIC_NONE;
    }
  }
  mic_wire_leave(&p->wire, outer);
  return code;
}

int mic_otlp_attribute(struct mic_otlp *p, bool in_table, struct mic_otlp_attribute *out) {
  struct mic_wire_field f;
  bool more;
  int code;
  *out = (struct mic_otlp_attribute){.kind = MIC_OTLP_OTHER};
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    bool bytes = f.kind == MIC_WIRE_BYTES;
    if (f.number == 1 && bytes && !in_table) code = take_text(p, &f, &out->own_key);
    if (f.number == (in_table ? 1 : 3) && !bytes) out->key = mic_wire_index(f.value);
    if (f.number == 3 && !bytes && in_table) out->unit = mic_wire_index(f.value);
    if (f.number == 2 && bytes) code = take_value(p, out);
    if (code) break;
  }
  mic_wire_leave(&p->wire, outer);
  return code;
}

/* --- the tables ---------------------------------------------------------------------------- */

static int take_entry(struct mic_otlp *p, const struct mic_wire_field *f) {
  uint32_t id = 0;
  int code = 0;
  switch (f->number) {
  case MAPPINGS: return take_mapping(p);
  case LOCATIONS: return take_location(p);
  case FUNCTIONS: return take_function(p);
  case STACKS: return take_stack(p);
  case STRINGS:
    code = take_text(p, f, &id);
    *mic_vec_push(&p->strings) = id;
    return code ? code : mic_wire_hold(&p->wire, sizeof id, p->err);
  case ATTRIBUTES:
    code = mic_otlp_attribute(p, true, mic_vec_push(&p->attributes));
    return code ? code : mic_wire_hold(&p->wire, sizeof *p->attributes.at, p->err);
  default: return 0;
  }
}

int mic_otlp_dictionary(struct mic_otlp *p) {
  struct mic_wire_field f;
  bool more;
  int code;
  uint64_t outer = mic_wire_enter(&p->wire);
  while (!(code = mic_wire_next(&p->wire, &f, &more, p->err)) && more) {
    if (f.number <= STACKS && f.kind != MIC_WIRE_BYTES)
      code = mic_otlp_bad(p, f.offset, "an entry of the dictionary: it is malformed");
    else if (f.kind == MIC_WIRE_BYTES)
      code = take_entry(p, &f);
    if (code) break;
  }
  mic_wire_leave(&p->wire, outer);
  return code;
}
