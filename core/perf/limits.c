/* limits.c - keep the limits true. */
#include "perf/limits.h"

#include <string.h>

void mic_limits_settle(struct mic_limits *limits) {
  for (size_t i = 0; i < MIC_LIMITS; i++)
    if (limits->at[i].state == MIC_LIMIT_FRESH) limits->at[i].state = MIC_LIMIT_KNOWN;
}

void mic_limits_forget(struct mic_limits *limits, uint32_t pid) {
  struct mic_limit *place = mic_limits_place(limits, pid);
  if (place->pid == pid) *place = (struct mic_limit){.pid = pid};
}

void mic_limits_forget_all(struct mic_limits *limits) { memset(limits, 0, sizeof *limits); }

void mic_limits_look_up(struct mic_limits *limits, uint64_t (*find)(uint32_t pid)) {
  if (!limits->wanted) return;
  limits->wanted = false;
  for (size_t i = 0; i < MIC_LIMITS; i++) {
    struct mic_limit *place = &limits->at[i];
    if (place->state != MIC_LIMIT_WANTED) continue;
    place->end = find(place->pid);
    place->state = place->end ? MIC_LIMIT_FRESH : MIC_LIMIT_NONE;
  }
}
