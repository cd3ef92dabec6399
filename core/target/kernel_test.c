/* kernel_test.c - the names of a kernel and its modules, from a made-up /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/kernel.h"

enum { TEXT = 0x81000000 };
#define TOP 0xffffffff00000000ULL
#define MODULE 0xffffffffc0100000ULL

static char root[64];
static const uint8_t kernel_id[20] = "kernel's build id 01", module_id[20] = "module's build id 02";

static void put(const char *path, const void *bytes, size_t size) {
  char full[256];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(full, 0755);
    *slash = '/';
  }
  FILE *file = fopen(full, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void put_text(const char *path, const char *text) { put(path, text, strlen(text)); }

static void put_note(const char *path, const uint8_t id[20]) {
  uint8_t note[12 + 8 + 12 + 4 + 20] = {4, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 'X', 'e', 'n', 0};
  memcpy(note + 20, "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU", 16);
  memcpy(note + 36, id, 20);
  put(path, note, sizeof note);
}

static int begin(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/kernel-test-%d", (int)getpid());
  put_note("/sys/kernel/notes", kernel_id);
  put_note("/sys/module/snd_pcm/notes/.note.gnu.build-id", module_id);
  put_text("/proc/modules", "snd_pcm2 4096 0 - Live 0xffffffffc0300000\n"
                            "snd_pcm 12288 2 snd_pcm2,b, Live 0xffffffffc0100000 (O)\n");
  put_text("/proc/kallsyms", "0000000000000000 A percpu\n"
                             "ffffffff81000000 T _stext\n"
                             "ffffffff81000000 T _text\n"
                             "ffffffff81000100 t helper\n"
                             "ffffffff81000200 W weak\n"
                             "ffffffff81000200 T strong\n"
                             "ffffffff81000300 D data\n"
                             "ffffffff81001000 T _etext\n"
                             "ffffffff81003000 T _sinittext\n"
                             "ffffffff81003010 T start\n"
                             "ffffffff81004000 T _einittext\n"
                             "ffffffffc0100000 t first\t[snd_pcm]\n"
                             "ffffffffc0100080 T second\t[snd_pcm]\n"
                             "ffffffffc0300000 t other\t[snd_pcm2]\n"
                             "ffffffffc0100090 t stray\t[snd_pcm2]\n"
                             "ffffffffc0f00000 t init\t[snd_pcm]\n"
                             "zz\nffffffff81000400 T\nffffffff81000500 T cut\t[x");
  return 0;
}

static int end(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return system(command); // NOLINT(cert-env33-c): a folder of this test's own
}

static struct mic_kernel_text where(void) {
  return (struct mic_kernel_text){kernel_id, 20, "_text", TOP + TEXT, root};
}

static void refuses(struct mic_kernel_text text, const char *why) {
  const char *problem;
  struct mic_kernel_names *names = mic_kernel_names_open(&text, &problem);
  assert_null(names);
  if (!strstr(problem, why)) fail_msg("%s", problem);
}

static void names_the_kernel(void **state) {
  (void)state;
  const char *problem;
  struct mic_kernel_text text = where();
  struct mic_kernel_names *names = mic_kernel_names_open(&text, &problem);
  assert_non_null(names);
  assert_null(problem);
  assert_string_equal(mic_kernel_names_find(names, TOP + TEXT), "_text");
  assert_string_equal(mic_kernel_names_find(names, TOP + TEXT + 0x1ff), "helper");
  assert_string_equal(mic_kernel_names_find(names, TOP + TEXT + 0x350), "strong");
  assert_null(mic_kernel_names_find(names, TOP + TEXT - 1));
  assert_null(mic_kernel_names_find(names, TOP + TEXT + 0x1000));
  assert_null(mic_kernel_names_find(names, TOP + TEXT + 0x2fff));
  assert_string_equal(mic_kernel_names_find(names, TOP + TEXT + 0x3fff), "start");
  assert_null(mic_kernel_names_find(names, TOP + TEXT + 0x4000));
  assert_null(mic_kernel_names_find(names, MODULE));
  mic_kernel_names_free(names);
}

static void refuses_what_is_not_proven(void **state) {
  (void)state;
  struct mic_kernel_text text = where();
  text.build_id_size = 0;
  refuses(text, "build ID is not in the recording");
  text = where();
  text.build_id = module_id;
  refuses(text, "not the kernel that runs here");
  text = where();
  text.address += 0x200000;
  refuses(text, "at other addresses");
  text = where();
  text.symbol = "_nothing";
  refuses(text, "kptr_restrict");
  put_text("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n");
  refuses(where(), "kptr_restrict");
}

static void names_modules(void **state) {
  (void)state;
  const char *problem;
  struct mic_kernel_text text = where();
  struct mic_kernel_names *kernel = mic_kernel_names_open(&text, &problem);
  static const char *const paths[] = {"[snd_pcm]", "[snd-pcm]", "/lib/modules/6/k/snd-pcm.ko",
                                      "/lib/modules/6/k/snd_pcm.ko.zst"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    struct mic_kernel_module module = {paths[i], module_id, 20, MODULE, 0x3000};
    struct mic_kernel_names *names = mic_kernel_names_module(kernel, &module, &problem);
    assert_non_null(names);
    assert_string_equal(mic_kernel_names_find(names, 0), "first");
    assert_string_equal(mic_kernel_names_find(names, 0x7f), "first");
    assert_string_equal(mic_kernel_names_find(names, 0x2fff), "second");
    assert_null(mic_kernel_names_find(names, 0x3000));
  }
  mic_kernel_names_free(kernel);
}

static void refuses_modules(void **state) {
  (void)state;
  const char *problem;
  struct mic_kernel_text text = where();
  struct mic_kernel_names *kernel = mic_kernel_names_open(&text, &problem);
  const struct {
    struct mic_kernel_module module;
    const char *why;
  } cases[] = {
    {{"[snd_pcm]", module_id, 0, MODULE, 4096}, "build ID is not in the recording"},
    {{"[snd_pcm]", kernel_id, 20, MODULE, 4096}, "no module with its build ID"},
    {{"[snd_pcm3]", module_id, 20, MODULE, 4096}, "no module with its build ID"},
    {{"[snd_pcm]", module_id, 20, MODULE + 4096, 4096}, "at another address"},
    {{"[]", module_id, 20, MODULE, 4096}, "no module's name"},
    {{"[..]", module_id, 20, MODULE, 4096}, "no module's name"},
    {{"[snd_pcm", module_id, 20, MODULE, 4096}, "no module's name"},
    {{"/lib/snd_pcm.kold", module_id, 20, MODULE, 4096}, "no module's name"},
    {{"[a_name_that_is_longer_than_any_that_a_module_of_the_kernel_may_have]", module_id, 20,
      MODULE, 4096},
     "no module's name"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_null(mic_kernel_names_module(kernel, &cases[i].module, &problem));
    if (!strstr(problem, cases[i].why)) fail_msg("%zu: %s", i, problem);
  }
  mic_kernel_names_free(kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(names_the_kernel, begin, end),
    cmocka_unit_test_setup_teardown(refuses_what_is_not_proven, begin, end),
    cmocka_unit_test_setup_teardown(names_modules, begin, end),
    cmocka_unit_test_setup_teardown(refuses_modules, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
