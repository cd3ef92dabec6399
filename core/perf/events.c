/*
 * events.c - the events of all tasks and the rings they write to.
 *
 * Each CPU has two ring owners: dummy events on the recorder's main thread that never count.  An
 * event of a task is opened on one CPU and redirected there (PERF_EVENT_IOC_SET_OUTPUT), which
 * the kernel allows between events of one CPU and clock (perf_event_set_output).
 */
#include "perf/events.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "perf/claims.h"
#include "perf/cover.h"
#include "perf/open.h"

enum {
  RING_BYTES = 4 << 20,
  SIDE_RING_BYTES = 512 << 10,
  SIDE_RING_LEAST = 32 << 10, /* seven MMAP2 records with the longest path (4096 bytes) */
  CPU_CLOCK_LEAST_NS = 10000,
  OTHER_DESCRIPTORS = 64 /* the recorder's own files beside the events */
};

struct ring {
  struct mic_ring *ring;
  int fd; /* the owner */
  uint32_t cpu;
  uint32_t kind;
  uint64_t noted; /* position up to which FORK records were noted */
};

struct event {
  uint64_t id;
  uint32_t tid;
  uint32_t sample; /* not 0: a sample event */
};

struct doubtful {
  uint32_t tid; /* opened when there were events it may have inherited */
  uint64_t opening_ns;
};

struct mic_perf {
  struct mic_perf_options options;
  struct mic_perf_settings settings;
  struct mic_perf_features features;
  struct mic_perf_layout layout;
  struct rlimit files; /* before it was raised */
  MIC_VEC(struct ring) rings;
  MIC_VEC(int) sample_fds;
  MIC_VEC(int) side_fds;
  MIC_VEC(struct event) events;
  MIC_VEC(struct doubtful) doubtful;
  struct mic_map event_of; /* id -> events */
  struct mic_perf_cover cover;
  size_t batch_began; /* tasks there were when the current list of tasks began */
  uint8_t *scratch;   /* one record */
  int epoll;
  bool enabled;
  bool attaching; /* FORK records are noted */
};

/* ---- rings ---- */

static void close_rings(struct mic_perf *perf) {
  for (size_t i = 0; i < perf->rings.count; i++) {
    mic_ring_close(perf->rings.at[i].ring);
    close(perf->rings.at[i].fd);
  }
  perf->rings.count = 0;
}

static int open_ring(struct mic_perf *perf, uint32_t cpu, uint32_t kind, struct mic_error *err) {
  struct perf_event_attr attr;
  size_t bytes = kind == MIC_RING_SIDE ? perf->settings.side_ring_bytes : perf->settings.ring_bytes;
  bool late = kind == MIC_RING_SAMPLES && perf->options.late_wakeups;
  mic_perf_owner_attr(&attr,
                      (uint32_t)(late ? bytes : bytes / 4)); /* bytes: the largest there is */
  int fd = mic_perf_open(&attr, (uint32_t)getpid(), cpu);
  /* ENODEV: the CPU went offline since it was listed. */
  if (fd < 0 && errno == ENODEV) return 0;
  if (fd < 0) return mic_perf_open_failed(errno, &attr, 0, OTHER_DESCRIPTORS, err);
  struct mic_ring *ring;
  int code = mic_ring_map(fd, bytes, &perf->layout, &ring, err);
  if (code) {
    int sys = errno;
    close(fd);
    errno = sys;
    return code;
  }
  *mic_vec_push(&perf->rings) = (struct ring){ring, fd, cpu, kind, 0};
  return 0;
}

/* Side rings first: what is mapped matters more than one more sample. */
static int open_rings(struct mic_perf *perf, const struct mic_cpus *cpus, struct mic_error *err) {
  int code = 0;
  for (size_t i = 0; i < cpus->count && !code; i++)
    code = open_ring(perf, cpus->at[i], MIC_RING_SIDE, err);
  for (size_t i = 0; i < cpus->count && !code; i++)
    code = open_ring(perf, cpus->at[i], MIC_RING_SAMPLES, err);
  return code;
}

static size_t power_of_two_from(size_t bytes) {
  size_t power = 4096;
  while (power < bytes) power *= 2;
  return power;
}

