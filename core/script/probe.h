/*
 * probe.h - what the kernel lets this process record, found by trying.
 *
 * Each probe opens a disabled event on the calling thread and closes it again: nothing is
 * sampled.
 *
 * Threads: any.
 */
#ifndef MIC_SCRIPT_PROBE_H
#define MIC_SCRIPT_PROBE_H

#include <stdint.h>

/* ffi:begin */
enum mic_probe_what {
  MIC_PROBE_USER = 0,   /* the CPU clock in user space, with registers and a stack copy */
  MIC_PROBE_CYCLES = 1, /* hardware cycles in user space */
  MIC_PROBE_LOST = 2    /* counts of what an event lost (Linux 6.0) */
};
/* 0 when it can be recorded, else errno. */
int32_t mic_probe(uint32_t what);
/* 1 when the effective set holds the capability of that number (linux/capability.h). */
int32_t mic_probe_capability(uint32_t capability);
/* RLIMIT_MEMLOCK (kind 0) or RLIMIT_NOFILE (kind 1): soft, or hard; UINT64_MAX is no limit. */
uint64_t mic_probe_limit(uint32_t kind, uint32_t hard);
/* ffi:end */

#endif
