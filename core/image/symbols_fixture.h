/* symbols_fixture.h - for tests: build programs from fixtures/symbols, and ask the judges. */
#ifndef MIC_IMAGE_SYMBOLS_FIXTURE_H
#define MIC_IMAGE_SYMBOLS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */
#include <fcntl.h>

#include "base/alloc.h"
#include "image/symbols.h"

#define UNUSED __attribute__((unused)) /* each test takes what it needs */

static char fixture_dir[256]; /* where this run builds */

UNUSED static int fixture_begin(void **state) {
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(fixture_dir, sizeof fixture_dir, "%s/symbols-XXXXXX", tmp ? tmp : "/tmp");
  return mkdtemp(fixture_dir) ? 0 : -1;
}

UNUSED static int fixture_end(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", fixture_dir);
  return system(command);
}

/* Runs a shell command in the run's folder, SRC being fixtures/symbols; fails the test with what
 * it printed when it fails. */
UNUSED __attribute__((format(printf, 1, 2))) static void sh(const char *fmt, ...) {
  char command[8192];
  size_t at = (size_t)snprintf(command, sizeof command, "cd '%s' && SRC='%s' && exec 2>log && ",
                               fixture_dir, MIC_SYMBOLS_FIXTURES);
  va_list args;
  va_start(args, fmt);
  vsnprintf(command + at, sizeof command - at, fmt, args);
  va_end(args);
  if (system(command) == 0) return;
  char show[400];
  snprintf(show, sizeof show, "head -20 '%s/log' >&2", fixture_dir);
  if (system(show) != 0) return;
  fail_msg("%s", command + at);
}

UNUSED static int is_missing(const char *tool) {
  char command[256];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", tool);
  if (system(command) == 0) return 0;
  print_message("skipped: %s is not installed\n", tool);
  return 1;
}
#define NEED(tool) \
  if (is_missing(tool)) skip()

UNUSED static const char *in_dir(const char *name) {
  static char path[2][512];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", fixture_dir, name);
  return path[turn];
}

/* Opens a program of the run's folder, with only the debug folder `debug` of it to look in. */
UNUSED static struct mic_symbols *open_symbols(const char *name) {
  static char debug[512];
  static const char *dirs[] = {debug, NULL};
  snprintf(debug, sizeof debug, "%s/debug", fixture_dir);
  const char *path = in_dir(name);
  struct mic_symbols_source source = {
    .fd = open(path, O_RDONLY | O_CLOEXEC), .path = path, .root = "", .debug_dirs = dirs};
  struct mic_symbols *symbols = NULL;
  struct mic_error err = {0};
  assert_true(source.fd >= 0);
  if (mic_symbols_open(&source, &symbols, &err) != MIC_OK) fail_msg("%s", err.msg);
  close(source.fd);
  return symbols;
}

struct symbol_line { /* of nm */
  uint64_t value, size;
  char type;
  char name[1024];
};
struct symbol_list {
  struct symbol_line *at;
  size_t count, room;
};

static struct symbol_list list_symbols(const char *name) {
  struct symbol_list list = {0};
  char command[600], line[4096];
  snprintf(command, sizeof command, "nm -f posix '%s' 2>/dev/null", in_dir(name));
  FILE *pipe = popen(command, "r");
  while (fgets(line, sizeof line, pipe)) {
    struct symbol_line s = {0};
    unsigned long value = 0, size = 0;
    if (sscanf(line, "%1023s %c %lx %lx", s.name, &s.type, &value, &size) < 3) continue;
    s.value = value;
    s.size = size;
    *mic_vec_push(&list) = s;
  }
  pclose(pipe);
  return list;
}

UNUSED static uint64_t address_of(const char *program, const char *symbol) {
  struct symbol_list list = list_symbols(program);
  uint64_t value = 0;
  for (size_t i = 0; i < list.count; i++)
    if (strcmp(list.at[i].name, symbol) == 0 && list.at[i].type != 'U') value = list.at[i].value;
  free(list.at);
  if (value == 0) fail_msg("%s has no symbol %s", program, symbol);
  return value;
}

struct addresses {
  uint64_t *at;
  size_t count, room;
};

UNUSED static uint64_t next_random(void) { /* xorshift64: the same numbers each run */
  static uint64_t seed = 88172645463325252ULL;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* nm's W is any weak symbol: probes of SystemTap mark a place in a section of data with one. */
static bool is_code(const struct symbol_line *s) {
  return strchr("tTwWiI", s->type) && s->value > 0 && strncmp(s->name, "_.stapsdt.", 10) != 0;
}

/* The bounds of every function and the bytes beside them, and `spread` places in functions and
 * between them. */
UNUSED static struct addresses spread_addresses(const char *program, size_t spread) {
  struct symbol_list list = list_symbols(program);
  struct addresses out = {0};
  for (size_t i = 0; i < list.count; i++) {
    const struct symbol_line *s = &list.at[i];
    if (!is_code(s)) continue;
    for (int k = -1; k <= 1; k++) {
      *mic_vec_push(&out) = s->value + (uint64_t)k;
      if (s->size > 2) *mic_vec_push(&out) = s->value + s->size + (uint64_t)k;
    }
  }
  assert_true(out.count > 0);
  for (size_t i = 0; i < spread; i++) {
    const struct symbol_line *s = &list.at[next_random() % list.count];
    if (is_code(s)) *mic_vec_push(&out) = s->value + next_random() % (s->size + 16);
  }
  free(list.at);
  return out;
}

#endif
