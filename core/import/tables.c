/* tables.c - what writers of other formats ask of a capture's tables. */
#include "import/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
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
