/* writer_test.c - what the writer leaves on the disk: the whole file or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/block.h"
#include "capture/format.h"
#include "capture/writer.h"

static char folder[64];

static char *in_folder(const char *name) {
  static char path[4][PATH_MAX];
  static unsigned turn;
  char *at = path[turn++ % 4];
  snprintf(at, PATH_MAX, "%s/%s", folder, name);
  return at;
}

static size_t files_in_folder(void) {
  glob_t found;
  size_t count = glob(in_folder("*"), 0, NULL, &found) == 0 ? found.gl_pathc : 0;
  globfree(&found);
  return count;
}

static int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/mic_writer_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  glob_t found;
  if (glob(in_folder("*"), 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
  globfree(&found);
  return rmdir(folder);
}

static struct mic_writer *open_writer(const char *path) {
  struct mic_error err = {0};
  struct mic_writer *w;
  if (mic_writer_open(path, &w, &err) != 0) fail_msg("%s", err.msg);
  return w;
}

static void finish(struct mic_writer *w, bool keep_old) {
  struct mic_error err = {0};
  if (mic_writer_finish(w, keep_old, &err) != 0) fail_msg("%s", err.msg);
}

/* Rows of every kind, count of them samples. */
static void fill(struct mic_writer *w, uint32_t count) {
  mic_writer_sources(
    w, &(struct mic_sources_row){.name = mic_writer_text(w, "cpu-clock"), .period = 1000});
  for (uint32_t i = 0; i < count; i++)
    mic_writer_samples(w, &(struct mic_samples_row){.time_ns = i * 1000ULL + i % 7,
                                                    .stack = i * 2654435761U % 1000,
                                                    .weight = 1000});
}

static char *read_whole(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = mic_alloc(*size);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

static void gives_a_string_one_id(void **state) {
  (void)state;
  struct mic_writer *w = open_writer(in_folder("a"));
  uint32_t a = mic_writer_text(w, "a"), nul = mic_writer_string(w, "a\0b", 3);
  assert_int_equal(mic_writer_text(w, "a"), a);
  assert_int_equal(mic_writer_string(w, "a\0b", 3), nul);
  assert_int_not_equal(a, nul);
  assert_int_equal(mic_writer_text(w, NULL), 0);
  assert_int_equal(mic_writer_rows(w, MIC_TABLE_strings), 3);
  assert_int_equal(mic_writer_rows(w, MIC_TABLE_string_bytes), 4);
  mic_writer_discard(w);
  assert_int_equal(files_in_folder(), 0);
}

static void same_rows_give_the_same_bytes(void **state) {
  (void)state;
  size_t size[2];
  char *bytes[2];
  for (int i = 0; i < 2; i++) {
    char *path = in_folder(i ? "b" : "a");
    struct mic_writer *w = open_writer(path);
    fill(w, 3 * MIC_BLOCK_ROWS + 17);
    finish(w, false);
    bytes[i] = read_whole(path, &size[i]);
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  free(bytes[0]);
  free(bytes[1]);
}

static void spills_full_blocks(void **state) {
  (void)state;
  struct mic_writer *w = open_writer(in_folder("a"));
  fill(w, MIC_BLOCK_ROWS);
  uint64_t before = mic_writer_bytes(w);
  fill(w, 1);
  assert_true(mic_writer_bytes(w) > before);
  mic_writer_discard(w);
}

static void the_final_name_is_there_only_when_done(void **state) {
  (void)state;
  struct mic_writer *w = open_writer(in_folder("a"));
  fill(w, 10);
  assert_int_not_equal(access(in_folder("a"), F_OK), 0);
  assert_int_equal(files_in_folder(), 1);
  finish(w, false);
  assert_int_equal(access(in_folder("a"), F_OK), 0);
  assert_int_equal(files_in_folder(), 1);
}

static void keeps_an_old_file_when_asked(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 3; i++) {
    struct mic_writer *w = open_writer(in_folder("a"));
    fill(w, i + 1);
    finish(w, true);
  }
  assert_int_equal(files_in_folder(), 2);
  /* The last has three samples, the one before two: each file's own directory says so. */
  struct mic_writer *w = open_writer(in_folder("b"));
  fill(w, 2);
  finish(w, false);
  size_t old, two;
  char *a = read_whole(in_folder("a.old"), &old), *b = read_whole(in_folder("b"), &two);
  assert_int_equal(old, two);
  assert_memory_equal(a, b, two);
  free(a);
  free(b);
}

static void a_link_stays_a_link(void **state) {
  (void)state;
  finish(open_writer(in_folder("a")), false);
  assert_int_equal(symlink("a", in_folder("b")), 0);
  struct mic_writer *w = open_writer(in_folder("b"));
  fill(w, 10);
  finish(w, false);
  struct stat st;
  assert_int_equal(lstat(in_folder("b"), &st), 0);
  assert_true(S_ISLNK(st.st_mode));
}

static void two_writers_of_one_path_do_not_meet(void **state) {
  (void)state;
  struct mic_writer *a = open_writer(in_folder("a")), *b = open_writer(in_folder("a"));
  fill(a, 10);
  fill(b, 10);
  finish(a, false);
  finish(b, false);
  assert_int_equal(files_in_folder(), 1);
}

static void refuses_what_it_cannot_replace(void **state) {
  (void)state;
  struct mic_error err;
  struct mic_writer *w;
  assert_int_equal(mic_writer_open("/dev/null", &w, &err), MIC_EARG);
  assert_non_null(strstr(err.msg, "not a regular file"));
  assert_int_equal(mic_writer_open(folder, &w, &err), MIC_EARG);
  char link[300];
  snprintf(link, sizeof link, "%s", in_folder("link"));
  assert_int_equal(symlink("nowhere", link), 0);
  assert_int_equal(mic_writer_open(link, &w, &err), MIC_EARG);
  assert_non_null(strstr(err.msg, "link to a file that is not there"));
  assert_int_equal(unlink(link), 0); /* it was left as it is */
  assert_int_equal(mic_writer_open(in_folder("none/a"), &w, &err), MIC_ESYS);
  assert_int_equal(err.sys, ENOENT);
  assert_null(w);
}

static void refuses_rows_of_strings(void **state) {
  (void)state;
  struct mic_error err;
  struct mic_writer *w = open_writer(in_folder("a"));
  assert_int_equal(mic_writer_strings(w, &(struct mic_strings_row){.end = 9}), MIC_NONE);
  assert_true(mic_writer_failed(w));
  assert_int_equal(mic_writer_finish(w, false, &err), MIC_ESTATE);
  w = open_writer(in_folder("a"));
  mic_writer_strings(w, &(struct mic_strings_row){.end = 9});
  mic_writer_discard(w);
  assert_int_equal(files_in_folder(), 0);
}

/* A file system of 1 MiB: random weights, which do not compress, fill it. */
static void a_full_disk_is_one_error_and_no_file(void **state) {
  (void)state;
  if (mount("none", folder, "tmpfs", 0, "size=1m") != 0) {
    print_message("skipped: mounting a tmpfs needs CAP_SYS_ADMIN\n");
    skip();
  }
  struct mic_error err;
  struct mic_writer *w = open_writer(in_folder("a"));
  uint64_t random = 1;
  for (uint32_t i = 0; i < 6 * MIC_BLOCK_ROWS; i++) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    mic_writer_samples(w, &(struct mic_samples_row){.weight = random});
  }
  assert_true(mic_writer_failed(w));
  assert_int_equal(files_in_folder(), 0);
  assert_int_equal(mic_writer_finish(w, false, &err), MIC_ESYS);
  assert_int_equal(err.sys, ENOSPC);
  assert_non_null(strstr(err.msg, "free some space"));
  assert_int_equal(files_in_folder(), 0);
  assert_int_equal(umount(folder), 0);
}

