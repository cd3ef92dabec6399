/* elf_test.c - the ELF reader against readelf and objcopy, and against files that are wrong. */
#include "image/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/build_id.h"

static char work_dir[] = "/tmp/elf-test-XXXXXX";

static const char *in_dir(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", work_dir, name);
  return path;
}

static struct mic_elf *open_path(const char *path) {
  struct mic_error err = {0};
  struct mic_elf *elf;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  if (mic_elf_open(fd, path, &elf, &err) != MIC_OK) fail_msg("%s", err.msg);
  close(fd);
  return elf;
}

static void shell(const char *command) {
  char line[1024];
  snprintf(line, sizeof line, "cd %s && { %s; } >/dev/null 2>&1", work_dir, command);
  if (system(line) != 0) fail_msg("failed: %s", command);
}

static void expect_error(const void *bytes, size_t size, int code, const char *words) {
  struct mic_error err = {0};
  struct mic_elf *elf = NULL;
  assert_int_equal(mic_elf_open_memory(bytes, size, "t", &elf, &err), code);
  assert_null(elf);
  assert_non_null(strstr(err.msg, words));
}

static void test_refuses_what_is_no_image(void **state) {
  (void)state;
  Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
                  .e_type = ET_DYN,
                  .e_machine = EM_X86_64,
                  .e_phentsize = sizeof(Elf64_Phdr)};
  expect_error("#!/bin/sh\n", 10, MIC_EFORMAT, "not an ELF image");
  expect_error("", 0, MIC_EFORMAT, "not an ELF image");
  expect_error(&h, 20, MIC_EFORMAT, "cut short");
  Elf64_Ehdr wrong = h;
  wrong.e_ident[EI_CLASS] = ELFCLASS32;
  expect_error(&wrong, sizeof wrong, MIC_EUNSUPPORTED, "32-bit");
  wrong = h;
  wrong.e_ident[EI_DATA] = ELFDATA2MSB;
  expect_error(&wrong, sizeof wrong, MIC_EUNSUPPORTED, "little-endian");
  wrong = h;
  wrong.e_machine = EM_AARCH64;
  expect_error(&wrong, sizeof wrong, MIC_EUNSUPPORTED, "AArch64");
  wrong = h;
  wrong.e_type = ET_CORE;
  expect_error(&wrong, sizeof wrong, MIC_EUNSUPPORTED, "neither a program");
  wrong = h;
  wrong.e_phnum = 3;
  wrong.e_phoff = 1000;
  expect_error(&wrong, sizeof wrong, MIC_EFORMAT, "program headers are not in the file");
  wrong.e_phentsize = 1;
  expect_error(&wrong, sizeof wrong, MIC_EFORMAT, "program headers of 1 bytes");
}

static void test_files_that_are_no_files(void **state) {
  (void)state;
  struct mic_error err = {0};
  struct mic_elf *elf;
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_elf_open(fd, "null", &elf, &err), MIC_EUNSUPPORTED);
  close(fd);
  shell(": >empty");
  fd = open(in_dir("empty"), O_RDONLY | O_CLOEXEC);
  assert_int_equal(mic_elf_open(fd, "empty", &elf, &err), MIC_EFORMAT);
  close(fd);
}

static void test_build_id_is_what_readelf_says(void **state) {
  (void)state;
  char line[256], want[160] = "", have[160] = "";
  FILE *f = popen("LC_ALL=C readelf -n /proc/self/exe /lib64/ld-linux-x86-64.so.2 2>/dev/null |"
                  " sed -n 's/.*Build ID: //p' | tail -1",
                  "r");
  if (fgets(line, sizeof line, f))
    snprintf(want, sizeof want, "%.*s", (int)strcspn(line, "\n"), line);
  pclose(f);
  struct mic_elf *elf = open_path("/lib64/ld-linux-x86-64.so.2");
  const uint8_t *id;
  size_t size = mic_elf_build_id(elf, &id);
  for (size_t i = 0; i < size; i++) snprintf(have + 2 * i, 3, "%02x", id[i]);
  assert_true(size > 0);
  assert_string_equal(have, want);
  mic_elf_close(elf);
}

