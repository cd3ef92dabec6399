/*
 * symbols_test.c - what names are, case by case, and where debug information is found.
 */
#include "image/symbols_fixture.h"

enum { SPREAD = 1500 };

static bool same_string(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Every address of two programs with the same code: all that is said is the same. */
static void expect_same(const char *plain, const char *other) {
  struct addresses a = spread_addresses(plain, SPREAD);
  struct mic_symbols *left = open_symbols(plain), *right = open_symbols(other);
  size_t inlined = 0;
  for (size_t i = 0; i < a.count; i++) {
    const struct mic_symbol *l, *r;
    size_t count = mic_symbols_lookup(left, a.at[i], &l);
    assert_int_equal(mic_symbols_lookup(right, a.at[i], &r), count);
    for (size_t k = 0; k < count; k++) {
      assert_string_equal(l[k].name, r[k].name);
      assert_string_equal(l[k].linkage_name, r[k].linkage_name);
      if (!same_string(l[k].file, r[k].file) || l[k].line != r[k].line ||
          !same_string(l[k].decl_file, r[k].decl_file) || l[k].decl_line != r[k].decl_line)
        fail_msg("0x%lx: %s %s:%u and %s:%u", (unsigned long)a.at[i], l[k].name, l[k].file,
                 l[k].line, r[k].file, r[k].line);
    }
    inlined += count > 1;
  }
  assert_true(inlined > 0);
  assert_null(mic_symbols_problem(right));
  mic_symbols_close(left);
  mic_symbols_close(right);
  free(a.at);
}

/* The Rust compiler may live in a home that is not searched; a test then says so. */
static void rust_names(void **state) {
  (void)state;
  NEED("rustc");
  NEED("llvm-symbolizer");
  sh("rustc -g -O -Csymbol-mangling-version=v0 $SRC/names.rs -o v0");
  struct symbol_list list = list_symbols("v0");
  struct mic_symbols *symbols = open_symbols("v0");
  size_t apply = 0;
  for (size_t i = 0; i < list.count; i++) {
    const struct mic_symbol *s;
    if (!strstr(list.at[i].name, "5names5apply") || !list.at[i].size) continue;
    assert_int_not_equal(mic_symbols_lookup(symbols, list.at[i].value, &s), 0);
    while (!strstr(s->linkage_name, "5names5apply")) s++;
    assert_string_equal(s->name,
                        "names::apply::<names::total<names::Square>::{closure#0}::{closure#0}>");
    apply++;
  }
  assert_int_equal(apply, 1);
  free(list.at);
  mic_symbols_close(symbols);
}

/* Newer compilers keep the legacy scheme behind a switch that is not for everyone. */
static void rust_legacy_names(void **state) {
  (void)state;
  NEED("rustc");
  sh("rustc -g -O -Csymbol-mangling-version=legacy $SRC/names.rs -o legacy || RUSTC_BOOTSTRAP=1 "
     "rustc -g -O -Zunstable-options -Csymbol-mangling-version=legacy $SRC/names.rs -o legacy");
  struct symbol_list list = list_symbols("legacy");
  struct mic_symbols *symbols = open_symbols("legacy");
  size_t area = 0;
  for (size_t i = 0; i < list.count; i++) {
    const struct mic_symbol *s;
    if (!strstr(list.at[i].name, "4area17h")) continue;
    size_t count = mic_symbols_lookup(symbols, list.at[i].value, &s);
    assert_int_not_equal(count, 0);
    assert_string_equal(s[count - 1].name, "<names::Square as names::Shape>::area");
    assert_string_equal(s[count - 1].linkage_name, list.at[i].name);
    area++;
  }
  assert_int_equal(area, 1);
  free(list.at);
  mic_symbols_close(symbols);
}

static void sizeless_covers_itself_alone(void **state) {
  (void)state;
  sh("gcc -O2 -rdynamic $SRC/sizeless.S $SRC/sizeless.c -o sizeless && "
     "nm -f posix sizeless > all && strip -s sizeless");
  unsigned long tiny = 0, hidden = 0;
  char line[256];
  FILE *file = fopen(in_dir("all"), "r");
  while (fgets(line, sizeof line, file)) {
    sscanf(line, "tiny T %lx", &tiny);
    sscanf(line, "hidden t %lx", &hidden);
  }
  fclose(file);
  assert_true(tiny > 0 && hidden > tiny);
  struct mic_symbols *symbols = open_symbols("sizeless");
  const struct mic_symbol *s;
  assert_int_equal(mic_symbols_lookup(symbols, tiny, &s), 1);
  assert_string_equal(s->name, "tiny");
  char name[32];
  snprintf(name, sizeof name, "sizeless+0x%lx", hidden);
  for (uint64_t at = tiny + 1; at < hidden; at++)
    assert_int_equal(mic_symbols_lookup(symbols, at, &s), 0);
  for (uint64_t at = hidden; at < hidden + 30; at++) {
    assert_int_equal(mic_symbols_lookup(symbols, at, &s), 1);
    assert_string_equal(s->name, name);
    assert_string_equal(s->linkage_name, "");
  }
  assert_string_equal(mic_symbols_problem(symbols), "no debug information");
  mic_symbols_close(symbols);
}

static void expect_frame(const struct mic_symbol *s, const char *name, const char *file,
                         uint32_t line) {
  assert_string_equal(s->name, name);
  assert_non_null(s->file);
  assert_string_equal(strrchr(s->file, '/') + 1, file);
  assert_int_equal(s->line, line);
}

/* binutils' addr2line prints Derived's constructor at line 2 for the inlined Base's. */
static void constructors_of_line_tables(void **state) {
  (void)state;
  NEED("clang");
  sh("clang -g1 -O1 -shared -fPIC $SRC/base.cc -o base.so");
  struct mic_symbols *symbols = open_symbols("base.so");
  const struct mic_symbol *s;
  uint64_t at = address_of("base.so", "_ZN7DerivedC2Ev");
  assert_int_equal(mic_symbols_lookup(symbols, at, &s), 2);
  expect_frame(&s[0], "Base", "base.cc", 2);
  expect_frame(&s[1], "Derived::Derived()", "base.cc", 4);
  mic_symbols_close(symbols);
}

static void thin_lto_names(void **state) {
  (void)state;
  NEED("ld.lld");
  sh("clang -g -O2 -flto=thin -fuse-ld=lld -Wl,--thinlto-jobs=1 -Wl,-mllvm,-import-instr-limit=100 "
     "$SRC/thin.c $SRC/thin_main.c -o thin");
  struct symbol_list list = list_symbols("thin");
  struct mic_symbols *symbols = open_symbols("thin");
  size_t promoted = 0;
  for (size_t i = 0; i < list.count; i++) {
    const struct mic_symbol *s;
    if (!strstr(list.at[i].name, "step.llvm.") || !list.at[i].size) continue;
    assert_int_equal(mic_symbols_lookup(symbols, list.at[i].value, &s), 1);
    assert_string_equal(s->name, "step");
    assert_string_equal(s->linkage_name, list.at[i].name);
    assert_int_equal(s->line, 3);
    assert_int_equal(s->decl_line, 3);
    promoted++;
  }
  assert_int_equal(promoted, 1);
  free(list.at);
  mic_symbols_close(symbols);
}

static void compressed_sections(void **state) {
  (void)state;
  sh("g++ -g -O2 -c $SRC/wide.cc -o wide.o && g++ wide.o -o plain");
  sh("g++ wide.o -Wl,--compress-debug-sections=zlib -o zlib && "
     "g++ wide.o -Wl,--compress-debug-sections=zlib-gnu -o old");
  expect_same("plain", "zlib");
  expect_same("plain", "old");
  if (system("ld --help | grep -q zstd") != 0) {
    print_message("skipped: this ld does not write zstd\n");
    skip();
  }
  sh("g++ wide.o -Wl,--compress-debug-sections=zstd -o zstd");
  expect_same("plain", "zstd");
}

/* What `llvm-symbolizer` 14 misses of split DWARF 5 with range lists is known by construction. */
static void expect_nested(const char *program) {
  struct mic_symbols *symbols = open_symbols(program);
  uint64_t main_at = address_of(program, "main");
  size_t deepest = 0;
  for (uint64_t at = main_at; at < main_at + 60; at++) {
    const struct mic_symbol *s;
    size_t count = mic_symbols_lookup(symbols, at, &s);
    if (count < 4 || s[0].line == 0 || deepest == 4) continue; /* line 0: of no one line */
    deepest = count;
    expect_frame(&s[0], "innermost()", "nested.cc", 6);
    expect_frame(&s[1], "outer()", "nested.cc", 14);
    expect_frame(&s[2], "middle()", "nested.cc", 12);
    expect_frame(&s[3], "main", "nested.cc", 16);
  }
  assert_int_equal(deepest, 4);
  assert_null(mic_symbols_problem(symbols));
  mic_symbols_close(symbols);
}

static void expect_skeleton_only(const char *program, const char *problem) {
  struct mic_symbols *symbols = open_symbols(program);
  const struct mic_symbol *s;
  assert_int_equal(mic_symbols_lookup(symbols, address_of(program, "main"), &s), 1);
  assert_string_equal(s->name, "main");
  assert_non_null(strstr(s->file, "nested.cc")); /* lines stay in the image */
  if (!strstr(mic_symbols_problem(symbols), problem))
    fail_msg("%s is not in: %s", problem, mic_symbols_problem(symbols));
  mic_symbols_close(symbols);
}

static void split_dwarf(void **state) {
  (void)state;
  NEED("clang++");
  static const char *const recipes[][2] = {
    {"clang5", "clang++ -O2 -gdwarf-5"},
    {"clang4", "clang++ -O2 -gdwarf-4"},
    {"gcc5", "g++ -O2 -gdwarf-5"},
    {"gcc4", "g++ -O2 -gdwarf-4"},
  };
  for (size_t i = 0; i < 4; i++) {
    const char *name = recipes[i][0];
    sh("%s -gsplit-dwarf -c $SRC/nested.cc -o %s.o && g++ %s.o -o %s", recipes[i][1], name, name,
       name);
    expect_nested(name);
    sh("mv %s.dwo kept.%s", name, name);
    expect_skeleton_only(name, ".dwo not found");
  }
}

static void split_dwarf_of_another_build(void **state) {
  (void)state;
  sh("g++ -O2 -g -gsplit-dwarf -c $SRC/nested.cc -o stale.o && g++ stale.o -o stale");
  sh("g++ -O1 -g -gsplit-dwarf -c $SRC/wide.cc -o stale.o");
  expect_skeleton_only("stale", "stale.dwo is of another build");
}

static void split_dwarf_packages(void **state) {
  (void)state;
  NEED("llvm-dwp");
  /* Two units a package, so that offsets in it matter. */
  sh("clang++ -O2 -gdwarf-5 -gsplit-dwarf -c $SRC/nested.cc -o p5.o && "
     "clang++ -O2 -gdwarf-5 -gsplit-dwarf -c $SRC/inlines.cc -o q5.o && "
     "echo 'extern \"C\" long sink(long n) { return n; }' > sink.cc && "
     "g++ p5.o q5.o sink.cc -o package5 && llvm-dwp p5.dwo q5.dwo -o package5.dwp && rm p5.dwo "
     "q5.dwo");
  expect_nested("package5");
  sh("clang++ -O2 -gdwarf-4 -gsplit-dwarf -c $SRC/nested.cc -o p4.o && "
     "clang++ -O2 -gdwarf-4 -gsplit-dwarf -c $SRC/inlines.cc -o q4.o && "
     "g++ p4.o q4.o sink.cc -o package4 && llvm-dwp q4.dwo p4.dwo -o package4.dwp && rm p4.dwo "
     "q4.dwo");
  expect_nested("package4");
}

static void separate_files(void **state) {
  (void)state;
  sh("g++ -g -O2 -Wl,--build-id=sha1 $SRC/wide.cc -o whole && cp whole linked && "
     "objcopy --only-keep-debug linked linked.debug && strip linked && "
     "objcopy --add-gnu-debuglink=linked.debug linked");
  expect_same("whole", "linked");
  sh("mkdir -p .debug && mv linked.debug .debug/");
  expect_same("whole", "linked");
  sh("mkdir -p debug\"$PWD\" && mv .debug/linked.debug debug\"$PWD\"/");
  expect_same("whole", "linked");
  sh("id=$(readelf -n whole | sed -n 's/.*Build ID: //p') && cp whole byid && strip byid && "
     "mkdir -p debug/.build-id/$(echo $id | cut -c1-2) && "
     "mv debug\"$PWD\"/linked.debug debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut "
     "-c3-).debug");
  expect_same("whole", "byid");
}

/* The target's file system is another one: its paths and its absolute links are inside its root,
 * and what is outside at the same path is not looked at first. */
static void files_inside_a_root(void **state) {
  (void)state;
  sh("rm -rf debug root && g++ -g -O2 -Wl,--build-id=sha1 $SRC/wide.cc -o whole && "
     "mkdir -p root/bin root/elsewhere root/bin/.debug && cp whole root/bin/rooted && "
     "objcopy --only-keep-debug whole root/elsewhere/rooted.debug && strip root/bin/rooted && "
     "cp root/elsewhere/rooted.debug rooted.debug && "
     "objcopy --add-gnu-debuglink=rooted.debug root/bin/rooted && rm rooted.debug && "
     "ln -s /elsewhere/rooted.debug root/bin/.debug/rooted.debug");
  char root[512];
  snprintf(root, sizeof root, "%s", in_dir("root"));
  const char *const no_dirs[] = {NULL};
  struct mic_symbols_source source = {.fd = open(in_dir("root/bin/rooted"), O_RDONLY | O_CLOEXEC),
                                      .path = "/bin/rooted",
                                      .root = root,
                                      .debug_dirs = no_dirs};
  struct mic_symbols *symbols;
  const struct mic_symbol *s;
  assert_int_equal(mic_symbols_open(&source, &symbols, NULL), MIC_OK);
  assert_int_not_equal(mic_symbols_lookup(symbols, address_of("whole", "main"), &s), 0);
  assert_non_null(s->file);
  assert_null(mic_symbols_problem(symbols));
  mic_symbols_close(symbols);
  close(source.fd);
}

static void expect_refused(const char *program, const char *problem) {
  struct mic_symbols *symbols = open_symbols(program);
  const struct mic_symbol *s;
  struct addresses a = spread_addresses("whole", 100);
  for (size_t i = 0; i < a.count; i++) {
    size_t count = mic_symbols_lookup(symbols, a.at[i], &s);
    for (size_t k = 0; k < count; k++) assert_null(s[k].file);
  }
  if (!strstr(mic_symbols_problem(symbols), problem))
    fail_msg("%s is not in: %s", problem, mic_symbols_problem(symbols));
  mic_symbols_close(symbols);
  free(a.at);
}

static void another_file_is_not_used(void **state) {
  (void)state;
  sh("rm -rf debug && g++ -g -O2 -Wl,--build-id=sha1 $SRC/wide.cc -o whole && "
     "g++ -g -O1 -Wl,--build-id=sha1 $SRC/wide.cc -o changed && cp whole refused && "
     "objcopy --only-keep-debug whole refused.debug && strip refused && "
     "objcopy --add-gnu-debuglink=refused.debug refused && "
     "objcopy --only-keep-debug changed refused.debug");
  expect_refused("refused", "refused.debug has another build ID");
  sh("g++ -g -O2 -Wl,--build-id=none $SRC/wide.cc -o whole && "
     "g++ -g -O1 -Wl,--build-id=none $SRC/wide.cc -o changed && cp whole crc && "
     "objcopy --only-keep-debug whole crc.debug && strip crc && "
     "objcopy --add-gnu-debuglink=crc.debug crc");
  expect_same("whole", "crc");
  sh("objcopy --only-keep-debug changed crc.debug");
  expect_refused("crc", "crc.debug has another CRC than the debuglink");
  sh("rm crc.debug && mkfifo crc.debug"); /* must not be waited for */
  expect_refused("crc", "no debug information");
  sh("rm crc.debug && head -c 40 whole > crc.debug");
  expect_refused("crc", "crc.debug: the ELF header is cut short");
}

static void shared_debug_file(void **state) {
  (void)state;
  NEED("dwz");
  sh("rm -rf debug && for p in one two; do g++ -g -O2 -Wl,--build-id=sha1 -DNAME=$p $SRC/wide.cc "
     "-o $p; "
     "cp $p $p.plain; done && dwz -m common.debug one two && readelf -SW one | grep -q "
     "debugaltlink");
  expect_same("one.plain", "one");
  sh("mv common.debug elsewhere.debug");
  struct mic_symbols *symbols = open_symbols("one");
  const struct mic_symbol *s;
  assert_int_not_equal(mic_symbols_lookup(symbols, address_of("one.plain", "main"), &s), 0);
  assert_non_null(strstr(mic_symbols_problem(symbols), "shared debug file common.debug not found"));
  mic_symbols_close(symbols);
  sh("g++ -g -O2 $SRC/wide.cc -o alone && cp alone alone.plain && dwz alone");
  expect_same("alone.plain", "alone");
}

static void mini_debug_information(void **state) {
  (void)state;
  NEED("xz");
  sh(
    "g++ -O2 $SRC/wide.cc -o full && cp full mini && nm -D full --format=posix --defined-only | "
    "awk '{print $1}' | sort > dynamic && nm full --format=posix --defined-only | "
    "awk '$2 ~ /[TtDd]/ {print $1}' | sort > all && comm -13 dynamic all > keep && "
    "objcopy -S --remove-section .gnu_debuglink --keep-symbols=keep full packed && xz -f packed && "
    "strip -s mini && objcopy --add-section .gnu_debugdata=packed.xz mini");
  struct mic_symbols *left = open_symbols("full"), *right = open_symbols("mini");
  struct symbol_list list = list_symbols("full");
  size_t named = 0;
  for (size_t i = 0; i < list.count; i++) {
    const struct mic_symbol *l, *r;
    if (!strchr("tT", list.at[i].type) || !list.at[i].size) continue;
    assert_int_equal(mic_symbols_lookup(left, list.at[i].value, &l), 1);
    assert_int_equal(mic_symbols_lookup(right, list.at[i].value, &r), 1);
    assert_string_equal(l->linkage_name, r->linkage_name);
    named++;
  }
  assert_true(named > 5);
  free(list.at);
  mic_symbols_close(left);
  mic_symbols_close(right);
}

/* objdump prints NAME@plt for the stubs it can prove; every byte of each is ours too. */
static void compare_stubs(const char *program) {
  char command[700], line[1024], name[512];
  snprintf(command, sizeof command, "objdump -d '%s' | grep '@plt>:'", in_dir(program));
  FILE *pipe = popen(command, "r");
  struct mic_symbols *symbols = open_symbols(program);
  size_t stubs = 0;
  unsigned long at;
  while (fgets(line, sizeof line, pipe)) {
    if (sscanf(line, "%lx <%511[^>]", &at, name) != 2) continue;
    for (unsigned i = 0; i < 8; i++) {
      const struct mic_symbol *s;
      assert_int_equal(mic_symbols_lookup(symbols, at + i, &s), 1);
      assert_string_equal(s->linkage_name, name);
    }
    stubs++;
  }
  pclose(pipe);
  assert_true(stubs > 0);
  mic_symbols_close(symbols);
}

static void plt_stubs(void **state) {
  (void)state;
  sh("gcc -O0 -fno-builtin -Wl,-z,lazy $SRC/plain.c -o lazy && "
     "gcc -O0 -fno-builtin -Wl,-z,now $SRC/plain.c -o now && "
     "gcc -O0 -fno-builtin -fcf-protection -Wl,-z,ibt -Wl,-z,lazy $SRC/plain.c -o cet && "
     "gcc -O0 -fno-builtin -no-pie $SRC/plain.c -o fixed");
  compare_stubs("lazy");
  compare_stubs("now");
  compare_stubs("cet");
  compare_stubs("fixed");
}

/* In a static program stubs go to the choices of IFUNCs; gdb reads the same from relocations. */
static void static_plt_stubs(void **state) {
  (void)state;
  sh("gcc -O0 -static $SRC/plain.c -o static && readelf -SW static | "
     "sed -n 's/.* \\.plt *PROGBITS *\\([0-9a-f]*\\) *[0-9a-f]* *\\([0-9a-f]*\\).*/\\1 \\2/p' > "
     "plt && "
     "readelf -rW static | grep -c IRELATIV > count");
  unsigned long start = 0, size = 0;
  size_t count = 0, named = 0;
  FILE *file = fopen(in_dir("plt"), "r");
  assert_int_equal(fscanf(file, "%lx %lx", &start, &size), 2);
  fclose(file);
  file = fopen(in_dir("count"), "r");
  assert_int_equal(fscanf(file, "%zu", &count), 1);
  fclose(file);
  struct mic_symbols *symbols = open_symbols("static");
  const char *last = "";
  for (uint64_t at = start; at < start + size; at++) {
    const struct mic_symbol *s;
    assert_int_equal(mic_symbols_lookup(symbols, at, &s), 1);
    if (strcmp(last, s->name) != 0) named++;
    last = s->name;
    assert_non_null(strstr(s->name, "@plt"));
  }
  assert_int_equal(named, count);
  mic_symbols_close(symbols);
}

static void unnamed_namespace_is_not_rust(void **state) {
  (void)state;
  sh("echo 'namespace { __attribute__((noinline,used)) void single_thread() { __asm__(\"\"); } } "
     "int main() { single_thread(); }' > unnamed.cc && g++ -O1 unnamed.cc -o unnamed");
  struct mic_symbols *symbols = open_symbols("unnamed");
  const struct mic_symbol *s;
  uint64_t at = address_of("unnamed", "_ZN12_GLOBAL__N_113single_threadEv");
  assert_int_equal(mic_symbols_lookup(symbols, at, &s), 1);
  assert_string_equal(s->name, "(anonymous namespace)::single_thread()");
  mic_symbols_close(symbols);
}

/* The image that the kernel maps into every process. */
static void the_vdso(void **state) {
  (void)state;
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long start = 0, end = 0;
  while (fgets(line, sizeof line, maps))
    if (strstr(line, "[vdso]")) sscanf(line, "%lx-%lx", &start, &end);
  fclose(maps);
  assert_true(start > 0);
  struct mic_symbols_source source = {
    .fd = -1, .memory = (const void *)start, .memory_size = end - start, .path = "[vdso]"};
  struct mic_symbols *symbols;
  assert_int_equal(mic_symbols_open(&source, &symbols, NULL), MIC_OK);
  size_t named = 0;
  for (uint64_t at = 0; at < end - start; at++) {
    const struct mic_symbol *s;
    if (mic_symbols_lookup(symbols, at, &s) > 0)
      named += strcmp(s->name, "__vdso_clock_gettime") == 0;
  }
  assert_true(named > 4);
  mic_symbols_close(symbols);
}

/* A linker or a copy may cut a file while it is mapped: no SIGBUS, no name made of zeros. */
static void a_shrinking_file(void **state) {
  (void)state;
  sh("g++ -g -O2 $SRC/wide.cc -o shrinks && cp shrinks shrinks.whole");
  uint64_t at = address_of("shrinks", "main");
  struct mic_symbols *symbols = open_symbols("shrinks");
  const struct mic_symbol *s;
  sh("truncate -s 4096 shrinks");
  assert_int_equal(mic_symbols_lookup(symbols, at, &s), 0);
  assert_non_null(strstr(mic_symbols_problem(symbols), "the file shrank while it was read"));
  mic_symbols_close(symbols);
}

static void bad_images(void **state) {
  (void)state;
  struct mic_symbols *symbols;
  struct mic_error err;
  struct mic_symbols_source source = {.fd = -1, .memory = "\177ELF", .memory_size = 4, .path = "x"};
  assert_int_equal(mic_symbols_open(&source, &symbols, &err), MIC_EFORMAT);
  assert_null(symbols);
  source.memory = "";
  source.memory_size = 0;
  assert_int_equal(mic_symbols_open(&source, &symbols, &err), MIC_EFORMAT);
  mic_symbols_close(NULL);
}

/* Every truncation and many flipped bits of whole images: no crash, and only named frames. */
static void damaged_images(void **state) {
  (void)state;
  static const char *const no_dirs[] = {NULL};
  sh("for v in 3 5; do g++ -O2 -gdwarf-$v -shared -fPIC -nostdlib $SRC/inlines.cc -o whole.$v; "
     "done");
  for (int version = 3; version <= 5; version += 2) {
    char name[32];
    snprintf(name, sizeof name, "whole.%d", version);
    uint64_t main_at = address_of(name, "entry");
    FILE *file = fopen(in_dir(name), "rb");
    uint8_t *bytes = mic_alloc(1 << 20), *copy = mic_alloc(1 << 20);
    size_t size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    for (size_t round = 0; round < 3000; round++) {
      memcpy(copy, bytes, size);
      size_t kept = round % 2 ? size : size * round / 3000;
      if (round % 2) /* a prime step visits all of the file */
        for (size_t k = 0; k < 4; k++)
          copy[(round * 7919 + k * 104729) % size] ^= (uint8_t)(1u << (round / 2 + k) % 8);
      struct mic_symbols_source source = {
        .fd = -1, .memory = copy, .memory_size = kept, .path = "x", .debug_dirs = no_dirs};
      struct mic_symbols *symbols;
      if (mic_symbols_open(&source, &symbols, NULL) != MIC_OK) continue;
      for (uint64_t at = main_at - 256; at < main_at + 64; at += 3) {
        const struct mic_symbol *s;
        size_t count = mic_symbols_lookup(symbols, at, &s);
        for (size_t i = 0; i < count; i++) assert_true(s[i].name && s[i].linkage_name);
      }
      mic_symbols_close(symbols);
    }
    free(bytes);
    free(copy);
  }
}

/* f0 inlined into f1, that into f2, and so on, and all of them into top. */
static struct mic_symbols *open_deep(int levels) {
  sh("{ echo 'volatile int x;'; awk 'BEGIN { for (i = 0; i < %d; i++) { "
     "printf \"static inline __attribute__((always_inline)) void f%%d(void) { \", i; "
     "if (i) printf \"f%%d(); }\\n\", i - 1; else print \"x = 1; }\" } "
     "printf \"__attribute__((noinline)) void top(void) { f%%d(); }\\n\", i - 1; "
     "print \"int main(void) { top(); return x; }\" }'; } > deep.c && gcc -g -O2 deep.c -o deep",
     levels);
  return open_symbols("deep");
}

static void expect_levels(const struct mic_symbol *s, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "f%zu", i);
    assert_string_equal(s[i].name, name);
    assert_int_equal(s[i].line, i + 2);
  }
}

