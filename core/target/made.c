/* made.c - read a perf map and flatten its lines to ranges of one name each. */
#include "target/made.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "image/guard.h"

enum {
  /* V8 writes some 100 bytes a function; a day of a large server's code is far below these. */
  LINES_MAX = 8 << 20,
  BYTES_MAX = 1 << 30,
  NAME_MAX_BYTES = 4096 /* C++ and JavaScript names of source files are shorter */
};

#define AMBIGUOUS (MIC_NONE - 1)

struct edge { /* where a line's range begins or ends */
  uint64_t address;
  uint32_t name;
  bool begins;
};

struct piece { /* from here to the next piece */
  uint64_t start;
  uint32_t name; /* MIC_NONE: no line is here */
};

struct mic_made_code {
  struct mic_interner names;
  struct piece *pieces; /* at most one an edge */
  size_t count;
  uint64_t odd;
};

typedef MIC_VEC(struct edge) edges_vec;

/* ---- lines ---- */

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hexadecimal number of at most 64 bits and the blank after it. */
static bool parse_number(const char **at, const char *end, uint64_t *out) {
  const char *c = *at;
  if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) c += 2;
  const char *first = c;
  uint64_t value = 0;
  for (; c < end && digit(*c) >= 0; c++) {
    if (value >> 60) return false;
    value = value << 4 | (uint64_t)digit(*c);
  }
  if (c == first || c == end || *c != ' ') return false;
  while (c < end && *c == ' ') c++;
  *at = c;
  *out = value;
  return true;
}

/* False for what is no line of the form.  A size of 0 tells of the first byte alone. */
static bool take_line(struct mic_made_code *code, edges_vec *edges, const char *at,
                      const char *end) {
  uint64_t start, size;
  if (end > at && end[-1] == '\r') end--;
  if (!parse_number(&at, end, &start) || !parse_number(&at, end, &size)) return false;
  if (size == 0) size = 1;
  if (at == end || end - at > NAME_MAX_BYTES || memchr(at, 0, (size_t)(end - at))) return false;
  if (start + size < start) return false;
  uint32_t name = mic_intern(&code->names, at, (size_t)(end - at));
  *mic_vec_push(edges) = (struct edge){start, name, true};
  *mic_vec_push(edges) = (struct edge){start + size, name, false};
  return true;
}

/* ---- ranges ---- */

static int by_address(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  return x->name < y->name ? -1 : x->name > y->name;
}

static void add_piece(struct mic_made_code *code, uint64_t start, uint32_t name) {
  if (code->count && code->pieces[code->count - 1].name == name) return;
  code->pieces[code->count++] = (struct piece){start, name};
}

/* One sweep: how many lines of each name are open, how many names that is, and the sum of these
 * names' numbers, which is the number when there is one. */
static void flatten(struct mic_made_code *code, edges_vec *edges) {
  if (edges->count == 0) return;
  uint32_t *open = mic_alloc((code->names.strings.count + 1) * sizeof *open), names = 0;
  uint64_t sum = 0;
  code->pieces = mic_alloc(edges->count * sizeof *code->pieces);
  qsort(edges->at, edges->count, sizeof *edges->at, by_address);
  for (size_t i = 0; i < edges->count; i++) {
    const struct edge *e = &edges->at[i];
    uint32_t before = open[e->name];
    open[e->name] = e->begins ? before + 1 : before - 1;
    if (e->begins && before == 0) names++, sum += e->name;
    if (!e->begins && before == 1) names--, sum -= e->name;
    if (i + 1 < edges->count && edges->at[i + 1].address == e->address) continue;
    add_piece(code, e->address, names == 0 ? MIC_NONE : names == 1 ? (uint32_t)sum : AMBIGUOUS);
  }
  free(open);
}

int mic_made_code_parse(const char *bytes, size_t size, const char *path,
                        struct mic_made_code **out, struct mic_error *err) {
  *out = NULL;
  struct mic_made_code *code = mic_alloc(sizeof *code);
  edges_vec edges = {0};
  const char *at = bytes, *end = bytes + size;
  /* A last line without its end is still being written. */
  for (const char *next; at < end && (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
    if (edges.count / 2 == LINES_MAX) {
      mic_vec_free(&edges);
      mic_made_code_free(code);
      return mic_fail(err, MIC_ELIMIT, "%.200s: more than %d lines", path, LINES_MAX);
    }
    if (!take_line(code, &edges, at, next)) code->odd++;
  }
  flatten(code, &edges);
  mic_vec_free(&edges);
  *out = code;
  return MIC_OK;
}

int mic_made_code_read(int fd, const char *path, struct mic_made_code **out,
                       struct mic_error *err) {
  *out = NULL;
  struct stat st;
  if (fstat(fd, &st) != 0) return mic_fail_sys(err, "%.200s", path);
  if (st.st_size > BYTES_MAX)
    return mic_fail(err, MIC_ELIMIT, "%.200s: more than %d bytes", path, BYTES_MAX);
  if (st.st_size == 0) return mic_made_code_parse("", 0, path, out, err);
  struct mic_guard *guard = NULL;
  int code = mic_guard_map(fd, (size_t)st.st_size, path, &guard, err);
  if (!guard) return code;
  code = mic_made_code_parse(mic_guard_bytes(guard), (size_t)st.st_size, path, out, err);
  if (code == MIC_OK && mic_guard_damaged(guard)) {
    mic_made_code_free(*out);
    *out = NULL;
    code = mic_fail(err, MIC_EFORMAT, "%.200s: the file shrank while it was read", path);
  }
  mic_guard_unmap(guard);
  return code;
}

void mic_made_code_free(struct mic_made_code *code) {
  if (!code) return;
  mic_interner_free(&code->names);
  free(code->pieces);
  free(code);
}

enum mic_made mic_made_code_find(const struct mic_made_code *code, uint64_t address,
                                 const char **name) {
  size_t low = 0, high = code->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (code->pieces[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  uint32_t id = low ? code->pieces[low - 1].name : MIC_NONE;
  *name = NULL;
  if (id == MIC_NONE) return MIC_MADE_NONE;
  if (id == AMBIGUOUS) return MIC_MADE_AMBIGUOUS;
  *name = mic_interner_at(&code->names, id).bytes;
  return MIC_MADE_NAMED;
}

uint64_t mic_made_code_odd_lines(const struct mic_made_code *code) { return code->odd; }