/* Room for two records: one being written, one being read. */
static size_t least_ring_bytes(const struct mic_perf *perf) {
  size_t two = power_of_two_from(2 * ((size_t)perf->options.stack_bytes + 1024));
  return two < (64 << 10) ? 64 << 10 : two;
}

static int no_ring_memory(const struct mic_perf *perf, size_t cpus, struct mic_error *err) {
  const struct mic_perf_settings *s = &perf->settings;
  return mic_fail(err, MIC_ELIMIT,
                  "even rings of %" PRIu64 " KiB a CPU may not be locked in memory; raise "
                  "`ulimit -l` (now %" PRIu64 " KiB) or kernel.perf_event_mlock_kb (now %" PRIu64
                  ") to %" PRIu64 " or more, for %zu CPUs, or give CAP_IPC_LOCK",
                  (s->ring_bytes + s->side_ring_bytes) >> 10, s->memlock_bytes >> 10, s->mlock_kb,
                  (s->ring_bytes + s->side_ring_bytes + 8192) >> 10, cpus);
}

static bool shrink(struct mic_perf *perf) {
  struct mic_perf_settings *s = &perf->settings;
  if (s->ring_bytes > least_ring_bytes(perf))
    s->ring_bytes /= 2;
  else if (s->side_ring_bytes > SIDE_RING_LEAST)
    s->side_ring_bytes /= 2;
  else
    return false;
  s->rings_reduced = true;
  return true;
}

static void watch(struct mic_perf *perf) {
  for (size_t i = 0; i < perf->rings.count; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    epoll_ctl(perf->epoll, EPOLL_CTL_ADD, perf->rings.at[i].fd, &event);
  }
}

static int make_rings(struct mic_perf *perf, struct mic_error *err) {
  struct mic_cpus cpus = {0};
  struct mic_error ignored;
  int code = mic_perf_online_cpus(&cpus, err);
  while (!code) {
    code = open_rings(perf, &cpus, err ? err : &ignored);
    int sys = code ? (err ? err : &ignored)->sys : 0;
    if (!code || (sys != EPERM && sys != ENOMEM && sys != EINVAL)) break;
    close_rings(perf);
    code = shrink(perf) ? 0 : no_ring_memory(perf, cpus.count, err);
  }
  mic_vec_free(&cpus);
  if (code) return code;
  perf->settings.cpus = (uint32_t)(perf->rings.count / 2);
  watch(perf);
  return 0;
}

static struct ring *ring_of(const struct mic_perf *perf, uint32_t cpu, uint32_t kind) {
  for (size_t i = 0; i < perf->rings.count; i++)
    if (perf->rings.at[i].cpu == cpu && perf->rings.at[i].kind == kind) return &perf->rings.at[i];
  return NULL;
}

/* ---- making ---- */

static bool is_power_of_two(uint64_t value) { return value && !(value & (value - 1)); }

static int check_options(struct mic_perf_options *options, struct mic_error *err) {
  if (!options->ring_bytes) options->ring_bytes = RING_BYTES;
  if (!options->side_ring_bytes) options->side_ring_bytes = SIDE_RING_BYTES;
  if (options->event > MIC_PERF_CYCLES)
    return mic_fail(err, MIC_EARG, "no perf event number %u", options->event);
  if (options->period == 0 || options->period > INT64_MAX)
    return mic_fail(err, MIC_EARG, "the sampling period must be at least 1");
  /* The timer is never set shorter (perf_swevent_start_hrtimer), yet the samples would say so. */
  if (options->event == MIC_PERF_CPU_CLOCK && options->period < CPU_CLOCK_LEAST_NS)
    return mic_fail(err, MIC_EARG, "a cpu-clock period of %" PRIu64 " ns: the kernel's least is %d",
                    options->period, CPU_CLOCK_LEAST_NS);
  /* perf_copy_attr: below USHRT_MAX and a multiple of a word. */
  if (options->stack_bytes > 65528 || options->stack_bytes % 8)
    return mic_fail(err, MIC_EARG, "a stack copy of %u bytes: 0 to 65528 in steps of 8",
                    options->stack_bytes);
  if (!is_power_of_two(options->ring_bytes) || !is_power_of_two(options->side_ring_bytes) ||
      options->ring_bytes > 1ull << 30 || options->side_ring_bytes > 1ull << 30)
    return mic_fail(err, MIC_EARG, "a ring's size must be a power of two, at most 1 GiB");
  return 0;
}

