/* speedscope_fuzz.c - any bytes as a file of speedscope. */
#include "import/fuzz.h"
#include "import/speedscope.h"

static int import(struct mic_input *input, struct mic_writer *writer, struct mic_error *err) {
  struct mic_speedscope_result result;
  return mic_speedscope_read(input, writer, &result, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_import(bytes, size, import);
  return 0;
}
