/* stacks.c - the prefix tree of stacks. */
#include "target/stacks.h"

#include <string.h>

static uint32_t hash_location(const void *data, uint32_t id) {
  const struct mic_stacks *stacks = data;
  return mic_index_mix(stacks->places.at[id].what, stacks->places.at[id].offset);
}

static uint32_t hash_node(const void *data, uint32_t id) {
  const struct mic_stacks *stacks = data;
  return mic_index_mix(stacks->nodes.at[id].parent, stacks->nodes.at[id].location);
}

static uint32_t intern_location(struct mic_stacks *stacks, const struct mic_frame *frame) {
  uint64_t what = (uint64_t)frame->module << 16 | (uint64_t)frame->kind << 8 | frame->evidence, at;
  uint32_t hash = mic_index_mix(what, frame->offset), id;
  for (id = mic_index_first(&stacks->location_of, hash, &at); id != MIC_NONE;
       id = mic_index_next(&stacks->location_of, hash, &at))
    if (stacks->places.at[id].what == what && stacks->places.at[id].offset == frame->offset)
      return id;
  id = (uint32_t)stacks->places.count;
  *mic_vec_push(&stacks->places) = (struct mic_stack_place){what, frame->offset};
  mic_index_add(&stacks->location_of, hash, hash_location, stacks);
  struct mic_locations_row row = {
    .kind = frame->kind,
    .evidence = frame->evidence,
    .module = frame->module,
    .offset = frame->offset,
  };
  mic_writer_locations(stacks->writer, &row);
  if (stacks->on_location) stacks->on_location(stacks->data, id, frame);
  return id;
}

static uint32_t add_node(struct mic_stacks *stacks, uint32_t parent, uint32_t location,
                         enum mic_end end) {
  struct mic_stacks_row row = {.parent = parent, .location = location, .end = (uint8_t)end};
  uint32_t key = parent == MIC_NONE ? end : location, id = (uint32_t)stacks->nodes.count;
  mic_writer_stacks(stacks->writer, &row);
  *mic_vec_push(&stacks->nodes) = (struct mic_stack_node){parent, key};
  mic_index_add(&stacks->node_of, mic_index_mix(parent, key), hash_node, stacks);
  return id;
}

static uint32_t root_node(struct mic_stacks *stacks, enum mic_end end) {
  if (!stacks->roots[end]) stacks->roots[end] = add_node(stacks, MIC_NONE, MIC_NONE, end) + 1;
  return stacks->roots[end] - 1;
}

/* 8,192 entries of 24 bytes stay in a core's second-level cache beside the unwinder's. */
enum { LINK_BITS = 13 };

static __attribute__((noinline)) uint32_t find_child(struct mic_stacks *stacks, uint32_t parent,
                                                     const struct mic_frame *frame) {
  uint32_t location = intern_location(stacks, frame), hash = mic_index_mix(parent, location);
  uint64_t at;
  for (uint32_t id = mic_index_first(&stacks->node_of, hash, &at); id != MIC_NONE;
       id = mic_index_next(&stacks->node_of, hash, &at))
    if (stacks->nodes.at[id].parent == parent && stacks->nodes.at[id].location == location)
      return id;
  return add_node(stacks, parent, location, MIC_END_NONE);
}

/* The place of a link is known before the parent's is read: the processor can look them up at once,
 * not one after the other.  Odd constants; the product's top bits depend on all of both. */
static inline uint64_t next_hash(uint64_t hash, const struct mic_frame *frame) {
  hash = (hash ^ frame->offset ^ frame->module * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
  return hash ^ hash >> 29;
}

static inline uint32_t child_node(struct mic_stacks *stacks, uint32_t parent, uint64_t hash,
                                  const struct mic_frame *frame) {
  struct mic_stack_link *link = &stacks->links[hash >> (64 - LINK_BITS)];
  if (link->child && link->parent == parent && link->offset == frame->offset &&
      link->module == frame->module && link->kind == frame->kind &&
      link->evidence == frame->evidence)
    return link->child - 1;
  uint32_t child = find_child(stacks, parent, frame);
  *link = (struct mic_stack_link){frame->offset, parent,      frame->module,
                                  child + 1,     frame->kind, frame->evidence};
  return child;
}

enum { FRAME_BYTES = 16 }; /* offset, module, kind, evidence, zero */
_Static_assert(sizeof(struct mic_frame) == offsetof(struct mic_frame, offset) + FRAME_BYTES &&
                 offsetof(struct mic_stack_step, node) == FRAME_BYTES,
               "one layout of what is compared");

static inline bool same_frame(const struct mic_stack_step *step, const struct mic_frame *frame) {
  return memcmp(&step->offset, &frame->offset, FRAME_BYTES) == 0;
}

uint32_t mic_stacks_intern(struct mic_stacks *stacks, struct mic_stack_memory *memory,
                           const struct mic_frame *frames, size_t count, enum mic_end end) {
  uint32_t root = root_node(stacks, end), shared = 0;
  bool keeps = memory->root != 0; /* many threads have one stack only */
  if (!stacks->links) stacks->links = mic_alloc(sizeof *stacks->links << LINK_BITS);
  if (keeps && count > memory->room) {
    memory->room = (uint32_t)(count + count / 4); /* most threads' stacks grow a little */
    memory->steps = mic_realloc(memory->steps, memory->room * sizeof *memory->steps);
  }
  if (memory->root == root + 1)
    while (shared < memory->count && shared < count &&
           same_frame(&memory->steps[shared], &frames[count - 1 - shared]))
      shared++;
  uint32_t node = shared ? memory->steps[shared - 1].node : root;
  uint64_t hash = shared ? memory->steps[shared - 1].hash : root;
  for (size_t i = shared; i < count; i++) {
    const struct mic_frame *frame = &frames[count - 1 - i];
    hash = next_hash(hash, frame);
    node = child_node(stacks, node, hash, frame);
    if (keeps)
      memory->steps[i] = (struct mic_stack_step){
        frame->offset, frame->module, frame->kind, frame->evidence, 0, node, hash};
  }
  memory->count = keeps ? (uint32_t)count : 0;
  memory->root = root + 1;
  return node;
}

void mic_stack_memory_free(struct mic_stack_memory *memory) {
  free(memory->steps);
  memset(memory, 0, sizeof *memory);
}

size_t mic_stacks_memory(const struct mic_stacks *stacks) {
  return stacks->places.room * sizeof *stacks->places.at +
         stacks->nodes.room * sizeof *stacks->nodes.at +
         (stacks->location_of.room + stacks->node_of.room) * sizeof(uint32_t);
}

void mic_stacks_free(struct mic_stacks *stacks) {
  mic_index_free(&stacks->location_of);
  mic_index_free(&stacks->node_of);
  mic_vec_free(&stacks->places);
  mic_vec_free(&stacks->nodes);
  free(stacks->links);
  stacks->links = NULL;
}
