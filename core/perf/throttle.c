/* throttle.c - where each event's span began. */
#include "perf/throttle.h"

bool mic_throttle_take(struct mic_throttle *throttle, const struct mic_record *record,
                       struct mic_throttle_span *out) {
  bool added;
  uint32_t at = mic_map_intern(&throttle->events, record->cpu, record->stream,
                               (uint32_t)throttle->start.count, &added);
  if (added) *mic_vec_push(&throttle->start) = 0;
  uint64_t *start_ns = &throttle->start.at[at], began = *start_ns;
  if (record->kind == MIC_RECORD_THROTTLE) {
    if (!began) *start_ns = record->time_ns;
    return false;
  }
  *start_ns = 0;
  *out = (struct mic_throttle_span){began, record->time_ns, record->cpu};
  return began && record->time_ns > began;
}

bool mic_throttle_end(struct mic_throttle *throttle, uint64_t end_ns,
                      struct mic_throttle_span *out) {
  for (uint32_t i = 0; i < throttle->events.room; i++) {
    const struct mic_map_slot *slot = &throttle->events.slots[i];
    if (slot->value == MIC_NONE) continue;
    struct mic_record record = {.kind = MIC_RECORD_UNTHROTTLE,
                                .time_ns = end_ns,
                                .cpu = (uint32_t)slot->a,
                                .stream = slot->b};
    if (mic_throttle_take(throttle, &record, out)) return true;
  }
  return false;
}

void mic_throttle_free(struct mic_throttle *throttle) {
  mic_map_free(&throttle->events);
  mic_vec_free(&throttle->start);
}
