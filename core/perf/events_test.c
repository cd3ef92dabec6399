/*
 * events_test.c - real perf events of real tasks.
 *
 * Needs a kernel that lets its user sample own processes (kernel.perf_event_paranoid of 2 or less);
 * the tests of unprivileged use need root, to become another user.
 */
#include "perf/events_fixture.h"

/* ---- samples ---- */

struct range {
  uint64_t start, end;
};
static struct range spin_range(pid_t pid) {
  char path[64], line[512];
  struct range range = {0};
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  FILE *maps = fopen(path, "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char perms[8];
    if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && perms[2] == 'x' &&
        (uintptr_t)spin >= start && (uintptr_t)spin < end)
      range = (struct range){start, end};
  }
  fclose(maps);
  return range;
}

struct inside {
  struct range range;
  uint32_t pid;
  uint64_t samples;
};
static bool check_inside(void *data, const struct mic_record *record) {
  struct inside *inside = data;
  if (record->kind != MIC_RECORD_SAMPLE) return false;
  assert_int_equal(record->pid, inside->pid);
  assert_int_equal(record->tid, inside->pid);
  assert_int_equal(record->period, 1000000);
  assert_int_equal(record->regs_abi, PERF_SAMPLE_REGS_ABI_64);
  assert_int_equal(record->regs.known, 0x1ffff);
  assert_true(record->time_ns <= mic_clock_ns());
  assert_true(record->user);
  assert_true(record->ip >= inside->range.start && record->ip < inside->range.end);
  assert_true(record->regs.r[16] == record->ip);
  assert_true(record->stack_size >= 64 && record->regs.r[7] % 8 == 0);
  return ++inside->samples >= 50;
}

static void samples_a_spinning_child(void **state) {
  (void)state;
  pid_t pid = child_of(spin);
  struct mic_perf *perf = perf_new(options_of(8192));
  struct inside inside = {.range = spin_range(pid), .pid = (uint32_t)pid};
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  drain_until(perf, check_inside, &inside);
  end_child(pid);
  mic_perf_free(perf);
}

/* The last sample before a stop has the stack the stopped thread still has, when the program does
 * nothing but spin in one frame. */
struct last {
  uint64_t sp, size, count;
  uint8_t bytes[65536];
};
static bool keep_last(void *data, const struct mic_record *record) {
  struct last *last = data;
  if (record->kind != MIC_RECORD_SAMPLE || !record->stack) return false;
  last->sp = record->regs.r[7];
  last->size = record->stack_size;
  memcpy(last->bytes, record->stack, record->stack_size);
  return ++last->count >= 20;
}

static void spin_over_a_pattern(void) {
  volatile uint8_t pattern[4096];
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (uint8_t)(i * 7);
  raise(SIGSTOP);
  for (;;) __asm__ volatile("" ::"r"(pattern) : "memory");
}

static void stack_is_what_memory_holds(void **state) {
  (void)state;
  const uint32_t sizes[] = {512, 8192, 32768, 65528};
  struct last *last = malloc(sizeof *last);
  uint8_t *memory = malloc(65536);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    pid_t pid = child_of(spin_over_a_pattern);
    wait_stopped(pid);
    struct mic_perf *perf = perf_new(options_of(sizes[i]));
    add(perf, pid, MIC_PERF_NOW);
    enable(perf);
    kill(pid, SIGCONT);
    *last = (struct last){0};
    drain_until(perf, keep_last, last);
    kill(pid, SIGSTOP);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
    drain(perf, keep_last, last);
    struct iovec local = {memory, last->size}, remote = {(void *)last->sp, last->size};
    assert_int_equal(process_vm_readv(pid, &local, 1, &remote, 1, 0), last->size);
    assert_memory_equal(memory, last->bytes, last->size);
    if (sizes[i] == 512) assert_int_equal(last->size, 512);
    end_child(pid);
    mic_perf_free(perf);
  }
  free(last);
  free(memory);
}

/* ---- how many samples ---- */

