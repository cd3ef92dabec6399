/* session.c - the life of a recording: what it opens, who ends it, what it writes of itself. */
#include "record/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ending.h"
#include "process/launch.h"
#include "process/proc.h"
#include "record/collector.h"
#include "record/facts.h"
#include "record/processor.h"
#include "record/tape.h"

enum {
  NS_PER_MS = 1000000,
  /* How long a program that is told to end may take to do so before it is killed. */
  GRACE_MS = 5000,
  /* Listing threads and opening their events is repeated while new ones come; each round has only
   * those made since the last, so a program that outruns this many makes threads without end. */
  ATTACH_ROUNDS = 1000
};

struct mic_session {
  struct mic_record_options options;
  MIC_VEC(char *) texts; /* copies of the options' strings */
  char **argv;
  uint32_t *pids;
  struct mic_perf *perf;
  struct mic_perf_settings settings;
  struct mic_claims *claims;
  struct mic_launch *launch;
  int *pidfds; /* of the pids */
  struct mic_queue *queue;
  struct mic_writer *writer;
  struct mic_target *target;
  struct mic_processor *processor;
  struct mic_collector *collector;
  struct mic_tape *tape; /* NULL: none is kept */
  pthread_t thread;      /* the processor's */
  struct mic_ending ending;
  int done; /* eventfd */
  uint64_t start_ns, startup_cpu_ns;
  _Atomic uint64_t stop_ns, stop_cpu_ns; /* 0: not stopped */
  _Atomic uint64_t end_cpu_ns, bytes;
  bool tried, started, joined, told_exit, told_duration, told_done;
  atomic_bool failed, exited;       /* exited: status is set, once and for all */
  struct mic_error error;           /* written before `done` is signalled */
  struct mic_facts_program program; /* how it ended */
  struct rusage children;           /* of ours that were waited for before */
};

static char *keep(struct mic_session *s, const char *text) {
  return *mic_vec_push(&s->texts) = mic_strndup(text, strlen(text));
}

static void copy_options(struct mic_session *s, const struct mic_record_options *options) {
  s->options = *options;
  s->options.output = keep(s, options->output);
  if (options->tape) s->options.tape = keep(s, options->tape);
  size_t argc = 0;
  while (options->argv && options->argv[argc]) argc++;
  s->argv = mic_alloc((argc + 1) * sizeof *s->argv);
  for (size_t i = 0; i < argc; i++) s->argv[i] = keep(s, options->argv[i]);
  s->options.argv = argc ? (const char *const *)s->argv : NULL;
  s->pids = mic_alloc((options->pid_count + 1) * sizeof *s->pids);
  for (uint32_t i = 0; i < options->pid_count; i++) s->pids[i] = options->pids[i];
  s->options.pids = s->pids;
  s->pidfds = mic_alloc((options->pid_count + 1) * sizeof *s->pidfds);
  for (uint32_t i = 0; i < options->pid_count; i++) s->pidfds[i] = -1;
}

static int check_options(const struct mic_record_options *o, struct mic_error *err) {
  if (o->size != sizeof *o) return mic_fail(err, MIC_EARG, "record options of another version");
  if (!o->output || !*o->output) return mic_fail(err, MIC_EARG, "no output file is named");
  if (!o->period) return mic_fail(err, MIC_EARG, "the sampling period is 0");
  if (o->stack_bytes > 65528 || o->stack_bytes % 8)
    return mic_fail(err, MIC_EARG, "stack bytes must be a multiple of 8, at most 65528, not %u",
                    o->stack_bytes);
  bool program = o->argv && o->argv[0];
  if (program == (o->pid_count > 0))
    return mic_fail(err, MIC_EARG,
                    "give a program to start or processes to attach to, one of both");
  return MIC_OK;
}

/* Signals that end a recording come as events; the program gets the mask we were started with. */
static int take_signals(struct mic_session *s, struct mic_error *err) {
  s->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->done < 0) return mic_fail_sys(err, "no descriptor for the end");
  return mic_ending_take(&s->ending, err);
}

/* Rings hold half a second of samples, so that a busy machine does not lose them; all together at
 * most 512 MiB of locked memory, and one at least 1 MiB. */
