/*
 * firefox_write.h - the tables that all threads of a Firefox profile share: stacks, frames,
 * functions, sources and strings.
 *
 * They are told column by column from the capture's rows.  Held are 4 bytes a stack, 8 a frame, 5 a
 * string or unnamed place, and 16 for each function that was found, of file and module.
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
struct mic_firefox_tables;

struct mic_firefox_tables *mic_firefox_tables_new(const struct mic_capture *cap);
void mic_firefox_tables_free(struct mic_firefox_tables *tables);
/* Of each stack its row in the table of stacks, UINT32_MAX for one without frames. */
const uint32_t *mic_firefox_tables_stacks(const struct mic_firefox_tables *tables);
/* The index that a string of the capture has among the profile's. */
uint32_t mic_firefox_tables_string(struct mic_firefox_tables *tables, uint32_t id);
/* All of them, as the value of "shared"; no string can be added later. */
void mic_firefox_tables_write(struct mic_firefox_tables *tables, struct mic_output *output);
/* ffi:end */

#endif
