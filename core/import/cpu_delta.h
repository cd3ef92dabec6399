/*
 * cpu_delta.h - what samples of Firefox's profiles, raw and processed ones, have beside their
 * stack.
 *
 * Weights are samples, milliseconds or bytes.  "threadCPUDelta" is the CPU time, or cycles, that
 * the thread used since its sample before: a source of its own, with the later sample's stack.
 */
#ifndef MIC_IMPORT_CPU_DELTA_H
#define MIC_IMPORT_CPU_DELTA_H

#include "import/build.h"
#include "import/json.h"

/* Zero-initialised: cycles, as long as the file says no unit. */
struct mic_cpu_delta {
  uint32_t factor; /* nanoseconds that one is; 0: it is a cycle */
};

/* The mic_unit that a "weightType" says. */
uint32_t mic_weight_unit(const struct mic_json_token *token);
/* The unit in meta.sampleUnits. */
void mic_cpu_delta_unit(struct mic_cpu_delta *cpu, const struct mic_json_token *token);
/* The row beside a sample's own; none for what used nothing.  A negative delta is not told. */
void mic_cpu_delta_put(const struct mic_cpu_delta *cpu, struct mic_writer *writer,
                       struct mic_build *build, const struct mic_samples_row *sample,
                       int64_t delta);

#endif
