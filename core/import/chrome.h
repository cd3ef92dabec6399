/*
 * chrome.h - read Chrome's Trace Event JSON: zones of threads.
 *
 * Complete events, begins with ends and asynchronous ones become zones, in any order and with a
 * bracket missing at the end; their times are kept to the nanosecond and durations as given.
 * Zones that overlap others of their thread without lying inside of them go to lanes of their own;
 * asynchronous ones, which may overlap, are never in lane 0.
 *
 * Memory: 24 bytes a zone until all are read, since any later event may come before an earlier one.
 */
#ifndef MIC_IMPORT_CHROME_H
#define MIC_IMPORT_CHROME_H

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_chrome_result {
  uint64_t events;
  uint64_t zones;
  uint64_t overlapping;    /* zones that others of their thread make stand in another lane */
  uint64_t unfinished;     /* zones whose end is not there */
  uint64_t unmatched_ends; /* ends without a begin */
  uint64_t bad_events;     /* without a time, with a negative duration and the like */
  uint64_t first_bad;      /* the number of the first, from 1 */
  const char *why;         /* what is wrong with it; static text */
  uint64_t args, instants, counters, flows, others; /* events, by what is left out of them */
  uint64_t profiles; /* parts of profiles that V8 writes into arguments ('P') */
  uint64_t samples;  /* of "samples", which have stacks */
  uint64_t
    left_samples;   /* and those that are not read: of no known frame, or the text ends early */
  uint64_t rounded; /* weights of samples that are no whole number */
  uint32_t cut;     /* 1: the text ends within an event */
};

int mic_chrome_read(struct mic_input *input, struct mic_writer *writer,
                    struct mic_chrome_result *result, struct mic_error *err);
/* ffi:end */

#endif
