/* frames.c - frames counted by location, told in the order of lines. */
#include "import/frames.h"

#include <string.h>

#include "base/alloc.h"
#include "capture/names.h"

/* Those that roots have and reports tell, each once, in the order of the roots. */
static void find_ends(struct mic_frames *out) {
  memset(out->end_number, 0xff, sizeof out->end_number);
  for (uint64_t i = 0; i < out->t->stacks.rows; i++) {
    uint8_t end = out->t->stacks.end[i];
    if (out->t->stacks.parent[i] != MIC_NONE || out->end_number[end] != MIC_NONE) continue;
    if (mic_end_is_silent(end)) continue;
    out->end_number[end] = out->ends;
    out->end[out->ends++] = end;
  }
}

void mic_frames_of(const struct mic_tables *t, struct mic_frames *out) {
  *out = (struct mic_frames){.t = t};
  out->first = mic_alloc((size_t)(t->locations.rows + 1) * sizeof *out->first);
  for (uint64_t i = 0; i < t->lines.rows; i++) out->first[t->lines.location[i] + 1]++;
  for (uint64_t l = 0; l < t->locations.rows; l++) {
    bool one = !out->first[l + 1] || t->locations.kind[l] == MIC_LOCATION_SIGNAL;
    out->first[l + 1] = out->first[l] + (one ? 1 : out->first[l + 1]);
  }
  out->count = out->first[t->locations.rows];
  find_ends(out);
}

void mic_frames_free(struct mic_frames *frames) {
  free(frames->first);
  frames->first = NULL;
}

/* The first of `count` rising values that is not less than one. */
static uint64_t find(const uint32_t *values, uint64_t count, uint32_t value) {
  uint64_t low = 0;
  while (low < count) {
    uint64_t middle = low + (count - low) / 2;
    if (values[middle] < value)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

struct mic_shown_frame mic_frames_at(const struct mic_frames *frames, uint32_t number) {
  const struct mic_tables *t = frames->t;
  struct mic_shown_frame frame = {.number = number, .location = MIC_NONE, .line = MIC_NONE};
  if (number >= frames->count) {
    frame.end = frames->end[number - frames->count];
    return frame;
  }
  uint32_t l = (uint32_t)find(frames->first, t->locations.rows + 1, number + 1) - 1;
  frame.location = l;
  if (t->locations.kind[l] == MIC_LOCATION_SIGNAL || !t->lines.rows) return frame;
  uint64_t past = find(t->lines.location, t->lines.rows, l + 1);
  if (past && t->lines.location[past - 1] == l)
    frame.line = (uint32_t)(past - 1 - (number - frames->first[l]));
  return frame;
}

uint32_t mic_frames_module(const struct mic_frames *frames, const struct mic_shown_frame *frame) {
  const struct mic_tables *t = frames->t;
  uint32_t module = MIC_NONE;
  if (frame->line != MIC_NONE) module = t->functions.module[t->lines.function[frame->line]];
  if (module == MIC_NONE && frame->location != MIC_NONE)
    module = t->locations.module[frame->location];
  return module;
}

void mic_frames_each(const struct mic_frames *frames, mic_frames_told *told, void *data) {
  const struct mic_tables *t = frames->t;
  struct mic_shown_frame frame = {.number = 0};
  uint32_t at = 0;
  for (uint32_t l = 0; l < t->locations.rows; l++) {
    uint32_t from = at;
    while (at < t->lines.rows && t->lines.location[at] == l) at++;
    frame.location = l;
    frame.line = MIC_NONE;
    if (from == at || t->locations.kind[l] == MIC_LOCATION_SIGNAL) {
      told(data, &frame);
      frame.number++;
      continue;
    }
    for (uint32_t i = at; i > from; frame.number++) {
      frame.line = --i;
      told(data, &frame);
    }
  }
  frame.location = frame.line = MIC_NONE;
  for (uint32_t i = 0; i < frames->ends; i++) {
    frame.number = frames->count + i;
    frame.end = frames->end[i];
    told(data, &frame);
  }
}

uint32_t *mic_frames_nodes(const struct mic_frames *frames, uint32_t *count) {
  const struct mic_tables *t = frames->t;
  uint32_t *nodes = mic_realloc(NULL, (size_t)(t->stacks.rows + 1) * sizeof *nodes);
  *count = frames->ends; /* ends are the first nodes */
  for (uint64_t i = 0; i < t->stacks.rows; i++) {
    if (t->stacks.parent[i] == MIC_NONE) {
      nodes[i] = frames->end_number[t->stacks.end[i]];
      continue;
    }
    uint32_t l = t->stacks.location[i];
    *count += frames->first[l + 1] - frames->first[l];
    nodes[i] = *count - 1;
  }
  return nodes;
}

void mic_frames_each_node(const struct mic_frames *frames, const uint32_t *nodes,
                          mic_frames_node *told, void *data) {
  const struct mic_tables *t = frames->t;
  uint32_t node = 0;
  for (; node < frames->ends; node++) told(data, node, MIC_NONE, frames->count + node);
  for (uint64_t i = 0; i < t->stacks.rows; i++) {
    if (t->stacks.parent[i] == MIC_NONE) continue;
    uint32_t l = t->stacks.location[i], parent = nodes[t->stacks.parent[i]];
    for (uint32_t f = frames->first[l]; f < frames->first[l + 1]; f++) {
      told(data, node, parent, f);
      parent = node++;
    }
  }
}