static uint64_t thread_cpu_ns(void) { return mic_clock_thread_cpu_ns(); }
/* Short bursts with system calls: less than a period at a time, and much of it in the kernel. */
static void burst(void) {
  raise(SIGSTOP);
  for (;;) {
    uint64_t until = thread_cpu_ns() + 300000;
    while (thread_cpu_ns() < until)
      for (volatile int i = 0; i < 3000; i++) {
      }
    usleep(100);
  }
}
static uint64_t cpu_ns_of(pid_t pid) {
  clockid_t clock;
  struct timespec t;
  assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
  assert_int_equal(clock_gettime(clock, &t), 0);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* Samples times period is the CPU time, whoever else runs on the machine. */
static void samples_add_up(void (*body)(void), uint32_t kernel) {
  pid_t pid = child_of(body);
  wait_stopped(pid);
  struct mic_perf_options options = options_of(0);
  options.kernel = kernel;
  struct mic_perf *perf = perf_new(options);
  struct tally tally = {.enough = 2000};
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  uint64_t before = cpu_ns_of(pid);
  siginfo_t info;
  kill(pid, SIGCONT);
  drain_until(perf, count_samples, &tally);
  kill(pid, SIGSTOP);
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
  uint64_t periods = (cpu_ns_of(pid) - before) / 1000000;
  drain(perf, count_samples, &tally);
  /* The kernel's own work at a switch comes after the event was stopped: some per cent. */
  assert_in_range(tally.samples, periods - periods / 10, periods + periods / 50);
  end_child(pid);
  mic_perf_free(perf);
}
static void samples_add_up_to_cpu_time(void **state) {
  (void)state;
  samples_add_up(stop_then_spin, 0);
  struct mic_perf_options options = options_of(0);
  struct mic_perf *perf;
  struct mic_error err = {0};
  options.kernel = 1;
  int code = mic_perf_new(&options, &perf, &err);
  if (code == MIC_EPERM) {
    print_message("skipped: %s\n", err.msg);
    skip();
  }
  mic_perf_free(perf);
  samples_add_up(burst, 1);
}

/* ---- what else is told ---- */

static int gate[2];
static void run_script_at_gate(void) {
  char byte;
  close(gate[1]);
  if (read(gate[0], &byte, 1) != 1) _exit(9);
  execl("/bin/sh", "sh", "-c", "/bin/true; exit 3", (char *)NULL);
  _exit(127);
}
static void open_gate(void) {
  assert_int_equal(write(gate[1], "", 1), 1);
  close(gate[0]);
  close(gate[1]);
}

struct told {
  uint32_t pid;
  uint32_t forks, exits, execs, maps, libc;
  bool true_seen;
};
static bool hear(void *data, const struct mic_record *record) {
  struct told *told = data;
  if (record->kind == MIC_RECORD_FORK && record->ppid == told->pid) told->forks++;
  if (record->kind == MIC_RECORD_EXIT) told->exits++;
  if (record->kind == MIC_RECORD_COMM && record->exec) {
    told->execs++;
    if (strcmp(record->name, "true") == 0) told->true_seen = true;
  }
  if (record->kind == MIC_RECORD_MMAP && (record->prot & PROT_EXEC)) {
    told->maps++;
    if (strstr(record->name, "/libc")) {
      told->libc++;
      assert_true(record->has_inode && record->ino != 0);
    }
  }
  return record->kind == MIC_RECORD_EXIT && record->pid == told->pid;
}

static void tells_of_forks_names_mappings_and_exits(void **state) {
  (void)state;
  for (uint32_t children = 0; children < 2; children++) {
    assert_int_equal(pipe(gate), 0);
    pid_t pid = child_of(run_script_at_gate);
    struct mic_perf_options options = options_of(0);
    options.children = children;
    struct mic_perf *perf = perf_new(options);
    struct mic_perf_settings settings;
    mic_perf_settings(perf, &settings);
    add(perf, pid, MIC_PERF_AT_EXEC);
    open_gate();
    struct told told = {.pid = (uint32_t)pid};
    drain_until(perf, hear, &told);
    assert_int_equal(told.forks, 1);
    assert_int_equal(told.true_seen, settings.follows_children);
    assert_int_equal(told.execs, settings.follows_children ? 2 : 1);
    assert_int_equal(told.exits, settings.follows_children ? 2 : 1);
    assert_int_equal(told.libc, settings.follows_children ? 2 : 1);
    end_child(pid);
    mic_perf_free(perf);
  }
}

static void spin_a_while_then_exec(void) {
  char byte;
  close(gate[1]);
  for (volatile uint64_t i = 0; i < 20000000; i++) {
  }
  if (read(gate[0], &byte, 1) != 1) _exit(9);
  execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
  _exit(127);
}
struct exec_first {
  uint64_t exec_ns, first_sample_ns, samples;
};
static bool see_exec(void *data, const struct mic_record *record) {
  struct exec_first *e = data;
  if (record->kind == MIC_RECORD_COMM && record->exec) e->exec_ns = record->time_ns;
  if (record->kind != MIC_RECORD_SAMPLE) return false;
  if (!e->samples++ || record->time_ns < e->first_sample_ns) e->first_sample_ns = record->time_ns;
  return e->samples >= 20;
}
static void starts_at_exec(void **state) {
  (void)state;
  assert_int_equal(pipe(gate), 0);
  pid_t pid = child_of(spin_a_while_then_exec);
  struct mic_perf *perf = perf_new(options_of(512));
  add(perf, pid, MIC_PERF_AT_EXEC);
  open_gate();
  struct exec_first e = {0};
  drain_until(perf, see_exec, &e);
  drain(perf, see_exec, &e);
  assert_true(e.exec_ns != 0);
  /* perf_event_exec enables just before the name is set. */
  assert_true(e.first_sample_ns + 1000000 > e.exec_ns);
  end_child(pid);
  mic_perf_free(perf);
}

/* ---- on and off ---- */

static void map_code_then_spin(void) {
  raise(SIGSTOP);
  void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) _exit(1);
  spin();
}
static bool see_anon(void *data, const struct mic_record *record) {
  (void)data;
  assert_true(record->kind != MIC_RECORD_SAMPLE);
  return record->kind == MIC_RECORD_MMAP && strcmp(record->name, "//anon") == 0;
}

