/*
 * merge_fuzz.c - merge what opens as a capture with itself.
 *
 * The first byte says whether checksums are made to agree (see capture_fuzz.c), and how far apart
 * in time the two lie.  A capture that is right, merged, is right.
 */
#include <stddef.h>
#include <stdint.h>

#include "capture/forge.h"
#include "capture/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Apart by nothing, a moment, a day, or more than time has. */
static const uint64_t SHIFTS[] = {0, 1000, 86400000000000, UINT64_MAX - 5};
static const uint64_t GAPS[] = {0, 999999999, 5000000000, MIC_MERGE_OTHER_BOOT};

static void merge_twice(const struct mic_capture *cap, uint8_t how) {
  struct mic_capture *all = NULL;
  struct mic_error err = {0};
  struct mic_merge *merge = mic_merge_new();
  mic_merge_add(merge, cap, 0, 0);
  mic_merge_add(merge, cap, SHIFTS[how >> 1 & 3], GAPS[how >> 3 & 3]);
  int code = mic_merge_finish(merge, &all, &err);
  if (code != 0 && code != MIC_ELIMIT) abort();
  if (all && mic_capture_rows(all, "samples") != 2 * mic_capture_rows(cap, "samples")) abort();
  mic_capture_close(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mic_capture *cap;
  struct mic_error err;
  if (size < 1) return 0;
  uint8_t *copy = mic_alloc(size);
  memcpy(copy, data + 1, size - 1);
  if (data[0] & 1) forge_seal(copy, size - 1);
  if (mic_capture_open_memory(copy, size - 1, 64 * 1024, &cap, &err) == 0) {
    merge_twice(cap, data[0]);
    mic_capture_close(cap);
  }
  free(copy);
  return 0;
}
