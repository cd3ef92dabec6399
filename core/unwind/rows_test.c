/*
 * rows_test.c - compiled rows against readelf's reading of the same call-frame information.
 *
 * Arguments name more files to compare; without, it takes what the system surely has.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/table_internal.h"

static const char *const system_files[] = {
  "/lib64/ld-linux-x86-64.so.2",
  "/lib/x86_64-linux-gnu/libc.so.6",
  "/lib/x86_64-linux-gnu/libm.so.6",
  "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
  "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
};

static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};
enum { COLUMNS_MAX = 24, TEXT_MAX = 32 };

struct judged { /* one file */
  struct mic_table *table;
  uint64_t rows, wrong;
};

struct table_row { /* readelf's current header and row */
  char columns[COLUMNS_MAX][TEXT_MAX];
  size_t column_count;
  char values[COLUMNS_MAX][TEXT_MAX];
  size_t value_count;
};

/* Words of a line; "r8 (r8)", a register by number and by name, is one word: the name. */
static size_t split(char *line, char (*out)[TEXT_MAX]) {
  size_t count = 0;
  for (char *save, *word = strtok_r(line, " \n", &save); word && count < COLUMNS_MAX;
       word = strtok_r(NULL, " \n", &save)) {
    if (*word == '(' && count)
      snprintf(out[count - 1], TEXT_MAX, "%.*s", (int)strcspn(word + 1, ")"), word + 1);
    else
      snprintf(out[count++], TEXT_MAX, "%s", word);
  }
  return count;
}

static int register_named(const char *name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return (int)i;
  return -1;
}

static void cfa_text(const struct mic_rule *rule, char *out) {
  switch (rule->cfa) {
  case MIC_CFA_REGISTER:
    snprintf(out, TEXT_MAX, "%s%+d", names[rule->cfa_register], rule->cfa_offset);
    return;
  case MIC_CFA_PLT:
  case MIC_CFA_SIGRETURN:
  case MIC_CFA_EXPRESSION: snprintf(out, TEXT_MAX, "exp"); return;
  default: snprintf(out, TEXT_MAX, "none %d", rule->cfa); return;
  }
}

static void extra_text(const struct mic_extra *x, char *out) {
  switch (x->how) {
  case MIC_EXTRA_AT: snprintf(out, TEXT_MAX, "c%+d", x->value); return;
  case MIC_EXTRA_IS: snprintf(out, TEXT_MAX, "v%+d", x->value); return;
  case MIC_EXTRA_SAME: snprintf(out, TEXT_MAX, "s"); return;
  case MIC_EXTRA_UNDEFINED: snprintf(out, TEXT_MAX, "u"); return;
  case MIC_EXTRA_REGISTER: snprintf(out, TEXT_MAX, "%s", names[x->value]); return;
  case MIC_EXTRA_AT_EXPRESSION: snprintf(out, TEXT_MAX, "exp"); return;
  default: snprintf(out, TEXT_MAX, "vexp"); return;
  }
}

static void register_text(const struct mic_table *t, const struct mic_rule *rule, int reg,
                          char *out) {
  static const uint8_t slots[MIC_SLOT_COUNT] = MIC_SLOT_REGISTERS;
  snprintf(out, TEXT_MAX, rule->cfa == MIC_CFA_SIGRETURN ? "exp" : "u");
  for (size_t i = 0; i < MIC_SLOT_COUNT; i++)
    if (slots[i] == reg && rule->saved >> i & 1) snprintf(out, TEXT_MAX, "c%+d", rule->slot[i] * 8);
  for (uint32_t i = 0; i < rule->extra_count; i++) {
    const struct mic_extra *x = &t->rules.extras.at[rule->extra + i];
    if (x->reg == reg) extra_text(x, out);
  }
}

/* A register that nothing is said of and one that keeps its value are one rule of ours. */
static bool agree(const char *ours, const char *theirs) {
  if (strcmp(theirs, "s") == 0) theirs = "u";
  if (strcmp(ours, "s") == 0) ours = "u";
  return strcmp(ours, theirs) == 0;
}

