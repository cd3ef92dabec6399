/*
 * listing_test.c - listings against objdump, and images that are not what was recorded.
 */
#include "annotate/listing.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "image/symbols_fixture.h"

static char build_id[2 * 64 + 1];

/* The build ID of a program of the run's folder, as readelf prints it. */
static const char *build_id_of(const char *program) {
  char command[600];
  snprintf(command, sizeof command,
           "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p' | tr -d '\\n'",
           in_dir(program));
  FILE *pipe = popen(command, "r");
  build_id[0] = '\0';
  if (!fgets(build_id, sizeof build_id, pipe)) build_id[0] = '\0';
  pclose(pipe);
  return build_id;
}

static int open_as(const char *program, const char *id, struct mic_listing **out,
                   struct mic_error *err) {
  struct stat st = {0};
  const char *path = in_dir(program);
  (void)stat(path, &st);
  struct mic_listing_source source = {
    .size = sizeof source,
    .path = path,
    .build_id = id,
    .inode = st.st_ino,
    .file_size = (uint64_t)st.st_size,
    .recorded_at_ns = (uint64_t)(time(NULL) + 10) * 1000000000u,
  };
  return mic_listing_open(&source, out, err);
}

static struct mic_listing *open_listing(const char *program) {
  struct mic_listing *l = NULL;
  struct mic_error err = {0};
  if (open_as(program, build_id_of(program), &l, &err) != MIC_OK) fail_msg("%s", err.msg);
  return l;
}

static void add(struct mic_listing *l, uint64_t address, const char *name) {
  struct mic_error err = {0};
  if (mic_listing_add(l, address, name, &err) != MIC_OK) fail_msg("%s", err.msg);
}

static void decode(struct mic_listing *l) {
  struct mic_error err = {0};
  if (mic_listing_decode(l, &err) != MIC_OK) fail_msg("%s", err.msg);
}

/* objdump's instructions of a function, in order, are the listing's: where, how long, what. */
static uint64_t compare(const char *program, const char *symbol) {
  struct mic_listing *l = open_listing(program);
  add(l, address_of(program, symbol), symbol);
  decode(l);
  char command[700], line[4096];
  snprintf(command, sizeof command,
           "objdump -d --wide --disassemble='%s' '%s' | sed -nE 's/^ +([0-9a-f]+):\\t([0-9a-f "
           "]+)\\t?(.*)/\\1 \\2|\\3/p'",
           symbol, in_dir(program));
  FILE *pipe = popen(command, "r");
  uint64_t count = 0;
  while (fgets(line, sizeof line, pipe)) {
    struct mic_listing_row row;
    uint64_t address = strtoull(line, NULL, 16);
    unsigned length = 0;
    for (const char *at = strchr(line, ' '); *at != '|'; at++)
      length += at[0] == ' ' && at[1] > ' ' && at[1] != '|';
    assert_int_equal(mic_listing_row(l, count, &row), MIC_OK);
    if (row.address != address || row.length != length)
      fail_msg("row %" PRIu64 ": 0x%" PRIx64 " %u %s, objdump: %u %s", count, row.address,
               row.length, row.text, length, line);
    char word[32];
    if (sscanf(strchr(line, '|') + 1, "%31s", word) == 1 && strcmp(word, "jmp") == 0)
      assert_string_equal(strncmp(row.text, "jmp", 3) == 0 ? "jmp" : row.text, "jmp");
    count++;
  }
  pclose(pipe);
  assert_int_equal(mic_listing_rows(l), count);
  mic_listing_close(l);
  return count;
}

static void agrees_with_objdump(void **state) {
  (void)state;
  NEED("objdump");
  sh("g++ -g -O2 $SRC/inlines.cc -o inlines 2>/dev/null || g++ -g -O2 -c $SRC/inlines.cc -o "
     "inlines");
  sh("gcc -g -O2 $SRC/apart.c -o apart");
  assert_true(compare("apart", "main") >= 3);
  assert_true(compare("apart", "_start") > 5);
  assert_true(compare("apart", "apart") > 100000);
}

