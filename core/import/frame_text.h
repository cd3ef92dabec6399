/*
 * frame_text.h - what frames are called, as JSON has it between quotes, into what gathers bytes.
 *
 * Names go from the capture's memory to the output, whatever their size.
 *
 * Owns: nothing.  Threads: no state.
 */
#ifndef MIC_IMPORT_FRAME_TEXT_H
#define MIC_IMPORT_FRAME_TEXT_H

#include "import/pack.h"
#include "import/tables.h"

void mic_frame_text_number(struct mic_pack *to, uint64_t number);
void mic_frame_text_hex(struct mic_pack *to, const char *before, uint64_t number,
                        const char *after);
void mic_frame_text_string(struct mic_pack *to, const struct mic_capture *cap, uint32_t id);
/* A place that no function is known of. */
void mic_frame_text_place(struct mic_pack *to, const struct mic_capture *cap,
                          const struct mic_tables *t, uint32_t location);
/* Why a stack ends. */
void mic_frame_text_end(struct mic_pack *to, uint8_t end);

#endif