static void compare(struct judged *j, const struct table_row *row, uint64_t pc) {
  const struct mic_rule *rule = mic_table_rule(j->table, pc);
  char ours[TEXT_MAX];
  if (rule->cfa == MIC_CFA_OUTERMOST) return; /* all that matters; readelf shows the ra as u */
  cfa_text(rule, ours);
  bool good = strcmp(ours, row->values[1]) == 0;
  if (!good) print_message("%#" PRIx64 ": CFA %s, readelf %s\n", pc, ours, row->values[1]);
  for (size_t i = 2; i < row->column_count && i < row->value_count && good; i++) {
    int reg = register_named(row->columns[i]);
    if (reg < 0) continue;
    register_text(j->table, rule, reg, ours);
    good = agree(ours, row->values[i]);
    if (!good)
      print_message("%#" PRIx64 ": %s %s, readelf %s\n", pc, names[reg], ours, row->values[i]);
  }
  j->wrong += !good;
}

/* The row before holds up to the byte before `next`: both its ends are compared. */
static void finish_row(struct judged *j, const struct table_row *row, uint64_t next) {
  if (!row->value_count) return;
  uint64_t from = strtoull(row->values[0], NULL, 16);
  if (next <= from) return; /* replaced at once by the next row */
  j->rows++;
  compare(j, row, from);
  if (next - from > 1) compare(j, row, next - 1);
}

static void judge_output(struct judged *j, FILE *readelf) {
  struct table_row row = {0};
  uint64_t end = 0;
  char line[512];
  while (fgets(line, sizeof line, readelf)) {
    char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;
    bool is_row = strspn(line, "0123456789abcdef") == 16 && line[16] == ' ';
    if (pc || strstr(line, " CIE ")) {
      finish_row(j, &row, end);
      row.value_count = 0;
      end = pc ? strtoull(strstr(pc, "..") + 2, NULL, 16) : 0;
    } else if (strncmp(line, "   LOC ", 7) == 0) {
      row.column_count = split(line, row.columns);
    } else if (is_row && end && row.column_count) {
      finish_row(j, &row, strtoull(line, NULL, 16));
      row.value_count = split(line, row.values);
    }
  }
  finish_row(j, &row, end);
}

static void judge_once(struct judged *j, const char *path, const char *how) {
  char command[512];
  snprintf(command, sizeof command, "LC_ALL=C readelf -wF -W '%s' 2>/dev/null", path);
  FILE *readelf = popen(command, "r");
  assert_non_null(readelf);
  j->rows = j->wrong = 0;
  judge_output(j, readelf);
  pclose(readelf); /* 1 where a debug link's file is missing: the rows are counted instead */
  print_message("%s, %s: %" PRIu64 " rows, %" PRIu64 " differ\n", path, how, j->rows, j->wrong);
  assert_int_equal(j->wrong, 0);
}

static void judge(const char *path) {
  struct mic_error err = {0};
  struct mic_elf *elf;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    print_message("%s: not on this system\n", path);
    return;
  }
  assert_int_equal(mic_elf_open(fd, path, &elf, &err), MIC_OK);
  close(fd);
  struct judged j = {0};
  assert_int_equal(mic_table_new(elf, &j.table, &err), MIC_OK);
  judge_once(&j, path, "by FDE");
  assert_true(j.rows > 0);
  int code = mic_table_compile_all(j.table, &err);
  if (code != MIC_OK) fail_msg("%s", err.msg);
  judge_once(&j, path, "whole");
  mic_table_free(j.table);
  mic_elf_close(elf);
}

static const char *const *files;
static size_t file_count;

static void test_rows_agree_with_readelf(void **state) {
  (void)state;
  for (size_t i = 0; i < file_count; i++) judge(files[i]);
}

int main(int argc, char **argv) {
  files = argc > 1 ? (const char *const *)argv + 1 : system_files;
  file_count = argc > 1 ? (size_t)argc - 1 : sizeof system_files / sizeof *system_files;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_agree_with_readelf)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