/* Each step alone and together, for every width and for counts around the vector loops'. */
static void blocks_come_back_as_they_went(void **state) {
  (void)state;
  struct mic_encoder *e = mic_encoder_new();
  struct mic_decoder *d = mic_decoder_new();
  static const uint32_t counts[] = {1, 2, 15, 16, 17, 1000, MIC_BLOCK_ROWS};
  uint64_t *rows = mic_alloc(MIC_BLOCK_BYTES), *back = mic_alloc(MIC_BLOCK_BYTES);
  for (uint32_t i = 0; i < MIC_BLOCK_ROWS; i++) rows[i] = i * 0x9e3779b97f4a7c15ULL >> (i % 50);
  for (uint32_t width = 1; width <= 8; width *= 2)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      for (uint32_t steps = 0; steps < 4; steps++) {
        struct mic_encoded got = mic_encode(e, rows, counts[c], width, steps);
        memset(back, 0xee, MIC_BLOCK_BYTES);
        assert_true(mic_decode(d, got.bytes, got.size, got.encoding, back, counts[c], width));
        assert_memory_equal(rows, back, (size_t)counts[c] * width);
      }
  free(rows);
  free(back);
  mic_encoder_free(e);
  mic_decoder_free(d);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    CASE(gives_a_string_one_id),
    CASE(same_rows_give_the_same_bytes),
    CASE(spills_full_blocks),
    CASE(the_final_name_is_there_only_when_done),
    CASE(keeps_an_old_file_when_asked),
    CASE(a_link_stays_a_link),
    CASE(two_writers_of_one_path_do_not_meet),
    CASE(refuses_what_it_cannot_replace),
    CASE(refuses_rows_of_strings),
    CASE(a_full_disk_is_one_error_and_no_file),
    CASE(blocks_come_back_as_they_went),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
