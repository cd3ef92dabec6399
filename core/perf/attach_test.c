/*
 * attach_test.c - attaching to tasks that make others meanwhile: none is missed, none counts twice.
 *
 * Needs a kernel that lets its user sample own processes (kernel.perf_event_paranoid of 2 or less).
 */
#include "perf/events_fixture.h"

/* ---- attaching ---- */

static void list_tids(pid_t pid, uint32_t **tids, size_t *count) {
  char path[64];
  size_t room = 1 << 16;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *folder = opendir(path);
  assert_non_null(folder);
  *tids = malloc(room * sizeof **tids);
  *count = 0;
  for (struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.' && *count < room)
      (*tids)[(*count)++] = (uint32_t)atoi(entry->d_name);
  closedir(folder);
}
/* As events.h tells.  Returns the rounds. */
static size_t attach(struct mic_perf *perf, pid_t pid) {
  for (size_t round = 1;; round++) {
    uint32_t *tids;
    size_t count, fresh = 0, gone;
    struct mic_error err = {0};
    list_tids(pid, &tids, &count);
    for (size_t i = 0; i < count; i++)
      if (!mic_perf_has(perf, tids[i])) tids[fresh++] = tids[i];
    if (fresh && mic_perf_add_tasks(perf, tids, fresh, MIC_PERF_NOW, &gone, &err))
      fail_msg("%s", err.msg);
    free(tids);
    if (!fresh) return round;
    assert_true(round < 1000);
  }
}

enum { MANY = 2000 };
static void *sleep_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}
static void make_many(void) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 65536);
  for (int i = 0; i < MANY; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attr, sleep_for_ever, NULL)) _exit(1);
  }
  raise(SIGSTOP);
  spin();
}

static void attaches_to_many_threads(void **state) {
  (void)state;
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (limit.rlim_max < (rlim_t)(2 * cpus * (MANY + 1) + 100)) {
    print_message("skipped: RLIMIT_NOFILE is too low\n");
    skip();
  }
  pid_t pid = child_of(make_many);
  wait_stopped(pid);
  struct mic_perf *perf = perf_new(options_of(512));
  uint64_t began = mic_clock_ns();
  attach(perf, pid);
  uint64_t attached = mic_clock_ns();
  assert_int_equal(mic_perf_tasks(perf), MANY + 1);
  struct tally tally = {.tid = (uint32_t)pid, .enough = 20};
  enable(perf);
  uint64_t enabled = mic_clock_ns();
  kill(pid, SIGCONT);
  drain_until(perf, count_samples, &tally);
  /* The others run for a moment too, as they are continued. */
  assert_true(tally.of_tid >= tally.enough);
  end_child(pid);
  uint64_t closing = mic_clock_ns();
  size_t descriptors = mic_perf_descriptors(perf);
  mic_perf_free(perf);
  print_message("%d threads, %zu descriptors: attach %.1f ms, enable %.1f ms, close %.1f ms\n",
                MANY, descriptors, (double)(attached - began) / 1e6,
                (double)(enabled - attached) / 1e6, (double)(mic_clock_ns() - closing) / 1e6);
}

/* Threads that end and make others all the time; each spins, so each is sampled when it is
 * followed.  One of the makers makes short-lived ones only. */
static void *spin_thread(void *until) {
  while (mic_clock_ns() < (uint64_t)(uintptr_t)until) {
  }
  return NULL;
}
static void *maker(void *unused) {
  for (;;) {
    pthread_t thread;
    uint64_t until = mic_clock_ns() + 3000000;
    if (pthread_create(&thread, NULL, spin_thread, (void *)(uintptr_t)until)) _exit(1);
    pthread_join(thread, NULL);
  }
  return unused;
}
static void churn(void) {
  pthread_t thread;
  for (int i = 0; i < 8; i++)
    if (pthread_create(&thread, NULL, maker, NULL)) _exit(1);
  maker(NULL);
}

/* Records by time, as mic_claims_accept wants them: held until all older ones must have been read.
 */
struct doubles {
  struct mic_claims *claims;
  struct mic_record *held;
  size_t held_count;
  uint64_t samples, accepted;
  struct {
    uint64_t id;
    uint32_t tid;
  } seen[1 << 16];
  uint64_t several;      /* threads sampled through more than one event of a CPU */
  uint8_t ends[1 << 22]; /* EXIT records by tid; PID_MAX_LIMIT */
};
enum { HELD = 1 << 17, HOLD_NS = 5000000 };

