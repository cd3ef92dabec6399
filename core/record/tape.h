/*
 * tape.h - a recording as it came from the kernel, to be processed again without one.
 *
 * A tape holds the records that the collector copied out, in their order, with the watermarks that
 * let them be processed, and the parts of every image that a mapping showed. Replayed through the
 * same processor, target and unwinder it gives the same capture, on any machine; benches and tests
 * run on tapes. It covers programs that were started, not those attached to.
 *
 * The file is one zstd frame of items {kind u32, 0 u32, size u64, bytes padded to 8},
 * little-endian.
 *
 * Owns:    a tape being written owns its file; replay owns what it makes.
 * Fails:   MIC_ESYS, MIC_EFORMAT with the offset in the unpacked tape.
 * Threads: one user at a time.
 */
#ifndef MIC_RECORD_TAPE_H
#define MIC_RECORD_TAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "perf/events.h"
#include "record/queue.h"
#include "target/target.h"

struct mic_tape;

/* pid: of the program, before its exec. */
int mic_tape_create(const char *path, const struct mic_perf *perf, uint32_t pid, uint64_t start_ns,
                    uint64_t period, struct mic_tape **out, struct mic_error *err);
/* The image that was opened for a mapping: its parts are kept once. fd -1: it could not be opened.
 */
void mic_tape_image(struct mic_tape *tape, const struct mic_target_map *map, int fd);
void mic_tape_vdso(struct mic_tape *tape, const void *bytes, size_t size);
/* A chunk that the processor is done with, in any order: they are written in the order taken in. Of
 * its samples' stacks only the valid bytes are kept. */
void mic_tape_chunk(struct mic_tape *tape, const struct mic_chunk *chunk);
int mic_tape_close(struct mic_tape *tape, uint64_t stop_ns, struct mic_error *err);

/* ffi:begin */
struct mic_replay_options {
  uint32_t size;        /* sizeof(struct mic_replay_options) */
  uint32_t passes;      /* 1: process the tape; N: its samples N times, for timing */
  const char *tape;     /* path */
  const char *output;   /* the capture to write; NULL: none is kept */
  uint32_t symbols;     /* enum mic_session_symbols */
  uint32_t keep_images; /* as in a recording */
};
struct mic_replay_result {
  uint64_t samples;      /* on the tape */
  uint64_t frames;       /* unwound in the first pass */
  uint64_t stack_bytes;  /* copied, all samples */
  uint64_t cold_cpu_ns;  /* the thread's CPU time for the first pass, the images' files apart */
  uint64_t warm_cpu_ns;  /* for the others together */
  uint64_t warm_samples; /* in the others together */
};
/* Process a tape again. */
int mic_tape_replay(const struct mic_replay_options *options, struct mic_replay_result *out,
                    struct mic_error *err);
/* ffi:end */

#endif
