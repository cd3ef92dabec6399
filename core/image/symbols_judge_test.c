/*
 * symbols_judge_test.c - names, inlined functions and lines against llvm-symbolizer and addr2line.
 *
 * Programs are built from fixtures/symbols as the judges' own users build theirs.  A disagreement
 * counts unless it is one of those that may_disagree and stands explain and prove.
 */
#include "image/symbols_fixture.h"

enum { FRAMES = 64, SPREAD = 1500 };

struct told { /* what a judge says of one address */
  char name[FRAMES][4096];
  char line[FRAMES][4096]; /* FILE:LINE */
  size_t count;
};

struct judge {
  FILE *pipe;
};

static void write_addresses(const struct addresses *a) {
  FILE *file = fopen(in_dir("addresses"), "w");
  assert_non_null(file);
  for (size_t i = 0; i < a->count; i++) fprintf(file, "0x%lx\n", (unsigned long)a->at[i]);
  fclose(file);
}

static struct judge start_judge(const char *program, const struct addresses *a) {
  write_addresses(a);
  char command[1400];
  snprintf(command, sizeof command,
           "cd '%s' && llvm-symbolizer --no-demangle --inlines -e '%s' < addresses", fixture_dir,
           in_dir(program));
  return (struct judge){popen(command, "r")};
}

/* A block of names and FILE:LINE:COLUMN lines, up to an empty line. */
static void next_told(struct judge *judge, struct told *told) {
  char line[4096];
  told->count = 0;
  for (int half = 0; fgets(line, sizeof line, judge->pipe); half = !half) {
    line[strcspn(line, "\n")] = 0;
    if (line[0] == 0) break;
    if (told->count == FRAMES) continue;
    if (!half) {
      snprintf(told->name[told->count], sizeof told->name[0], "%s", line);
      continue;
    }
    char *column = strrchr(line, ':');
    if (column) *column = 0;
    snprintf(told->line[told->count++], sizeof told->line[0], "%s", line);
  }
  if (told->count == 1 && strcmp(told->name[0], "??") == 0) told->count = 0;
}

static const char *last_part(const char *name) {
  const char *part = name;
  int depth = 0;
  for (const char *c = name; *c; c++) {
    if (*c == '<' || *c == '(' || *c == '{') depth++;
    if (*c == '>' || *c == ')' || *c == '}') depth--;
    if (depth == 0 && c[0] == ':' && c[1] == ':') part = c + 2;
  }
  return part;
}

/* Linkage names agree to the byte; what has none, in the last part of the qualified name. */
static bool names_agree(const struct mic_symbol *mine, const char *theirs) {
  if (strcmp(mine->linkage_name, theirs) == 0) return true;
  if (strncmp(theirs, "_Z", 2) == 0 || strncmp(theirs, "_RNv", 4) == 0) return false;
  return strcmp(last_part(mine->linkage_name), theirs) == 0;
}

static bool lines_agree(const struct mic_symbol *mine, const char *theirs) {
  char line[4096];
  snprintf(line, sizeof line, "%s:%u", mine->file ? mine->file : "??", mine->line);
  return strcmp(line, theirs) == 0;
}

static bool agree(const struct mic_symbol *mine, size_t count, const struct told *told) {
  if (count != told->count) return false;
  for (size_t i = 0; i < count; i++)
    if (!names_agree(&mine[i], told->name[i]) || !lines_agree(&mine[i], told->line[i]))
      return false;
  return true;
}

static const struct symbol_line *find_named(const struct symbol_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->at[i].name, name) == 0) return &list->at[i];
  return NULL;
}

static bool is_covered(const struct symbol_list *list, uint64_t address) {
  for (size_t i = 0; i < list->count; i++)
    if (strchr("tTwWiI", list->at[i].type) && address - list->at[i].value < list->at[i].size)
      return true;
  return false;
}

/*
 * Where llvm-symbolizer is not to be followed, with the proof:
 *  - It gives a symbol without a size all that follows.  Proof: nm says the symbol it names has
 *    none, and the address is not the symbol's; or no sized symbol of nm covers the address, and
 *    it names one.
 *  - It takes a file for code without debug information from the FILE symbol before it.  Proof:
 *    we have no line, and it has line 0.
 *  - Aliases: the linker gave several names to one range.  Proof: nm has both, with one value.
 */
