/*
 * legacy_text.c - heap, goroutine and contention profiles as text.
 *
 *   heap profile: 149: 6021632 [149: 6021632] @ heap/8192
 *   147: 6021120 [147: 6021120] @ 0x4b4191 0x4b4375
 *   # 0x4b4190 main.alloc+0x50 /tmp/m.go:15
 *
 *   goroutine profile: total 6
 *   5 @ 0x4378b6 0x40619b
 *
 *   --- mutex:
 *   cycles/second=2596158328
 *   sampling period=1
 *   22879338 4 @ 0x4b4307 0x4b42b5
 *
 * The rules are those of `go tool pprof`: the first line tells the kind, every address is a return
 * address, and a heap profile that was sampled is scaled to what was allocated.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/legacy_inside.h"

enum kind { KIND_HEAP, KIND_COUNT, KIND_CONTENTION };

struct text {
  struct mic_legacy *r;
  enum kind kind;
  bool put;        /* the second reading */
  bool in_maps;    /* past "MAPPED_LIBRARIES:" */
  bool has_alloc;  /* a heap profile's second pair of numbers says something else */
  double rate;     /* of a heap profile's sampling; 0: it has all */
  uint64_t period; /* as the head says it */
  uint64_t cycles_per_second, contention_period;
  uint32_t sources[4];
  uint64_t block; /* the address of the names that were read last, + 1 */
};

struct place { /* in a line */
  const char *at, *end;
};

static void blanks(struct place *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) p->at++;
}

static bool is_next(struct place *p, const char *word) {
  size_t size = strlen(word);
  blanks(p);
  if ((size_t)(p->end - p->at) < size || memcmp(p->at, word, size) != 0) return false;
  p->at += size;
  return true;
}

static bool number(struct place *p, uint64_t *value) {
  blanks(p);
  const char *from = p->at;
  *value = 0;
  for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
    if (__builtin_mul_overflow(*value, 10, value) ||
        __builtin_add_overflow(*value, (uint64_t)(*p->at - '0'), value))
      return false;
  return p->at > from;
}

static bool address(struct place *p, uint64_t *value) {
  return is_next(p, "0x") && mic_legacy_hex(&p->at, p->end, value);
}

/* "COUNT: SIZE [COUNT: SIZE] @" */
static bool take_sizes(struct place *p, uint64_t out[4]) {
  return number(p, &out[0]) && is_next(p, ":") && number(p, &out[1]) && is_next(p, "[") &&
         number(p, &out[2]) && is_next(p, ":") && number(p, &out[3]) && is_next(p, "]") &&
         is_next(p, "@");
}

/* --- the head ------------------------------------------------------------------------------ */

static uint32_t source(struct text *t, const char *name, uint32_t unit, uint64_t period) {
  return mic_build_source(t->r->build, mic_writer_text(t->r->w, name), unit, period, 0);
}

/* Go says twice its rate, which is the mean of what lies between samples. */
static bool head_of_heap(struct text *t, struct place *p) {
  uint64_t sizes[4];
  t->kind = KIND_HEAP;
  if (!take_sizes(p, sizes)) return false;
  t->has_alloc = sizes[0] != sizes[2] || sizes[1] != sizes[3];
  if (is_next(p, "heapprofile")) return true;
  bool go = false;
  if (!is_next(p, "heap_v2/") && !is_next(p, "heapz_v2/")) {
    go = is_next(p, "heap/");
    if (!go) return false;
  }
  if (!number(p, &t->period)) return false;
  if (go) t->period /= 2;
  t->rate = (double)t->period;
  return true;
}

static void sources_of_heap(struct text *t) {
  if (t->has_alloc) {
    t->sources[0] = source(t, "inuse_objects", MIC_UNIT_COUNT, 0);
    t->sources[1] = source(t, "inuse_space", MIC_UNIT_BYTES, 0);
    t->sources[2] = source(t, "alloc_objects", MIC_UNIT_COUNT, 0);
    t->sources[3] = source(t, "alloc_space", MIC_UNIT_BYTES, 0);
  } else {
    t->sources[0] = source(t, "objects", MIC_UNIT_COUNT, 0);
    t->sources[1] = source(t, "space", MIC_UNIT_BYTES, 0);
  }
  const char *shown = t->has_alloc ? "inuse_space" : "space";
  struct mic_meta_row row = {mic_writer_text(t->r->w, "default_source"),
                             mic_writer_text(t->r->w, shown)};
  mic_writer_meta(t->r->w, &row);
}

