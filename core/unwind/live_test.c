/*
 * live_test.c - real programs, stepped an instruction at a time: each stack against the truth.
 *
 * The truth is a shadow stack of the calls that were stepped over (fixtures/unwind/judge.c);
 * libunwind looks at some of the same stops, and its disagreements with the truth are counted. With
 * MIC_UNWIND_VERBOSE=1 each stop that is short or wrong is printed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/names.h"
#include "fixtures/unwind/judge.h"
#include "unwind/table_internal.h"

enum { ANY_END = MIC_END_COUNT };
/* From its first instruction a program comes to main in some 105,000 steps. */
enum { STEPS_MAX = 140000, STEPS_QUICK = 3000, LIBUNWIND_EVERY = 97 };

struct tally {
  uint64_t steps, whole, short_typed, jumps, wrong, judged, judge_wrong;
  uint64_t ends[MIC_END_COUNT];
  uint64_t by_code;
};

struct program {
  const char *name, *build; /* a shell command; $OUT is what it makes */
  const char *argument;
  unsigned allowed_end; /* besides whole stacks: enum mic_end, or 0 */
  bool from_exec;       /* libunwind does not see its start.  With MIC_UNWIND_FULL it is stepped
                           from the process's first instruction, through ld.so */
};

static char work_dir[] = "/tmp/unwind-live-XXXXXX";
static struct mic_unwinder *unwinder;
static struct judge_shadow truth;
static uint64_t pcs[JUDGE_DEPTH_MAX + 1];

/* All there is, for some minutes, instead of what finds most mistakes in some seconds. */
static bool full(void) { return getenv("MIC_UNWIND_FULL") != NULL; }
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
  bool whole = mic_end_is_whole(end);
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

/* Where libunwind is blind the stack at the first int3, of main and what called it, is taken as
 * found: it ends proven, and main does not return before the second. */
static void begin_from_ours(const struct judge_map *map, pid_t pid) {
  static struct judge_sample sample;
  const struct mic_frame *frames;
  size_t count;
  judge_sample_take(&sample, pid);
  mic_unwind_sample(unwinder, &map->space, &sample.regs, &sample.stack, &frames, &count);
  judge_pcs(frames, count, pcs);
  truth.count = 0;
  for (size_t i = count; i > 1; i--) {
    truth.at[truth.count].slot = UINT64_MAX;
    truth.at[truth.count].held = true;
    truth.at[truth.count++].address = pcs[i - 1];
  }
}

