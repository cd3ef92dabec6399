/*
 * frames.h - a capture's stacks as trees of single frames, for formats that know no inlining.
 *
 * A location has a frame for each function that runs there, inlined ones too, the outermost first,
 * and one where no function is known.  A stack that ends short has its reason as outermost frame;
 * these have the numbers after all others.  Frames and nodes are told in order; 4 bytes a location
 * are held, and 4 a stack of their nodes.
 *
 * Owns: its arrays; the tables are borrowed.
 */
#ifndef MIC_IMPORT_FRAMES_H
#define MIC_IMPORT_FRAMES_H

#include "import/tables.h"

struct mic_shown_frame {
  uint32_t number;
  uint32_t location; /* MIC_NONE: the end of stacks */
  uint32_t line;     /* row of lines; MIC_NONE: no function is known */
  uint8_t end;       /* where it is one */
};

struct mic_frames {
  const struct mic_tables *t;
  uint32_t *first;          /* of each location the number of its first frame; and one past all */
  uint32_t count;           /* of locations; those of ends follow */
  uint32_t ends;            /* how many */
  uint8_t end[256];         /* in order */
  uint32_t end_number[256]; /* by the end: its place among them; MIC_NONE: reports say nothing */
};

typedef void mic_frames_told(void *data, const struct mic_shown_frame *frame);
/* A node of the tree; parent MIC_NONE: an outermost frame's. */
typedef void mic_frames_node(void *data, uint32_t node, uint32_t parent, uint32_t number);

void mic_frames_of(const struct mic_tables *t, struct mic_frames *out);
void mic_frames_free(struct mic_frames *frames);
/* A frame by its number, which there must be. */
struct mic_shown_frame mic_frames_at(const struct mic_frames *frames, uint32_t number);
/* The module of a frame's function, which is its location's where none is known; MIC_NONE: none. */
uint32_t mic_frames_module(const struct mic_frames *frames, const struct mic_shown_frame *frame);
void mic_frames_each(const struct mic_frames *frames, mic_frames_told *told, void *data);

/* The node of each stack, MIC_NONE for one without frames, and how many nodes there are.  The
 * caller frees it. */
uint32_t *mic_frames_nodes(const struct mic_frames *frames, uint32_t *count);
/* Tells all nodes in order, parents before their children. */
void mic_frames_each_node(const struct mic_frames *frames, const uint32_t *nodes,
                          mic_frames_node *told, void *data);

#endif