static struct doubles *doubles_new(const struct mic_perf *perf) {
  struct doubles *d = calloc(1, sizeof *d);
  d->claims = mic_perf_claims(perf);
  d->held = malloc(HELD * sizeof *d->held);
  return d;
}
static void doubles_free(struct doubles *d) {
  mic_claims_free(d->claims);
  free(d->held);
  free(d);
}
static bool hold(void *data, const struct mic_record *record) {
  struct doubles *d = data;
  assert_true(d->held_count < HELD);
  d->held[d->held_count++] = *record;
  return false;
}
static size_t slot_of(uint32_t tid, uint32_t cpu) { return (tid * 31u + cpu) % (1 << 16); }
/* Tids are used again. */
static void forget(struct doubles *d, uint32_t tid) {
  d->ends[tid] = 0;
  for (long cpu = sysconf(_SC_NPROCESSORS_CONF) - 1; cpu >= 0; cpu--)
    d->seen[slot_of(tid, (uint32_t)cpu)].tid = 0;
}
static void take(struct doubles *d, const struct mic_record *record) {
  bool accepted = mic_claims_accept(d->claims, record);
  if (accepted && record->kind == MIC_RECORD_EXIT) d->ends[record->tid]++;
  if (accepted && record->kind == MIC_RECORD_FORK) forget(d, record->tid);
  if (record->kind != MIC_RECORD_SAMPLE) return;
  d->samples++;
  if (!accepted) return;
  d->accepted++;
  size_t slot = slot_of(record->tid, record->cpu);
  if (d->seen[slot].tid == record->tid && d->seen[slot].id != record->id) d->several++;
  d->seen[slot].tid = record->tid;
  d->seen[slot].id = record->id;
}
static int by_time(const void *a, const void *b) {
  const struct mic_record *x = a, *y = b;
  return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}
static void drain_by_time(struct mic_perf *perf, struct doubles *d) {
  uint64_t before_ns = mic_clock_ns() - HOLD_NS;
  size_t taken = 0;
  drain(perf, hold, d);
  qsort(d->held, d->held_count, sizeof *d->held, by_time);
  while (taken < d->held_count && d->held[taken].time_ns < before_ns) take(d, &d->held[taken++]);
  d->held_count -= taken;
  memmove(d->held, d->held + taken, d->held_count * sizeof *d->held);
}

/* Each thread there is now tells of its end, once: one that is not followed would be silent. */
static void none_ends_unheard(struct mic_perf *perf, struct doubles *d, pid_t pid) {
  uint32_t *tids;
  size_t count;
  list_tids(pid, &tids, &count);
  end_child(pid);
  uint64_t end = deadline();
  for (size_t i = 0; i < count; i++)
    while (!d->ends[tids[i]]) {
      assert_true(mic_clock_ns() < end);
      drain_by_time(perf, d);
    }
  for (size_t i = 0; i < count; i++) assert_int_equal(d->ends[tids[i]], 1);
  free(tids);
}

static void attaches_while_threads_come_and_go(void **state) {
  (void)state;
  pid_t pid = child_of(churn);
  usleep(20000); /* only so that there is churn; nothing below depends on it */
  struct mic_perf *perf = perf_new(options_of(0));
  size_t rounds = attach(perf, pid);
  struct doubles *d = doubles_new(perf);
  enable(perf);
  uint64_t end = deadline();
  while (d->accepted < 2000) {
    assert_true(mic_clock_ns() < end);
    mic_perf_poll(perf, 10);
    drain_by_time(perf, d);
  }
  assert_int_equal(d->several, 0);
  print_message("attached in %zu rounds, %zu tasks opened; %llu samples, %llu second copies\n",
                rounds, mic_perf_tasks(perf), (unsigned long long)d->samples,
                (unsigned long long)mic_claims_dropped(d->claims));
  assert_int_equal(mic_perf_disable(perf, &(struct mic_error){0}), 0);
  none_ends_unheard(perf, d, pid);
  doubles_free(d);
  mic_perf_free(perf);
}

/* A thread of which both own and inherited events are open, made so on purpose: opened by hand
 * although its maker was open when it was made. */