/* Each copy of an inlined function is a range of its own, found by an address in it. */
static void inlined_copies_apart(void **state) {
  (void)state;
  sh("gcc -g -O2 $SRC/apart.c -o apart");
  struct mic_listing *l = open_listing("apart");
  uint64_t start = address_of("apart", "apart");
  struct mic_symbols *symbols = open_symbols("apart");
  size_t copies = 0;
  for (uint64_t at = start; at < start + 100100; at++) {
    const struct mic_symbol *frames;
    size_t count = mic_symbols_lookup(symbols, at, &frames);
    if (count < 2 || strcmp(frames[0].name, "helper") != 0) continue;
    add(l, at, "helper");
    copies++;
  }
  mic_symbols_close(symbols);
  assert_true(copies > 8);
  decode(l);
  uint64_t rows = mic_listing_rows(l), low = 0, high = 0;
  assert_true(rows >= 6 && rows < 40);
  for (uint64_t i = 0; i < rows; i++) {
    struct mic_listing_row row;
    struct mic_listing_frame frames[4];
    mic_listing_row(l, i, &row);
    assert_string_not_equal(row.text, "nop");
    assert_int_equal(mic_listing_frames(l, i, frames, 4), 2);
    assert_string_equal(frames[0].name, "helper");
    assert_string_equal(frames[1].name, "apart");
    assert_true(frames[0].line >= 4 && frames[0].line <= 7);
    assert_true(frames[1].line == 10 || frames[1].line == 12);
    if (row.address < start + 1000) low++;
    if (row.address >= start + 100000) high++;
  }
  assert_true(low > 2 && high > 2);
  assert_int_equal(low + high, rows);
  mic_listing_close(l);
}

/* A branch names where it goes; a name that is not there is refused. */
static void targets_and_strangers(void **state) {
  (void)state;
  sh("gcc -g -O2 $SRC/apart.c -o apart");
  struct mic_listing *l = open_listing("apart");
  struct mic_error err = {0};
  assert_int_equal(mic_listing_add(l, address_of("apart", "main"), "apart", &err), MIC_ENOENT);
  assert_non_null(strstr(err.msg, "apart is not at 0x"));
  assert_int_equal(mic_listing_add(l, 1, "apart", &err), MIC_ENOENT);
  add(l, address_of("apart", "main"), "main");
  add(l, address_of("apart", "main"), "main");
  decode(l);
  bool found = false;
  for (uint64_t i = 0; i < mic_listing_rows(l); i++) {
    struct mic_listing_row row;
    mic_listing_row(l, i, &row);
    found = found || strstr(row.text, "<apart>");
  }
  assert_true(found);
  struct mic_listing_row row;
  assert_int_equal(mic_listing_row(l, mic_listing_rows(l), &row), MIC_ENOENT);
  mic_listing_close(l);
}

/* Code without a symbol ends where its call-frame information does. */
static void stripped_code(void **state) {
  (void)state;
  sh("gcc -g -O2 $SRC/apart.c -o apart && cp apart stripped && strip -s stripped");
  uint64_t start = address_of("apart", "apart");
  struct mic_listing *l = open_listing("stripped");
  add(l, start + 100004, "");
  decode(l);
  struct mic_listing_row row;
  mic_listing_row(l, 0, &row);
  assert_int_equal(row.address, start);
  mic_listing_row(l, mic_listing_rows(l) - 1, &row);
  assert_string_equal(row.text, "ret");
  mic_listing_close(l);
}

/* A symbol may claim more than the file has, and bytes that are no code. */
static void odd_code(void **state) {
  (void)state;
  sh("printf '.globl odd\\n.type odd,@function\\nodd:\\n.byte 0x06, 0xc3, 0x0f\\n.size odd, 3\\n"
     ".globl far\\n.type far,@function\\n.set far, odd\\n.size far, 1 << 40\\n.globl main\\nmain: "
     "ret\\n.size main, 1\\n' > odd.s && gcc odd.s -o odd");
  struct mic_listing *l = open_listing("odd");
  add(l, address_of("odd", "odd"), "odd");
  decode(l);
  const char *texts[] = {"(bad)", "ret", "(bad)"};
  assert_int_equal(mic_listing_rows(l), 3);
  for (uint64_t i = 0; i < 3; i++) {
    struct mic_listing_row row;
    mic_listing_row(l, i, &row);
    assert_string_equal(row.text, texts[i]);
    assert_int_equal(row.length, 1);
  }
  struct mic_error err = {0};
  /* A size that no segment has proves nothing. */
  assert_int_equal(mic_listing_add(l, address_of("odd", "far"), "far", &err), MIC_ENOENT);
  mic_listing_close(l);
}

