/* otlp_fuzz.c - any bytes as OpenTelemetry profiles. */
#include "import/fuzz.h"
#include "import/otlp_read.h"

static int import(struct mic_input *input, struct mic_writer *writer, struct mic_error *err) {
  struct mic_otlp_result result;
  return mic_otlp_read(input, writer, &result, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_import(bytes, size, import);
  return 0;
}