/* "NAME profile: total N" */
static bool head_of_count(struct text *t, struct place *p) {
  const char *name = p->at;
  uint64_t total;
  while (p->at < p->end && *p->at != ' ') p->at++;
  size_t size = (size_t)(p->at - name);
  if (!size || !is_next(p, "profile:") || !is_next(p, "total") || !number(p, &total)) return false;
  t->kind = KIND_COUNT;
  if (t->put)
    t->sources[0] =
      mic_build_source(t->r->build, mic_writer_string(t->r->w, name, size), MIC_UNIT_COUNT, 1, 0);
  return true;
}

static bool take_head(struct text *t, const char *line, size_t size) {
  struct place p = {line, line + size};
  if (is_next(&p, "heap profile:")) {
    bool ok = head_of_heap(t, &p);
    if (ok && t->put) sources_of_heap(t);
    return ok;
  }
  if (is_next(&p, "--- contention") || is_next(&p, "--- mutex")) {
    t->kind = KIND_CONTENTION;
    t->contention_period = 1;
    return true;
  }
  return head_of_count(t, &p);
}

/* --- names --------------------------------------------------------------------------------- */

/* Where the last of a character is, or NULL. */
static const char *last(const char *from, const char *end, char c) {
  return from < end ? memrchr(from, c, (size_t)(end - from)) : NULL;
}

/* "0xADDRESS NAME+0xOFFSET FILE:LINE", after the "#". */
static void take_name(struct text *t, struct place p) {
  struct mic_legacy *r = t->r;
  struct mic_legacy_name name = {.file = MIC_NONE};
  if (!address(&p, &name.address) || !name.address) return;
  blanks(&p);
  if (p.at >= p.end) return;
  const char *tab = memchr(p.at, '\t', (size_t)(p.end - p.at));
  const char *past = tab ? tab : p.end, *plus = last(p.at, past, '+'), *from = p.at;
  if (plus && past - plus > 3 && plus[1] == '0' && plus[2] == 'x') past = plus;
  if (past == from) return;
  uint32_t id = mic_writer_string(r->w, from, (size_t)(past - from));
  p.at = tab ? tab : p.end;
  blanks(&p);
  const char *colon = last(p.at, p.end, ':');
  uint64_t line = 0;
  struct place digits = {colon ? colon + 1 : p.end, p.end};
  if (colon && number(&digits, &line) && digits.at == p.end && line <= UINT32_MAX) {
    name.line = (uint32_t)line;
    name.file = mic_build_file(r->build, mic_writer_string(r->w, p.at, (size_t)(colon - p.at)));
  }
  /* Of an address that was named before the first names stand. */
  bool follows = t->block == name.address;
  if (!follows && mic_legacy_first_name(r, name.address) != MIC_NONE) return;
  if (!follows) mic_legacy_begin_names(r, name.address);
  t->block = name.address;
  name.function = mic_build_function(r->build, id, id, MIC_NONE, name.file, 0);
  *mic_vec_push(&r->names) = name;
}

/* --- stacks -------------------------------------------------------------------------------- */

/* The addresses up to the line's end; NULL, or why they are none. */
static const char *take_stack(struct text *t, struct place *p) {
  struct mic_legacy *r = t->r;
  uint64_t value;
  r->addresses.count = 0;
  for (blanks(p); p->at < p->end; blanks(p)) {
    if (!address(p, &value)) return "no address behind \"@\"";
    *mic_vec_push(&r->addresses) = value ? value - 1 : 0;
  }
  return NULL;
}

/* What so many samples of a size stand for, when one was taken each `rate` bytes on average; false
 * when it is more than a value may be. */
static bool scale(double rate, uint64_t *count, uint64_t *size) {
  if (!*count || !*size || rate <= 1) return true;
  double average = (double)*size / (double)*count;
  double factor = 1 / (1 - exp(-average / rate));
  double scaled_count = (double)*count * factor, scaled_size = (double)*size * factor;
  if (scaled_count >= 0x1p63 || scaled_size >= 0x1p63) return false;
  *count = (uint64_t)scaled_count;
  *size = (uint64_t)scaled_size;
  return true;
}

static const char *take_heap(struct text *t, struct place *p) {
  uint64_t values[4];
  if (!take_sizes(p, values)) return "no numbers of a heap profile";
  const char *why = take_stack(t, p);
  if (why || !t->put) return why;
  uint32_t label = MIC_NONE;
  uint64_t count = t->has_alloc ? values[2] : values[0];
  uint64_t size = t->has_alloc ? values[3] : values[1];
  if (count) {
    uint32_t bytes = mic_writer_text(t->r->w, "bytes");
    label = mic_build_label(t->r->build, bytes, MIC_LABEL_NUMBER, 0, size / count, bytes);
  }
  if (!scale(t->rate, &values[0], &values[1]) || !scale(t->rate, &values[2], &values[3]))
    return "what it stands for is out of range";
  mic_legacy_put(t->r, t->sources, values, t->has_alloc ? 4 : 2, label);
  return NULL;
}

