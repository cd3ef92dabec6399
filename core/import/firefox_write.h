/*
 * firefox_write.h - the tables that all threads of a Firefox profile share: stacks, frames,
 * functions, sources and strings.
 *
 * They are told column by column from the capture's rows.  Held are 4 bytes a stack, 8 a frame, 4 a
 * string of the capture and 5 more for one of the profile, and 16 for each function that was found,
 * of file and module.
 *
 * Owns:    the tables own their memory; the capture is borrowed.
 * Fails:   writes keep their failure in the output.
 * Threads: one user at a time.
 */
#ifndef MIC_IMPORT_FIREFOX_WRITE_H
#define MIC_IMPORT_FIREFOX_WRITE_H

#include "capture/reader.h"
#include "import/output.h"

/* ffi:begin */
/* Categories of frames and of zones without one, by their numbers in the profile's list; those that
 * zones name come behind. */
enum mic_firefox_category {
  MIC_FIREFOX_OTHER = 0,
  MIC_FIREFOX_USER = 1,
  MIC_FIREFOX_REASON = 2, /* a stack that ends short */
  MIC_FIREFOX_CATEGORIES = 3
};

struct mic_firefox_shared;

struct mic_firefox_shared *mic_firefox_shared_new(const struct mic_capture *cap);
void mic_firefox_shared_free(struct mic_firefox_shared *tables);
/* Of each stack its row in the table of stacks, UINT32_MAX for one without frames. */
const uint32_t *mic_firefox_shared_stacks(const struct mic_firefox_shared *tables);
/* The index that a string of the capture has among the profile's. */
uint32_t mic_firefox_shared_string(struct mic_firefox_shared *tables, uint32_t id);
/* All of them, as the value of "shared"; no string can be added later. */
void mic_firefox_shared_write(struct mic_firefox_shared *tables, struct mic_output *output);
/* ffi:end */

#endif
