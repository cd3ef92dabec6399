/* demangle_test.c - demangled names against c++filt, and the bounds that hostile names meet. */
#include "image/demangle.h"

#include <stdint.h>

#include "base/clock.h"
#include "image/symbols_fixture.h"

static void expect(const char *mangled, const char *shown) {
  char *got = mic_demangle(mangled);
  if (shown)
    assert_string_equal(got, shown);
  else
    assert_null(got);
  free(got);
}

static void known_names(void **state) {
  (void)state;
  expect("main", NULL);
  expect("", NULL);
  expect("_", NULL);
  expect("_Z", NULL);
  expect("_Z3foov", "foo()");
  expect("_ZN12_GLOBAL__N_113single_threadE", "(anonymous namespace)::single_thread");
  expect("_ZSt4moveIRSsEONSt16remove_referenceIT_E4typeEOS2_",
         "std::remove_reference<std::string&>::type&& std::move<std::string&>(std::string&)");
  expect("_Z3foov.cold", "foo() [clone .cold]");
  expect("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place");
  expect("_RNvC5names4main", "names::main");
  expect("_D8demangle4testFZv", "demangle.test()");
}

static void thin_lto_suffixes(void **state) {
  (void)state;
  expect("step.llvm.1234567890", "step");
  expect("_ZL4stepi.llvm.1234567890", "step(int)");
  expect("step.llvm.", NULL);
  expect("step.llvm.12x", NULL);
  expect(".llvm.12", NULL);
  expect("step.llvm.12.cold", NULL);
}

/* Every C++ name of a library, as `c++filt -i` has it. */
static void a_library_against_its_judge(void **state) {
  (void)state;
  NEED("c++filt");
  sh("lib=$(g++ -print-file-name=libstdc++.so.6); nm -D --format=posix $lib | awk '{print $1}' | "
     "sed 's/@.*//' | grep '^_Z' | sort -u > mangled && c++filt -i < mangled > shown");
  FILE *mangled = fopen(in_dir("mangled"), "r"), *shown = fopen(in_dir("shown"), "r");
  char name[8192], want[65536];
  size_t count = 0;
  while (fgets(name, sizeof name, mangled) && fgets(want, sizeof want, shown)) {
    name[strcspn(name, "\n")] = want[strcspn(want, "\n")] = 0;
    char *got = mic_demangle(name);
    assert_string_equal(got ? got : name, want);
    free(got);
    count++;
  }
  fclose(mangled);
  fclose(shown);
  assert_true(count > 4000);
}

static char *repeat(const char *before, const char *each, size_t times, const char *after) {
  size_t size = strlen(each);
  char *name = mic_alloc(strlen(before) + size * times + strlen(after) + 1);
  memcpy(name, before, strlen(before));
  for (size_t i = 0; i < times; i++) memcpy(name + strlen(before) + i * size, each, size);
  memcpy(name + strlen(before) + size * times, after, strlen(after));
  return name;
}

/* Names that ask for deep stacks, long work or large output: an answer at once, whatever it is. */
static void hostile_names(void **state) {
  (void)state;
  static const char *const parts[][3] = {
    {"_Z1f", "P", "i"}, {"_Z1f", "N1aI", "i"},    {"_Z1fI", "J", "E"}, {"_Z1f", "Li", "1"},
    {"_Z", "N1a", "E"}, {"_Z1fM", "1aM", "i"},    {"_RNvC", "I", "x"}, {"_RMC0", "R", "u"},
    {"_D1a", "P", "i"}, {"_Z1fIX", "szsz", "EE"}, {"_ZN", "1aB", "E"}, {"_RINv", "C1aNv", "E"},
  };
  static const size_t times[] = {10, 500, 1000, 4000, 20000, 200000};
  uint64_t start = mic_clock_thread_cpu_ns();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
      char *name = repeat(parts[i][0], parts[i][1], times[k], parts[i][2]);
      free(mic_demangle(name));
      free(name);
    }
  }
  assert_true(mic_clock_thread_cpu_ns() - start < 20000000000ULL); /* seconds of CPU, not minutes */
}

/* Each step refers twice to all before it: 2^n bytes asked for by some n of them. */
static void output_that_doubles(void **state) {
  (void)state;
  char name[1000] = "_Z1fSt4pairIiiES_IS0_S0_E";
  size_t at = strlen(name);
  for (int i = 1; i < 30; i++)
    at += (size_t)snprintf(name + at, sizeof name - at, "S_IS%c_S%c_E",
                           "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
                           "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
  char *got = mic_demangle(name);
  assert_true(!got || strlen(got) <= 65536);
  free(got);
  char d[1000] = "_D1aFS1bS1cQeQg"; /* back references of D: bounded before libiberty sees them */
  for (at = strlen(d); at < 900; at += 2) memcpy(d + at, "Qc", 3);
  got = mic_demangle(d);
  assert_true(!got || strlen(got) <= 65536);
  free(got);
}

/* Sound names over libiberty's own limit, and over ours. */
static void long_names(void **state) {
  (void)state;
  char *part = repeat("", "a", 2000, ""), *name = repeat("_Z2000", part, 1, "v");
  char *want = repeat("", part, 1, "()");
  expect(name, want);
  free(name);
  name = repeat("_ZN2000", part, 1, "3fooIiEEvT_");
  free(want);
  want = repeat("void ", part, 1, "::foo<int>(int)");
  expect(name, want);
  free(name);
  free(want);
  free(part);
  name = repeat("_Z9000", "b", 9000, "v");
  expect(name, NULL);
  free(name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_names),
    cmocka_unit_test(thin_lto_suffixes),
    cmocka_unit_test(a_library_against_its_judge),
    cmocka_unit_test(hostile_names),
    cmocka_unit_test(output_that_doubles),
    cmocka_unit_test(long_names),
  };
  return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
