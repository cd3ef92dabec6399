/*
 * input.h - a file of another format being read: decompressed as it goes.
 *
 * gzip (also several members one after the other) and zstd are known by their first bytes.  A
 * pipe, or "-" for standard input, is first copied to a file without a name, so that every input
 * can be read twice.
 *
 * Such a file, and the one of mic_input_file, takes at most half of what is free in $TMPDIR: what
 * is larger fails with MIC_ELIMIT.
 *
 * Nothing here holds more than its buffers, however much a small file decompresses to.
 *
 * Fails:   MIC_EFORMAT with the offset in the compressed file for a damaged stream.
 * Threads: one user at a time.
 */
#ifndef MIC_IMPORT_INPUT_H
#define MIC_IMPORT_INPUT_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
struct mic_input;

int mic_input_open(const char *path, struct mic_input **out, struct mic_error *err);
/* The next bytes, as many as there are up to size: *got gets how many, 0 at the end. */
int mic_input_read(struct mic_input *input, void *bytes, uint64_t size, uint64_t *got,
                   struct mic_error *err);
/* Back to the first byte. */
int mic_input_rewind(struct mic_input *input, struct mic_error *err);
uint64_t mic_input_offset(const struct mic_input *input); /* decompressed bytes read so far */
uint64_t mic_input_size(const struct mic_input *input);   /* of the file as it lies there */
/* enum mic_compression (output.h) */
uint32_t mic_input_compression(const struct mic_input *input);
/* The input's own descriptor of what lies there, compressed as it came, when that was a pipe or
 * standard input; -1 for a file with a path. */
int32_t mic_input_kept(const struct mic_input *input);
/* Make a compressed input one of its decompressed bytes, at their first: they are kept. */
int mic_input_unpack(struct mic_input *input, struct mic_error *err);
void mic_input_close(struct mic_input *input); /* NULL is fine */
/* ffi:end */

/* A regular file with the decompressed bytes, for what is read here and there: the input's own, or
 * one without a name.  *fd is the caller's.  Not for inputs from memory. */
int mic_input_file(struct mic_input *input, int *fd, struct mic_error *err);
/* Bytes in memory as an input; they are borrowed until it is closed. */
int mic_input_memory(const void *bytes, uint64_t size, struct mic_input **out,
                     struct mic_error *err);
/* The path as it was given, for messages; "input" for memory. */
const char *mic_input_name(const struct mic_input *input);

#endif
