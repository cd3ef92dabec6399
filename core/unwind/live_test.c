/*
 * live_test.c - real programs, stepped an instruction at a time: each stack against the truth.
 *
 * The truth is a shadow stack of the calls that were stepped over (fixtures/unwind/judge.c);
 * libunwind looks at some of the same stops, and its disagreements with the truth are counted. With
 * MIC_UNWIND_VERBOSE=1 each stop that is short or wrong is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixtures/unwind/judge.h"
#include "unwind/table_internal.h"

enum { ANY_END = MIC_END_COUNT };
enum { STEPS_MAX = 300000, LIBUNWIND_EVERY = 97 };

struct tally {
  uint64_t steps, whole, short_typed, jumps, wrong, judged, judge_wrong;
  uint64_t ends[MIC_END_COUNT];
  uint64_t by_code;
};

struct program {
  const char *name, *build; /* a shell command; $OUT is what it makes */
  const char *argument;
  unsigned allowed_end; /* besides whole stacks: enum mic_end, or 0 */
  bool from_exec;       /* step from the process's first instruction, through ld.so */
};

static char work_dir[] = "/tmp/unwind-live-XXXXXX";
static struct mic_unwinder *unwinder;
static struct judge_shadow truth;
static uint64_t pcs[JUDGE_DEPTH_MAX + 1];

static bool verbose(void) { return getenv("MIC_UNWIND_VERBOSE") != NULL; }

static void print_stack(const char *who, const struct judge_map *map, const struct mic_frame *f,
                        size_t count, enum mic_end end, const struct judge_shadow *shadow) {
  print_message("%s: end %d, %zu frames, truth %zu\n", who, end, count, shadow->count + 1);
  for (size_t i = 0; i < count || i < shadow->count + 1; i++) {
    if (i < count)
      print_message("  %2zu %s+%#lx kind %d evidence %d", i, judge_path(map, f[i].module),
                    f[i].offset, f[i].kind, f[i].evidence);
    if (i >= 1 && i <= shadow->count)
      print_message("   truth %#lx", shadow->at[shadow->count - i].address);
    print_message("\n");
  }
}

/* While an exception lands, libgcc writes the landing frame's registers over those saved in its own
 * frame, so that its return restores them: for some instructions the frames between are no longer
 * on the stack (libgcc, unwind-dw2.c, uw_install_context_1).  Ours then leaves some of the truth
 * out, and may have the landing pad in place of one. */
static bool is_landing(const struct judge_map *map, const struct mic_frame *frames, size_t count,
                       const struct judge_shadow *shadow) {
  size_t extra = 0, at = shadow->count, libgcc = 0;
  for (size_t i = 0; i < count && i < 3; i++) {
    const char *path = judge_path(map, frames[i].module);
    libgcc += strstr(path, "libgcc_s") || strstr(path, "static");
  }
  for (size_t i = 1; i < count; i++) {
    size_t found = at;
    while (found && shadow->at[found - 1].address != pcs[i]) found--;
    if (found)
      at = found - 1;
    else
      extra++;
  }
  return libgcc && extra <= 1;
}

/* In longjmp and its kin call-frame information describes the place that will be jumped to once its
 * registers are loaded; the shadow has the frames that are being left.  Both are true. */
static bool is_jumping(const struct judge_map *map, const struct mic_frame *frames) {
  const struct mic_table *t = map->images.at[frames[0].module].table;
  const struct mic_rule *rule = mic_table_rule((struct mic_table *)(uintptr_t)t, frames[0].offset);
  for (uint32_t i = 0; i < rule->extra_count; i++)
    if (t->rules.extras.at[rule->extra + i].reg == MIC_REG_RSP) return true;
  return false;
}