static void report(const struct program *p, const struct tally *t) {
  print_message("%-24s %6lu stops: %6lu whole, %4lu short, %lu wrong, %lu in jumps; %lu frames by "
                "code; libunwind wrong at %lu of %lu\n",
                p->name, t->steps, t->whole, t->short_typed, t->wrong, t->jumps, t->by_code,
                t->judge_wrong, t->judged);
  for (size_t i = 0; i < MIC_END_COUNT; i++)
    if (t->ends[i] && !mic_end_is_whole((uint32_t)i))
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
  judge_map_read(&map, pid);
  size_t steps = full() ? STEPS_MAX : STEPS_QUICK;
  if (p->from_exec && full()) { /* up to its first int3, then on */
    step_through(&tally, &map, pid, p->name, steps);
  } else {
    assert_true(judge_run(pid));
    judge_map_read(&map, pid);
    if (p->from_exec)
      begin_from_ours(&map, pid);
    else
      judge_shadow_begin(&truth, pid);
  }
  step_through(&tally, &map, pid, p->name, steps);
  judge_end(pid);
  judge_map_free(&map);
  report(p, &tally);
  assert_int_equal(tally.wrong, 0);
  assert_true(tally.steps > 500);
  /* _init and crt1's helpers have no call-frame information. */
  if (p->allowed_end == ANY_END) return; /* musl has next to no call-frame information */
  uint64_t allowed = p->allowed_end ? tally.ends[p->allowed_end] : 0;
  assert_int_equal(tally.whole + tally.jumps + allowed, tally.steps);
  assert_true(tally.jumps * 20 <= tally.steps);
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
  {"thread-making", "gcc -O2 -pthread stack_thread.c -o $OUT", NULL, MIC_END_NO_UNWIND_INFO, false},
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
enum { BURSTS = 40, BURSTS_QUICK = 6, BURST_STEPS = 400, BURST_GAP_MS = 7 };

static void run_busy(const struct busy *p) {
  struct judge_map map = {0};
  struct tally tally = {0};
  uint64_t unsure = 0;
  pid_t pid = judge_start((char *const *)(uintptr_t)p->argv);
  int bursts = full() ? BURSTS : BURSTS_QUICK;
  for (int i = 0; i < bursts && judge_run_for(pid, BURST_GAP_MS); i++) {
    static struct judge_sample sample;
    const struct mic_frame *frames;
    size_t count;
    judge_map_read(&map, pid);
    judge_shadow_begin(&truth, pid);
    judge_sample_take(&sample, pid);
    enum mic_end end =
      mic_unwind_sample(unwinder, &map.space, &sample.regs, &sample.stack, &frames, &count);
    judge_pcs(frames, count, pcs);
    bool whole = mic_end_is_whole(end);
    if (whole && !judge_agrees(&truth, pcs, count) && verbose())
      print_stack(p->name, &map, frames, count, end, &truth);
    if (whole && judge_agrees(&truth, pcs, count))
      step_through(&tally, &map, pid, p->name, BURST_STEPS);
    else
      unsure++; /* not whole, or libunwind has another view: nothing to step from */
  }
  judge_end(pid);
  judge_map_free(&map);
  report(&(struct program){.name = p->name}, &tally);
  print_message("%26s %lu of %d moments without an agreed start\n", "", unsure, bursts);
  assert_int_equal(tally.wrong, 0);
  /* cc1's stacks can be longer than a copy. */
  uint64_t others = tally.short_typed - tally.ends[MIC_END_COPY_EXHAUSTED];
  assert_true(others * 100 <= tally.steps);
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

/* Stacks of one shape: how they end and how many frames they have. */
struct shape {
  const char *name, *flags;
  unsigned end;
  size_t least, most;
};
static const struct shape shapes[] = {
  {"noreturn", "-O2", MIC_END_OUTERMOST, 6, 6},    /* spin ends_in_call main libc libc _start */
  {"alternate", "-O2", MIC_END_OTHER_STACK, 4, 4}, /* burn handler signal raise */
  /* burn __start_context: its address was planted, no call came from there, and its call-frame
   * information (glibc 2.36) does not hold at it */
  {"coroutine", "-O2", MIC_END_NO_UNWIND_INFO, 2, 2},
  {"deep", "-O2", MIC_END_COPY_EXHAUSTED, 8, 10}, /* of 45, each with 4 KiB */
  {"section", "-O2 -no-pie -Wl,--section-start=.hot2=0x900000", MIC_END_OUTERMOST, 5, 5},
  {"generated", "-O2", MIC_END_ANONYMOUS_CODE, 1, 1},
  {"vfork", "-O2", MIC_END_OUTERMOST, 5, 7},
  {"thread", "-O2", MIC_END_OUTERMOST, 4, 4}, /* burn thread start_thread clone3 */
};
enum { SHAPE_STOPS = 20, SHAPE_TRIES = 2000 };

/* The thread to look at: of "thread" the second, once the first has gone. */
static pid_t wait_for_thread(pid_t pid, const char *name) {
  struct timespec moment = {0, 1000000};
  for (int i = 0; i < SHAPE_TRIES; i++, nanosleep(&moment, NULL)) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    if (f) fclose(f);
    if (strcmp(name, "thread") != 0) return pid;
    if (state == 'Z') return pid + 1; /* ids are given in order; checked by attaching */
  }
  return 0;
}

static enum mic_end look_once(const struct shape *p, struct judge_map *map, pid_t tid,
                              size_t *count) {
  static struct judge_sample sample;
  const struct mic_frame *frames;
  judge_map_read(map, tid);
  judge_sample_take(&sample, tid);
  enum mic_end end =
    mic_unwind_sample(unwinder, &map->space, &sample.regs, &sample.stack, &frames, count);
  truth.count = 0;
  if (verbose()) print_stack(p->name, map, frames, *count, end, &truth);
  return end;
}

/* The program comes to its shape in its own time: it is looked at until it is there, and then it
 * has to stay. */
static void run_shape(const struct shape *p) {
  char path[256], command[512];
  snprintf(command, sizeof command, "gcc %s -pthread stack_cases.c -o $OUT", p->flags);
  if (!build(&(struct program){.name = p->name, .build = command}, path, sizeof path))
    fail_msg("%s does not build", p->name);
  pid_t pid = judge_spawn((char *[]){path, (char *)(uintptr_t)p->name, NULL});
  pid_t tid = wait_for_thread(pid, p->name);
  struct judge_map map = {0};
  size_t count = 0, good = 0;
  assert_true(judge_attach(tid));
  for (int i = 0; i < SHAPE_TRIES && good < SHAPE_STOPS; i++) {
    bool right = look_once(p, &map, tid, &count) == p->end && count >= p->least && count <= p->most;
    if (good && !right) fail_msg("%s: %zu frames", p->name, count);
    good += right;
    ptrace(PTRACE_DETACH, tid, NULL, 0L);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (!judge_attach(tid)) fail_msg("%s: gone", p->name);
  }
  print_message("%-24s %zu of %d stops have the shape\n", p->name, good, SHAPE_STOPS);
  assert_int_equal(good, SHAPE_STOPS);
  kill(pid, SIGKILL);
  if (tid != pid) waitpid(tid, NULL, __WALL); /* a traced thread is reaped by itself */
  waitpid(pid, NULL, __WALL);
  judge_map_free(&map);
}

static void test_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (!only || strcmp(shapes[i].name, only) == 0) run_shape(&shapes[i]);
}

