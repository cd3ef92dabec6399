/* open.c - attributes, perf_event_open and what its errors mean. */
#include "perf/open.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* AX..SS and R8..R15: all that x86-64 gives for user space but DS ES FS GS, which the kernel
 * refuses there (arch/x86/kernel/perf_regs.c, PERF_REG_X86_RESERVED and REG_NOSUPPORT). */
enum { REGS_USER = 0xff0fff };

/* The parts of a trailer or a sample that both kinds of event have. */
#define ID_PARTS (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static void common_attr(struct perf_event_attr *attr) {
  memset(attr, 0, sizeof *attr);
  attr->size = sizeof *attr;
  attr->type = PERF_TYPE_SOFTWARE;
  attr->config = PERF_COUNT_SW_DUMMY;
  attr->exclude_kernel = 1;
  attr->exclude_hv = 1;
  attr->use_clockid = 1;
  attr->clockid = CLOCK_MONOTONIC;
  attr->sample_id_all = 1;
  attr->sample_type = ID_PARTS;
}

void mic_perf_owner_attr(struct perf_event_attr *attr, uint32_t watermark) {
  common_attr(attr);
  attr->disabled = 1;
  attr->watermark = 1;
  attr->wakeup_watermark = watermark;
}

static void follow(struct perf_event_attr *attr, const struct mic_perf_options *options,
                   const struct mic_perf_features *features) {
  attr->inherit = 1;
  if (!options->children && features->inherit_thread) attr->inherit_thread = 1;
  if (features->counts_lost) attr->read_format = PERF_FORMAT_LOST;
}

void mic_perf_sample_attr(struct perf_event_attr *attr, const struct mic_perf_options *options,
                          const struct mic_perf_features *features) {
  common_attr(attr);
  follow(attr, options, features);
  bool cycles = options->event == MIC_PERF_CYCLES;
  attr->type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  attr->config = cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES : (uint64_t)PERF_COUNT_SW_CPU_CLOCK;
  attr->sample_period = options->period;
  attr->sample_type = ID_PARTS | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER;
  attr->sample_regs_user = REGS_USER;
  if (options->stack_bytes) {
    attr->sample_type |= PERF_SAMPLE_STACK_USER;
    attr->sample_stack_user = options->stack_bytes;
  }
  attr->disabled = 1;
  attr->exclude_kernel = !options->kernel;
}

void mic_perf_side_attr(struct perf_event_attr *attr, const struct mic_perf_options *options,
                        const struct mic_perf_features *features) {
  common_attr(attr);
  follow(attr, options, features);
  /* The trailer has only the id parts, so one layout serves both kinds of event. */
  attr->mmap = 1;
  attr->mmap2 = 1;
  attr->comm = 1;
  attr->comm_exec = 1;
  attr->task = 1;
}

