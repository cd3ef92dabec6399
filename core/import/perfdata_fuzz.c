/*
 * perfdata_fuzz.c - any bytes as a perf.data: what is taken must be a valid capture.
 *
 * No file of the machine is opened, so a run depends on its bytes alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/perfdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char path[64];
  struct mic_writer *writer;
  struct mic_perfdata_result result;
  struct mic_error err = {0};
  snprintf(path, sizeof path, "/dev/shm/mic_perfdata_fuzz.%d.usprof", (int)getpid());
  if (mic_writer_open(path, &writer, &err) != 0) abort();
  int code = mic_perfdata_read_memory(bytes, size, 0, writer, &result, &err);
  if (code != 0 && (err.code != code || !err.msg[0])) abort(); /* an error must say what it is */
  if (code != 0) {
    mic_writer_discard(writer);
  } else if (mic_writer_finish_checked(writer, 0, &err) != 0) {
    fprintf(stderr, "%s\n", err.msg);
    abort();
  }
  unlink(path);
  return 0;
}