static void make_a_thread_and_spin(void) {
  pthread_t thread;
  raise(SIGSTOP);
  uint64_t never = UINT64_MAX;
  if (pthread_create(&thread, NULL, spin_thread, (void *)(uintptr_t)never)) _exit(1);
  for (;;) pause();
}
struct made {
  uint32_t pid, tid;
};
static bool see_thread(void *data, const struct mic_record *record) {
  struct made *made = data;
  if (record->kind != MIC_RECORD_FORK || record->pid != made->pid) return false;
  made->tid = record->tid;
  return true;
}
static bool count_doubles(void *data, const struct mic_record *record) {
  struct doubles *d = data;
  if (record->kind != MIC_RECORD_SAMPLE) return false;
  d->samples++;
  if (mic_claims_accept(d->claims, record)) d->accepted++;
  return d->samples >= 400;
}
static void second_copies_are_dropped(void **state) {
  (void)state;
  pid_t pid = child_of(make_a_thread_and_spin);
  wait_stopped(pid);
  struct mic_perf *perf = perf_new(options_of(0));
  add(perf, pid, MIC_PERF_NOW);
  kill(pid, SIGCONT);
  struct made made = {.pid = (uint32_t)pid};
  drain_until(perf, see_thread, &made);
  /* The first fork of a maker proves nothing yet. */
  assert_false(mic_perf_has(perf, made.tid));
  assert_true(mic_perf_has(perf, (uint32_t)pid));
  add(perf, (pid_t)made.tid, MIC_PERF_NOW);
  assert_true(mic_perf_has(perf, made.tid));
  struct doubles *d = doubles_new(perf);
  enable(perf);
  drain_until(perf, count_doubles, d);
  /* Two timers of one period over the same time. */
  assert_in_range(d->accepted, d->samples / 2 - 10, d->samples / 2 + 10);
  assert_int_equal(d->accepted + mic_claims_dropped(d->claims), d->samples);
  doubles_free(d);
  end_child(pid);
  mic_perf_free(perf);
}

static void *spin_worker(void *unused) {
  spin();
  return unused;
}
static void leave_main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, spin_worker, NULL)) _exit(1);
  syscall(SYS_exit, 0); /* of this thread only */
}
static void samples_a_process_without_main_thread(void **state) {
  (void)state;
  pid_t pid = child_of(leave_main);
  uint32_t *tids;
  size_t count;
  char path[64], stat[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  uint64_t end = deadline();
  while (!strstr(stat, ") Z ")) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(stat, sizeof stat, file));
    fclose(file);
    assert_true(mic_clock_ns() < end);
  }
  list_tids(pid, &tids, &count);
  assert_int_equal(count, 2);
  struct mic_perf *perf = perf_new(options_of(0));
  struct mic_error err = {0};
  size_t gone;
  assert_int_equal(mic_perf_add_tasks(perf, tids, count, MIC_PERF_NOW, &gone, &err), 0);
  assert_int_equal(gone, 1);
  assert_int_equal(mic_perf_tasks(perf), 1);
  uint32_t worker = tids[0] == (uint32_t)pid ? tids[1] : tids[0];
  struct tally tally = {.tid = worker, .enough = 10};
  enable(perf);
  drain_until(perf, count_samples, &tally);
  free(tids);
  end_child(pid);
  mic_perf_free(perf);
}

/* ---- exec by another thread, children of children ---- */

static void *exec_shell(void *unused) {
  execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
  _exit(127);
  return unused;
}
static void exec_from_a_thread(void) {
  pthread_t thread;
  raise(SIGSTOP);
  if (pthread_create(&thread, NULL, exec_shell, NULL)) _exit(1);
  for (;;) pause();
}
struct moved {
  uint32_t pid;
  bool execed;
  uint64_t samples;
};
static bool follow_exec(void *data, const struct mic_record *record) {
  struct moved *moved = data;
  if (record->kind == MIC_RECORD_COMM && record->exec) {
    moved->execed = true;
    assert_int_equal(record->tid, moved->pid);
  }
  if (record->kind == MIC_RECORD_SAMPLE && record->tid == moved->pid) moved->samples++;
  return moved->execed && moved->samples >= 10;
}
/* The thread takes its leader's tid, and its inherited events with it. */
static void follows_an_exec_by_another_thread(void **state) {
  (void)state;
  pid_t pid = child_of(exec_from_a_thread);
  wait_stopped(pid);
  struct mic_perf *perf = perf_new(options_of(0));
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  kill(pid, SIGCONT);
  struct moved moved = {.pid = (uint32_t)pid};
  drain_until(perf, follow_exec, &moved);
  end_child(pid);
  mic_perf_free(perf);
}

