/*
 * names.h - the words for enum values and stack ends, and what some of them have in common.
 *
 * Everything returned is static.  NULL: no such enum or value (a capture of a newer minor
 * version may hold values that this version has no words for).
 */
#ifndef MIC_CAPTURE_NAMES_H
#define MIC_CAPTURE_NAMES_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
/* The name of a value: ("mic_loss", 1) is "records". */
const char *mic_enum_name(const char *name, uint32_t value);
/* Why a stack ends, as reports print it in brackets, and what helps ("": nothing does). */
const char *mic_end_text(uint32_t end);
const char *mic_end_advice(uint32_t end);
/* 1 when stacks with this end are whole: nothing called their outermost frame. */
int32_t mic_end_is_whole(uint32_t end);
/* 1 when nothing is said of the end where a stack begins: it is whole, or not stated. */
int32_t mic_end_is_silent(uint32_t end);
/* 1 when locations of this kind are code of a module, whatever their offsets count from. */
int32_t mic_location_in_module(uint32_t kind);
/* ffi:end */

#endif
