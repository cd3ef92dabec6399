/* made_test.c - perf maps: what a line covers, what is ambiguous, what is hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/made.h"

static struct mic_made_code *parse(const char *text) {
  struct mic_made_code *code;
  struct mic_error err = {0};
  if (mic_made_code_parse(text, strlen(text), "map", &code, &err) != 0) fail_msg("%s", err.msg);
  return code;
}

/* NULL: no line is there; "?": several names are. */
static const char *at(const struct mic_made_code *code, uint64_t address) {
  const char *name;
  enum mic_made made = mic_made_code_find(code, address, &name);
  return made == MIC_MADE_AMBIGUOUS ? "?" : name;
}

static void is(const struct mic_made_code *code, uint64_t address, const char *want) {
  const char *name = at(code, address);
  if (!want && !name) return;
  if (!want || !name || strcmp(want, name) != 0)
    fail_msg("0x%llx: %s, not %s", (unsigned long long)address, name ? name : "nothing",
             want ? want : "nothing");
}

static void names_ranges(void **state) {
  (void)state;
  struct mic_made_code *code = parse("1000 10 first\n2000 20 LazyCompile:*f /a b.js:1:2\n"
                                     "0x3000 0X8 prefixed\r\n4000 0 byte\nffffffffffffff00 80 top\n"
                                     "5000 10 not whole");
  is(code, 0, NULL);
  is(code, 0xfff, NULL);
  is(code, 0x1000, "first");
  is(code, 0x100f, "first");
  is(code, 0x1010, NULL);
  is(code, 0x201f, "LazyCompile:*f /a b.js:1:2");
  is(code, 0x3007, "prefixed");
  is(code, 0x4000, "byte");
  is(code, 0x4001, NULL);
  is(code, 0xffffffffffffff00, "top");
  is(code, UINT64_MAX, NULL);
  is(code, 0x5000, NULL); /* its line has no end yet */
  assert_int_equal(mic_made_code_odd_lines(code), 0);
  mic_made_code_free(code);
}

static void tells_no_reused_address(void **state) {
  (void)state;
  struct mic_made_code *code = parse("1000 100 old\n1080 10 new\n1080 10 new\n1070 20 newer\n"
                                     "2000 10 same\n2008 10 same\n2010 8 same\n"
                                     "3000 10 a\n3010 10 b\n");
  is(code, 0x106f, "old");
  is(code, 0x1070, "?");
  is(code, 0x108f, "?");
  is(code, 0x1090, "old");
  is(code, 0x2017, "same");
  is(code, 0x2018, NULL);
  is(code, 0x300f, "a"); /* side by side */
  is(code, 0x3010, "b");
  mic_made_code_free(code);
}

static void leaves_out_odd_lines(void **state) {
  (void)state;
  static const char text[] = "\n \nx\n10\n10 20\n10 20 \n-1 2 name\n1 -2 name\ng0 10 name\n"
                             "11111111111111111 1 long\n1 11111111111111111 long\n"
                             "ffffffffffffffff 2 past\n10,20 name\n1 2 with\0in\n1000 8 good\n";
  struct mic_made_code *code;
  assert_int_equal(mic_made_code_parse(text, sizeof text - 1, "map", &code, NULL), 0);
  assert_int_equal(mic_made_code_odd_lines(code), 14);
  is(code, 0x1007, "good");
  is(code, 1, NULL);
  mic_made_code_free(code);
}

/* Ranges that all overlap: time and memory that grow with the lines alone. */
static void takes_many_overlaps(void **state) {
  (void)state;
  enum { LINES = 200000, ROOM = LINES * 40 };
  char *text = malloc(ROOM);
  size_t size = 0;
  for (unsigned i = 0; i < LINES; i++)
    size += (size_t)snprintf(text + size, ROOM - size, "%x %x f%u\n", i, 2 * (LINES - i) + 1, i);
  struct mic_made_code *code;
  assert_int_equal(mic_made_code_parse(text, size, "map", &code, NULL), 0);
  is(code, 0, "f0");
  is(code, 1, "?");
  is(code, 2 * LINES, "f0");
  is(code, 2 * LINES + 1, NULL);
  mic_made_code_free(code);
  free(text);
}

static void bounds_files(void **state) {
  (void)state;
  struct mic_made_code *code;
  struct mic_error err = {0};
  int fd = memfd_create("map", MFD_CLOEXEC);
  assert_int_equal(mic_made_code_read(fd, "map", &code, &err), 0); /* empty */
  is(code, 0, NULL);
  mic_made_code_free(code);
  assert_int_equal(ftruncate(fd, (1LL << 30) + 1), 0);
  assert_int_equal(mic_made_code_read(fd, "map", &code, &err), MIC_ELIMIT);
  assert_null(code);
  assert_non_null(strstr(err.msg, "more than 1073741824 bytes"));
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_int_equal(write(fd, "10 10 name\n", 11), 11);
  assert_int_equal(mic_made_code_read(fd, "map", &code, &err), 0);
  is(code, 0x1f, "name");
  mic_made_code_free(code);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_ranges),         cmocka_unit_test(tells_no_reused_address),
    cmocka_unit_test(leaves_out_odd_lines), cmocka_unit_test(takes_many_overlaps),
    cmocka_unit_test(bounds_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