static void only_what_was_recorded(void **state) {
  (void)state;
  sh("gcc -g -O2 $SRC/apart.c -o apart && cp apart other && objcopy --remove-section "
     ".note.gnu.build-id other bare");
  struct mic_listing *l;
  struct mic_error err = {0};
  assert_int_equal(open_as("nowhere", "00", &l, &err), MIC_ENOENT);
  assert_non_null(strstr(err.msg, "nowhere is not there"));
  assert_int_equal(open_as("apart", "0011223344", &l, &err), MIC_ESTATE);
  assert_non_null(strstr(err.msg, "is not what was recorded: its build ID is "));
  assert_int_equal(open_as("bare", "0011223344", &l, &err), MIC_ESTATE);
  assert_int_equal(open_as("apart", "", &l, &err), MIC_ESTATE);
  assert_int_equal(open_as("bare", "", &l, &err), MIC_OK);
  mic_listing_close(l);
  /* Written after the recording began. */
  struct stat st;
  assert_int_equal(stat(in_dir("bare"), &st), 0);
  struct mic_listing_source source = {.size = sizeof source,
                                      .path = in_dir("bare"),
                                      .build_id = "",
                                      .inode = st.st_ino,
                                      .file_size = (uint64_t)st.st_size,
                                      .recorded_at_ns = (uint64_t)st.st_mtime * 1000000000u};
  assert_int_equal(mic_listing_open(&source, &l, &err), MIC_ESTATE);
  /* Written since, in place, with the time of the last write set back. */
  struct timespec changed = st.st_ctim;
  source.recorded_at_ns = (uint64_t)changed.tv_sec * 1000000000u + (uint64_t)changed.tv_nsec + 1;
  assert_int_equal(mic_listing_open(&source, &l, &err), MIC_OK);
  mic_listing_close(l);
  while (st.st_ctim.tv_sec == changed.tv_sec && st.st_ctim.tv_nsec == changed.tv_nsec) {
    sh("cp -p bare same && cat same > bare && touch -r same bare");
    assert_int_equal(stat(in_dir("bare"), &st), 0);
  }
  assert_int_equal(mic_listing_open(&source, &l, &err), MIC_ESTATE);
  source.size--;
  assert_int_equal(mic_listing_open(&source, &l, &err), MIC_EARG);
  sh("echo hello > text");
  assert_int_equal(open_as("text", "", &l, &err), MIC_EFORMAT);
  assert_int_equal(open_as(".", "", &l, &err), MIC_ENOENT);
}

/* The program itself may stand under its build ID. */
static void found_by_build_id(void **state) {
  (void)state;
  sh("gcc -g -O2 $SRC/apart.c -o apart");
  build_id_of("apart");
  sh("mkdir -p debug/.build-id/%.2s && cp apart debug/.build-id/%.2s/%s", build_id, build_id,
     build_id + 2);
  struct mic_listing *l;
  struct mic_error err = {0};
  struct mic_listing_source source = {.size = sizeof source,
                                      .path = in_dir("gone"),
                                      .build_id = build_id,
                                      .debug_dir = in_dir("debug")};
  if (mic_listing_open(&source, &l, &err) != MIC_OK) fail_msg("%s", err.msg);
  assert_non_null(strstr(mic_listing_path(l), "/.build-id/"));
  assert_true(mic_listing_written_ns(l) > 0);
  add(l, address_of("apart", "main"), "main");
  mic_listing_close(l);
}

static void intel_syntax(void **state) {
  (void)state;
  sh("gcc -O2 $SRC/apart.c -o apart");
  for (uint32_t intel = 0; intel < 2; intel++) {
    struct mic_listing *l;
    struct mic_error err = {0};
    struct mic_listing_source source = {.size = sizeof source,
                                        .intel = intel,
                                        .path = in_dir("apart"),
                                        .build_id = build_id_of("apart")};
    assert_int_equal(mic_listing_open(&source, &l, &err), MIC_OK);
    add(l, address_of("apart", "apart"), "apart");
    decode(l);
    bool percent = false;
    for (uint64_t i = 0; i < 8; i++) {
      struct mic_listing_row row;
      mic_listing_row(l, i, &row);
      percent = percent || strchr(row.text, '%');
    }
    assert_int_equal(percent, !intel);
    assert_non_null(mic_listing_problem(l));
    mic_listing_close(l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(agrees_with_objdump),    cmocka_unit_test(inlined_copies_apart),
    cmocka_unit_test(targets_and_strangers),  cmocka_unit_test(odd_code),
    cmocka_unit_test(only_what_was_recorded), cmocka_unit_test(found_by_build_id),
    cmocka_unit_test(intel_syntax),           cmocka_unit_test(stripped_code),
  };
  return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