static uint64_t ring_bytes(const struct mic_record_options *o) {
  if (o->ring_bytes) return o->ring_bytes;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t rate = o->measure == MIC_MEASURE_CPU_CLOCK ? 1000000000ULL / o->period + 1 : 10000;
  uint64_t want = rate * (o->stack_bytes + 256ULL) / 2;
  uint64_t most = (512ULL << 20) / (uint64_t)(cpus > 0 ? cpus : 1), bytes = 1 << 20;
  if (most > 64 << 20) most = 64 << 20;
  while (bytes < want && bytes * 2 <= most) bytes *= 2;
  return bytes;
}

MIC_EXPORT int mic_session_new(const struct mic_record_options *options, struct mic_session **out,
                               struct mic_error *err) {
  *out = NULL;
  int rc = check_options(options, err);
  if (rc != MIC_OK) return rc;
  struct mic_session *s = mic_alloc(sizeof *s);
  s->ending.fd = s->done = -1;
  getrusage(RUSAGE_CHILDREN, &s->children);
  copy_options(s, options);
  s->queue = mic_queue_new(options->queue_bytes ? options->queue_bytes : 64 << 20);
  struct mic_perf_options perf = {
    .size = sizeof perf,
    .event = options->measure == MIC_MEASURE_CYCLES ? MIC_PERF_CYCLES : MIC_PERF_CPU_CLOCK,
    .period = options->period,
    .stack_bytes = options->stack_bytes,
    .children = options->children,
    .ring_bytes = ring_bytes(options),
    .late_wakeups = 1,
  };
  s->options.ring_bytes = perf.ring_bytes;
  rc = take_signals(s, err);
  if (rc == MIC_OK) rc = mic_writer_open(s->options.output, &s->writer, err);
  if (rc == MIC_OK) rc = mic_perf_new(&perf, &s->perf, err);
  if (rc != MIC_OK) {
    mic_session_free(s);
    return rc;
  }
  mic_perf_settings(s->perf, &s->settings);
  for (uint32_t i = 0; i < options->setting_count; i++) {
    struct mic_settings_row row = {
      .key = mic_writer_text(s->writer, options->settings[2 * i]),
      .value = mic_writer_text(s->writer, options->settings[2 * i + 1]),
    };
    mic_writer_settings(s->writer, &row);
  }
  *out = s;
  return MIC_OK;
}

static int launch(struct mic_session *s, struct mic_error *err) {
  struct mic_launch_options options = {
    .size = sizeof options,
    .files_soft = s->settings.files_soft_before,
    .mask = &s->ending.before,
  };
  int rc = mic_launch_new(s->argv, &options, &s->launch, err);
  if (rc != MIC_OK) return rc;
  uint32_t when = s->options.delay_ns ? MIC_PERF_NOW : MIC_PERF_AT_EXEC;
  return mic_perf_add_task(s->perf, mic_launch_pid(s->launch), when, err);
}

/* Opens the events of every thread of a process; *added counts those that were new. A main thread
 * that has ended stays listed as long as the process: it is counted in *dead. */
static int attach_threads(struct mic_session *s, uint32_t pid, size_t *added, size_t *dead,
                          struct mic_error *err) {
  struct mic_pids tids = {0};
  bool stable, leader = false;
  int rc = mic_process_threads(pid, &tids, &stable, err);
  size_t missing = 0, gone = 0;
  for (size_t i = 0; rc == MIC_OK && i < tids.count; i++) {
    if (mic_perf_has(s->perf, tids.at[i])) continue;
    if (tids.at[i] == pid)
      leader = true;
    else
      tids.at[missing++] = tids.at[i];
  }
  if (rc == MIC_OK && leader) rc = mic_perf_add_tasks(s->perf, &pid, 1, MIC_PERF_NOW, &gone, err);
  if (rc == MIC_OK) rc = mic_perf_add_tasks(s->perf, tids.at, missing, MIC_PERF_NOW, NULL, err);
  *added += missing + (leader && !gone);
  *dead += gone;
  mic_pids_free(&tids);
  return rc;
}

