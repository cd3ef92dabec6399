/* symbolize_test.c - jobs over captures made here, right and hostile ones. */
#include "image/symbols_fixture.h"

#include <poll.h>
#include <sys/stat.h>

#include "base/map.h"
#include "capture/reader.h"
#include "capture/writer.h"
#include "image/elf.h"
#include "symbolize/symbolize.h"

static struct mic_error err;

/* --- captures ------------------------------------------------------------------------------- */

static char input[512], output[512];

static struct mic_writer *begin(void) {
  struct mic_writer *w;
  snprintf(input, sizeof input, "%s", in_dir("in.usprof"));
  snprintf(output, sizeof output, "%s", in_dir("out.usprof"));
  unlink(output);
  if (mic_writer_open(input, &w, &err) != MIC_OK) fail_msg("%s", err.msg);
  return w;
}

static void add_module(struct mic_writer *w, const char *path, const char *build_id) {
  struct mic_modules_row row = {.kind = MIC_MODULE_ELF,
                                .path = mic_writer_text(w, path),
                                .name = mic_writer_text(w, "module"),
                                .build_id = mic_writer_text(w, build_id)};
  mic_writer_modules(w, &row);
}

static uint32_t add_location(struct mic_writer *w, uint32_t module, uint64_t offset) {
  struct mic_locations_row row = {.kind = MIC_LOCATION_NATIVE, .module = module, .offset = offset};
  return mic_writer_locations(w, &row);
}

/* A function and a line for a location; depth 0. */
static void add_line(struct mic_writer *w, uint32_t location, const char *name, const char *linkage,
                     uint32_t line) {
  struct mic_functions_row function = {.name = mic_writer_text(w, name),
                                       .linkage_name = mic_writer_text(w, linkage),
                                       .module = 0,
                                       .file = MIC_NONE};
  struct mic_lines_row row = {.location = location,
                              .function = mic_writer_functions(w, &function),
                              .file = MIC_NONE,
                              .line = line};
  mic_writer_lines(w, &row);
}

static void end(struct mic_writer *w) {
  if (mic_writer_finish_checked(w, 0, &err) != MIC_OK) fail_msg("%s", err.msg);
}

static const char *build_id_of(const char *program) {
  static char hex[2 * MIC_BUILD_ID_MAX + 1];
  struct mic_elf *elf;
  const uint8_t *id;
  int fd = open(in_dir(program), O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_elf_open(fd, program, &elf, &err), MIC_OK);
  size_t size = mic_elf_build_id(elf, &id);
  for (size_t i = 0; i < size; i++) snprintf(hex + 2 * i, 3, "%02x", id[i]);
  mic_elf_close(elf);
  close(fd);
  return hex;
}

/* --- jobs ----------------------------------------------------------------------------------- */

static uint32_t run_job(const char *folder) {
  const char *folders[] = {folder, NULL};
  struct mic_symbolize_options options = {
    .size = sizeof options, .input = input, .output = output, .debug_dirs = folders};
  struct mic_symbolize *job;
  int32_t signal;
  if (mic_symbolize_new(&options, &job, &err) != MIC_OK) fail_msg("%s", err.msg);
  uint32_t event;
  while ((event = mic_symbolize_poll(job, 1000, &signal)) == MIC_SYMBOLIZE_TICK) continue;
  mic_symbolize_error(job, &err);
  mic_symbolize_free(job);
  return event;
}

static struct mic_capture *symbolized(const char *folder) {
  struct mic_capture *cap;
  if (run_job(folder) != MIC_SYMBOLIZE_DONE) fail_msg("%s", err.msg);
  if (mic_capture_open(output, &cap, &err) != MIC_OK) fail_msg("%s", err.msg);
  return cap;
}

static const char *string_of(const struct mic_capture *cap, uint32_t id) {
  static char text[4][4096];
  static unsigned turn;
  uint64_t size;
  const char *bytes = mic_capture_string(cap, id, &size);
  char *to = text[turn++ % 4];
  snprintf(to, sizeof text[0], "%.*s", (int)size, bytes);
  return to;
}