/* gdb's return addresses of a stopped process, frame 1 first. */
static size_t ask_gdb(pid_t pid, uint64_t *out, size_t room) {
  char command[256], line[4096];
  size_t count = 0;
  snprintf(command, sizeof command,
           "gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set auto-load off' -p %d -ex "
           "'set print address on' -ex 'bt -frame-arguments none' 2>/dev/null",
           pid);
  FILE *gdb = popen(command, "r");
  assert_non_null(gdb);
  while (fgets(line, sizeof line, gdb)) {
    unsigned number;
    uint64_t address = 0;
    if (sscanf(line, "#%u 0x%lx", &number, &address) < 1 || number == 0) continue;
    if (strstr(line, "<signal handler called>")) address = 0; /* it prints no address there */
    if (number <= room) out[number - 1] = address, count = number;
  }
  pclose(gdb);
  return count;
}

/* Leaves the program stopped but not traced, for gdb; it is done for after. */
static void compare_with_gdb(const char *name, struct judge_map *map, pid_t pid) {
  static struct judge_sample sample;
  static uint64_t theirs[JUDGE_DEPTH_MAX];
  const struct mic_frame *frames;
  size_t count, wrong = 0;
  judge_map_read(map, pid);
  judge_sample_take(&sample, pid);
  enum mic_end end =
    mic_unwind_sample(unwinder, &map->space, &sample.regs, &sample.stack, &frames, &count);
  bool whole = mic_end_is_whole(end);
  judge_pcs(frames, count, pcs);
  ptrace(PTRACE_DETACH, pid, NULL, (long)SIGSTOP);
  size_t gdb_count = ask_gdb(pid, theirs, JUDGE_DEPTH_MAX);
  for (size_t i = 1; i < count && i <= gdb_count; i++)
    wrong += theirs[i - 1] && theirs[i - 1] != pcs[i];
  print_message("%-24s %zu frames, end %d, gdb %zu, %zu differ\n", name, count, end, gdb_count + 1,
                wrong);
  assert_int_equal(wrong, 0);
  /* gdb stops at main; what called it is the C library and _start. */
  if (whole) assert_true(gdb_count + 1 <= count && gdb_count + 1 >= count - 3);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, __WALL);
}

static void test_gdb(void **state) {
  (void)state;
  static const char *const names[] = {"c-O2", "c-clang", "cc-O2", "signal"};
  if (only && strcmp(only, "gdb") != 0) return;
  if (system("gdb --version >/dev/null 2>&1") != 0) skip();
  for (size_t i = 0; i < sizeof c_programs / sizeof *c_programs; i++) {
    bool named = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      named = named || strcmp(c_programs[i].name, names[k]) == 0;
    char path[256];
    if (!named || !build(&c_programs[i], path, sizeof path)) continue;
    for (int steps = 300; steps <= (full() ? 1500 : 300); steps += 400) {
      struct judge_map map = {0};
      pid_t pid = judge_start((char *[]){path, NULL});
      assert_true(judge_run(pid));
      truth.count = 0;
      for (int n = 0; n < steps; n++) assert_true(judge_step(&truth, pid));
      compare_with_gdb(c_programs[i].name, &map, pid);
      judge_map_free(&map);
    }
  }
  for (size_t i = 0; i < (full() ? 4 : 1); i++) {
    struct judge_map map = {0};
    if (access(busy_programs[i].argv[0], X_OK) != 0) continue;
    pid_t pid = judge_start((char *const *)(uintptr_t)busy_programs[i].argv);
    if (judge_run_for(pid, 300)) compare_with_gdb(busy_programs[i].name, &map, pid);
    judge_map_free(&map);
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
                                     cmocka_unit_test(test_busy_programs),
                                     cmocka_unit_test(test_shapes), cmocka_unit_test(test_gdb)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