static void read_limits(struct mic_perf *perf) {
  struct mic_perf_settings *s = &perf->settings;
  struct rlimit memlock;
  int64_t kb;
  s->mlock_kb = UINT64_MAX;
  s->memlock_bytes = UINT64_MAX;
  if (mic_perf_read_number("/proc/sys/kernel/perf_event_mlock_kb", &kb)) s->mlock_kb = (uint64_t)kb;
  if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY)
    s->memlock_bytes = memlock.rlim_cur;
}

static void raise_files(struct mic_perf *perf) {
  if (getrlimit(RLIMIT_NOFILE, &perf->files) != 0) perf->files = (struct rlimit){0, 0};
  perf->settings.files_soft_before = perf->files.rlim_cur;
  perf->settings.files_hard = perf->files.rlim_max;
  struct rlimit most = {perf->files.rlim_max, perf->files.rlim_max};
  if (perf->files.rlim_cur < perf->files.rlim_max) setrlimit(RLIMIT_NOFILE, &most);
}

static int start(struct mic_perf *perf, struct mic_error *err) {
  struct perf_event_attr attr;
  int code = check_options(&perf->options, err);
  if (!code) code = mic_perf_probe(&perf->options, &perf->features, err);
  if (code) return code;
  perf->settings.counts_lost = perf->features.counts_lost;
  perf->settings.follows_children = perf->options.children || !perf->features.inherit_thread;
  perf->settings.ring_bytes = power_of_two_from(perf->options.ring_bytes);
  perf->settings.side_ring_bytes = power_of_two_from(perf->options.side_ring_bytes);
  if (perf->settings.ring_bytes < least_ring_bytes(perf))
    return mic_fail(err, MIC_EARG,
                    "a ring of %" PRIu64 " bytes is too small for stack copies of %u",
                    perf->settings.ring_bytes, perf->options.stack_bytes);
  mic_perf_sample_attr(&attr, &perf->options, &perf->features);
  perf->layout =
    (struct mic_perf_layout){attr.sample_type, attr.sample_regs_user, attr.sample_stack_user};
  perf->scratch = mic_alloc(MIC_RECORD_MAX_BYTES);
  perf->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (perf->epoll < 0) return mic_fail_sys(err, "making an epoll descriptor");
  return make_rings(perf, err);
}

int mic_perf_new(const struct mic_perf_options *options, struct mic_perf **out,
                 struct mic_error *err) {
  *out = NULL;
  if (options->size < sizeof *options)
    return mic_fail(err, MIC_EARG, "perf options of %u bytes: an older layout", options->size);
  struct mic_perf *perf = mic_alloc(sizeof *perf);
  perf->options = *options;
  perf->epoll = -1;
  read_limits(perf);
  raise_files(perf);
  int code = start(perf, err);
  if (code)
    mic_perf_free(perf);
  else
    *out = perf;
  return code;
}

void mic_perf_free(struct mic_perf *perf) {
  if (!perf) return;
  for (size_t i = 0; i < perf->sample_fds.count; i++) close(perf->sample_fds.at[i]);
  for (size_t i = 0; i < perf->side_fds.count; i++) close(perf->side_fds.at[i]);
  close_rings(perf);
  if (perf->epoll >= 0) close(perf->epoll);
  if (perf->files.rlim_max) setrlimit(RLIMIT_NOFILE, &perf->files);
  mic_vec_free(&perf->rings);
  mic_vec_free(&perf->sample_fds);
  mic_vec_free(&perf->side_fds);
  mic_vec_free(&perf->events);
  mic_vec_free(&perf->doubtful);
  mic_map_free(&perf->event_of);
  mic_perf_cover_free(&perf->cover);
  free(perf->scratch);
  free(perf);
}

void mic_perf_settings(const struct mic_perf *perf, struct mic_perf_settings *out) {
  *out = perf->settings;
}
const struct mic_perf_layout *mic_perf_layout(const struct mic_perf *perf) { return &perf->layout; }

