/* rewrite_test.c - a capture with other rows in some tables, all else as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/forge.h"
#include "capture/generate.h"
#include "capture/rewrite.h"

static const enum mic_table_id replaced[] = {MIC_TABLE_lines, MIC_TABLE_naming};

static char folder[64], in[96], out[96], forged[96];
static struct mic_error err;

static int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/mic_rewrite_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(in, sizeof in, "%s/in", folder);
  snprintf(out, sizeof out, "%s/out", folder);
  snprintf(forged, sizeof forged, "%s/forged", folder);
  struct mic_generate_options o = {.size = sizeof o, .samples = 70000, .functions = 300};
  return mic_capture_generate(&o, in, &err);
}

static int tear_down(void **state) {
  (void)state;
  unlink(in);
  unlink(out);
  unlink(forged);
  return rmdir(folder);
}

static struct mic_capture *open_capture(const char *path) {
  struct mic_capture *cap;
  if (mic_capture_open(path, &cap, &err) != 0) fail_msg("%s: %s", path, err.msg);
  return cap;
}

static int begin(const char *from, const char *to, struct mic_capture **cap,
                 struct mic_writer **w) {
  int fd = open(from, O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_capture_open_fd(fd, cap, &err), 0);
  struct mic_rewrite rewrite = {
    .fd = fd, .capture = *cap, .replaced = replaced, .replaced_count = 2};
  int code = mic_rewrite_open(&rewrite, to, w, &err);
  close(fd);
  return code;
}

/* Each column of `was` is the beginning of that of `is`; of untouched tables all of it. */
static void holds(const struct mic_capture *was, const struct mic_capture *is) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    const char *table = mic_schema_tables[s->table].name;
    uint64_t before, after;
    const void *a = mic_capture_array(was, table, s->name, &before);
    const void *b = mic_capture_array(is, table, s->name, &after);
    if (s->table == MIC_TABLE_lines || s->table == MIC_TABLE_naming) continue;
    assert_true(after >= before);
    if (before && memcmp(a, b, before * s->width) != 0) fail_msg("%s.%s differs", table, s->name);
    bool grows = s->table == MIC_TABLE_strings || s->table == MIC_TABLE_string_bytes ||
                 s->table == MIC_TABLE_functions;
    if (!grows) assert_int_equal(before, after);
  }
}

static void add_rows(struct mic_writer *w, uint64_t functions) {
  uint32_t name = mic_writer_text(w, "a name that was not there");
  struct mic_functions_row row = {name, name, MIC_NONE, MIC_NONE, 0};
  assert_int_equal(mic_writer_functions(w, &row), functions);
  struct mic_lines_row line = {.location = 3, .function = (uint32_t)functions, .file = MIC_NONE};
  assert_int_equal(mic_writer_lines(w, &line), 0);
}

static void keeps_all_else(void **state) {
  (void)state;
  struct mic_capture *was, *is;
  struct mic_writer *w;
  assert_int_equal(begin(in, out, &was, &w), 0);
  uint64_t functions = mic_capture_rows(was, "functions"), size;
  uint32_t known = mic_writer_text(w, "generated");
  assert_true(known < mic_capture_rows(was, "strings"));
  add_rows(w, functions);
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  is = open_capture(out);
  holds(was, is);
  assert_int_equal(mic_capture_rows(is, "lines"), 1);
  assert_int_equal(mic_capture_rows(is, "naming"), 0);
  const uint32_t *names = mic_capture_array(is, "functions", "name", NULL);
  const char *text = mic_capture_string(is, names[functions], &size);
  assert_memory_equal(text, "a name that was not there", size);
  mic_capture_close(was);
  mic_capture_close(is);
}