static void deep_inlining(void **state) {
  (void)state;
  static const int levels[] = {200, 511, 512, 900};
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    size_t all = (size_t)levels[i] + 1, most = all < 512 ? all : 512;
    struct mic_symbols *symbols = open_deep(levels[i]);
    const struct mic_symbol *s;
    assert_int_equal(mic_symbols_lookup(symbols, address_of("deep", "top"), &s), most);
    expect_levels(s, all > 512 ? most : most - 1);
    const char *problem = mic_symbols_problem(symbols);
    mic_symbol_ranges extent = {0};
    mic_symbols_extent(symbols, address_of("deep", "top"), most - 1, &extent);
    assert_int_equal(extent.count, 1);
    free(extent.at);
    if (all <= 512) {
      assert_string_equal(s[most - 1].name, "top");
      assert_null(problem);
    } else {
      assert_non_null(problem);
      assert_non_null(strstr(problem, "functions inlined deeper than 512: the outer ones"));
    }
    mic_symbols_close(symbols);
  }
}

/* What is nested too deep to be read names nothing, and what it is in is not taken for it. */
static void too_deep_entries(void **state) {
  (void)state;
  struct mic_symbols *symbols = open_deep(2500);
  const struct mic_symbol *s;
  assert_int_equal(mic_symbols_lookup(symbols, address_of("deep", "top"), &s), 1);
  assert_string_equal(s->name, "top");
  assert_non_null(strstr(mic_symbols_problem(symbols), "nested deeper than 2048 entries"));
  mic_symbols_close(symbols);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rust_names),
    cmocka_unit_test(rust_legacy_names),
    cmocka_unit_test(sizeless_covers_itself_alone),
    cmocka_unit_test(constructors_of_line_tables),
    cmocka_unit_test(thin_lto_names),
    cmocka_unit_test(compressed_sections),
    cmocka_unit_test(split_dwarf),
    cmocka_unit_test(split_dwarf_of_another_build),
    cmocka_unit_test(split_dwarf_packages),
    cmocka_unit_test(separate_files),
    cmocka_unit_test(files_inside_a_root),
    cmocka_unit_test(another_file_is_not_used),
    cmocka_unit_test(shared_debug_file),
    cmocka_unit_test(mini_debug_information),
    cmocka_unit_test(plt_stubs),
    cmocka_unit_test(static_plt_stubs),
    cmocka_unit_test(unnamed_namespace_is_not_rust),
    cmocka_unit_test(the_vdso),
    cmocka_unit_test(a_shrinking_file),
    cmocka_unit_test(bad_images),
    cmocka_unit_test(damaged_images),
    cmocka_unit_test(deep_inlining),
    cmocka_unit_test(too_deep_entries),
  };
  return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
