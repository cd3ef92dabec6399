/* made_fuzz.c - any bytes as a perf map: every address has one answer, and names end. */
#include <stdlib.h>
#include <string.h>

#include "target/made.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct mic_made_code *code;
  struct mic_error err = {0};
  const char *name;
  if (mic_made_code_parse((const char *)bytes, size, "map", &code, &err) != 0) abort();
  for (uint64_t address = 0; address < 1 << 16; address += 7) {
    enum mic_made made = mic_made_code_find(code, address, &name);
    if ((made == MIC_MADE_NAMED) != (name != NULL)) abort();
    if (name && strlen(name) == 0) abort();
  }
  mic_made_code_find(code, UINT64_MAX, &name);
  mic_made_code_free(code);
  return 0;
}
