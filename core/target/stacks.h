/*
 * stacks.h - intern frames as locations and stacks as nodes of a tree.
 *
 * A stack is its innermost frame's node; a node's parent is its caller, and the root says why the
 * stack ends.  Rows go to the writer as they are first seen.
 *
 * Threads: one user at a time.
 */
#ifndef MIC_TARGET_STACKS_H
#define MIC_TARGET_STACKS_H

#include "base/alloc.h"
#include "base/index.h"
#include "capture/writer.h"
#include "unwind/unwind.h"

/* The frames of a thread's last sample, outermost first, with their nodes: what a next sample
 * shares with it is not looked up again.  Zero-initialised is empty. */
struct mic_stack_memory {
  struct mic_stack_step {
    uint64_t offset;
    uint32_t module;
    uint8_t kind, evidence;
    uint16_t zero; /* as in a mic_frame: compared as bytes up to here */
    uint32_t node;
    uint64_t hash; /* of the frames up to it */
  } * steps;
  uint32_t count, room;
  uint32_t root; /* the node of the root they hang from, +1; 0 with none */
};

/* What a location and a node are found by: nodes of roots have no parent, and their end as
 * location. */
struct mic_stack_place {
  uint64_t what; /* module, kind, evidence */
  uint64_t offset;
};
struct mic_stack_node {
  uint32_t parent, location;
};

/* A frame that was found below a node before: saves two look-ups. */
struct mic_stack_link {
  uint64_t offset;
  uint32_t parent, module;
  uint32_t child; /* node + 1; 0: empty */
  uint8_t kind, evidence;
};

struct mic_stacks {
  struct mic_writer *writer;    /* borrowed */
  struct mic_stack_link *links; /* by hash of the frames up to it; made at the first stack */
  MIC_VEC(struct mic_stack_place) places;
  MIC_VEC(struct mic_stack_node) nodes;
  struct mic_index location_of, node_of;
  uint32_t roots[MIC_END_COUNT]; /* node + 1 */
  /* Called for each new location, to have it named. */
  void (*on_location)(void *data, uint32_t location, const struct mic_frame *frame);
  void *data;
};

void mic_stacks_free(struct mic_stacks *stacks);
/* The node of a stack of frames, innermost first, that ends for a reason. */
uint32_t mic_stacks_intern(struct mic_stacks *stacks, struct mic_stack_memory *memory,
                           const struct mic_frame *frames, size_t count, enum mic_end end);
size_t mic_stacks_memory(const struct mic_stacks *stacks); /* bytes */
void mic_stack_memory_free(struct mic_stack_memory *memory);

#endif
