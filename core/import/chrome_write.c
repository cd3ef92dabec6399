/* chrome_write.c - each node's text from the capture's rows: nothing is held but their numbers. */
#include "import/chrome_write.h"

#include <string.h>

#include "base/alloc.h"
#include "import/frame_text.h"
#include "import/frames.h"

struct writing {
  const struct mic_capture *cap;
  struct mic_tables t;
  struct mic_frames frames;
  struct mic_pack out;
};

static void put(struct writing *w, const char *text) { mic_pack_put(&w->out, text, strlen(text)); }

static void put_name(struct writing *w, const struct mic_shown_frame *frame) {
  if (frame->location == MIC_NONE)
    mic_frame_text_end(&w->out, frame->end);
  else if (frame->line == MIC_NONE)
    mic_frame_text_place(&w->out, w->cap, &w->t, frame->location);
  else
    mic_frame_text_string(&w->out, w->cap, w->t.functions.name[w->t.lines.function[frame->line]]);
}

static void put_node(void *data, uint32_t node, uint32_t parent, uint32_t number) {
  struct writing *w = data;
  struct mic_shown_frame frame = mic_frames_at(&w->frames, number);
  uint32_t module = mic_frames_module(&w->frames, &frame);
  put(w, node ? ",\n\"" : "\n\"");
  mic_frame_text_number(&w->out, node);
  put(w, "\":{\"name\":\"");
  put_name(w, &frame);
  if (module != MIC_NONE) {
    put(w, "\",\"category\":\"");
    mic_frame_text_string(&w->out, w->cap, w->t.modules.name[module]);
  }
  if (parent != MIC_NONE) {
    put(w, "\",\"parent\":\"");
    mic_frame_text_number(&w->out, parent);
  }
  put(w, "\"}");
}

MIC_EXPORT uint32_t *mic_chrome_write_frames(const struct mic_capture *cap,
                                             struct mic_output *output) {
  struct writing w = {.cap = cap, .t = mic_tables_of(cap)};
  uint32_t count;
  mic_frames_of(&w.t, &w.frames);
  uint32_t *nodes = mic_frames_nodes(&w.frames, &count);
  mic_pack_start(&w.out, output);
  put(&w, "{");
  mic_frames_each_node(&w.frames, nodes, put_node, &w);
  put(&w, "}");
  mic_pack_flush(&w.out);
  mic_frames_free(&w.frames);
  return nodes;
}

MIC_EXPORT void mic_chrome_frames_free(uint32_t *frames) { free(frames); }
