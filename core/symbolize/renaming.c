/* renaming.c - choose between what a capture says of a location and what was found. */
#include "symbolize/renaming.h"

#include <string.h>

void mic_renaming_begin(struct mic_renaming *m, const struct mic_capture *capture) {
  *m = (struct mic_renaming){.capture = capture};
  m->location = mic_capture_array(capture, "lines", "location", &m->line_rows);
  m->function = mic_capture_array(capture, "lines", "function", NULL);
  m->file = mic_capture_array(capture, "lines", "file", NULL);
  m->line = mic_capture_array(capture, "lines", "line", NULL);
  m->linkage_name = mic_capture_array(capture, "functions", "linkage_name", NULL);
  m->decl_file = mic_capture_array(capture, "functions", "file", NULL);
  mic_meanings_seed(&m->meanings, capture);
}

void mic_renaming_free(struct mic_renaming *m) { mic_meanings_free(&m->meanings); }

/* The rows of a location: they are in order of location. */
static uint64_t first_row(const struct mic_renaming *m, uint32_t location) {
  uint64_t low = 0, high = m->line_rows;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (m->location[middle] < location)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Whether a row's function is the frame's, and the frame says at least as much of it. */
static bool covers(const struct mic_renaming *m, uint64_t row, const struct mic_symbol *frame) {
  uint64_t size;
  const char *name = mic_capture_string(m->capture, m->linkage_name[m->function[row]], &size);
  if (strlen(frame->linkage_name) != size || memcmp(frame->linkage_name, name, size) != 0)
    return false;
  return (m->line[row] == 0 || frame->line != 0) && (m->file[row] == MIC_NONE || frame->file) &&
         (m->decl_file[m->function[row]] == MIC_NONE || frame->decl_file);
}

static bool is_proven(const struct mic_renaming *m, uint64_t row) {
  uint64_t size;
  mic_capture_string(m->capture, m->linkage_name[m->function[row]], &size);
  return size > 0;
}

/* Whether the frames have every proven function of the rows, in their order. */
static bool has_all(const struct mic_renaming *m, uint64_t row, uint64_t past,
                    const struct mic_symbol *frames, size_t count) {
  size_t at = 0;
  for (; row < past; row++) {
    if (!is_proven(m, row)) continue;
    while (at < count && !covers(m, row, &frames[at])) at++;
    if (at++ == count) return false;
  }
  return count > 0;
}

static void keep_rows(struct mic_renaming *m, uint64_t row, uint64_t past) {
  for (uint32_t depth = 0; row < past; row++, depth++) {
    struct mic_meanings_line line = {m->location[row], m->function[row], m->file[row], m->line[row],
                                     depth};
    mic_meanings_keep(&m->meanings, &line);
  }
}

bool mic_renaming_add(struct mic_renaming *m, uint32_t location, uint32_t module,
                      const struct mic_symbol *frames, size_t count) {
  uint64_t row = first_row(m, location), past = row;
  while (past < m->line_rows && m->location[past] == location) past++;
  if (row < past && !has_all(m, row, past, frames, count)) {
    keep_rows(m, row, past);
    return is_proven(m, past - 1);
  }
  mic_meanings_add(&m->meanings, location, module, frames, count);
  return count > 0 && frames[count - 1].linkage_name[0];
}