static void make_a_chain(void) {
  raise(SIGSTOP);
  for (int i = 0; i < 3; i++) {
    pid_t next = fork();
    if (next < 0) _exit(1);
    if (next > 0) {
      for (;;) pause();
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  spin();
}
struct chain {
  uint32_t maker[3], made[3]; /* in the order read, which is not that of time */
  uint32_t forks, last;
  uint64_t samples;
};
static bool follow_chain(void *data, const struct mic_record *record) {
  struct chain *chain = data;
  if (record->kind == MIC_RECORD_FORK && chain->forks < 3) {
    chain->maker[chain->forks] = record->ptid;
    chain->made[chain->forks++] = record->tid;
  }
  if (record->kind == MIC_RECORD_SAMPLE && record->tid != chain->last) {
    chain->last = record->tid;
    chain->samples = 0;
  }
  if (record->kind == MIC_RECORD_SAMPLE) chain->samples++;
  return chain->forks == 3 && chain->samples >= 10;
}
static uint32_t made_by(const struct chain *chain, uint32_t maker) {
  for (int i = 0; i < 3; i++)
    if (chain->maker[i] == maker) return chain->made[i];
  return 0;
}
static void follows_children_of_children(void **state) {
  (void)state;
  pid_t pid = child_of(make_a_chain);
  wait_stopped(pid);
  struct mic_perf_options options = options_of(0);
  options.children = 1;
  struct mic_perf *perf = perf_new(options);
  add(perf, pid, MIC_PERF_NOW);
  enable(perf);
  kill(pid, SIGCONT);
  struct chain chain = {0};
  drain_until(perf, follow_chain, &chain);
  uint32_t last = made_by(&chain, made_by(&chain, made_by(&chain, (uint32_t)pid)));
  assert_true(last != 0 && chain.last == last);
  end_child(pid);
  mic_perf_free(perf);
}

static void says_how_many_descriptors_it_needs(void **state) {
  (void)state;
  struct rlimit before, low = {40, 40};
  pid_t pid = child_of(make_many);
  wait_stopped(pid);
  /* In a child of its own: a hard limit that was lowered stays so. */
  pid_t tester = fork();
  if (tester == 0) {
    struct mic_perf *perf;
    struct mic_error err = {0};
    uint32_t *tids;
    size_t count, gone;
    struct mic_perf_options options = options_of(0);
    list_tids(pid, &tids, &count);
    if (setrlimit(RLIMIT_NOFILE, &low) || mic_perf_new(&options, &perf, &err)) _exit(1);
    int code = mic_perf_add_tasks(perf, tids, count, MIC_PERF_NOW, &gone, &err);
    long need = 0;
    bool ok = code == MIC_ELIMIT && strstr(err.msg, "the limit is 40") &&
              sscanf(err.msg, "%ld", &need) == 1 &&
              need >= 2 * sysconf(_SC_NPROCESSORS_ONLN) * (MANY + 1) &&
              strstr(err.msg, "ulimit -n") && strstr(err.msg, "LimitNOFILE");
    if (!ok) fprintf(stderr, "%d %s\n", code, err.msg);
    _exit(ok ? 0 : 2);
  }
  int status;
  waitpid(tester, &status, 0);
  assert_int_equal(status, 0);
  end_child(pid);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit half = {before.rlim_max / 2, before.rlim_max}, now;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &half), 0);
  struct mic_perf *perf = perf_new(options_of(0));
  struct mic_perf_settings settings;
  mic_perf_settings(perf, &settings);
  assert_int_equal(settings.files_soft_before, half.rlim_cur);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
  assert_int_equal(now.rlim_cur, now.rlim_max);
  mic_perf_free(perf);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
  assert_int_equal(now.rlim_cur, half.rlim_cur);
  setrlimit(RLIMIT_NOFILE, &before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(attaches_to_many_threads),
    cmocka_unit_test(attaches_while_threads_come_and_go),
    cmocka_unit_test(second_copies_are_dropped),
    cmocka_unit_test(samples_a_process_without_main_thread),
    cmocka_unit_test(follows_an_exec_by_another_thread),
    cmocka_unit_test(follows_children_of_children),
    cmocka_unit_test(says_how_many_descriptors_it_needs),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
