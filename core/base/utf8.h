/*
 * utf8.h - texts from outside: which of their bytes are characters, and which are acted on.
 *
 * Owns: nothing.  Threads: any.
 */
#ifndef MIC_BASE_UTF8_H
#define MIC_BASE_UTF8_H

#include <stdint.h>

/* ffi:begin */
/* Bytes of the UTF-8 sequence (RFC 3629) that a text begins with; 0 when that is none. */
uint32_t mic_utf8_length(const char *text, uint64_t size);
/* 1: such a sequence of `size` bytes is acted on rather than shown: a C1 control (U+0080-9F), a
 * line or paragraph separator (U+2028-9), or a mark that turns the direction of what follows
 * (U+200E-F, U+202A-E, U+2066-9). */
int mic_utf8_is_control(const char *sequence, uint64_t size);
/* The offset of the first byte that is of no sequence; size when there is none. */
uint64_t mic_utf8_find_odd(const char *text, uint64_t size);
/* ffi:end */

#endif