/* Ours is whole and right; or right as far as it goes, with a reason. */
static void check_ours(struct tally *t, pid_t pid, const struct judge_map *map,
                       const struct judge_sample *sample, const struct judge_shadow *shadow,
                       const char *name) {
  const struct mic_frame *frames;
  size_t count;
  enum mic_end end =
    mic_unwind_sample(unwinder, &map->space, &sample->regs, &sample->stack, &frames, &count);
  assert_true(count >= 1 && count <= JUDGE_DEPTH_MAX);
  judge_pcs(frames, count, pcs);
  t->steps++;
  for (size_t i = 0; i < count; i++) t->by_code += frames[i].evidence == MIC_EVIDENCE_CODE;
  bool whole = end == MIC_END_OUTERMOST || end == MIC_END_ENTRY;
  struct judge_shadow part;
  bool right = whole && judge_agrees(shadow, pcs, count);
  if (!whole && count <= shadow->count + 1) {
    part.count = count - 1;
    memcpy(part.at, shadow->at + shadow->count + 1 - count, part.count * sizeof *part.at);
    right = judge_agrees(&part, pcs, count);
  }
  bool leaving = !right && (is_landing(map, frames, count, shadow) ||
                            (whole && (is_jumping(map, frames) || judge_rewritten(shadow, pid))));
  if (leaving) {
    t->jumps++;
    return;
  }
  t->whole += whole && right;
  t->short_typed += !whole && right;
  t->wrong += !right;
  t->ends[end]++;
  if (verbose() && (!right || !whole)) print_stack(name, map, frames, count, end, shadow);
}

/* False when the program ended or came to an int3 before that many steps. */
static bool step_through(struct tally *t, struct judge_map *map, pid_t pid, const char *name,
                         size_t steps) {
  static struct judge_sample sample;
  for (size_t i = 0; i < steps; i++) {
    judge_sample_take(&sample, pid);
    if (!map->space.find(map->space.data, sample.regs.r[MIC_REG_RIP])) judge_map_read(map, pid);
    check_ours(t, pid, map, &sample, &truth, name);
    if (i % LIBUNWIND_EVERY == 0) {
      size_t count = judge_libunwind(pid, pcs, NULL, JUDGE_DEPTH_MAX);
      t->judged++;
      t->judge_wrong += !judge_agrees(&truth, pcs, count);
    }
    if (!judge_step(&truth, pid)) return false;
  }
  return true;
}

static void report(const struct program *p, const struct tally *t) {
  print_message("%-24s %6lu stops: %6lu whole, %4lu short, %lu wrong, %lu in jumps; %lu frames by "
                "code; libunwind wrong at %lu of %lu\n",
                p->name, t->steps, t->whole, t->short_typed, t->wrong, t->jumps, t->by_code,
                t->judge_wrong, t->judged);
  for (size_t i = 0; i < MIC_END_COUNT; i++)
    if (t->ends[i] && i != MIC_END_OUTERMOST && i != MIC_END_ENTRY)
      print_message("%26s end %zu: %lu\n", "", i, t->ends[i]);
}

static bool build(const struct program *p, char *path, size_t size) {
  char command[2048];
  snprintf(path, size, "%s/%s", work_dir, p->name);
  snprintf(command, sizeof command, "cd %s && OUT=%s && { %s; } >%s.log 2>&1", MIC_FIXTURES, path,
           p->build, path);
  return system(command) == 0;
}

static void run_program(const struct program *p) {
  char path[256];
  if (!build(p, path, sizeof path)) {
    print_message("%s: cannot be built here (%s.log)\n", p->name, path);
    fail_msg("%s does not build", p->name);
  }
  struct judge_map map = {0};
  struct tally tally = {0};
  char *argv[] = {path, (char *)(uintptr_t)p->argument, NULL};
  pid_t pid = judge_start(argv);
  truth.count = 0;
  if (!p->from_exec) {
    assert_true(judge_run(pid));
    judge_shadow_begin(&truth, pid);
  }
  judge_map_read(&map, pid);
  step_through(&tally, &map, pid, p->name, STEPS_MAX);
  if (p->from_exec) step_through(&tally, &map, pid, p->name, STEPS_MAX); /* it stood at an int3 */
  judge_end(pid);
  judge_map_free(&map);
  report(p, &tally);
  assert_int_equal(tally.wrong, 0);
  assert_true(tally.steps > 500);
  /* _init and crt1's helpers have no call-frame information. */
  if (p->allowed_end == ANY_END) return; /* musl has next to no call-frame information */
  uint64_t allowed = p->allowed_end ? tally.ends[p->allowed_end] : 0;
  assert_int_equal(tally.whole + tally.jumps + allowed, tally.steps);
  assert_true(tally.jumps < tally.steps / 100);
  if (p->from_exec) assert_true(allowed < 64);
}