static const char *column_text(const struct mic_capture *cap, const char *table, const char *column,
                               uint64_t row) {
  uint64_t rows;
  const uint32_t *ids = mic_capture_array(cap, table, column, &rows);
  assert_true(row < rows);
  return string_of(cap, ids[row]);
}

/* The last naming's problem. */
static const char *problem_of(const struct mic_capture *cap) {
  return column_text(cap, "naming", "problem", mic_capture_rows(cap, "naming") - 1);
}

static uint64_t first_line(const struct mic_capture *cap, uint32_t location) {
  uint64_t rows, i = 0;
  const uint32_t *of = mic_capture_array(cap, "lines", "location", &rows);
  while (i < rows && of[i] < location) i++;
  assert_true(i < rows && of[i] == location);
  return i;
}

static const char *linkage_at(const struct mic_capture *cap, uint32_t location) {
  const uint32_t *function = mic_capture_array(cap, "lines", "function", NULL);
  return column_text(cap, "functions", "linkage_name", function[first_line(cap, location)]);
}

static uint32_t line_at(const struct mic_capture *cap, uint32_t location) {
  const uint32_t *line = mic_capture_array(cap, "lines", "line", NULL);
  return line[first_line(cap, location)];
}

/* --- tests ---------------------------------------------------------------------------------- */

static void compare(const struct mic_capture *cap, struct mic_symbols *symbols, uint32_t location,
                    uint64_t offset) {
  const struct mic_symbol *frames;
  uint64_t rows;
  const uint32_t *of = mic_capture_array(cap, "lines", "location", &rows);
  const uint32_t *function = mic_capture_array(cap, "lines", "function", NULL);
  const uint32_t *line = mic_capture_array(cap, "lines", "line", NULL);
  size_t count = mic_symbols_lookup(symbols, offset, &frames);
  if (count == 0) return;
  uint64_t at = first_line(cap, location);
  for (size_t i = 0; i < count; i++, at++) {
    assert_true(at < rows && of[at] == location);
    assert_string_equal(column_text(cap, "functions", "name", function[at]), frames[i].name);
    assert_int_equal(line[at], frames[i].line);
  }
  assert_true(at == rows || of[at] != location);
}

/* Where the text section begins. */
static uint64_t code_of(const char *program) {
  struct mic_elf *elf;
  struct mic_elf_section text;
  int fd = open(in_dir(program), O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_elf_open(fd, program, &elf, &err), MIC_OK);
  assert_true(mic_elf_section(elf, ".text", &text, &err));
  uint64_t at = text.vaddr;
  mic_elf_close(elf);
  close(fd);
  return at;
}

/* Every 4th byte of the code, in no order: what a lookup gives is what the capture gets. */
static void names_every_place(void **state) {
  (void)state;
  NEED("g++");
  sh("g++ -g -O2 -shared -fPIC -Wl,--build-id $SRC/inlines.cc $SRC/base.cc -o program");
  uint64_t start = code_of("program");
  struct mic_writer *w = begin();
  add_module(w, in_dir("program"), build_id_of("program"));
  enum { PLACES = 200 };
  for (uint64_t i = 0; i < PLACES; i++) add_location(w, 0, start + 4 * (i * 37 % PLACES));
  end(w);
  struct mic_capture *cap = symbolized(NULL);
  struct mic_symbols *symbols = open_symbols("program");
  uint32_t inlined = 0;
  for (uint64_t i = 0; i < PLACES; i++)
    compare(cap, symbols, (uint32_t)i, start + 4 * (i * 37 % PLACES));
  const uint32_t *depth = mic_capture_array(cap, "lines", "depth", NULL);
  for (uint64_t i = 0; i < mic_capture_rows(cap, "lines"); i++) inlined += depth[i] > 0;
  assert_true(inlined > 0);
  assert_string_equal(column_text(cap, "naming", "image", 0), in_dir("program"));
  mic_symbols_close(symbols);
  mic_capture_close(cap);
}