/* Each way to pack a section gives the bytes that objcopy gives. */
static void test_packed_sections(void **state) {
  (void)state;
  static const char *const ways[] = {"zlib-gabi", "zlib-gnu", "zstd"};
  shell("printf 'int f(int a){return a;} int main(void){return f(1);}' >a.c && gcc -g3 a.c -o plain"
        " && objcopy -O binary -j .debug_info --set-section-flags .debug_info=alloc plain want");
  struct mic_elf *plain = open_path(in_dir("plain"));
  struct mic_elf_section want, have;
  struct mic_error err;
  assert_true(mic_elf_section(plain, ".debug_info", &want, &err));
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char command[128];
    snprintf(command, sizeof command, "objcopy --compress-debug-sections=%s plain packed", ways[i]);
    shell(command);
    struct mic_elf *elf = open_path(in_dir("packed"));
    if (!mic_elf_section(elf, ".debug_info", &have, &err)) fail_msg("%s: %s", ways[i], err.msg);
    assert_int_equal(have.size, want.size);
    assert_memory_equal(have.bytes, want.bytes, want.size);
    const uint8_t *first = have.bytes; /* unpacked once */
    assert_true(mic_elf_section(elf, ".debug_info", &have, &err));
    assert_ptr_equal(have.bytes, first);
    mic_elf_close(elf);
  }
  mic_elf_close(plain);
}

static void patch(const char *path, off_t at, const void *bytes, size_t size) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, bytes, size, at), (ssize_t)size);
  close(fd);
}

static void test_packed_section_that_lies(void **state) {
  (void)state;
  shell("objcopy --compress-debug-sections=zlib-gabi plain lies");
  struct mic_elf *elf = open_path(in_dir("lies"));
  struct mic_elf_section s;
  struct mic_error err = {0};
  assert_true(mic_elf_section(elf, ".debug_info", &s, &err));
  mic_elf_close(elf);
  /* Find its compression header by readelf's offset, and claim a gigabyte. */
  char command[512], line[64] = "";
  snprintf(
    command, sizeof command,
    "readelf -SW %s | sed -n 's/.*\\.debug_info *PROGBITS *[0-9a-f]* \\([0-9a-f]*\\) .*/\\1/p'",
    in_dir("lies"));
  FILE *f = popen(command, "r");
  assert_non_null(fgets(line, sizeof line, f));
  pclose(f);
  off_t at = (off_t)strtoull(line, NULL, 16);
  uint64_t huge = 1ULL << 30;
  patch(in_dir("lies"), at + 8, &huge, sizeof huge);
  elf = open_path(in_dir("lies"));
  assert_true(mic_elf_has_section(elf, ".debug_info")); /* to see that takes no decompressing */
  assert_false(mic_elf_has_section(elf, ".debug_nothing"));
  assert_false(mic_elf_section(elf, ".debug_info", &s, &err));
  assert_int_equal(err.code, MIC_EFORMAT);
  mic_elf_close(elf);
  uint64_t more = 1ULL << 20;
  patch(in_dir("lies"), at + 8, &more, sizeof more);
  elf = open_path(in_dir("lies"));
  assert_false(mic_elf_section(elf, ".debug_info", &s, &err));
  assert_non_null(strstr(err.msg, ".debug_info"));
  mic_elf_close(elf);
}

static void test_absent_is_no_error(void **state) {
  (void)state;
  struct mic_elf *elf = open_path("/proc/self/exe");
  struct mic_elf_section s;
  struct mic_error err = {.code = MIC_ESYS};
  assert_false(mic_elf_section(elf, ".nothing", &s, &err));
  assert_int_equal(err.code, MIC_OK);
  mic_elf_close(elf);
}

/* A file that shrinks while it is mapped reads as zeros, says so, and ends nothing. */
static void test_file_that_shrinks(void **state) {
  (void)state;
  shell("cp plain shrinks");
  struct mic_elf *elf = open_path(in_dir("shrinks"));
  struct mic_elf_section s;
  struct mic_error err;
  assert_true(mic_elf_section(elf, ".debug_str", &s, &err));
  assert_false(mic_elf_damaged(elf));
  assert_int_equal(truncate(in_dir("shrinks"), 100), 0);
  unsigned sum = 0;
  for (size_t i = 0; i < s.size; i++) sum += s.bytes[i];
  assert_int_equal(sum, 0);
  assert_true(mic_elf_damaged(elf));
  assert_false(mic_elf_section(elf, ".debug_line", &s, &err)); /* the headers are gone too */
  mic_elf_close(elf);
}