#define C_SOURCE "stack_c.c -o $OUT"
static const struct program c_programs[] = {
  {"c-O0", "gcc -O0 " C_SOURCE, NULL, 0, false},
  {"c-O2", "gcc -O2 " C_SOURCE, NULL, 0, false},
  {"c-from-exec", "gcc -O2 " C_SOURCE, NULL, MIC_END_NO_UNWIND_INFO, true},
  {"c-O2-frame-pointer", "gcc -O2 -fno-omit-frame-pointer " C_SOURCE, NULL, 0, false},
  {"c-lazy-plt", "gcc -O0 -fno-builtin -Wl,-z,lazy " C_SOURCE, NULL, 0, false},
  {"c-full-relro", "gcc -O2 -fno-builtin -Wl,-z,now,-z,relro " C_SOURCE, NULL, 0, false},
  {"c-cet", "gcc -O2 -fcf-protection=full -Wl,-z,lazy " C_SOURCE, NULL, 0, false},
  {"c-no-pie", "gcc -O2 -no-pie " C_SOURCE, NULL, 0, false},
  {"c-static", "gcc -O2 -static " C_SOURCE, NULL, MIC_END_NO_UNWIND_INFO, true},
  {"c-static-pie", "gcc -O2 -static-pie " C_SOURCE, NULL, MIC_END_NO_UNWIND_INFO, true},
  {"c-stripped", "gcc -O2 -s " C_SOURCE, NULL, 0, false},
  {"c-clang", "clang -O2 " C_SOURCE, NULL, 0, false},
  {"c-lld", "clang -O2 -fuse-ld=lld -Wl,--rosegment -Wl,-z,noseparate-code " C_SOURCE, NULL,
   MIC_END_NO_UNWIND_INFO, true},
  {"c-lld-no-pie",
   "clang -O2 -fuse-ld=lld -no-pie -Wl,--no-rosegment -Wl,-z,noseparate-code " C_SOURCE, NULL,
   MIC_END_NO_UNWIND_INFO, true},
  {"c-avx", "gcc -O3 -mavx2 -mno-vzeroupper " C_SOURCE, NULL, 0, false},
  {"c-debug-frame-zlib",
   "gcc -O1 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables "
   "-fomit-frame-pointer " C_SOURCE,
   NULL, MIC_END_NO_UNWIND_INFO, true},
  {"c-debug-frame-zstd",
   "gcc -O1 -g -Wl,--compress-debug-sections=zstd -fno-asynchronous-unwind-tables "
   "-fno-unwind-tables " C_SOURCE,
   NULL, MIC_END_NO_UNWIND_INFO, true},
  {"c-frame-pointer-only",
   "gcc -O1 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer " C_SOURCE,
   NULL, MIC_END_NO_UNWIND_INFO, false},
  {"c-frame-pointer-only-O2",
   "gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer " C_SOURCE,
   NULL, MIC_END_NO_UNWIND_INFO, false},
  {"c-musl", "musl-gcc -O2 -fno-omit-frame-pointer " C_SOURCE, NULL, ANY_END, true},
  {"c-musl-static", "musl-gcc -static -O2 " C_SOURCE, NULL, ANY_END, true},
  {"cc-O0", "g++ -O0 stack_cc.cc -o $OUT", NULL, 0, false},
  {"cc-O2", "g++ -O2 stack_cc.cc -o $OUT", NULL, 0, false},
  {"cc-static", "g++ -O2 -static stack_cc.cc -o $OUT", NULL, MIC_END_NO_UNWIND_INFO, true},
  {"signal", "gcc -O2 stack_signal.c -o $OUT", NULL, 0, false},
  {"signal-frame-pointer", "gcc -O2 -fno-omit-frame-pointer stack_signal.c -o $OUT", NULL, 0,
   false},
  {"signal-alternate", "gcc -O2 stack_signal.c -o $OUT", "alt", MIC_END_OTHER_STACK, false},
};

