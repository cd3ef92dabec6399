/* replay.h - replay of a tape with a judge that sees each stack; see tape.h. */
#ifndef MIC_RECORD_REPLAY_H
#define MIC_RECORD_REPLAY_H

#include "record/tape.h"

struct mic_replay_judge {
  void (*on_stack)(void *data, const struct mic_target_stack *stack);
  void *data;
};

/* As mic_tape_replay. */
int mic_tape_judge(const struct mic_replay_options *options, const struct mic_replay_judge *judge,
                   struct mic_replay_result *out, struct mic_error *err);

#endif
