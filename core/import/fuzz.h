/*
 * fuzz.h - what the fuzzers of importers share: bytes in, and a capture that must be valid out.
 *
 * Whatever an importer takes without an error has to pass the reader's rules: a capture that does
 * not is a fault of the importer.
 */
#ifndef MIC_IMPORT_FUZZ_H
#define MIC_IMPORT_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/writer.h"
#include "import/input.h"

static inline void fuzz_import(const uint8_t *bytes, size_t size,
                               int (*import)(struct mic_input *, struct mic_writer *,
                                             struct mic_error *)) {
  char path[64];
  struct mic_input *input;
  struct mic_writer *writer;
  struct mic_error err = {0};
  if (mic_input_memory(bytes, size, &input, &err) != 0) return;
  snprintf(path, sizeof path, "/dev/shm/mic_import_fuzz.%d.usprof", (int)getpid());
  if (mic_writer_open(path, &writer, &err) != 0) abort();
  int code = import(input, writer, &err);
  if (code != 0 && (err.code != code || !err.msg[0])) abort(); /* an error must say what it is */
  if (code != 0)
    mic_writer_discard(writer);
  else if (mic_writer_finish_checked(writer, 0, &err) != 0) {
    fprintf(stderr, "%s\n", err.msg);
    abort();
  }
  unlink(path);
  mic_input_close(input);
}

#endif