static void test_addresses_and_offsets(void **state) {
  (void)state;
  struct mic_elf *elf = open_path("/lib/x86_64-linux-gnu/libc.so.6");
  size_t count, left;
  const struct mic_elf_segment *s = mic_elf_segments(elf, &count);
  size_t code = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t vaddr;
    if (!(s[i].flags & PF_X)) continue;
    code++;
    assert_true(mic_elf_vaddr_of_offset(elf, s[i].offset, PF_X, &vaddr));
    assert_int_equal(vaddr, s[i].vaddr);
    assert_true(mic_elf_vaddr_of_offset(elf, s[i].offset + 4096, PF_X, &vaddr));
    assert_int_equal(vaddr, s[i].vaddr + 4096);
    assert_non_null(mic_elf_at(elf, s[i].vaddr, &left));
    assert_int_equal(left, s[i].file_size);
  }
  assert_int_equal(code, 1);
  assert_null(mic_elf_at(elf, 1ULL << 60, &left));
  mic_elf_close(elf);
}

/* Two segments in one page of the file: each mapping's start means its own. */
static void test_segments_that_share_a_page(void **state) {
  (void)state;
  uint8_t file[0x3000] = {0};
  Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
                  .e_type = ET_EXEC,
                  .e_machine = EM_X86_64,
                  .e_phoff = sizeof h,
                  .e_phentsize = sizeof(Elf64_Phdr),
                  .e_phnum = 2};
  Elf64_Phdr p[2] = {
    {.p_type = PT_LOAD,
     .p_flags = PF_X | PF_R,
     .p_offset = 0,
     .p_vaddr = 0x400000,
     .p_filesz = 0x1234,
     .p_memsz = 0x1234},
    {.p_type = PT_LOAD,
     .p_flags = PF_X | PF_R,
     .p_offset = 0x1234,
     .p_vaddr = 0x902234,
     .p_filesz = 0x1000,
     .p_memsz = 0x1000},
  };
  memcpy(file, &h, sizeof h);
  memcpy(file + sizeof h, p, sizeof p);
  struct mic_elf *elf;
  struct mic_error err;
  uint64_t vaddr;
  assert_int_equal(mic_elf_open_memory(file, sizeof file, "two", &elf, &err), MIC_OK);
  assert_true(mic_elf_vaddr_of_offset(elf, 0, PF_X, &vaddr));
  assert_int_equal(vaddr, 0x400000);
  assert_true(mic_elf_vaddr_of_offset(elf, 0x1000, PF_X, &vaddr));
  assert_int_equal(vaddr, 0x902000);
  assert_true(mic_elf_vaddr_of_offset(elf, 0x1300, PF_X, &vaddr));
  assert_int_equal(vaddr, 0x902300);
  assert_false(mic_elf_vaddr_of_offset(elf, 0x9000, PF_X, &vaddr));
  assert_false(mic_elf_vaddr_of_offset(elf, 0, PF_W, &vaddr));
  mic_elf_close(elf);
}

static void test_vdso_in_memory(void **state) {
  (void)state;
  size_t bytes;
  const void *vdso = mic_elf_own_vdso(&bytes);
  struct mic_elf *elf;
  struct mic_error err;
  uint64_t vaddr, size;
  if (!vdso) skip();
  assert_int_equal(mic_elf_open_memory(vdso, bytes, "[vdso]", &elf, &err), MIC_OK);
  assert_true(mic_elf_eh_frame_header(elf, &vaddr, &size));
  const uint8_t *id;
  size_t id_size = mic_elf_build_id(elf, &id);
  assert_true(id_size > 0);
  assert_true(mic_build_id_is(elf, id, id_size));
  assert_false(mic_build_id_is(elf, id, id_size - 1));
  assert_false(mic_build_id_is(elf, id, 0));
  char text[MIC_BUILD_ID_TEXT];
  mic_build_id_text((const uint8_t *)"\x0a\xff", 2, text);
  assert_string_equal(text, "0aff");
  mic_build_id_text(id, 0, text);
  assert_string_equal(text, "");
  mic_elf_close(elf);
}

static int set_up(void **state) {
  (void)state;
  return mkdtemp(work_dir) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", work_dir);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refuses_what_is_no_image),
    cmocka_unit_test(test_files_that_are_no_files),
    cmocka_unit_test(test_build_id_is_what_readelf_says),
    cmocka_unit_test(test_packed_sections),
    cmocka_unit_test(test_packed_section_that_lies),
    cmocka_unit_test(test_absent_is_no_error),
    cmocka_unit_test(test_file_that_shrinks),
    cmocka_unit_test(test_addresses_and_offsets),
    cmocka_unit_test(test_segments_that_share_a_page),
    cmocka_unit_test(test_vdso_in_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
