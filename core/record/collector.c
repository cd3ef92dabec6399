/* collector.c - drain, pause, resume. */
#include "record/collector.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"
#include "record/budget.h"

enum {
  /* Rings wake the collector when a quarter full; this bounds how old records get in quiet ones. */
  DRAIN_MS = 50,
  NS_PER_MS = 1000000
};

/* A record is stamped before it is published; on a busy machine a CPU can be taken away between.
 * What is older than this has been published (architecture.md: the watermark). */
#define SETTLE_NS 20000000ULL

/* How far apart in time neighbours in one ring can be the wrong way round: an interrupt that
 * writes a record while another is being written. */
#define REORDER_NS 1000000ULL

struct ring_state {
  uint64_t last_ns; /* of the last record copied when a chunk was filled from it */
  bool empty;       /* as of this round */
};

struct mic_collector {
  struct mic_collector_options options;
  struct mic_collector_live live;
  struct mic_collector_notes notes;
  pthread_t thread;
  int wake; /* eventfd */
  atomic_bool stopping;
  bool running;
  /* The thread's own. */
  struct mic_chunk *chunk; /* being filled */
  struct mic_limits limits;
  struct ring_state *rings;
  size_t ring_count;
  bool on; /* sample events are enabled */
  uint64_t off_since_ns;
  enum mic_off off_kind;
  struct mic_budget budget;
  uint64_t window_ns, window_cpu_ns, window_off_ns; /* start, CPU at the start, off time so far */
};

static uint64_t relative(const struct mic_collector *c, uint64_t time_ns) {
  return time_ns > c->options.start_ns ? time_ns - c->options.start_ns : 0;
}

static void turn_off(struct mic_collector *c, enum mic_off kind) {
  if (!c->on) return;
  mic_perf_disable(c->options.perf, &c->notes.error);
  c->on = false;
  c->off_kind = kind;
  c->off_since_ns = mic_clock_ns();
}

/* Ends an off span without turning sampling on: the recording is over. */
static void note_off(struct mic_collector *c, uint64_t now_ns) {
  uint64_t span_ns = now_ns - c->off_since_ns;
  *mic_vec_push(&c->notes.off) = (struct mic_off_spans_row){
    .start_ns = relative(c, c->off_since_ns),
    .end_ns = relative(c, now_ns),
    .kind = (uint8_t)c->off_kind,
    .cpu = UINT16_MAX,
  };
  atomic_fetch_add(c->off_kind == MIC_OFF_QUEUE ? &c->live.off_queue_ns : &c->live.off_budget_ns,
                   span_ns);
  uint64_t from_ns = c->off_since_ns > c->window_ns ? c->off_since_ns : c->window_ns;
  c->window_off_ns += now_ns - from_ns;
}

static void turn_on(struct mic_collector *c) {
  if (c->on) return;
  note_off(c, mic_clock_ns());
  mic_perf_enable(c->options.perf, &c->notes.error);
  c->on = true;
}

static void push(struct mic_collector *c, uint64_t watermark_ns) {
  if (!c->chunk) return;
  c->chunk->watermark_ns = watermark_ns;
  mic_queue_push(c->options.queue, c->chunk);
  c->chunk = NULL;
}

/* Another program runs in a process, or another process under a number: its stack is another. */
static void note_exec(struct mic_collector *c, const uint8_t *bytes, size_t size, uint32_t type) {
  struct perf_event_header header;
  uint32_t pid, other;
  if (type == PERF_RECORD_LOST) mic_limits_forget_all(&c->limits);
  if (size < sizeof header + 2 * sizeof pid) return;
  memcpy(&header, bytes, sizeof header);
  memcpy(&pid, bytes + sizeof header, sizeof pid);
  memcpy(&other, bytes + sizeof header + sizeof pid, sizeof other);
  bool exec = type == PERF_RECORD_COMM && header.misc & PERF_RECORD_MISC_COMM_EXEC;
  bool made = type == PERF_RECORD_FORK && pid != other; /* pid, ppid */
  if (exec || made) mic_limits_forget(&c->limits, pid);
}

/* The time of the last record of the chunk's bytes from an offset on; 0 when none is there. */
static uint64_t last_time(struct mic_collector *c, size_t from, uint32_t kind) {
  uint64_t time_ns = 0, got_ns, id;
  uint32_t type;
  for (size_t at = from, size; at < c->chunk->used; at += size) {
    const uint8_t *bytes = c->chunk->bytes + at;
    size = ((const struct perf_event_header *)(const void *)bytes)->size;
    if (size == 0 || size > c->chunk->used - at) break;
    if (!mic_perf_peek(mic_perf_layout(c->options.perf), bytes, size, &got_ns, &id, &type))
      continue;
    time_ns = got_ns;
    if (kind == MIC_RING_SIDE) note_exec(c, bytes, size, type);
  }
  return time_ns;
}

/* Up to when every record has been copied: what a ring still holds is not older than what was
 * last copied of it, but for the little that a CPU can reorder. */