/* What is there against what is found: the fuller one, never one that lacks a proven name. */
static void never_loses_a_name(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int one(void) { return 1; }\nint main(void) { return one(); }\n' > a.c");
  sh("gcc -g -O0 -Wl,--build-id a.c -o program");
  uint64_t one = address_of("program", "one");
  struct mic_writer *w = begin();
  add_module(w, in_dir("program"), build_id_of("program"));
  for (uint32_t i = 0; i < 6; i++) add_location(w, 0, one);
  add_line(w, 0, "another", "another", 0);
  add_line(w, 1, "module+0x1000", "", 0);
  add_line(w, 2, "one", "one", 0);
  add_line(w, 3, "one", "one", 77);
  add_line(w, 4, "one", "two", 5);
  end(w);
  struct mic_capture *cap = symbolized(NULL);
  assert_string_equal(linkage_at(cap, 0), "another");
  assert_string_equal(linkage_at(cap, 1), "one");
  assert_int_equal(line_at(cap, 1), 1);
  assert_int_equal(line_at(cap, 2), 1);
  assert_int_equal(line_at(cap, 3), 1);
  assert_string_equal(linkage_at(cap, 4), "two");
  assert_int_equal(line_at(cap, 4), 5);
  assert_int_equal(line_at(cap, 5), 1);
  mic_capture_close(cap);
}

/* A line is not taken back by a file that has none. */
static void never_loses_a_line(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int one(void) { return 1; }\nint main(void) { return one(); }\n' > a.c");
  sh("gcc -O0 -Wl,--build-id a.c -o program");
  struct mic_writer *w = begin();
  add_module(w, in_dir("program"), build_id_of("program"));
  add_location(w, 0, address_of("program", "one"));
  add_line(w, 0, "one", "one", 3);
  end(w);
  struct mic_capture *cap = symbolized(NULL);
  assert_int_equal(line_at(cap, 0), 3);
  assert_string_equal(problem_of(cap), "no debug information");
  mic_capture_close(cap);
}

/* Offsets in a file, as imported profiles have them, are addresses through the image's segments. */
static void names_file_offsets(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int one(void) { return 1; }\nint main(void) { return one(); }\n' > a.c");
  sh("gcc -g -O0 -no-pie -Wl,--build-id a.c -o program");
  uint64_t one = address_of("program", "one");
  struct mic_writer *w = begin();
  struct mic_modules_row module = {.kind = MIC_MODULE_OTHER,
                                   .path = mic_writer_text(w, in_dir("program")),
                                   .build_id = mic_writer_text(w, build_id_of("program"))};
  mic_writer_modules(w, &module);
  /* A program at a fixed address is linked 4 MiB up; its file begins there. */
  uint64_t offsets[] = {one - 0x400000, one, 1ULL << 40};
  for (size_t i = 0; i < 3; i++) {
    struct mic_locations_row row = {.kind = MIC_LOCATION_FILE, .module = 0, .offset = offsets[i]};
    mic_writer_locations(w, &row);
  }
  end(w);
  struct mic_capture *cap = symbolized(NULL);
  assert_string_equal(linkage_at(cap, 0), "one");
  assert_int_equal(mic_capture_rows(cap, "lines"), 1);
  mic_capture_close(cap);
}

/* As profiles of the Firefox Profiler have them: from the first segment's address on. */
static void names_relative_addresses(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int one(void) { return 1; }\nint main(void) { return one(); }\n' > a.c");
  for (int fixed = 0; fixed < 2; fixed++) {
    sh(fixed ? "gcc -g -O0 -no-pie -Wl,--build-id a.c -o program"
             : "gcc -g -O0 -fpie -pie -Wl,--build-id a.c -o program");
    uint64_t one = address_of("program", "one"), base = fixed ? 0x400000 : 0;
    struct mic_writer *w = begin();
    add_module(w, in_dir("program"), build_id_of("program"));
    uint64_t offsets[] = {one - base, UINT64_MAX, 1ULL << 40};
    for (size_t i = 0; i < 3; i++) {
      struct mic_locations_row row = {.kind = MIC_LOCATION_RELATIVE, .offset = offsets[i]};
      mic_writer_locations(w, &row);
    }
    end(w);
    struct mic_capture *cap = symbolized(NULL);
    assert_string_equal(linkage_at(cap, 0), "one");
    assert_int_equal(mic_capture_rows(cap, "lines"), 1);
    mic_capture_close(cap);
  }
}