static void mappings_come_while_samples_are_off(void **state) {
  (void)state;
  pid_t pid = child_of(map_code_then_spin);
  wait_stopped(pid);
  struct mic_perf *perf = perf_new(options_of(512));
  struct mic_error err;
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  assert_int_equal(mic_perf_disable(perf, &err), 0);
  kill(pid, SIGCONT);
  drain_until(perf, see_anon, NULL);
  struct tally tally = {.enough = 10};
  enable(perf);
  drain_until(perf, count_samples, &tally);
  assert_int_equal(mic_perf_disable(perf, &err), 0);
  uint64_t off_ns = mic_clock_ns();
  drain(perf, count_samples, &tally);
  /* It keeps running: wait for 50 ms of its CPU time, in which 50 samples would have come. */
  uint64_t until = mic_clock_ns() + 50000000;
  while (mic_clock_ns() < until) mic_perf_poll(perf, 5);
  drain(perf, count_samples, &tally);
  assert_true(tally.last_ns <= off_ns);
  end_child(pid);
  mic_perf_free(perf);
}

/* ---- losses ---- */

static void count_losses(struct mic_perf *perf) {
  struct mic_perf_settings settings;
  struct mic_perf_lost lost;
  struct mic_error err;
  mic_perf_settings(perf, &settings);
  if (!settings.counts_lost) return;
  uint64_t end = deadline();
  do {
    assert_true(mic_clock_ns() < end);
    usleep(1000);
    assert_int_equal(mic_perf_lost(perf, &lost, &err), 0);
  } while (lost.samples < 20);
  assert_int_equal(lost.samples_told, 0); /* nothing was read yet */
}
static bool hear_lost(void *data, const struct mic_record *record) {
  uint64_t *lost = data;
  if (record->kind == MIC_RECORD_LOST) *lost += record->lost;
  return *lost > 0;
}

/* On one CPU, so that one ring fills and that one tells. */
static void spin_in_place(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one)) _exit(1);
  raise(SIGSTOP);
  spin();
}