static const char *only; /* an argument of the test: programs with this in their name */

static void test_programs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof c_programs / sizeof *c_programs; i++)
    if (!only || strstr(c_programs[i].name, only)) run_program(&c_programs[i]);
}

/* Programs of the system at moments as they come, then stepped for a while. */
struct busy {
  const char *name;
  const char *argv[8];
};
static const struct busy busy_programs[] = {
  {"python3", {"/usr/bin/python3", "-c", "d={}\nfor i in range(10**8): d[i%999]=str(i)"}},
  {"perl", {"/usr/bin/perl", "-e", "for(1..1e8){$h{$_%999}=sprintf('%d',$_);/(1+)/}"}},
  {"sqlite3",
   {"/usr/bin/sqlite3", ":memory:",
    "with recursive c(x) as (select 1 union all select x+1 from c limit 99999999) select "
    "sum(length(printf('%d',x))) from c;"}},
  {"cc1",
   {"/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "-O2", "-quiet", MIC_FIXTURES "/busy.c", "-o",
    "/dev/null"}},
  {"openssl", {"/usr/bin/openssl", "speed", "-seconds", "5", "rsa2048"}},
};
enum { BURSTS = 40, BURST_STEPS = 400, BURST_GAP_MS = 7 };

static void run_busy(const struct busy *p) {
  struct judge_map map = {0};
  struct tally tally = {0};
  uint64_t unsure = 0;
  pid_t pid = judge_start((char *const *)(uintptr_t)p->argv);
  for (int i = 0; i < BURSTS && judge_run_for(pid, BURST_GAP_MS); i++) {
    static struct judge_sample sample;
    const struct mic_frame *frames;
    size_t count;
    judge_map_read(&map, pid);
    judge_shadow_begin(&truth, pid);
    judge_sample_take(&sample, pid);
    enum mic_end end =
      mic_unwind_sample(unwinder, &map.space, &sample.regs, &sample.stack, &frames, &count);
    judge_pcs(frames, count, pcs);
    bool whole = end == MIC_END_OUTERMOST || end == MIC_END_ENTRY;
    if (whole && !judge_agrees(&truth, pcs, count) && verbose())
      print_stack(p->name, &map, frames, count, end, &truth);
    if (whole && judge_agrees(&truth, pcs, count))
      step_through(&tally, &map, pid, p->name, BURST_STEPS);
    else
      unsure++; /* libunwind has another view: there is nothing to step from */
  }
  judge_end(pid);
  judge_map_free(&map);
  report(&(struct program){.name = p->name}, &tally);
  print_message("%26s %lu of %d moments without an agreed start\n", "", unsure, BURSTS);
  assert_int_equal(tally.wrong, 0);
  assert_true(tally.short_typed * 100 <= tally.steps);
}

static void test_busy_programs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof busy_programs / sizeof *busy_programs; i++) {
    const struct busy *p = &busy_programs[i];
    if (only && !strstr(p->name, only)) continue;
    if (access(p->argv[0], X_OK) == 0)
      run_busy(p);
    else
      print_message("%s: not on this system\n", p->argv[0]);
  }
}

static int set_up(void **state) {
  (void)state;
  unwinder = mic_unwinder_new();
  return mkdtemp(work_dir) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[64];
  mic_unwinder_free(unwinder);
  snprintf(command, sizeof command, "rm -rf %s", work_dir);
  return system(command);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs),
                                     cmocka_unit_test(test_busy_programs)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
