/* perfscript_line.c - find the parts of a line from what can only stand in one place. */
#include "import/perfscript_line.h"

#include <string.h>

enum { NAME_MAX_BYTES = 15 }; /* TASK_COMM_LEN - 1 */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_blanks(struct mic_text *t) {
  while (t->size && is_blank(*t->at)) t->at++, t->size--;
}

/* Takes digits; false when there are none or too many. */
static bool take_number(struct mic_text *t, uint64_t limit, uint64_t *out) {
  size_t digits = 0;
  *out = 0;
  while (digits < t->size && is_digit(t->at[digits])) {
    uint64_t digit = (uint64_t)(t->at[digits++] - '0');
    if (*out > (limit - digit) / 10) return false;
    *out = *out * 10 + digit;
  }
  t->at += digits;
  t->size -= digits;
  return digits > 0;
}

static bool take_char(struct mic_text *t, char c) {
  if (!t->size || *t->at != c) return false;
  t->at++, t->size--;
  return true;
}

static bool take_blanks(struct mic_text *t) {
  size_t before = t->size;
  skip_blanks(t);
  return t->size != before;
}

/* "12.345678:" or with nine digits. */
static bool take_time(struct mic_text *t, uint64_t *ns) {
  uint64_t seconds, part = 0, unit = 1000000000;
  if (!take_number(t, UINT64_MAX / 1000000000 - 1, &seconds) || !take_char(t, '.')) return false;
  size_t digits = 0;
  while (digits < t->size && is_digit(t->at[digits])) {
    unit /= 10;
    part += unit * (uint64_t)(t->at[digits++] - '0');
  }
  t->at += digits;
  t->size -= digits;
  *ns = seconds * 1000000000 + part;
  return digits > 0 && take_char(t, ':');
}

/* A period, an event's name that ends in a colon; both may be missing. */
static bool take_event(struct mic_text *t, struct mic_script_head *out) {
  out->has_period = false;
  out->event = (struct mic_text){t->at, 0};
  skip_blanks(t);
  struct mic_text number = *t;
  if (take_number(&number, UINT64_MAX, &out->period) && take_blanks(&number)) {
    out->has_period = true;
    *t = number;
  }
  if (!t->size) return !out->has_period;
  size_t size = 0;
  while (size < t->size && !is_blank(t->at[size])) size++;
  static const char record[] = "PERF_RECORD_";
  if (size > sizeof record && memcmp(t->at, record, sizeof record - 1) == 0) {
    out->event = (struct mic_text){t->at, size};
    return true;
  }
  /* A name is not a number and not a CPU: then the ids stand further right. */
  if (size < 2 || t->at[size - 1] != ':' || is_digit(*t->at) || *t->at == '[') return false;
  out->event = (struct mic_text){t->at, size - 1};
  t->at += size;
  t->size -= size;
  skip_blanks(t);
  return true;
}

/* What follows the name. */
static bool take_numbers(struct mic_text t, struct mic_script_head *out) {
  uint64_t first, second, cpu = 0;
  if (!take_number(&t, UINT32_MAX, &first)) return false;
  out->pid = 0;
  out->tid = (uint32_t)first;
  if (take_char(&t, '/')) {
    if (!take_number(&t, UINT32_MAX, &second)) return false;
    out->pid = (uint32_t)first;
    out->tid = (uint32_t)second;
  }
  if (!take_blanks(&t)) return false;
  if (take_char(&t, '[') &&
      (!take_number(&t, UINT16_MAX, &cpu) || !take_char(&t, ']') || !take_blanks(&t)))
    return false;
  out->cpu = (uint16_t)cpu;
  if (!take_time(&t, &out->time_ns) || !take_event(&t, out)) return false;
  out->rest = t;
  return true;
}

const char *mic_script_head(const char *line, size_t size, struct mic_script_head *out) {
  struct mic_text text = {line, size}, name;
  bool found = false;
  skip_blanks(&text);
  /* Each place where a word of digits begins; the last that fits, as a name may look like one. */
  for (size_t i = 1; i < text.size; i++) {
    if (!is_digit(text.at[i]) || !is_blank(text.at[i - 1])) continue;
    name = (struct mic_text){text.at, i};
    while (name.size && is_blank(name.at[name.size - 1])) name.size--;
    if (name.size > NAME_MAX_BYTES) break;
    struct mic_script_head head = {.name = name};
    if (!take_numbers((struct mic_text){text.at + i, text.size - i}, &head)) continue;
    *out = head;
    found = true;
  }
  if (found) return NULL;
  return "no thread's id, time and event in it (perf script -F comm,pid,tid,time,event,ip,sym,dso)";
}

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_address(struct mic_text *t, uint64_t *out) {
  size_t digits = 0;
  *out = 0;
  while (digits < t->size && digits < 17 && hex_digit(t->at[digits]) >= 0)
    *out = *out << 4 | (uint64_t)hex_digit(t->at[digits++]);
  t->at += digits;
  t->size -= digits;
  return digits > 0 && digits <= 16 && (!t->size || is_blank(*t->at));
}

/* The image in brackets at the end; those of the path itself are balanced. */
static void split_image(struct mic_text *symbol, struct mic_text *image) {
  size_t at = symbol->size;
  int open = 0;
  if (!at || symbol->at[at - 1] != ')') return;
  while (at) {
    at--;
    if (symbol->at[at] == ')') open++;
    if (symbol->at[at] == '(' && --open == 0) break;
  }
  if (open || (at && !is_blank(symbol->at[at - 1]))) return;
  *image = (struct mic_text){symbol->at + at + 1, symbol->size - at - 2};
  symbol->size = at;
  while (symbol->size && is_blank(symbol->at[symbol->size - 1])) symbol->size--;
}

/* "+0x1a" at a symbol's end. */
static void strip_offset(struct mic_text *symbol) {
  size_t at = symbol->size;
  while (at && hex_digit(symbol->at[at - 1]) >= 0) at--;
  if (at == symbol->size || at < 4) return;
  if (memcmp(symbol->at + at - 3, "+0x", 3) == 0) symbol->size = at - 3;
}

bool mic_script_frame(const char *line, size_t size, struct mic_script_frame *out) {
  struct mic_text text = {line, size};
  *out = (struct mic_script_frame){.inlined = false};
  skip_blanks(&text);
  if (!take_address(&text, &out->address)) return false;
  skip_blanks(&text);
  while (text.size && is_blank(text.at[text.size - 1])) text.size--;
  out->symbol = text;
  split_image(&out->symbol, &out->image);
  strip_offset(&out->symbol);
  if (out->image.size == 7 && memcmp(out->image.at, "inlined", 7) == 0) {
    out->inlined = true;
    out->image.size = 0;
  }
  return true;
}