static bool may_disagree(const struct symbol_list *list, uint64_t address,
                         const struct mic_symbol *mine, size_t count, const struct told *told) {
  if (told->count == 0) return false;
  const struct symbol_line *named = find_named(list, told->name[told->count - 1]);
  if (named && named->size == 0 && named->value != address) return true;
  if (named && !is_code(named)) return count == 0;
  if (count == 0) return !is_covered(list, address);
  if (count != told->count || !named) return false;
  const struct symbol_line *ours = find_named(list, mine[count - 1].linkage_name);
  bool alias = ours && ours->value == named->value && ours->size == named->size;
  if (!names_agree(&mine[count - 1], told->name[count - 1]) && !alias) return false;
  for (size_t i = 0; i + 1 < count; i++)
    if (!names_agree(&mine[i], told->name[i])) return false;
  for (size_t i = 0; i < count; i++) {
    const char *line = strrchr(told->line[i], ':');
    bool none = !mine[i].file && mine[i].line == 0 && line && strcmp(line, ":0") == 0;
    if (!none && !lines_agree(&mine[i], told->line[i])) return false;
  }
  return true;
}

static void show(uint64_t address, const struct mic_symbol *mine, size_t count,
                 const struct told *told) {
  print_message("0x%lx\n", (unsigned long)address);
  for (size_t i = 0; i < count; i++)
    print_message("  here:  %s %s:%u\n", mine[i].linkage_name, mine[i].file ? mine[i].file : "??",
                  mine[i].line);
  for (size_t i = 0; i < told->count; i++)
    print_message("  judge: %s %s\n", told->name[i], told->line[i]);
}

/* Every address of a program as llvm-symbolizer has it. */
static void compare(const char *program) {
  struct addresses a = spread_addresses(program, SPREAD);
  struct symbol_list list = list_symbols(program);
  struct mic_symbols *symbols = open_symbols(program);
  struct judge judge = start_judge(program, &a);
  struct told *told = mic_alloc(sizeof *told);
  size_t wrong = 0, excused = 0, deep = 0;
  for (size_t i = 0; i < a.count; i++) {
    const struct mic_symbol *mine;
    size_t count = mic_symbols_lookup(symbols, a.at[i], &mine);
    /* What only call-frame information tells apart is extent_test's; the judge knows none. */
    if (count == 1 && mine->linkage_name[0] == 0) count = 0;
    next_told(&judge, told);
    deep += count > 1;
    if (agree(mine, count, told)) continue;
    if (may_disagree(&list, a.at[i], mine, count, told))
      excused++;
    else if (wrong++ < 3)
      show(a.at[i], mine, count, told);
  }
  pclose(judge.pipe);
  print_message("%s: %zu addresses, %zu with inlined functions, %zu excused, %zu wrong\n", program,
                a.count, deep, excused, wrong);
  assert_int_equal(wrong, 0);
  mic_symbols_close(symbols);
  free(told);
  free(list.at);
  free(a.at);
}

static void compilers_and_versions(void **state) {
  (void)state;
  NEED("llvm-symbolizer");
  for (int version = 2; version <= 5; version++) {
    sh("g++ -O2 -gdwarf-%d -gstrict-dwarf $SRC/wide.cc -o gcc%d", version, version);
    sh("clang++ -O2 -gdwarf-%d $SRC/wide.cc -o clang%d", version, version);
    char name[16];
    snprintf(name, sizeof name, "gcc%d", version);
    compare(name);
    snprintf(name, sizeof name, "clang%d", version);
    compare(name);
  }
}

static unsigned lines_in(const char *path) {
  FILE *file = fopen(path, "r");
  unsigned lines = 0;
  for (int c; file && (c = fgetc(file)) != EOF;) lines += c == '\n';
  if (file) fclose(file);
  return lines;
}

/*
 * Does addr2line's FILE:LINE stand, where ours is another?  It does not where it has no file
 * (":0"), nor where it gives a line of a header to the file of the unit: the file has fewer lines.
 */