static void needs_a_build_id(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int main(void) { return 1; }\n' > a.c && gcc -O0 -Wl,--build-id a.c -o program");
  char upper[2 * MIC_BUILD_ID_MAX + 1];
  snprintf(upper, sizeof upper, "%s", build_id_of("program"));
  for (char *c = upper; *c; c++)
    if (*c >= 'a') *c = (char)(*c - 'a' + 'A');
  const char *ids[] = {"",
                       "ab",
                       upper,
                       "abc",
                       "0123456789abcdef0123456789abcdef01234567",
                       "a build ID of more than sixty-four bytes, which no linker gives, in words "
                       "that are no hexadecimal digits, and ever on until it is too long"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    struct mic_writer *w = begin();
    add_module(w, in_dir("program"), ids[i]);
    add_location(w, 0, address_of("program", "main"));
    end(w);
    struct mic_capture *cap = symbolized(NULL);
    assert_int_equal(mic_capture_rows(cap, "lines"), 0);
    assert_non_null(strstr(problem_of(cap), "build ID"));
    mic_capture_close(cap);
  }
}

struct part {
  uint64_t offset, size;
};

/* A capture that kept parts of a file under a build ID that has no other file. */
static void keep_parts(const char *program, const struct part *parts, size_t count) {
  uint8_t *bytes = mic_alloc(1 << 20);
  int fd = open(in_dir(program), O_RDONLY | O_CLOEXEC);
  ssize_t size = read(fd, bytes, 1 << 20);
  close(fd);
  struct mic_writer *w = begin();
  add_module(w, "/nowhere/program", build_id_of(program));
  add_location(w, 0, address_of(program, "main"));
  uint64_t at = 0;
  for (size_t i = 0; i < count; i++) {
    for (uint64_t b = 0; b < parts[i].size; b++, at++)
      mic_writer_image_bytes(w, &(struct mic_image_bytes_row){bytes[b % (uint64_t)size]});
    mic_writer_image_parts(w, &(struct mic_image_parts_row){0, parts[i].offset, at});
  }
  end(w);
  free(bytes);
}