static void counts_what_a_full_ring_loses(void **state) {
  (void)state;
  pid_t pid = child_of(spin_in_place);
  wait_stopped(pid);
  struct mic_perf_options options = options_of(32768);
  options.ring_bytes = 128 << 10;
  struct mic_perf *perf = perf_new(options);
  struct mic_perf_lost lost;
  struct mic_error err;
  uint64_t told = 0;
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  kill(pid, SIGCONT);
  count_losses(perf);
  drain_until(perf, hear_lost, &told);
  assert_int_equal(mic_perf_disable(perf, &err), 0);
  drain(perf, hear_lost, &told);
  if (mic_perf_lost(perf, &lost, &err) == 0) {
    assert_int_equal(lost.samples_told, told);
    assert_true(lost.samples >= told && told >= 20);
    assert_int_equal(lost.side, 0);
  }
  end_child(pid);
  mic_perf_free(perf);
}

/* ---- errors ---- */

static void says_what_is_wrong(void **state) {
  (void)state;
  struct mic_perf *perf;
  struct mic_error err = {0};
  struct mic_perf_options options = options_of(12);
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  options = options_of(0);
  options.period = 0;
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  options.period = 9999;
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  options = options_of(0);
  options.ring_bytes = 100000;
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  options = options_of(0);
  options.event = 9;
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  options = options_of(65528);
  options.ring_bytes = 65536;
  assert_int_equal(mic_perf_new(&options, &perf, &err), MIC_EARG);
  assert_null(perf);

  perf = perf_new(options_of(0));
  pid_t pid = child_of(spin);
  end_child(pid);
  assert_int_equal(mic_perf_add_task(perf, (uint32_t)pid, MIC_PERF_NOW, &err), MIC_EGONE);
  assert_int_equal(mic_perf_add_task(perf, 0, MIC_PERF_NOW, &err), MIC_EARG);
  assert_int_equal(mic_perf_tasks(perf), 0);
  mic_perf_free(perf);
}

static void cycles_work_or_are_refused_by_name(void **state) {
  (void)state;
  struct mic_perf *perf;
  struct mic_error err = {0};
  struct mic_perf_options options = options_of(0);
  options.event = MIC_PERF_CYCLES;
  options.period = 1000000;
  int code = mic_perf_new(&options, &perf, &err);
  if (code) {
    assert_int_equal(code, MIC_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "cycle counter"));
    return;
  }
  pid_t pid = child_of(spin);
  struct tally tally = {.enough = 10};
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  drain_until(perf, count_samples, &tally);
  end_child(pid);
  mic_perf_free(perf);
}

/* ---- without privilege ---- */

static void become_nobody(void) {
  if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
    _exit(100);
  prctl(PR_SET_DUMPABLE, 1);
}
/* Run the test body as nobody, in a child; its exit code must be 0. */
static void as_nobody(int (*body)(pid_t), pid_t argument) {
  if (geteuid() != 0) {
    print_message("skipped: root is needed to become another user\n");
    skip();
  }
  fflush(NULL);
  pid_t tester = fork();
  if (tester == 0) {
    become_nobody();
    _exit(body(argument));
  }
  int status;
  waitpid(tester, &status, 0);
  assert_int_equal(status, 0);
}

static int sample_own(pid_t unused) {
  (void)unused;
  struct mic_perf_options options = options_of(16384);
  struct mic_perf *perf;
  struct mic_error err = {0};
  struct tally tally = {.enough = 20};
  struct told told = {0};
  if (pipe(gate)) return 1;
  pid_t pid = fork();
  if (pid == 0) {
    char byte;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 1) _exit(9);
    execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
  }
  if (mic_perf_new(&options, &perf, &err) ||
      mic_perf_add_task(perf, (uint32_t)pid, MIC_PERF_AT_EXEC, &err)) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  if (write(gate[1], "", 1) != 1) return 3;
  uint64_t end = deadline();
  while (tally.of_tid < 20 && mic_clock_ns() < end) {
    /* Only one visitor sees a record: the side rings are drained with the first. */
    if (told.maps == 0) drain(perf, hear, &told);
    drain(perf, count_samples, &tally);
    mic_perf_poll(perf, 10);
  }
  kill(pid, SIGKILL);
  mic_perf_free(perf);
  return tally.of_tid >= 20 && told.maps > 0 ? 0 : 4;
}
static void nobody_samples_its_own(void **state) {
  (void)state;
  as_nobody(sample_own, 0);
}