static int attach(struct mic_session *s, struct mic_error *err) {
  for (uint32_t i = 0; i < s->options.pid_count; i++) {
    int rc = mic_process_fd(s->pids[i], 0, &s->pidfds[i], err);
    if (rc != MIC_OK) return rc;
  }
  size_t all = 0, dead_before = 0;
  for (int round = 0; round < ATTACH_ROUNDS; round++) {
    size_t added = 0, dead = 0;
    for (uint32_t i = 0; i < s->options.pid_count; i++) {
      int rc = attach_threads(s, s->pids[i], &added, &dead, err);
      if (rc != MIC_OK) return rc;
    }
    all += added;
    /* What a main thread made before it ended is listed in the round after. */
    if (added == 0 && dead == dead_before)
      return all ? MIC_OK : mic_fail(err, MIC_EGONE, "process %u has ended", s->pids[0]);
    dead_before = dead;
  }
  return mic_fail(err, MIC_ELIMIT, "the process makes threads faster than they can be attached to");
}

static int open_for_tape(void *data, const struct mic_target_map *map, const char **problem) {
  struct mic_session *s = data;
  if (strcmp(map->path, "[vdso]") == 0) {
    size_t size;
    const void *vdso = mic_elf_own_vdso(&size);
    if (vdso) mic_tape_vdso(s->tape, vdso, size);
    return -1;
  }
  int fd = mic_target_open_mapped(map, problem);
  mic_tape_image(s->tape, map, fd);
  return fd;
}

static void make_target(struct mic_session *s) {
  struct mic_target_options target = {
    .writer = s->writer,
    .start_ns = s->start_ns,
    .names_later = s->options.symbols == MIC_SYMBOLS_LATER,
    .keep_images = s->options.keep_images != 0,
  };
  if (s->tape) {
    target.open_image = open_for_tape;
    target.open_data = s;
  }
  s->target = mic_target_new(&target);
}

static void keep_on_tape(void *data, const struct mic_chunk *chunk) { mic_tape_chunk(data, chunk); }

static void make_processor(struct mic_session *s) {
  struct mic_processor_options processor = {
    .queue = s->queue,
    .layout = mic_perf_layout(s->perf),
    .perf = s->perf,
    .claims = s->claims,
    .target = s->target,
    .writer = s->writer,
    .start_ns = s->start_ns,
    .on_done = s->tape ? keep_on_tape : NULL,
    .done_data = s->tape,
    .trim = s->tape && !s->options.whole_stacks,
    .follow_children = s->options.children != 0,
  };
  s->processor = mic_processor_new(&processor);
}

static void fail(struct mic_session *s, const struct mic_error *err) {
  if (s->error.code == MIC_OK) s->error = *err;
  atomic_store(&s->failed, true);
}

/* The rows that only the end knows, then the file under its name. */
static void complete(struct mic_session *s) {
  const struct mic_collector_notes *notes = mic_collector_join(s->collector);
  uint64_t stop_ns = atomic_load(&s->stop_ns), now_ns = mic_clock_ns();
  uint64_t duration_ns = stop_ns > s->start_ns ? stop_ns - s->start_ns : 0;
  mic_processor_finish(s->processor, stop_ns);
  mic_processor_lost(s->processor, stop_ns, MIC_LOSS_SAMPLES, notes->lost_samples);
  mic_processor_lost(s->processor, stop_ns, MIC_LOSS_RECORDS, notes->lost_records);
  for (size_t i = 0; i < notes->off.count; i++) mic_writer_off_spans(s->writer, &notes->off.at[i]);
  for (size_t i = 0; i < notes->duty.count; i++) mic_writer_duty(s->writer, &notes->duty.at[i]);
  if (notes->error.code != MIC_OK) fail(s, &notes->error);
  mic_target_finish(s->target);
  struct mic_costs_row costs[] = {
    {MIC_COST_STARTUP, s->startup_cpu_ns, 0},
    {MIC_COST_RUNNING, atomic_load(&s->stop_cpu_ns) - s->startup_cpu_ns, duration_ns},
    {MIC_COST_FINISHING, mic_clock_process_cpu_ns() - atomic_load(&s->stop_cpu_ns),
     now_ns > stop_ns ? now_ns - stop_ns : 0},
  };
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) mic_writer_costs(s->writer, &costs[i]);
  /* One that still runs has no status yet. */
  mic_facts_end(s->writer, s->start_ns, duration_ns, atomic_load(&s->exited) ? &s->program : NULL);
}