static const char *take_count(struct text *t, struct place *p) {
  uint64_t value;
  if (!number(p, &value) || !is_next(p, "@")) return "no count and stack";
  const char *why = take_stack(t, p);
  if (!why && t->put) mic_legacy_put(t->r, t->sources, &value, 1, MIC_NONE);
  return why;
}

/* "KEY=VALUE" of the head, or "CYCLES COUNT @ STACK". */
static const char *take_contention(struct text *t, struct place *p) {
  uint64_t values[2], cycles;
  if (is_next(p, "cycles/second"))
    return is_next(p, "=") && number(p, &t->cycles_per_second) ? NULL : "no cycles a second";
  if (is_next(p, "sampling period"))
    return is_next(p, "=") && number(p, &t->contention_period) ? NULL : "no period";
  if (is_next(p, "ms since reset") || is_next(p, "discarded samples")) return NULL;
  if (!number(p, &cycles) || !number(p, &values[0]) || !is_next(p, "@"))
    return "no cycles, count and stack";
  const char *why = take_stack(t, p);
  if (why || !t->put) return why;
  double all = (double)cycles * (double)t->contention_period;
  if (t->cycles_per_second) all /= (double)t->cycles_per_second / 1e9;
  if (all >= 0x1p63 || __builtin_mul_overflow(values[0], t->contention_period, &values[0]))
    return "a number that is too large";
  values[1] = (uint64_t)all;
  /* The head may say the unit after the first line. */
  t->sources[0] = source(t, "contentions", MIC_UNIT_COUNT, 0);
  t->sources[1] = source(t, "delay", t->cycles_per_second ? MIC_UNIT_NS : MIC_UNIT_CYCLES, 0);
  mic_legacy_put(t->r, t->sources, values, 2, MIC_NONE);
  return NULL;
}

static const char *take_record(struct text *t, struct place *p) {
  switch (t->kind) {
  case KIND_HEAP: return take_heap(t, p);
  case KIND_COUNT: return take_count(t, p);
  default: return take_contention(t, p);
  }
}

/* --- lines --------------------------------------------------------------------------------- */

static void take_comment(struct text *t, struct place p) {
  if (is_next(&p, "labels:"))
    t->r->result->labels += t->put;
  else if (!t->put)
    take_name(t, p);
}

static void take_line(struct text *t, const char *line, size_t size, uint64_t number) {
  static const char maps[] = "MAPPED_LIBRARIES:", dashes[] = "--- Memory map: ---";
  struct mic_legacy_result *result = t->r->result;
  struct place p = {line, line + size};
  blanks(&p);
  if (p.at == p.end) return;
  if (is_next(&p, maps) || is_next(&p, dashes)) {
    t->in_maps = true;
  } else if (t->in_maps) {
    if (!t->put) mic_legacy_map_line(t->r, line, size);
  } else if (*p.at == '#') {
    p.at++;
    take_comment(t, p);
  } else {
    t->block = 0;
    const char *why = take_record(t, &p);
    if (why && t->put && !result->bad_lines++) {
      result->first_bad = number;
      result->why = why;
    }
  }
}

/* All lines; Go writes what else it knows of a heap behind it, in comments. */
static int take_lines(struct text *t) {
  struct mic_lines lines = {.input = t->r->input};
  const char *line;
  size_t size;
  int code = mic_lines_next(&lines, &line, &size, t->r->err);
  if (!code && (!line || !take_head(t, line, size)))
    code =
      mic_fail_at(t->r->err, 0, "%.120s: line 1: no head of a heap, count or contention profile",
                  mic_input_name(t->r->input));
  while (!code && !(code = mic_lines_next(&lines, &line, &size, t->r->err)) && line)
    take_line(t, line, size, lines.number);
  mic_lines_free(&lines);
  return code;
}

int mic_legacy_text(struct mic_legacy *r) {
  struct text t = {.r = r};
  int code = take_lines(&t);
  if (!code) code = mic_input_rewind(r->input, r->err);
  if (code) return code;
  mic_legacy_maps_done(r);
  t = (struct text){.r = r, .put = true};
  return take_lines(&t);
}