/* In place: the file under the name is the old one, whole, until the new one is. */
static void replaces_the_file(void **state) {
  (void)state;
  struct mic_capture *was, *is;
  struct mic_writer *w;
  chmod(in, 0640);
  assert_int_equal(begin(in, in, &was, &w), 0);
  is = open_capture(in);
  mic_capture_close(is);
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  is = open_capture(in);
  holds(was, is);
  struct stat st;
  assert_int_equal(stat(in, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0640);
  mic_capture_close(was);
  mic_capture_close(is);
}

static void write_forged(struct forge *f) {
  forge_make(f);
  int fd = open(forged, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_int_equal(write(fd, f->out.at, f->out.count), f->out.count);
  close(fd);
}

/* Tables and columns of later versions are kept. */
static void keeps_the_unknown(void **state) {
  (void)state;
  struct forge f;
  struct mic_capture *was = open_capture(in), *is;
  struct mic_writer *w;
  struct mic_capture_info info;
  forge_take(&f, was);
  mic_capture_close(was);
  f.strange = true;
  f.header.minor = MIC_FORMAT_MINOR + 1;
  write_forged(&f);
  assert_int_equal(begin(forged, out, &was, &w), 0);
  add_rows(w, mic_capture_rows(was, "functions"));
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  is = open_capture(out);
  holds(was, is);
  mic_capture_info(is, &info);
  assert_int_equal(info.skipped, 2);
  assert_int_equal(info.minor, MIC_FORMAT_MINOR + 1);
  mic_capture_close(was);
  mic_capture_close(is);
  forge_free(&f);
}

/* Columns that a file's minor version does not have stay absent. */
static void keeps_the_version(void **state) {
  (void)state;
  struct forge f;
  struct mic_capture *was = open_capture(in), *is;
  struct mic_writer *w;
  forge_take(&f, was);
  mic_capture_close(was);
  f.header.minor = 0;
  f.no_table[MIC_TABLE_naming] = f.no_table[MIC_TABLE_image_parts] =
    f.no_table[MIC_TABLE_image_bytes] = true;
  f.no_column[MIC_COLUMN_sources_unit_name] = true;
  write_forged(&f);
  assert_int_equal(begin(forged, out, &was, &w), 0);
  mic_writer_naming(w, &(struct mic_naming_row){.module = 0});
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  is = open_capture(out);
  assert_int_equal(mic_capture_rows(is, "naming"), 1);
  assert_int_equal(mic_capture_rows(is, "samples"), mic_capture_rows(was, "samples"));
  mic_capture_close(was);
  mic_capture_close(is);
  forge_free(&f);
}

/* Rows that have what the file's version cannot say are refused, not cut. */
static void refuses_to_cut_rows(void **state) {
  (void)state;
  struct forge f;
  struct mic_capture *was = open_capture(in);
  struct mic_writer *w;
  forge_take(&f, was);
  mic_capture_close(was);
  f.header.minor = 0;
  f.no_table[MIC_TABLE_naming] = f.no_table[MIC_TABLE_image_parts] =
    f.no_table[MIC_TABLE_image_bytes] = true;
  f.no_column[MIC_COLUMN_sources_unit_name] = true;
  write_forged(&f);
  assert_int_equal(begin(forged, out, &was, &w), 0);
  mic_writer_sources(w, &(struct mic_sources_row){.unit_name = mic_writer_text(w, "objects")});
  assert_int_equal(mic_writer_finish(w, false, &err), MIC_EVERSION);
  assert_non_null(strstr(err.msg, "sources is of an older version without the column unit_name"));
  assert_int_equal(access(out, F_OK), -1);
  mic_capture_close(was);
  forge_free(&f);
}

/* A string that stands twice, as other writers may do, keeps both ids. */
static void keeps_doubled_strings(void **state) {
  (void)state;
  struct forge f;
  struct mic_capture *was = open_capture(in), *is;
  struct mic_writer *w;
  forge_take(&f, was);
  mic_capture_close(was);
  uint64_t end = f.rows[MIC_TABLE_string_bytes];
  for (int i = 0; i < 2; i++) forge_add(&f, MIC_TABLE_string_bytes);
  uint64_t row = forge_add(&f, MIC_TABLE_strings);
  forge_set(&f, MIC_COLUMN_strings_end, row, end + 1);
  forge_set(&f, MIC_COLUMN_strings_end, forge_add(&f, MIC_TABLE_strings), end + 2);
  write_forged(&f);
  assert_int_equal(begin(forged, out, &was, &w), 0);
  add_rows(w, mic_capture_rows(was, "functions"));
  uint64_t size;
  uint32_t name = mic_writer_text(w, "a name that was not there");
  assert_int_equal(name, row + 2);
  assert_int_equal(mic_writer_string(w, "", 1), row);
  assert_int_equal(mic_writer_finish(w, false, &err), 0);
  is = open_capture(out);
  holds(was, is);
  assert_memory_equal(mic_capture_string(is, name, &size), "a name", 6);
  mic_capture_close(was);
  mic_capture_close(is);
  forge_free(&f);
}

static void stops_when_cancelled(void **state) {
  (void)state;
  struct mic_capture *cap;
  struct mic_writer *w;
  atomic_bool cancel = true;
  int fd = open(in, O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_capture_open_fd(fd, &cap, &err), 0);
  struct mic_rewrite rewrite = {.fd = fd, .capture = cap, .cancel = &cancel};
  assert_int_equal(mic_rewrite_open(&rewrite, out, &w, &err), MIC_ESTATE);
  assert_int_equal(access(out, F_OK), -1);
  assert_null(w);
  mic_capture_close(cap);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(keeps_all_else, set_up, tear_down),
    cmocka_unit_test_setup_teardown(replaces_the_file, set_up, tear_down),
    cmocka_unit_test_setup_teardown(keeps_the_unknown, set_up, tear_down),
    cmocka_unit_test_setup_teardown(keeps_the_version, set_up, tear_down),
    cmocka_unit_test_setup_teardown(refuses_to_cut_rows, set_up, tear_down),
    cmocka_unit_test_setup_teardown(keeps_doubled_strings, set_up, tear_down),
    cmocka_unit_test_setup_teardown(stops_when_cancelled, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
