/*
 * extent_test.c - code without a symbol is told apart by its FDE: against readelf's list of FDEs.
 *
 * Every byte of the FDEs of real stripped libraries, and what lies between them.
 */
#include "image/symbols_fixture.h"

struct piece { /* of readelf */
  uint64_t start, end;
};
struct pieces {
  struct piece *at;
  size_t count, room;
};

static int by_start(const void *a, const void *b) {
  const struct piece *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

static struct pieces list_pieces(const char *program) {
  struct pieces list = {0};
  char command[600], line[4096];
  snprintf(command, sizeof command, "readelf -wf '%s' 2>/dev/null | grep ' pc='", in_dir(program));
  FILE *pipe = popen(command, "r");
  while (fgets(line, sizeof line, pipe)) {
    unsigned long start, end;
    const char *pc = strstr(line, " pc=");
    if (sscanf(pc, " pc=%lx..%lx", &start, &end) != 2) continue;
    *mic_vec_push(&list) = (struct piece){start, end};
  }
  pclose(pipe);
  assert_true(list.count > 0);
  qsort(list.at, list.count, sizeof *list.at, by_start);
  return list;
}

/* The sections of stubs, which one FDE covers as a whole. */
static struct pieces list_plts(const char *program) {
  struct pieces list = {0};
  char command[600], line[4096];
  snprintf(command, sizeof command, "readelf -SW '%s' | grep -E ' \\.plt(\\.sec|\\.got)? '",
           in_dir(program));
  FILE *pipe = popen(command, "r");
  while (fgets(line, sizeof line, pipe)) {
    unsigned long start, size;
    if (sscanf(strstr(line, " .plt"), " %*s %*s %lx %*x %lx", &start, &size) != 2) continue;
    *mic_vec_push(&list) = (struct piece){start, start + size};
  }
  pclose(pipe);
  return list;
}

static bool holds(const struct pieces *list, uint64_t address) {
  for (size_t i = 0; i < list->count; i++)
    if (address >= list->at[i].start && address < list->at[i].end) return true;
  return false;
}

struct tally {
  size_t named, by_symbol, none;
};

/* The name at an address is a symbol's, or `want`; with want NULL a symbol's or none. */
static void expect(struct mic_symbols *symbols, uint64_t at, const char *want,
                   struct tally *tally) {
  const struct mic_symbol *s;
  size_t count = mic_symbols_lookup(symbols, at, &s);
  if (count == 1 && s->linkage_name[0]) {
    tally->by_symbol++;
  } else if (count == 0) {
    if (want) fail_msg("0x%lx has no name, not %s", (unsigned long)at, want);
    tally->none++;
  } else {
    if (!want || count != 1 || strcmp(s->name, want) != 0)
      fail_msg("0x%lx is %s, not %s", (unsigned long)at, s->name, want ? want : "without a name");
    assert_null(s->file);
    tally->named++;
  }
}

static bool is_symbols(struct mic_symbols *symbols, uint64_t at) {
  const struct mic_symbol *s;
  return mic_symbols_lookup(symbols, at, &s) > 0 && s->linkage_name[0];
}

static struct tally compare(const char *program) {
  struct pieces pieces = list_pieces(program), plts = list_plts(program);
  struct mic_symbols *symbols = open_symbols(program);
  struct tally tally = {0};
  for (size_t i = 0; i < pieces.count; i++) {
    const struct piece *p = &pieces.at[i];
    uint64_t next = i + 1 < pieces.count ? pieces.at[i + 1].start : p->end + 64;
    char name[300];
    snprintf(name, sizeof name, "%s+0x%lx", program, (unsigned long)p->start);
    /* A piece that begins in a symbol is the symbol's, with what the symbol leaves of it. */
    bool stays = holds(&plts, p->start) || is_symbols(symbols, p->start);
    for (uint64_t at = p->start; at < p->end; at++) {
      if (stays && !is_symbols(symbols, at))
        expect(symbols, at, NULL, &tally);
      else
        expect(symbols, at, name, &tally);
    }
    for (uint64_t at = p->end; at < next && at < p->end + 64; at++)
      expect(symbols, at, NULL, &tally);
  }
  print_message("%s: %zu pieces; %zu bytes named by them, %zu by symbols, %zu not\n", program,
                pieces.count, tally.named, tally.by_symbol, tally.none);
  mic_symbols_close(symbols);
  free(pieces.at);
  free(plts.at);
  return tally;
}

static void real_stripped_libraries(void **state) {
  (void)state;
  static const char *const files[] = {"libc.so.6", "libstdc++.so.6", "libcrypto.so.3"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    sh("file=$(ldconfig -p | sed -n 's|.* => \\(.*/%s\\)$|\\1|p' | head -n 1) && strip -s -o %s "
       "\"$file\"",
       files[i], files[i]);
    struct tally t = compare(files[i]);
    assert_true(t.named > 10000 && t.by_symbol > 10000 && t.none > 100);
  }
}

static unsigned long piece_size(const char *program, const struct pieces *pieces,
                                const char *symbol) {
  uint64_t value = address_of(program, symbol);
  for (size_t i = 0; i < pieces->count; i++)
    if (pieces->at[i].start == value) return pieces->at[i].end - value;
  fail_msg("no FDE begins at %s of %s", symbol, program);
  return 0;
}

/* All bytes of a function of the full program are one row of the stripped one. */
static void expect_row(const char *full, const char *stripped, const char *symbol) {
  struct pieces pieces = list_pieces(full);
  uint64_t start = address_of(full, symbol), size = piece_size(full, &pieces, symbol);
  struct mic_symbols *symbols = open_symbols(stripped);
  struct tally tally = {0};
  char name[300];
  snprintf(name, sizeof name, "%s+0x%lx", stripped, (unsigned long)start);
  for (uint64_t at = start; at < start + size; at++) expect(symbols, at, name, &tally);
  assert_int_equal(tally.named, size);
  mic_symbols_close(symbols);
  free(pieces.at);
}

static void split_functions_are_two_rows(void **state) {
  (void)state;
  sh("gcc -O2 $SRC/cold.c -o cold && strip -s -o cold_bare cold");
  expect_row("cold", "cold_bare", "work");
  expect_row("cold", "cold_bare", "work.cold");
  expect_row("cold", "cold_bare", "main");
}

static void debug_frame_alone_names(void **state) {
  (void)state;
  sh("gcc -O2 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables $SRC/cold.c -o debug &&"
     " objcopy --strip-all --keep-section=.debug_frame debug debug_bare");
  expect_row("debug", "debug_bare", "work");
  expect_row("debug", "debug_bare", "work.cold");
}

static void nothing_is_named_without_an_fde(void **state) {
  (void)state;
  sh("gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables $SRC/cold.c -o none && "
     "strip -s -o none_bare none");
  uint64_t work = address_of("none", "work");
  struct mic_symbols *symbols = open_symbols("none_bare");
  struct tally tally = {0};
  for (uint64_t at = work; at < work + 16; at++) expect(symbols, at, NULL, &tally);
  assert_int_equal(tally.none, 16);
  mic_symbols_close(symbols);
}

static void symbols_come_first(void **state) {
  (void)state;
  sh("gcc -O2 -rdynamic $SRC/cold.c -o shown && strip -s -o shown_bare shown");
  struct mic_symbols *symbols = open_symbols("shown_bare");
  const struct mic_symbol *s;
  assert_int_equal(mic_symbols_lookup(symbols, address_of("shown", "work") + 1, &s), 1);
  assert_string_equal(s->name, "work");
  assert_int_equal(mic_symbols_lookup(symbols, address_of("shown", "work.cold"), &s), 1);
  assert_string_equal(s->linkage_name, "");
  mic_symbols_close(symbols);
}

/* Takes the section headers off, as sstrip does. */
static void take_headers_off(const char *program) {
  static const uint8_t zeros[8];
  int fd = open(in_dir(program), O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, zeros, 8, 40), 8); /* e_shoff */
  assert_int_equal(pwrite(fd, zeros, 4, 60), 4); /* e_shnum, e_shstrndx */
  close(fd);
}

