/*
 * capture_fuzz.c - open and walk bytes as a capture.
 *
 * The first byte says whether header and checksums are made to agree first: without that no
 * input but the corpus would pass them.  What opens must be fit to be walked.
 */
#include <stddef.h>
#include <stdint.h>

#include "capture/forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the walk adds up goes here, so that no read of it can be left out. */
extern uint64_t capture_fuzz_sum;
uint64_t capture_fuzz_sum;

/* Touch every row as a reader would: all bytes, all strings, all stacks to their roots. */
static uint64_t walk(const struct mic_capture *cap) {
  uint64_t sum = 0, rows, size;
  struct mic_column column;
  for (uint32_t t = 0; mic_capture_table(t); t++)
    for (uint32_t i = 0; !mic_capture_column_at(cap, mic_capture_table(t), i, &column, NULL); i++)
      for (uint32_t b = 0; b < column.blocks; b++) {
        struct mic_block block;
        mic_capture_block(&column, b, &block);
        for (uint64_t at = 0; at < block.rows * column.width; at++)
          sum += ((const uint8_t *)block.data)[at];
      }
  for (uint32_t id = 0; id < mic_capture_rows(cap, "strings"); id++) {
    const char *text = mic_capture_string(cap, id, &size);
    for (uint64_t i = 0; i < size; i++) sum += (uint8_t)text[i];
  }
  const uint32_t *parent = mic_capture_array(cap, "stacks", "parent", &rows);
  const uint32_t *location = mic_capture_array(cap, "stacks", "location", &rows);
  const uint8_t *kind = mic_capture_array(cap, "locations", "kind", NULL);
  for (uint64_t i = 0; i < rows; i++)
    for (uint32_t at = (uint32_t)i; parent[at] != MIC_NONE; at = parent[at])
      sum += kind[location[at]];
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mic_capture *cap;
  struct mic_error err;
  if (size < 1) return 0;
  uint8_t *copy = mic_alloc(size - 1); /* exactly its size: a read past the end is seen */
  if (size > 1) memcpy(copy, data + 1, size - 1);
  if (data[0] & 1) forge_seal(copy, size - 1);
  /* Few rows: the walk up from each stack is quadratic in a chain. */
  if (mic_capture_open_memory(copy, size - 1, 64 * 1024, &cap, &err) == 0) {
    capture_fuzz_sum += walk(cap);
    mic_capture_close(cap);
  }
  free(copy);
  return 0;
}
