/* cpu_delta.c - weights and CPU times of Firefox's samples. */
#include "import/cpu_delta.h"

uint32_t mic_weight_unit(const struct mic_json_token *token) {
  if (mic_json_is(token, "tracing-ms")) return MIC_UNIT_NS;
  return mic_json_is(token, "bytes") ? MIC_UNIT_BYTES : MIC_UNIT_COUNT;
}

void mic_cpu_delta_unit(struct mic_cpu_delta *cpu, const struct mic_json_token *token) {
  cpu->factor = mic_json_is(token, "ns") ? 1 : mic_json_is(token, "\xc2\xb5s") ? 1000 : 0;
}

void mic_cpu_delta_put(const struct mic_cpu_delta *cpu, struct mic_writer *writer,
                       struct mic_build *build, const struct mic_samples_row *sample,
                       int64_t delta) {
  struct mic_samples_row row = *sample;
  const char *name = cpu->factor ? "cpu-time-delta" : "cpu-cycles-delta";
  uint64_t factor = cpu->factor ? cpu->factor : 1;
  if (delta <= 0 || __builtin_mul_overflow((uint64_t)delta, factor, &row.weight)) return;
  uint32_t unit = cpu->factor ? MIC_UNIT_NS : MIC_UNIT_CYCLES;
  row.source = (uint8_t)mic_build_source(build, mic_writer_text(writer, name), unit, 0, 0);
  mic_writer_samples(writer, &row);
}