/* What the dynamic linker knows has its name, and functions have their starts. */
static void names_without_section_headers(void **state) {
  (void)state;
  static const char *const styles[] = {"gnu", "sysv", "both"};
  for (size_t i = 0; i < 3; i++) {
    sh("gcc -O2 -rdynamic -Wl,--hash-style=%s $SRC/cold.c -o full && strip -s -o off full",
       styles[i]);
    take_headers_off("off");
    struct symbol_list list = list_symbols("full");
    struct mic_symbols *symbols = open_symbols("off");
    const struct mic_symbol *s;
    size_t named = 0;
    for (size_t k = 0; k < list.count; k++) {
      const struct symbol_line *l = &list.at[k];
      if (l->type != 'T' || l->size == 0) continue;
      assert_int_equal(mic_symbols_lookup(symbols, l->value + l->size - 1, &s), 1);
      assert_string_equal(s->name, l->name);
      named++;
    }
    assert_true(named >= 3); /* _start, main, work */
    assert_int_equal(mic_symbols_lookup(symbols, address_of("full", "work.cold"), &s), 1);
    assert_string_equal(s->linkage_name, "");
    mic_symbols_close(symbols);
    free(list.at);
  }
}

/* An FDE made to cover everything, past the end of its segment, names nothing. */
static void an_fde_that_leaves_its_segment_is_no_piece(void **state) {
  (void)state;
  sh("gcc -O2 $SRC/wide_fde.S -nostdlib -shared -o wide_fde && strip -s wide_fde");
  struct pieces pieces = list_pieces("wide_fde");
  assert_int_equal(pieces.count, 2);
  struct mic_symbols *symbols = open_symbols("wide_fde");
  struct tally tally = {0};
  char name[64];
  snprintf(name, sizeof name, "wide_fde+0x%lx", (unsigned long)pieces.at[0].start);
  for (uint64_t at = pieces.at[0].start; at < pieces.at[0].end; at++)
    expect(symbols, at, name, &tally);
  for (uint64_t at = pieces.at[1].start; at < pieces.at[1].start + 64; at++)
    expect(symbols, at, NULL, &tally);
  mic_symbols_close(symbols);
  free(pieces.at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(real_stripped_libraries),
    cmocka_unit_test(split_functions_are_two_rows),
    cmocka_unit_test(debug_frame_alone_names),
    cmocka_unit_test(nothing_is_named_without_an_fde),
    cmocka_unit_test(symbols_come_first),
    cmocka_unit_test(names_without_section_headers),
    cmocka_unit_test(an_fde_that_leaves_its_segment_is_no_piece),
  };
  return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
