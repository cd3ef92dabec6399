/* clock.h - the one clock: CLOCK_MONOTONIC, and what this process has cost. */
#ifndef MIC_BASE_CLOCK_H
#define MIC_BASE_CLOCK_H

#include <stdint.h>

uint64_t mic_clock_ns(void);             /* CLOCK_MONOTONIC */
uint64_t mic_clock_realtime_ns(void);    /* CLOCK_REALTIME */
uint64_t mic_clock_process_cpu_ns(void); /* CPU time of this process, all threads */
uint64_t mic_clock_thread_cpu_ns(void);  /* CPU time of the calling thread */

#endif