static int be_refused(pid_t pid) {
  struct mic_perf_options options = options_of(0);
  struct mic_perf *perf;
  struct mic_error err = {0};
  if (mic_perf_new(&options, &perf, &err)) return 1;
  int code = mic_perf_add_task(perf, (uint32_t)pid, MIC_PERF_NOW, &err);
  bool ok = code == MIC_EPERM && strstr(err.msg, "CAP_PERFMON") &&
            strstr(err.msg, "perf_event_paranoid") && mic_perf_tasks(perf) == 0;
  struct mic_perf *inside;
  options.kernel = 1;
  int64_t paranoid = 2;
  FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
  if (!file || fscanf(file, "%ld", &paranoid) != 1) return 3;
  fclose(file);
  if (paranoid > 1)
    ok = ok && mic_perf_new(&options, &inside, &err) == MIC_EPERM &&
         strstr(err.msg, "inside the kernel") && strstr(err.msg, "CAP_PERFMON");
  if (!ok) fprintf(stderr, "%d %s\n", code, err.msg);
  mic_perf_free(perf);
  return ok ? 0 : 2;
}
static void nobody_may_not_sample_others(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("skipped: root is needed to become another user\n");
    skip();
  }
  pid_t pid = child_of(spin);
  as_nobody(be_refused, pid);
  end_child(pid);
}

static int get_smaller_rings(pid_t unused) {
  (void)unused;
  struct rlimit none = {0, 0};
  struct mic_perf_options options = options_of(8192);
  struct mic_perf *perf;
  struct mic_perf_settings settings;
  struct mic_error err = {0};
  options.ring_bytes = 64 << 20;
  options.side_ring_bytes = 128 << 10;
  if (setrlimit(RLIMIT_MEMLOCK, &none)) return 1;
  if (mic_perf_new(&options, &perf, &err)) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  mic_perf_settings(perf, &settings);
  bool ok = settings.rings_reduced && settings.ring_bytes < options.ring_bytes &&
            settings.ring_bytes >= 65536 && settings.side_ring_bytes == options.side_ring_bytes &&
            mic_ring_bytes(mic_perf_ring(perf, mic_perf_rings(perf) - 1)) == settings.ring_bytes &&
            settings.memlock_bytes == 0 && settings.mlock_kb > 0;
  /* Another recorder of the same user leaves none: refused, with what to raise. */
  struct mic_perf *more[64];
  int code = 0;
  size_t count = 0;
  while (count < 64 && !(code = mic_perf_new(&options, &more[count], &err))) count++;
  ok = ok && code == MIC_ELIMIT && strstr(err.msg, "perf_event_mlock_kb") &&
       strstr(err.msg, "ulimit -l");
  if (!ok) fprintf(stderr, "%d %s\n", code, err.msg);
  while (count > 0) mic_perf_free(more[--count]);
  mic_perf_free(perf);
  return ok ? 0 : 3;
}
static void rings_shrink_to_what_may_be_locked(void **state) {
  (void)state;
  as_nobody(get_smaller_rings, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(samples_a_spinning_child),
    cmocka_unit_test(stack_is_what_memory_holds),
    cmocka_unit_test(samples_add_up_to_cpu_time),
    cmocka_unit_test(tells_of_forks_names_mappings_and_exits),
    cmocka_unit_test(starts_at_exec),
    cmocka_unit_test(mappings_come_while_samples_are_off),
    cmocka_unit_test(counts_what_a_full_ring_loses),
    cmocka_unit_test(says_what_is_wrong),
    cmocka_unit_test(cycles_work_or_are_refused_by_name),
    cmocka_unit_test(nobody_samples_its_own),
    cmocka_unit_test(nobody_may_not_sample_others),
    cmocka_unit_test(rings_shrink_to_what_may_be_locked),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