static void close_tape(struct mic_session *s, uint64_t stop_ns) {
  struct mic_error err = {0};
  struct mic_tape *tape = s->tape;
  s->tape = NULL;
  if (tape && mic_tape_close(tape, stop_ns, &err) != MIC_OK) fail(s, &err);
}

static void *process(void *data) {
  struct mic_session *s = data;
  bool dropping = false;
  for (struct mic_chunk *chunk; (chunk = mic_queue_pop(s->queue));) {
    if (dropping)
      mic_queue_release(s->queue, chunk);
    else
      mic_processor_feed(s->processor, chunk);
    atomic_store(&s->bytes, mic_writer_bytes(s->writer));
    if (!dropping && mic_writer_failed(s->writer)) {
      dropping = true;
      mic_session_stop(s);
    }
  }
  complete(s);
  close_tape(s, atomic_load(&s->stop_ns));
  struct mic_error err = {0};
  struct mic_writer *writer = s->writer;
  s->writer = NULL;
  if (atomic_load(&s->failed))
    mic_writer_discard(writer);
  else if (mic_writer_finish(writer, s->options.keep_old != 0, &err) != MIC_OK)
    fail(s, &err);
  struct stat file;
  if (stat(s->options.output, &file) == 0) atomic_store(&s->bytes, (uint64_t)file.st_size);
  atomic_store(&s->end_cpu_ns, mic_clock_process_cpu_ns());
  uint64_t one = 1;
  ssize_t ignored = write(s->done, &one, sizeof one);
  (void)ignored;
  return NULL;
}

static int start_threads(struct mic_session *s, struct mic_error *err) {
  struct mic_collector_options collector = {
    .perf = s->perf,
    .queue = s->queue,
    .budget_permille = s->options.budget_permille,
    .delay_ns = s->options.delay_ns,
    .start_ns = s->start_ns,
  };
  int rc = mic_collector_start(&collector, &s->collector, err);
  if (rc != MIC_OK) return rc;
  int failed = pthread_create(&s->thread, NULL, process, s);
  if (failed) {
    mic_collector_free(s->collector); /* nobody takes what it collects */
    s->collector = NULL;
    errno = failed;
    return mic_fail_sys(err, "the processor's thread could not be made");
  }
  s->started = true;
  return MIC_OK;
}

MIC_EXPORT int mic_session_start(struct mic_session *s, struct mic_error *err) {
  if (s->tried) return mic_fail(err, MIC_ESTATE, "the session was started");
  s->tried = true;
  int rc = s->argv[0] ? launch(s, err) : attach(s, err);
  if (rc != MIC_OK) return rc;
  if (!s->launch) s->claims = mic_perf_claims(s->perf);
  s->start_ns = mic_clock_ns() + s->options.delay_ns;
  if (s->options.tape)
    rc = mic_tape_create(s->options.tape, s->perf, s->launch ? mic_launch_pid(s->launch) : 0,
                         s->start_ns, s->options.period, &s->tape, err);
  if (rc != MIC_OK) return rc;
  make_target(s);
  mic_facts_start(s->writer, &s->options);
  if (s->launch) mic_target_launch(s->target, mic_launch_pid(s->launch));
  for (uint32_t i = 0; i < s->options.pid_count && rc == MIC_OK; i++)
    rc = mic_target_adopt(s->target, s->pids[i], err);
  if (rc != MIC_OK) return rc;
  /* From here on the program's time runs; a tape has its time zero in its head already. */
  if (!s->tape) s->start_ns = mic_clock_ns() + s->options.delay_ns;
  mic_target_start(s->target, s->start_ns);
  make_processor(s);
  s->startup_cpu_ns = mic_clock_process_cpu_ns();
  if (!s->launch && !s->options.delay_ns) rc = mic_perf_enable(s->perf, err);
  if (rc == MIC_OK && s->launch) rc = mic_launch_release(s->launch, err);
  return rc == MIC_OK ? start_threads(s, err) : rc;
}

MIC_EXPORT void mic_session_stop(struct mic_session *s) {
  if (!s->collector) return;
  /* The processor's thread stops too, when it cannot write. Whoever comes second goes on only when
   * both are set. */
  uint64_t unset = 0;
  atomic_compare_exchange_strong(&s->stop_cpu_ns, &unset, mic_clock_process_cpu_ns());
  unset = 0;
  atomic_compare_exchange_strong(&s->stop_ns, &unset, mic_clock_ns());
  mic_collector_stop(s->collector);
}