static void takes_no_wrong_parts(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int main(void) { return 1; }\n' > a.c && gcc -O0 -Wl,--build-id a.c -o program");
  const struct {
    struct part parts[2];
    size_t count;
    const char *problem;
  } cases[] = {
    {{{0, 100}, {50, 100}}, 2, "overlap"},
    {{{4096, 100}, {0, 100}}, 2, "overlap"},
    {{{0, 64}, {1ULL << 60, 100}}, 2, "at an offset that no file has"},
    {{{(1ULL << 36) - 10, 100}}, 1, "at an offset that no file has"},
    {{{0, 10}}, 1, "not what was recorded"},
    {{{0, 64}}, 1, "not what was recorded"},
    {{{0, 3000}}, 1, "no debug information"},
    {{{64, 3000}}, 1, "not what was recorded"},
    {{{0, 64}, {(1ULL << 35), 100}}, 2, "not what was recorded"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    keep_parts("program", cases[i].parts, cases[i].count);
    struct mic_capture *cap = symbolized(NULL);
    if (!strstr(problem_of(cap), cases[i].problem)) fail_msg("%zu: %s", i, problem_of(cap));
    mic_capture_close(cap);
  }
  struct stat st;
  assert_int_equal(stat(in_dir("program"), &st), 0);
  keep_parts("program", &(struct part){0, (uint64_t)st.st_size}, 1);
  struct mic_capture *cap = symbolized(NULL);
  assert_string_equal(linkage_at(cap, 0), "main");
  assert_string_equal(column_text(cap, "naming", "image", 0), "the capture");
  mic_capture_close(cap);
}

/* Folders with what is no debug file: nothing of it is waited for, followed or used. */
static void reads_odd_folders(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int main(void) { return 1; }\n' > a.c && gcc -g -O0 -Wl,--build-id a.c -o program");
  char id[2 * MIC_BUILD_ID_MAX + 1];
  snprintf(id, sizeof id, "%s", build_id_of("program"));
  uint64_t main_at = address_of("program", "main");
  sh("mkdir -p d/a/b && cd d && ln -s .. a/up && ln -s . self && mkfifo fifo && : > empty"
     " && printf '\\177ELF' > short && head -c 5000 ../program > cut && mkdir locked"
     " && ln -s /dev/zero zero && chmod 0 locked");
  for (int there = 0; there < 2; there++) {
    if (there) sh("mv program d/a/b/anything");
    struct mic_writer *w = begin();
    add_module(w, "/nowhere/program", id);
    add_location(w, 0, main_at);
    end(w);
    struct mic_capture *cap = symbolized(in_dir("d"));
    assert_int_equal(mic_capture_rows(cap, "lines"), there);
    mic_capture_close(cap);
  }
}

/* A hostile file that has the build ID: an error of it, and the others are named. */
static void survives_broken_files(void **state) {
  (void)state;
  NEED("gcc");
  sh("printf 'int main(void) { return 1; }\n' > a.c && gcc -g -O0 -Wl,--build-id a.c -o program");
  char id[2 * MIC_BUILD_ID_MAX + 1];
  snprintf(id, sizeof id, "%s", build_id_of("program"));
  uint64_t main_at = address_of("program", "main");
  for (uint32_t at = 0; at < 16000; at += 400) {
    sh("cp program broken && LC_ALL=C awk 'BEGIN { srand(%u);"
       " for (i = 0; i < 64; i++) printf(\"%%c\", int(rand() * 256)) }'"
       " | dd of=broken bs=1 seek=%u conv=notrunc status=none",
       at, at + 1000);
    struct mic_writer *w = begin();
    add_module(w, in_dir("broken"), id);
    add_module(w, in_dir("program"), id);
    add_location(w, 0, main_at);
    add_location(w, 1, main_at);
    end(w);
    struct mic_capture *cap = symbolized(NULL);
    assert_string_equal(linkage_at(cap, 1), "main");
    mic_capture_close(cap);
  }
}

static void can_be_stopped(void **state) {
  (void)state;
  struct mic_writer *w = begin();
  add_module(w, "/nowhere/program", "0123456789abcdef");
  for (uint32_t i = 0; i < 1000; i++) add_location(w, 0, i);
  end(w);
  struct mic_symbolize_options options = {.size = sizeof options, .input = input, .output = output};
  struct mic_symbolize *job;
  int32_t signal;
  uint32_t event;
  assert_int_equal(mic_symbolize_new(&options, &job, &err), MIC_OK);
  mic_symbolize_stop(job);
  while ((event = mic_symbolize_poll(job, 1000, &signal)) == MIC_SYMBOLIZE_TICK) continue;
  /* It may have been done already. */
  assert_true(event == MIC_SYMBOLIZE_FAILED || access(output, F_OK) == 0);
  mic_symbolize_free(job);
  assert_int_equal(mic_symbolize_new(&options, &job, &err), MIC_OK);
  mic_symbolize_free(job);
}

static void refuses_wrong_options(void **state) {
  (void)state;
  struct mic_symbolize *job;
  struct mic_symbolize_options options = {.size = 8, .input = "a", .output = "b"};
  assert_int_equal(mic_symbolize_new(&options, &job, &err), MIC_EARG);
  assert_null(job);
  options.size = sizeof options;
  options.input = in_dir("nothing");
  assert_int_not_equal(mic_symbolize_new(&options, &job, &err), MIC_OK);
  assert_null(job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(names_every_place, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(never_loses_a_name, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(never_loses_a_line, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(names_file_offsets, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(names_relative_addresses, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(needs_a_build_id, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(takes_no_wrong_parts, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(reads_odd_folders, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(survives_broken_files, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(can_be_stopped, fixture_begin, fixture_end),
    cmocka_unit_test_setup_teardown(refuses_wrong_options, fixture_begin, fixture_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