/* ---- tasks ---- */

size_t mic_perf_tasks(const struct mic_perf *perf) { return perf->cover.tasks.count; }
size_t mic_perf_descriptors(const struct mic_perf *perf) {
  return perf->sample_fds.count + perf->side_fds.count + perf->rings.count + 1;
}

/* One event, writing to its ring; its descriptor is kept in fds. */
static int open_event(struct mic_perf *perf, const struct perf_event_attr *attr, uint32_t tid,
                      const struct ring *ring, struct mic_error *err) {
  int fd = mic_perf_open(attr, tid, ring->cpu);
  if (fd < 0 && errno == ENODEV) return 0; /* the CPU went offline: nothing runs there */
  if (fd < 0)
    return mic_perf_open_failed(errno, attr, tid, mic_perf_descriptors(perf) + OTHER_DESCRIPTORS,
                                err);
  bool sample = ring->kind == MIC_RING_SAMPLES;
  if (sample)
    *mic_vec_push(&perf->sample_fds) = fd;
  else
    *mic_vec_push(&perf->side_fds) = fd;
  uint64_t id;
  if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) != 0 || ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0)
    return mic_fail_sys(err, "writing the events of thread %u to the ring of CPU %u", tid,
                        ring->cpu);
  mic_map_put(&perf->event_of, id, 0, (uint32_t)perf->events.count);
  *mic_vec_push(&perf->events) = (struct event){id, tid, sample};
  return 0;
}

static void close_down_to(struct mic_perf *perf, size_t samples, size_t sides, size_t events) {
  while (perf->sample_fds.count > samples) close(perf->sample_fds.at[--perf->sample_fds.count]);
  while (perf->side_fds.count > sides) close(perf->side_fds.at[--perf->side_fds.count]);
  while (perf->events.count > events)
    mic_map_remove(&perf->event_of, perf->events.at[--perf->events.count].id, 0);
}

static int open_events(struct mic_perf *perf, uint32_t tid, uint32_t when, struct mic_error *err) {
  struct perf_event_attr sample, side;
  mic_perf_sample_attr(&sample, &perf->options, &perf->features);
  mic_perf_side_attr(&side, &perf->options, &perf->features);
  sample.enable_on_exec = when == MIC_PERF_AT_EXEC;
  sample.disabled = !perf->enabled || sample.enable_on_exec;
  int code = 0;
  /* Side rings come first in the list: mappings are followed before samples are. */
  for (size_t i = 0; i < perf->rings.count && !code; i++) {
    const struct ring *ring = &perf->rings.at[i];
    code = open_event(perf, ring->kind == MIC_RING_SIDE ? &side : &sample, tid, ring, err);
  }
  return code;
}

static int add(struct mic_perf *perf, uint32_t tid, uint32_t when, struct mic_error *err) {
  size_t samples = perf->sample_fds.count, sides = perf->side_fds.count;
  size_t events = perf->events.count;
  perf->attaching = true;
  uint64_t opening_ns = mic_clock_ns();
  int code = open_events(perf, tid, when, err);
  if (code) {
    close_down_to(perf, samples, sides, events);
    return code;
  }
  if (perf->batch_began) *mic_vec_push(&perf->doubtful) = (struct doubtful){tid, opening_ns};
  mic_perf_cover_opened(&perf->cover, tid, opening_ns, mic_clock_ns());
  return 0;
}

int mic_perf_add_task(struct mic_perf *perf, uint32_t tid, uint32_t when, struct mic_error *err) {
  if (tid == 0) return mic_fail(err, MIC_EARG, "0 is no thread");
  perf->batch_began = perf->cover.tasks.count;
  return add(perf, tid, when, err);
}

int mic_perf_add_tasks(struct mic_perf *perf, const uint32_t *tids, size_t count, uint32_t when,
                       size_t *gone, struct mic_error *err) {
  size_t missing = 0;
  int code = 0;
  perf->batch_began = perf->cover.tasks.count;
  for (size_t i = 0; i < count && !code; i++) {
    struct mic_error why = {0};
    code = tids[i] ? add(perf, tids[i], when, &why) : mic_fail(&why, MIC_EARG, "0 is no thread");
    if (code == MIC_EGONE) {
      missing++;
      code = 0;
    } else if (code == MIC_ELIMIT && (why.sys == EMFILE || why.sys == ENFILE)) {
      size_t each = 2 * perf->settings.cpus;
      struct perf_event_attr attr = {0};
      mic_perf_open_failed(why.sys, &attr, tids[i],
                           mic_perf_descriptors(perf) + each * (count - i) + OTHER_DESCRIPTORS,
                           err);
    } else if (code && err) {
      *err = why;
    }
  }
  if (gone) *gone = missing;
  return code;
}

