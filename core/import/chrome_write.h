/*
 * chrome_write.h - the stack frames of a Chrome trace.
 *
 * A frame of the format is a node of the tree of stacks, with its parent.
 *
 * Fails:   writes keep their failure in the output.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_CHROME_WRITE_H
#define MIC_IMPORT_CHROME_WRITE_H

#include "capture/reader.h"
#include "import/output.h"

/* ffi:begin */
/* All frames, as the value of "stackFrames".  Gives of each stack its frame's id, UINT32_MAX for
 * one without frames; the caller frees it by the other. */
uint32_t *mic_chrome_write_frames(const struct mic_capture *cap, struct mic_output *output);
void mic_chrome_frames_free(uint32_t *frames);
/* ffi:end */

#endif