int mic_perf_open(const struct perf_event_attr *attr, uint32_t tid, uint32_t cpu) {
  return (int)syscall(SYS_perf_event_open, attr, (pid_t)tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool opens(const struct perf_event_attr *attr, uint32_t cpu) {
  int fd = mic_perf_open(attr, 0, cpu);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

int mic_perf_probe(const struct mic_perf_options *options, struct mic_perf_features *out,
                   struct mic_error *err) {
  struct mic_cpus cpus = {0};
  struct perf_event_attr attr;
  *out = (struct mic_perf_features){0};
  int code = mic_perf_online_cpus(&cpus, err);
  if (code) return code;
  uint32_t cpu = cpus.count ? cpus.at[0] : 0; /* there is at least the one we run on */
  mic_vec_free(&cpus);
  mic_perf_sample_attr(&attr, options, out);
  int fd = mic_perf_open(&attr, 0, cpu);
  if (fd < 0) return mic_perf_open_failed(errno, &attr, 0, 1, err);
  close(fd);
  attr.read_format = PERF_FORMAT_LOST;
  out->counts_lost = opens(&attr, cpu);
  attr.read_format = 0;
  attr.inherit_thread = 1;
  out->inherit_thread = opens(&attr, cpu);
  return 0;
}

static int not_permitted(int sys, const struct perf_event_attr *attr, uint32_t tid,
                         struct mic_error *err) {
  int64_t paranoid = 0;
  char level[64] = "kernel.perf_event_paranoid cannot be read";
  if (mic_perf_read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid))
    snprintf(level, sizeof level, "kernel.perf_event_paranoid is %" PRId64, paranoid);
  const char *event = attr->config == PERF_COUNT_SW_DUMMY ? "mappings" : "samples";
  /* Levels up to 2 let a user measure own processes in user space; some systems know 3 and 4,
   * which do not. */
  if (!attr->exclude_kernel)
    mic_fail(err, MIC_EPERM,
             "samples inside the kernel are refused: %s; set it to 1, give CAP_PERFMON, or sample "
             "user space only",
             level);
  else if (paranoid > 2)
    mic_fail(err, MIC_EPERM,
             "perf events (%s) of thread %u are refused: %s; set it to 2, or give CAP_PERFMON",
             event, tid, level);
  else if (tid != 0)
    mic_fail(err, MIC_EPERM,
             "perf events (%s) of thread %u are refused: it is another user's or may not be "
             "traced (%s); CAP_PERFMON is needed, or CAP_SYS_ADMIN before Linux 5.8",
             event, tid, level);
  else
    mic_fail(err, MIC_EPERM,
             "perf events are refused (%s): a seccomp filter or security module forbids "
             "perf_event_open, as container runtimes do; allow it, or give CAP_PERFMON",
             level);
  if (err) err->sys = sys;
  return MIC_EPERM;
}

static int no_descriptors(int sys, size_t needed, struct mic_error *err) {
  struct rlimit limit = {0};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (sys == ENFILE)
    mic_fail(err, MIC_ELIMIT,
             "%zu file descriptors are needed and the system has none left; raise fs.file-max",
             needed);
  else
    mic_fail(err, MIC_ELIMIT,
             "%zu file descriptors are needed and the limit is %llu; `ulimit -n %zu` as root, or "
             "LimitNOFILE=%zu in a systemd unit, raises it",
             needed, (unsigned long long)limit.rlim_cur, needed, needed);
  if (err) err->sys = sys;
  return MIC_ELIMIT;
}

int mic_perf_open_failed(int sys, const struct perf_event_attr *attr, uint32_t tid, size_t needed,
                         struct mic_error *err) {
  errno = sys;
  switch (sys) {
  case EPERM:
  case EACCES: return not_permitted(sys, attr, tid, err);
  case EMFILE:
  case ENFILE: return no_descriptors(sys, needed, err);
  case ESRCH: return mic_fail_sys(err, "thread %u", tid);
  case ENOENT:
  case EOPNOTSUPP:
    if (attr->type == PERF_TYPE_HARDWARE)
      return mic_fail(err, MIC_EUNSUPPORTED,
                      "this machine has no hardware cycle counter (a virtual machine often has "
                      "none); sample by cpu-clock");
    return mic_fail(err, MIC_EUNSUPPORTED, "the kernel knows no such perf event: %s",
                    strerror(sys));
  case EINVAL:
  case E2BIG:
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "the kernel does not know what a perf event needs here (user registers, stack "
                    "copies, a clock of one's own): Linux 5.10 or later is needed");
  case ENOSYS:
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "the kernel is built without perf events "
                    "(CONFIG_PERF_EVENTS)");
  default: return mic_fail_sys(err, "perf event of thread %u", tid);
  }
}

static ssize_t read_text(const char *path, char *to, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got, used = 0;
  while ((size_t)used + 1 < room && (got = read(fd, to + used, room - 1 - (size_t)used)) > 0)
    used += got;
  to[used] = '\0';
  int sys = errno;
  close(fd);
  errno = sys;
  return used;
}

bool mic_perf_read_number(const char *path, int64_t *out) {
  char text[64], *end;
  if (read_text(path, text, sizeof text) <= 0) return false;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || errno) return false;
  *out = value;
  return true;
}

/* A CPU number; the kernel's NR_CPUS is at most 8192. */
static bool read_cpu(const char **text, uint32_t *cpu) {
  if (**text < '0' || **text > '9') return false;
  char *end;
  unsigned long value = strtoul(*text, &end, 10);
  *text = end;
  *cpu = (uint32_t)value;
  return value < 65536;
}

bool mic_perf_parse_cpus(const char *text, struct mic_cpus *out) {
  uint32_t from, to;
  do {
    if (!read_cpu(&text, &from)) return false;
    to = from;
    if (*text == '-') {
      text++;
      if (!read_cpu(&text, &to) || to < from) return false;
    }
    if (out->count && from <= out->at[out->count - 1]) return false;
    for (uint32_t cpu = from; cpu <= to; cpu++) *mic_vec_push(out) = cpu;
  } while (*text++ == ',');
  return text[-1] == '\0' || (text[-1] == '\n' && text[0] == '\0');
}

int mic_perf_online_cpus(struct mic_cpus *out, struct mic_error *err) {
  static const char path[] = "/sys/devices/system/cpu/online";
  static const size_t room = 65536; /* 8192 CPUs with gaps between all: 6 bytes each */
  char *text = mic_alloc(room);
  int code = 0;
  if (read_text(path, text, room) < 0)
    code = mic_fail_sys(err, "reading which CPUs are online from %s", path);
  else if (!mic_perf_parse_cpus(text, out))
    code = mic_fail(err, MIC_EFORMAT, "%s does not hold a list of CPUs", path);
  free(text);
  if (code) mic_vec_free(out);
  return code;
}
