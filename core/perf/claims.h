/*
 * claims.h - what a mic_claims is made from.  Internal to core/perf; the rest is in events.h.
 */
#ifndef MIC_PERF_CLAIMS_H
#define MIC_PERF_CLAIMS_H

#include <stdint.h>

#include "perf/events.h"

struct mic_claims *mic_claims_new(void);
/* An event and the tid it was opened for. */
void mic_claims_event(struct mic_claims *claims, uint64_t id, uint32_t owner);
/* A task that may have inherited events beside those opened for it at opened_ns. */
void mic_claims_task(struct mic_claims *claims, uint32_t tid, uint64_t opened_ns);

#endif
