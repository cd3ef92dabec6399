/*
 * output.h - a file of another format being written: compressed as it goes, whole or not at all.
 *
 * Regular files appear under their name when they are finished.  "-" and what is no regular file
 * (a pipe, a terminal) gets the bytes as they come.
 *
 * Fails:   writes keep the first failure, which finish gives; open and finish fill the error.
 * Threads: one user at a time.
 */
#ifndef MIC_IMPORT_OUTPUT_H
#define MIC_IMPORT_OUTPUT_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
enum mic_compression { MIC_PLAIN = 0, MIC_GZIP = 1, MIC_ZSTD = 2 };

struct mic_output;

int mic_output_open(const char *path, uint32_t compression, struct mic_output **out,
                    struct mic_error *err);
void mic_output_write(struct mic_output *output, const char *bytes, uint64_t size);
/* A text as JSON has it (json_text.h), without quotes. */
void mic_output_write_json(struct mic_output *output, const char *text, uint64_t size);
/* 1: a write failed, so that more of it is of no use. */
int mic_output_failed(const struct mic_output *output);
/* Flush, publish and free it, also when that fails. */
int mic_output_finish(struct mic_output *output, struct mic_error *err);
void mic_output_discard(struct mic_output *output); /* leaves no file; NULL is fine */
/* Make an empty file for the user alone; path ends in XXXXXX, which are replaced.  0, or errno.
 * A signal that ends the process removes it. */
int mic_output_scratch(char *path);
void mic_output_scratch_remove(const char *path);
/* ffi:end */

#endif