static uint64_t time_ns(const struct timeval *time) {
  return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

static void set_status(struct mic_session *s, const struct mic_exit *end) {
  struct rusage now;
  getrusage(RUSAGE_CHILDREN, &now);
  s->program = (struct mic_facts_program){
    .status = end->signal ? 128 + end->signal : end->code,
    .user_ns = time_ns(&now.ru_utime) - time_ns(&s->children.ru_utime),
    .system_ns = time_ns(&now.ru_stime) - time_ns(&s->children.ru_stime),
  };
  atomic_store(&s->exited, true);
}

/* Whether what is recorded has ended. */
static bool has_ended(struct mic_session *s) {
  if (s->launch) {
    struct mic_exit end;
    if (mic_launch_wait(s->launch, 0, &end, NULL) != MIC_OK || !end.exited) return false;
    set_status(s, &end);
    return true;
  }
  for (uint32_t i = 0; i < s->options.pid_count; i++) {
    struct pollfd fd = {.fd = s->pidfds[i], .events = POLLIN};
    if (poll(&fd, 1, 0) == 0) return false;
  }
  return true;
}

static void join_processor(struct mic_session *s) {
  if (s->started && !s->joined) pthread_join(s->thread, NULL);
  s->joined = true;
}

static bool over_duration(const struct mic_session *s, uint64_t now_ns) {
  return s->options.duration_ns && now_ns >= s->start_ns + s->options.duration_ns;
}

/* What has happened already; false: nothing that was not told. */
static bool next_event(struct mic_session *s, struct mic_session_event *event) {
  uint64_t count;
  int number = mic_ending_next(&s->ending);
  if (number) {
    *event = (struct mic_session_event){MIC_SESSION_INTERRUPTED, number};
    return true;
  }
  if (!s->told_done && read(s->done, &count, sizeof count) == (ssize_t)sizeof count) {
    s->told_done = true;
    join_processor(s);
    bool failed = atomic_load(&s->failed);
    *event =
      (struct mic_session_event){failed ? MIC_SESSION_FAILED : MIC_SESSION_DONE, s->program.status};
    return true;
  }
  if (!s->told_exit && has_ended(s)) {
    s->told_exit = true;
    mic_session_stop(s);
    *event = (struct mic_session_event){MIC_SESSION_EXITED, s->program.status};
    return true;
  }
  if (!s->told_duration && over_duration(s, mic_clock_ns())) {
    s->told_duration = true;
    *event = (struct mic_session_event){MIC_SESSION_DURATION, 0};
    return true;
  }
  return false;
}

static void wait_for_event(struct mic_session *s, int32_t timeout_ms) {
  size_t count = 0;
  struct pollfd *fds = mic_alloc((s->options.pid_count + 3) * sizeof *fds);
  fds[count++] = (struct pollfd){.fd = s->ending.fd, .events = POLLIN};
  if (!s->told_done) fds[count++] = (struct pollfd){.fd = s->done, .events = POLLIN};
  if (!s->told_exit && s->launch)
    fds[count++] = (struct pollfd){.fd = mic_launch_pidfd(s->launch), .events = POLLIN};
  for (uint32_t i = 0; !s->told_exit && i < s->options.pid_count; i++) {
    /* One that ended stays readable; only the others can still bring news. */
    struct pollfd fd = {.fd = s->pidfds[i], .events = POLLIN};
    if (poll(&fd, 1, 0) == 0) fds[count++] = fd;
  }
  uint64_t now_ns = mic_clock_ns(), end_ns = s->start_ns + s->options.duration_ns;
  if (s->options.duration_ns && !s->told_duration && end_ns > now_ns) {
    uint64_t left_ms = (end_ns - now_ns) / NS_PER_MS + 1;
    if (left_ms > INT32_MAX) left_ms = INT32_MAX;
    if (timeout_ms < 0 || left_ms < (uint64_t)timeout_ms) timeout_ms = (int32_t)left_ms;
  }
  poll(fds, count, timeout_ms);
  free(fds);
}

MIC_EXPORT int mic_session_poll(struct mic_session *s, int32_t timeout_ms,
                                struct mic_session_event *event, struct mic_error *err) {
  if (!s->started) return mic_fail(err, MIC_ESTATE, "the session was not started");
  *event = (struct mic_session_event){MIC_SESSION_TICK, 0};
  if (next_event(s, event)) return MIC_OK;
  wait_for_event(s, timeout_ms);
  next_event(s, event);
  return MIC_OK;
}

MIC_EXPORT int mic_session_end_program(struct mic_session *s, int32_t *status) {
  struct mic_exit end = {0};
  *status = s->program.status;
  if (!s->launch || s->told_exit) return MIC_OK;
  pid_t pid = (pid_t)mic_launch_pid(s->launch);
  mic_launch_wait(s->launch, 0, &end, NULL);
  if (!end.exited) {
    kill(pid, SIGTERM);
    kill(pid, SIGCONT); /* a stopped one must run to end */
    mic_launch_wait(s->launch, GRACE_MS, &end, NULL);
  }
  if (!end.exited) {
    kill(pid, SIGKILL);
    mic_launch_wait(s->launch, -1, &end, NULL);
  }
  s->told_exit = true;
  set_status(s, &end);
  *status = s->program.status;
  return MIC_OK;
}

MIC_EXPORT void mic_session_numbers(const struct mic_session *s, struct mic_session_numbers *out) {
  memset(out, 0, sizeof *out);
  out->ring_bytes = s->settings.ring_bytes;
  out->ring_bytes_asked = s->options.ring_bytes;
  out->queue_peak_bytes = mic_queue_peak(s->queue);
  out->pid = s->launch ? mic_launch_pid(s->launch) : 0;
  if (!s->started) return;
  uint64_t stop_ns = atomic_load(&s->stop_ns), end_ns = stop_ns ? stop_ns : mic_clock_ns();
  const struct mic_processor_counts *counts = mic_processor_counts(s->processor);
  const struct mic_collector_live *live = mic_collector_live(s->collector);
  out->elapsed_ns = end_ns > s->start_ns ? end_ns - s->start_ns : 0;
  out->samples = atomic_load(&counts->samples);
  out->lost_samples = atomic_load(&counts->lost_samples);
  out->lost_records = atomic_load(&counts->lost_records);
  out->threads = (uint32_t)atomic_load(&counts->threads);
  out->off_queue_ns = atomic_load(&live->off_queue_ns);
  out->off_budget_ns = atomic_load(&live->off_budget_ns);
  out->off_ns = out->off_queue_ns + out->off_budget_ns + atomic_load(&counts->throttled_ns);
  out->bytes = atomic_load(&s->bytes);
  out->startup_cpu_ns = s->startup_cpu_ns;
  uint64_t stop_cpu_ns = atomic_load(&s->stop_cpu_ns), end_cpu_ns = atomic_load(&s->end_cpu_ns);
  out->running_cpu_ns =
    (stop_cpu_ns ? stop_cpu_ns : mic_clock_process_cpu_ns()) - s->startup_cpu_ns;
  out->finishing_cpu_ns = end_cpu_ns > stop_cpu_ns ? end_cpu_ns - stop_cpu_ns : 0;
}

MIC_EXPORT void mic_session_error(const struct mic_session *s, struct mic_error *out) {
  *out = s->error;
}

MIC_EXPORT void mic_session_free(struct mic_session *s) {
  if (!s) return;
  int32_t status;
  if (s->started) mic_session_stop(s);
  join_processor(s);
  mic_collector_free(s->collector);
  if (s->launch && s->start_ns) mic_session_end_program(s, &status);
  mic_launch_free(s->launch);
  close_tape(s, 0);
  mic_processor_free(s->processor);
  mic_target_free(s->target);
  mic_claims_free(s->claims);
  mic_writer_discard(s->writer);
  mic_perf_free(s->perf);
  mic_queue_free(s->queue);
  for (uint32_t i = 0; i < s->options.pid_count; i++)
    if (s->pidfds[i] >= 0) close(s->pidfds[i]);
  mic_ending_release(&s->ending);
  if (s->done >= 0) close(s->done);
  for (size_t i = 0; i < s->texts.count; i++) free(s->texts.at[i]);
  mic_vec_free(&s->texts);
  free(s->argv);
  free(s->pids);
  free(s->pidfds);
  free(s);
}