/* ---- attaching ---- */

static void note(struct mic_perf *perf, const void *bytes, size_t size) {
  struct mic_record record;
  if (mic_perf_decode(&perf->layout, bytes, size, &record, NULL) == 0)
    mic_perf_cover_note(&perf->cover, &record, !perf->settings.follows_children);
}

bool mic_perf_has(struct mic_perf *perf, uint32_t tid) {
  for (size_t i = 0; i < perf->rings.count; i++) {
    struct ring *ring = &perf->rings.at[i];
    size_t size;
    if (ring->kind != MIC_RING_SIDE) continue;
    while ((size = mic_ring_peek(ring->ring, &ring->noted, perf->scratch, MIC_RECORD_MAX_BYTES)))
      note(perf, perf->scratch, size);
  }
  return mic_perf_cover_has(&perf->cover, tid);
}

/* Records of a side ring are copied as they are, so a position in the copy is one in the ring. */
static void note_copied(struct mic_perf *perf, struct ring *ring, uint64_t position,
                        const uint8_t *bytes, size_t used) {
  for (size_t at = 0; at < used;) {
    struct perf_event_header header;
    memcpy(&header, bytes + at, sizeof header);
    if (position + at >= ring->noted) note(perf, bytes + at, header.size);
    at += header.size;
  }
  if (ring->noted < position + used) ring->noted = position + used;
}

size_t mic_perf_ring_copy(struct mic_perf *perf, size_t index, void *to, size_t room,
                          size_t *want) {
  struct ring *ring = &perf->rings.at[index];
  uint64_t position = mic_ring_position(ring->ring);
  size_t used = mic_ring_copy(ring->ring, to, room, want);
  if (perf->attaching && ring->kind == MIC_RING_SIDE) note_copied(perf, ring, position, to, used);
  return used;
}

struct mic_claims *mic_perf_claims(const struct mic_perf *perf) {
  struct mic_claims *claims = mic_claims_new();
  for (size_t i = 0; i < perf->events.count; i++)
    mic_claims_event(claims, perf->events.at[i].id, perf->events.at[i].tid);
  for (size_t i = 0; i < perf->doubtful.count; i++)
    mic_claims_task(claims, perf->doubtful.at[i].tid, perf->doubtful.at[i].opening_ns);
  return claims;
}

/* ---- running ---- */

static int on_all(struct mic_perf *perf, unsigned long request, const char *what,
                  struct mic_error *err) {
  for (size_t i = 0; i < perf->sample_fds.count; i++)
    if (ioctl(perf->sample_fds.at[i], request, 0) != 0)
      return mic_fail_sys(err, "%s sampling", what);
  return 0;
}

int mic_perf_enable(struct mic_perf *perf, struct mic_error *err) {
  int code = on_all(perf, PERF_EVENT_IOC_ENABLE, "starting", err);
  if (code) return code;
  perf->enabled = true;
  perf->attaching = false;
  mic_perf_cover_forget_forks(&perf->cover);
  return 0;
}

int mic_perf_disable(struct mic_perf *perf, struct mic_error *err) {
  perf->enabled = false;
  return on_all(perf, PERF_EVENT_IOC_DISABLE, "stopping", err);
}

int mic_perf_look_ms(const struct mic_perf *perf) {
  /* One thread runs on a CPU at a time, so its samples come at the event's rate at most. */
  const uint64_t cycles_a_second = 6000000000u; /* more than any x86-64 in turbo */
  uint64_t units_a_second = perf->options.event == MIC_PERF_CYCLES ? cycles_a_second : 1000000000u;
  uint64_t rate = units_a_second / perf->options.period + 1;
  uint64_t record_bytes = perf->options.stack_bytes + 512u; /* header, registers, rounding */
  uint64_t ms = perf->settings.ring_bytes / 4 * 1000 / (rate * record_bytes);
  return ms < 1 ? 1 : ms > 1000 ? 1000 : (int)ms;
}

