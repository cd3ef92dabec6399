/* insn_test.c - instruction lengths against objdump's, over the code of system libraries. */
#include "unwind/insn.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/elf.h"

struct judged {
  uint64_t instructions, refused, wrong;
};

/* One line of objdump is "  address:\tbytes\ttext"; a line's length is where the next begins. */
static void judge_line(struct judged *j, const struct mic_elf *elf, uint64_t at, uint64_t next,
                       const char *text) {
  struct mic_insn i;
  size_t left;
  const uint8_t *bytes = mic_elf_at(elf, at, &left);
  if (!bytes || strstr(text, "(bad)") || strstr(text, ".byte")) return;
  if (bytes[0] == 0x9b) return; /* fwait, which objdump joins to what follows */
  j->instructions++;
  if (!mic_insn_decode(bytes, left, &i)) {
    j->refused++;
  } else if (i.length != next - at) {
    j->wrong++;
    if (j->wrong < 20)
      print_message("%#lx: %u bytes, objdump %lu: %s", at, i.length, next - at, text);
  }
}

static void judge(const char *path) {
  char command[256], line[512], text[512] = "";
  struct mic_error err;
  struct mic_elf *elf;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  assert_int_equal(mic_elf_open(fd, path, &elf, &err), MIC_OK);
  close(fd);
  struct judged j = {0};
  uint64_t last = 0;
  snprintf(command, sizeof command, "objdump -d -w '%s'", path);
  FILE *objdump = popen(command, "r");
  while (fgets(line, sizeof line, objdump)) {
    char *colon = strstr(line, ":\t");
    if (!colon) {
      last = 0; /* a label: what comes before may be cut by it */
      continue;
    }
    uint64_t at = strtoull(line, NULL, 16);
    if (last) judge_line(&j, elf, last, at, text);
    last = at;
    snprintf(text, sizeof text, "%s", colon + 2);
  }
  assert_int_equal(pclose(objdump), 0);
  print_message("%s: %lu instructions, %lu not decoded, %lu wrong\n", path, j.instructions,
                j.refused, j.wrong);
  assert_true(j.instructions > 1000);
  assert_int_equal(j.wrong, 0);
  assert_true(j.refused * 1000 < j.instructions);
  mic_elf_close(elf);
}

static void test_lengths(void **state) {
  (void)state;
  judge("/lib64/ld-linux-x86-64.so.2");
  judge("/lib/x86_64-linux-gnu/libc.so.6");
  judge("/lib/x86_64-linux-gnu/libm.so.6");
}

static void test_what_is_cut_short(void **state) {
  (void)state;
  static const uint8_t whole[] = {0x48, 0x8b, 0x84, 0x24, 0x80, 0, 0, 0}; /* mov 0x80(%rsp),%rax */
  struct mic_insn i;
  for (size_t size = 0; size < sizeof whole; size++) assert_false(mic_insn_decode(whole, size, &i));
  assert_true(mic_insn_decode(whole, sizeof whole, &i));
  assert_int_equal(i.length, sizeof whole);
  static const uint8_t prefixes[20] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90, 0x90};
  assert_false(mic_insn_decode(prefixes, sizeof prefixes, &i));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_what_is_cut_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