static uint64_t copied_up_to(const struct mic_collector *c, uint64_t round_ns) {
  uint64_t least_ns = round_ns;
  for (size_t i = 0; i < c->ring_count; i++) {
    uint64_t ring_ns = c->rings[i].last_ns > REORDER_NS ? c->rings[i].last_ns - REORDER_NS : 0;
    if (!c->rings[i].empty && ring_ns < least_ns) least_ns = ring_ns;
  }
  return least_ns;
}

/* Of the rings of a kind that are not yet empty the one that lags most, so that the records that
 * wait for others to be put in order stay few; SIZE_MAX: none. */
static size_t lagging_ring(const struct mic_collector *c, uint32_t kind) {
  size_t found = SIZE_MAX;
  for (size_t i = 0; i < c->ring_count; i++)
    if (!c->rings[i].empty && mic_perf_ring_kind(c->options.perf, i) == kind &&
        (found == SIZE_MAX || c->rings[i].last_ns < c->rings[found].last_ns))
      found = i;
  return found;
}

/* Copies all rings of a kind out. False when the queue has no room: the rest stays in the rings. */
static bool drain_kind(struct mic_collector *c, uint32_t kind, uint64_t round_ns) {
  for (size_t i; (i = lagging_ring(c, kind)) != SIZE_MAX;) {
    if (!c->chunk && !(c->chunk = mic_queue_take(c->options.queue, kind == MIC_RING_SAMPLES)))
      return false;
    size_t from = c->chunk->used, want = 0;
    c->chunk->used +=
      mic_perf_ring_copy(c->options.perf, i, c->chunk->bytes + from, MIC_CHUNK_BYTES - from, &want);
    c->rings[i].empty = want == 0;
    if (!want) continue;
    uint64_t time_ns = last_time(c, from, kind);
    if (time_ns > c->rings[i].last_ns) c->rings[i].last_ns = time_ns;
    push(c, copied_up_to(c, round_ns));
  }
  return true;
}

/* Copies every ring out: first the side rings, whose records are needed most. */
static bool drain(struct mic_collector *c, uint64_t round_ns) {
  for (size_t i = 0; i < c->ring_count; i++) {
    c->rings[i].empty = false;
    /* A sample of after an exec is copied when the exec is known: see limits.h. */
    if (mic_perf_ring_kind(c->options.perf, i) == MIC_RING_SAMPLES)
      mic_ring_mark(mic_perf_ring(c->options.perf, i));
  }
  bool side = drain_kind(c, MIC_RING_SIDE, round_ns);
  if (side)
    mic_limits_settle(&c->limits);
  else
    mic_limits_forget_all(&c->limits);
  bool samples = drain_kind(c, MIC_RING_SAMPLES, round_ns);
  mic_limits_look_up(&c->limits, mic_process_stack_start);
  return samples && side;
}

/* One round: everything published before it began is pushed with a watermark to say so. */
static void round_of(struct mic_collector *c) {
  uint64_t round_ns = mic_clock_ns() - SETTLE_NS;
  if (!drain(c, round_ns)) {
    turn_off(c, MIC_OFF_QUEUE);
    push(c, copied_up_to(c, round_ns));
    return;
  }
  /* While the processor is busy the chunk goes on filling. */
  bool idle = mic_queue_used(c->options.queue) <= 2 * (size_t)MIC_CHUNK_BYTES;
  if (c->chunk && !idle && c->chunk->used < MIC_CHUNK_BYTES / 2) return;
  if (!c->chunk) c->chunk = mic_queue_take(c->options.queue, false);
  push(c, round_ns);
}

static void end_window(struct mic_collector *c, uint64_t now_ns) {
  uint64_t cpu_ns = mic_clock_process_cpu_ns(), wall_ns = now_ns - c->window_ns;
  uint64_t off_ns = c->window_off_ns;
  if (!c->on) {
    uint64_t from_ns = c->off_since_ns > c->window_ns ? c->off_since_ns : c->window_ns;
    off_ns += now_ns - from_ns;
  }
  uint32_t before = c->budget.duty_permille;
  uint64_t spent_ns = cpu_ns - c->window_cpu_ns;
  uint32_t duty =
    mic_budget_step(&c->budget, wall_ns, spent_ns, wall_ns > off_ns ? wall_ns - off_ns : 0);
  if (duty != before)
    *mic_vec_push(&c->notes.duty) = (struct mic_duty_row){
      .time_ns = relative(c, now_ns), .permille = duty, .observed_cpu_ns = spent_ns};
  c->window_ns = now_ns;
  c->window_cpu_ns = cpu_ns;
  c->window_off_ns = 0;
}

/* Sampling is on for the first part of each window, as long as the duty says. */
static void keep_budget(struct mic_collector *c) {
  if (!c->options.budget_permille) return;
  uint64_t now_ns = mic_clock_ns();
  if (now_ns - c->window_ns >= MIC_BUDGET_WINDOW_NS) {
    end_window(c, now_ns);
    if (!c->on && c->off_kind == MIC_OFF_BUDGET) turn_on(c);
  }
  uint64_t on_ns = MIC_BUDGET_WINDOW_NS / 1000 * c->budget.duty_permille;
  if (now_ns - c->window_ns >= on_ns) turn_off(c, MIC_OFF_BUDGET);
}