static int filled_rings(const struct mic_perf *perf) {
  int filled = 0;
  for (size_t i = 0; i < perf->rings.count; i++) {
    const struct mic_ring *ring = perf->rings.at[i].ring;
    filled += mic_ring_filled(ring) >= mic_ring_bytes(ring) / 4;
  }
  return filled;
}

int mic_perf_poll(struct mic_perf *perf, int timeout_ms) {
  struct epoll_event events[64];
  int look_ms = mic_perf_look_ms(perf);
  for (int left = timeout_ms;;) {
    int slice = left < 0 || left > look_ms ? look_ms : left;
    int ready = epoll_wait(perf->epoll, events, sizeof events / sizeof *events, slice);
    int filled = filled_rings(perf);
    if (ready < 0 || filled > 0) return filled;
    if (left >= 0) left -= slice;
    if (left == 0) return 0;
  }
}
int mic_perf_poll_fd(const struct mic_perf *perf) { return perf->epoll; }

size_t mic_perf_rings(const struct mic_perf *perf) { return perf->rings.count; }
struct mic_ring *mic_perf_ring(const struct mic_perf *perf, size_t index) {
  return perf->rings.at[index].ring;
}
uint32_t mic_perf_ring_kind(const struct mic_perf *perf, size_t index) {
  return perf->rings.at[index].kind;
}
uint32_t mic_perf_ring_cpu(const struct mic_perf *perf, size_t index) {
  return perf->rings.at[index].cpu;
}

/* read_format PERF_FORMAT_LOST: { u64 value; u64 lost }. */
static int sum_lost(const int *fds, size_t count, uint64_t *sum, struct mic_error *err) {
  for (size_t i = 0; i < count; i++) {
    uint64_t values[2];
    ssize_t got = read(fds[i], values, sizeof values);
    if (got < 0) return mic_fail_sys(err, "reading what an event lost");
    /* 0: the event is in an error state and wrote nothing. */
    if (got == (ssize_t)sizeof values) *sum += values[1];
  }
  return 0;
}

int mic_perf_lost(struct mic_perf *perf, struct mic_perf_lost *out, struct mic_error *err) {
  *out = (struct mic_perf_lost){0};
  for (size_t i = 0; i < perf->rings.count; i++) {
    struct mic_ring_counts counts;
    mic_ring_counts(perf->rings.at[i].ring, &counts);
    if (perf->rings.at[i].kind == MIC_RING_SIDE)
      out->side_told += counts.lost_told;
    else
      out->samples_told += counts.lost_told;
  }
  if (!perf->features.counts_lost)
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "before Linux 6.0 the kernel tells of a loss only when the next record fits");
  int code = sum_lost(perf->sample_fds.at, perf->sample_fds.count, &out->samples, err);
  return code ? code : sum_lost(perf->side_fds.at, perf->side_fds.count, &out->side, err);
}

bool mic_perf_id_is_sample(const struct mic_perf *perf, uint64_t id) {
  uint32_t index = mic_map_get(&perf->event_of, id, 0);
  return index != MIC_NONE && perf->events.at[index].sample;
}
uint32_t mic_perf_id_owner(const struct mic_perf *perf, uint64_t id) {
  uint32_t index = mic_map_get(&perf->event_of, id, 0);
  return index == MIC_NONE ? 0 : perf->events.at[index].tid;
}

size_t mic_perf_sample_fds(const struct mic_perf *perf, const int **fds) {
  *fds = perf->sample_fds.at;
  return perf->sample_fds.count;
}

int mic_perf_redirect(struct mic_perf *perf, int fd, uint32_t cpu, uint32_t kind,
                      struct mic_error *err) {
  const struct ring *ring = ring_of(perf, cpu, kind);
  if (!ring) return mic_fail(err, MIC_EARG, "CPU %u has no ring", cpu);
  if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) != 0)
    return mic_fail_sys(err, "writing an event to the ring of CPU %u", cpu);
  return 0;
}
