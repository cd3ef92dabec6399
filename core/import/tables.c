/* tables.c - what writers of other formats ask of a capture's tables. */
#include "import/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/index.h"
#include "capture/names.h"

uint64_t *mic_tables_first_lines(const struct mic_tables *t) {
  size_t size = (size_t)(t->locations.rows + 1) * sizeof(uint64_t);
  uint64_t *first = mic_alloc(size);
  memset(first, 0xff, size);
  for (uint64_t i = t->lines.rows; i-- > 0;) first[t->lines.location[i]] = i;
  return first;
}

uint64_t mic_tables_line_count(const struct mic_tables *t, uint64_t first) {
  uint64_t past = first;
  while (past < t->lines.rows && t->lines.location[past] == t->lines.location[first]) past++;
  return past - first;
}

uint64_t mic_tables_first_label(const struct mic_tables *t, uint64_t sample) {
  uint64_t low = 0, past = t->sample_labels.rows;
  while (low < past) {
    uint64_t middle = low + (past - low) / 2;
    if (t->sample_labels.sample[middle] < sample)
      low = middle + 1;
    else
      past = middle;
  }
  return low;
}

char *mic_tables_place_name(const struct mic_capture *cap, const struct mic_tables *t,
                            uint64_t location, size_t *size) {
  uint64_t length = 0;
  uint32_t module = t->locations.module[location];
  const char *name = mic_capture_string(cap, t->modules.name[module], &length);
  char digits[32];
  int count =
    snprintf(digits, sizeof digits, "+0x%llx", (unsigned long long)t->locations.offset[location]);
  *size = (size_t)length + (size_t)count;
  char *out = mic_alloc(*size);
  memcpy(out, name, (size_t)length);
  memcpy(out + length, digits, (size_t)count);
  return out;
}

void mic_tables_end_name(uint8_t end, char out[MIC_END_NAME_SIZE]) {
  const char *reason = mic_end_text(end);
  if (reason)
    snprintf(out, MIC_END_NAME_SIZE, "[%s]", reason);
  else
    snprintf(out, MIC_END_NAME_SIZE, "[reason %u]", end);
}

/* What tells a thread: its own id and name, its process's, by strings. */
static void thread_key(const struct mic_tables *t, uint64_t thread, uint64_t key[2]) {
  uint32_t process = t->threads.process[thread];
  key[0] = (uint64_t)t->threads.tid[thread] << 32 | t->threads.name[thread];
  key[1] = (uint64_t)t->processes.pid[process] << 32 | t->processes.name[process];
}

static uint32_t hash_thread(const void *data, uint32_t thread) {
  uint64_t key[2];
  thread_key(data, thread, key);
  return mic_index_mix(key[0], key[1]);
}

MIC_EXPORT int mic_tables_threads_differ(const struct mic_capture *cap) {
  struct mic_tables t = mic_tables_of(cap);
  struct mic_index index = {0};
  bool differ = true;
  for (uint64_t i = 0; i < t.threads.rows && differ; i++) {
    uint64_t key[2], other[2], at;
    thread_key(&t, i, key);
    uint32_t hash = mic_index_mix(key[0], key[1]);
    for (uint32_t id = mic_index_first(&index, hash, &at); id != MIC_NONE && differ;
         id = mic_index_next(&index, hash, &at)) {
      thread_key(&t, id, other);
      differ = key[0] != other[0] || key[1] != other[1];
    }
    if (differ) mic_index_add(&index, hash, hash_thread, &t);
  }
  mic_index_free(&index);
  return differ;
}