static void wait_for_records(struct mic_collector *c) {
  struct pollfd fds[] = {
    {.fd = mic_perf_poll_fd(c->options.perf), .events = POLLIN},
    {.fd = c->wake, .events = POLLIN},
  };
  int look_ms = mic_perf_look_ms(c->options.perf);
  poll(fds, 2, look_ms < DRAIN_MS ? look_ms : DRAIN_MS);
  mic_perf_poll(c->options.perf, 0);
}

/* True when the stop came first. */
static bool wait_for_delay(struct mic_collector *c) {
  uint64_t until_ns = c->options.start_ns;
  for (uint64_t now_ns; !atomic_load(&c->stopping) && (now_ns = mic_clock_ns()) < until_ns;) {
    round_of(c); /* mappings and forks */
    uint64_t left_ms = (until_ns - now_ns) / NS_PER_MS + 1;
    struct pollfd fd = {.fd = c->wake, .events = POLLIN};
    poll(&fd, 1, left_ms < DRAIN_MS ? (int)left_ms : DRAIN_MS);
  }
  if (atomic_load(&c->stopping)) return true;
  mic_perf_enable(c->options.perf, &c->notes.error);
  return false;
}

static void note_losses(struct mic_collector *c) {
  struct mic_perf_lost lost;
  if (mic_perf_lost(c->options.perf, &lost, NULL) != MIC_OK) return;
  if (lost.samples > lost.samples_told) c->notes.lost_samples = lost.samples - lost.samples_told;
  if (lost.side > lost.side_told) c->notes.lost_records = lost.side - lost.side_told;
}

static void *run(void *data) {
  struct mic_collector *c = data;
  bool stopped = c->options.delay_ns && wait_for_delay(c);
  c->on = !stopped;
  c->window_ns = mic_clock_ns();
  c->window_cpu_ns = mic_clock_process_cpu_ns();
  while (!atomic_load(&c->stopping) && c->notes.error.code == MIC_OK) {
    wait_for_records(c);
    round_of(c);
    bool room = mic_queue_used(c->options.queue) <= mic_queue_bound(c->options.queue) / 2;
    if (!c->on && c->off_kind == MIC_OFF_QUEUE && room) turn_on(c);
    keep_budget(c);
  }
  if (c->on)
    mic_perf_disable(c->options.perf, NULL);
  else if (!stopped)
    note_off(c, mic_clock_ns());
  /* What the rings still hold; the processor makes room. */
  for (uint64_t round_ns; !drain(c, round_ns = mic_clock_ns() - SETTLE_NS);) {
    push(c, copied_up_to(c, round_ns));
    struct timespec pause = {.tv_nsec = NS_PER_MS};
    nanosleep(&pause, NULL);
  }
  push(c, UINT64_MAX);
  note_losses(c);
  mic_queue_close(c->options.queue);
  return NULL;
}

static void set_limits(const struct mic_perf *perf, struct mic_limits *limits) {
  for (size_t i = 0; i < mic_perf_rings(perf); i++)
    if (mic_perf_ring_kind(perf, i) == MIC_RING_SAMPLES)
      mic_ring_limit(mic_perf_ring(perf, i), limits);
}

int mic_collector_start(const struct mic_collector_options *options, struct mic_collector **out,
                        struct mic_error *err) {
  struct mic_collector *c = mic_alloc(sizeof *c);
  c->options = *options;
  mic_budget_start(&c->budget, options->budget_permille);
  c->ring_count = mic_perf_rings(options->perf);
  c->rings = mic_alloc(c->ring_count * sizeof *c->rings);
  c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->wake < 0) {
    free(c->rings);
    free(c);
    return mic_fail_sys(err, "no event descriptor for the collector");
  }
  set_limits(c->options.perf, &c->limits);
  int rc = pthread_create(&c->thread, NULL, run, c);
  if (rc != 0) {
    set_limits(c->options.perf, NULL);
    close(c->wake);
    free(c->rings);
    free(c);
    errno = rc;
    return mic_fail_sys(err, "the collector's thread could not be made");
  }
  c->running = true;
  *out = c;
  return MIC_OK;
}

void mic_collector_stop(struct mic_collector *c) {
  atomic_store(&c->stopping, true);
  uint64_t one = 1;
  ssize_t ignored = write(c->wake, &one, sizeof one);
  (void)ignored;
}

const struct mic_collector_live *mic_collector_live(const struct mic_collector *c) {
  return &c->live;
}

const struct mic_collector_notes *mic_collector_join(struct mic_collector *c) {
  if (c->running) pthread_join(c->thread, NULL);
  c->running = false;
  return &c->notes;
}

void mic_collector_free(struct mic_collector *c) {
  if (!c) return;
  mic_collector_stop(c);
  mic_collector_join(c);
  set_limits(c->options.perf, NULL);
  close(c->wake);
  mic_vec_free(&c->notes.off);
  mic_vec_free(&c->notes.duty);
  free(c->rings);
  free(c);
}
