/*
 * parts.h - the ranges of an ELF file that unwinding and symbol names need.
 *
 * Headers, notes, symbols and their strings, call-frame information and, when asked, code; not
 * data and not DWARF's own sections. Without section headers every loaded segment. A file that
 * holds these ranges at their offsets and zeros elsewhere unwinds and names as the whole one does.
 *
 * Fails:   MIC_EFORMAT for what is no x86-64 ELF image, MIC_ESYS.
 */
#ifndef MIC_IMAGE_PARTS_H
#define MIC_IMAGE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

struct mic_part {
  uint64_t offset, size;
};
typedef MIC_VEC(struct mic_part) mic_parts;

/* The parts of the file behind fd (borrowed), in order, not overlapping; freed by the caller.
 * Without code only stubs of the procedure linkage table are taken of it. */
int mic_image_parts(int fd, bool code, mic_parts *out, struct mic_error *err);
/* In a file made of parts at their offsets and zeros elsewhere: sections that are not whole in
 * the parts become ones without bytes, so that nothing reads zeros for what they held.  fd can be
 * written; the parts are in order.  What cannot be read as sections is left as it is. */
void mic_image_blank(int fd, const mic_parts *parts);

#endif