static bool stands(const char *theirs) {
  char path[1024];
  unsigned line = 0;
  if (sscanf(theirs, "%1023[^:]:%u", path, &line) < 1) return false;
  return line <= lines_in(path);
}

/* The innermost line of every byte of every function as addr2line has it. */
static void compare_lines(const char *program) {
  struct symbol_list list = list_symbols(program);
  struct mic_symbols *symbols = open_symbols(program);
  struct addresses a = {0};
  for (size_t i = 0; i < list.count; i++)
    for (uint64_t k = 0; is_code(&list.at[i]) && k < list.at[i].size; k++)
      *mic_vec_push(&a) = list.at[i].value + k;
  write_addresses(&a);
  char command[1400], theirs[1024], mine[2048];
  snprintf(command, sizeof command, "cd '%s' && addr2line -e '%s' < addresses", fixture_dir,
           in_dir(program));
  FILE *pipe = popen(command, "r");
  size_t wrong = 0, known = 0;
  for (size_t i = 0; i < a.count && fgets(theirs, sizeof theirs, pipe); i++) {
    const struct mic_symbol *s;
    size_t count = mic_symbols_lookup(symbols, a.at[i], &s);
    theirs[strcspn(theirs, " \n")] = 0; /* "(discriminator 2)" may follow */
    assert_int_not_equal(count, 0);     /* the byte is in a sized symbol */
    snprintf(mine, sizeof mine, s[0].line ? "%s:%u" : "%s:?", s[0].file ? s[0].file : "??",
             s[0].line);
    known += s[0].file != NULL;
    if (strcmp(mine, theirs) == 0 || !stands(theirs)) continue;
    if (wrong++ < 3)
      print_message("0x%lx here %s judge %s\n", (unsigned long)a.at[i], mine, theirs);
  }
  pclose(pipe);
  assert_int_equal(wrong, 0);
  assert_true(known > 10000);
  mic_symbols_close(symbols);
  free(list.at);
  free(a.at);
}

static void every_byte_against_addr2line(void **state) {
  (void)state;
  sh("g++ -g -O2 $SRC/wide.cc -o bytes");
  compare_lines("bytes");
  NEED("clang++");
  sh("clang++ -g -gdwarf-4 -O2 $SRC/wide.cc -o bytes");
  compare_lines("bytes");
}

static void layouts(void **state) {
  (void)state;
  NEED("llvm-symbolizer");
  NEED("ld.lld");
  static const char *const recipes[] = {
    "clang++ -g -O2 -fuse-ld=lld -Wl,--rosegment -Wl,-z,noseparate-code $SRC/wide.cc",
    "clang++ -g -O2 -fuse-ld=lld -Wl,--rosegment -Wl,-z,noseparate-code -no-pie $SRC/wide.cc",
    "clang++ -g -O2 -fuse-ld=lld -Wl,--no-rosegment $SRC/wide.cc",
    "gcc -g -O2 -no-pie -DFAR -Wl,--section-start=.far=0x900000 $SRC/plain.c",
    "g++ -g -O2 -shared -fPIC -Wl,-Ttext-segment=0x10000000 $SRC/inlines.cc "
    "-Wl,--unresolved-symbols=ignore-all",
    "g++ -g -O2 -flto -ffunction-sections -Wl,--gc-sections $SRC/wide.cc",
    "g++ -g -O2 -ffunction-sections -Wl,--gc-sections $SRC/wide.cc",
    "clang++ -g -O2 -ffunction-sections -fuse-ld=lld -Wl,--gc-sections $SRC/wide.cc",
    "g++ -g1 -O2 $SRC/wide.cc",
    "clang++ -g1 -O2 $SRC/wide.cc",
    "g++ -g -O0 $SRC/wide.cc",
    "gcc -g -O2 -static $SRC/plain.c",
  };
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    char name[16];
    snprintf(name, sizeof name, "layout%zu", i);
    print_message("%s\n", recipes[i]);
    sh("%s -o %s", recipes[i], name);
    compare(name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(compilers_and_versions),
    cmocka_unit_test(every_byte_against_addr2line),
    cmocka_unit_test(layouts),
  };
  return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
