/*
 * merge.h - read several captures as one: the segments of a folder.
 *
 * Rows of all segments stand in one capture, in memory, as if one recording had made them.  What
 * is a dictionary (strings, files, modules, locations, functions, stacks, labels...) is kept once
 * by content; what happened is appended, its times on the first segment's axis.  A process or
 * thread that goes on from one segment to the next is one row: the same id, alive at the end of one
 * and there at the start of the next, with at most a second or the same name between them.
 *
 * Times: segments of one boot are placed by CLOCK_MONOTONIC, boots by CLOCK_REALTIME.  Columns
 * named time_ns, start_ns and end_ns are points in time and are shifted; others are durations.
 * What a later segment found running has that segment's start as its own.
 *
 * Said in the merged capture: meta `segments` and `gap_ns` (time within that no segment covers);
 * problems for segments that could not be read, long gaps, several boots, several periods.
 *
 * Owns:    a merge owns all it holds until finished; what is added is copied.
 * Fails:   MIC_ENOENT without a readable segment, MIC_ELIMIT for more rows than ids can count.
 * Threads: one user at a time; the capture that comes out is immutable.
 */
#ifndef MIC_CAPTURE_MERGE_H
#define MIC_CAPTURE_MERGE_H

#include <stdint.h>

#include "base/error.h"
#include "capture/reader.h"

/* ffi:begin */
/* Open all NAME.usprof of a folder as one capture.  A segment that is gone, half-written or
 * damaged is left out, and a row of problems says so. */
int mic_capture_open_folder(const char *folder, struct mic_capture **out, struct mic_error *err);
/* ffi:end */

struct mic_merge;

struct mic_merge *mic_merge_new(void);
/* Append a capture whose time zero lies shift_ns after the merged one's; gap_ns: how long before it
 * nothing was recorded, MIC_MERGE_OTHER_BOOT when that was another boot. */
#define MIC_MERGE_OTHER_BOOT UINT64_MAX
void mic_merge_add(struct mic_merge *m, const struct mic_capture *cap, uint64_t shift_ns,
                   uint64_t gap_ns);
void mic_merge_problem(struct mic_merge *m, const char *text);
void mic_merge_meta(struct mic_merge *m, const char *key, const char *value);
/* The merged capture; frees the merge, also when it fails. */
int mic_merge_finish(struct mic_merge *m, struct mic_capture **out, struct mic_error *err);
void mic_merge_free(struct mic_merge *m); /* NULL is fine */

#endif
