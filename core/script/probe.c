/* probe.c - try what can be recorded, with events that never run. */
#include "script/probe.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

/* ax bx cx dx si di bp sp ip and r8 to r15 of enum perf_event_x86_regs: what unwinding needs. */
#define USER_REGISTERS 0xff01ffULL

static struct perf_event_attr attribute(uint32_t what) {
  struct perf_event_attr attr = {
    .size = sizeof attr,
    .type = PERF_TYPE_SOFTWARE,
    .config = PERF_COUNT_SW_CPU_CLOCK,
    .sample_period = 1000000,
    .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
    .sample_regs_user = USER_REGISTERS,
    .sample_stack_user = 8192,
    .disabled = 1,
    .exclude_kernel = 1,
    .exclude_hv = 1,
  };
  if (what == MIC_PROBE_CYCLES) {
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CPU_CYCLES;
  }
  /* PERF_FORMAT_LOST, which headers before 6.0 do not name. */
  if (what == MIC_PROBE_LOST) attr.read_format = 1U << 4;
  return attr;
}

MIC_EXPORT int32_t mic_probe(uint32_t what) {
  struct perf_event_attr attr = attribute(what);
  long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return errno;
  close((int)fd);
  return 0;
}

MIC_EXPORT int32_t mic_probe_capability(uint32_t capability) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct data[2] = {0};
  if (capability > 63 || syscall(SYS_capget, &header, data) != 0) return 0;
  return (data[capability / 32].effective >> (capability % 32)) & 1;
}

MIC_EXPORT uint64_t mic_probe_limit(uint32_t kind, uint32_t hard) {
  struct rlimit limit;
  if (getrlimit(kind == 0 ? RLIMIT_MEMLOCK : RLIMIT_NOFILE, &limit) != 0) return 0;
  rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? UINT64_MAX : value;
}
