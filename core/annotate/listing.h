/*
 * listing.h - the code of functions, instruction by instruction, with the lines it came from.
 *
 * The image must be proven to be the one that was recorded: its build ID is the recorded one; for
 * an image without build ID the file is the recorded inode with the recorded size and has not been
 * written since the recording began.  Nothing else is ever shown.
 *
 * Code is a list of ranges: an inlined function has one or more for each of its copies.  Ranges
 * are decoded one after the other from their starts; bytes that are no instruction become a row
 * of one byte each.
 *
 * Owns:    a listing owns its images; texts and frames that it hands out are borrowed from it,
 * frames until the next call for frames, the rest until it is closed. Fails:   MIC_ENOENT when
 * there is no such file, MIC_EFORMAT when it is no ELF image, MIC_ESTATE when it is not the
 * recorded one, MIC_ELIMIT for more code than a person can read. Threads: one user at a time, all
 * listings in one thread (elfutils is not thread-safe).
 */
#ifndef MIC_ANNOTATE_LISTING_H
#define MIC_ANNOTATE_LISTING_H

#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
struct mic_listing;

struct mic_listing_source {
  uint32_t size;         /* of this struct */
  uint32_t intel;        /* 1: Intel's syntax; 0: AT&T's, as objdump and perf print */
  const char *path;      /* the image; "[vdso]" is this process's own */
  const char *build_id;  /* in hex; "": it had none */
  const char *debug_dir; /* a folder with .build-id/ below; NULL: /usr/lib/debug */
  uint64_t inode;        /* the rest is the proof of an image without build ID */
  uint64_t file_size;
  uint64_t recorded_at_ns; /* CLOCK_REALTIME at the recording's start */
};

struct mic_listing_row { /* an instruction */
  uint64_t address;      /* in the image's ELF space */
  uint32_t length;       /* bytes */
  uint32_t range;        /* which range it is in: ranges are numbered by address */
  const char *text;
  const uint8_t *bytes;
};

struct mic_listing_frame { /* as mic_symbol: the innermost inlined function first */
  const char *name;
  const char *linkage_name;
  const char *file; /* NULL: not known */
  uint32_t line;    /* 0: not known */
};

int mic_listing_open(const struct mic_listing_source *source, struct mic_listing **out,
                     struct mic_error *err);
void mic_listing_close(struct mic_listing *listing); /* NULL is fine */
/* Adds the function of that linkage name which runs at an address, with all its ranges there; once
 * for each copy of an inlined function.  MIC_ENOENT when another function, or code without proven
 * extent, is there. */
int mic_listing_add(struct mic_listing *listing, uint64_t address, const char *linkage_name,
                    struct mic_error *err);
/* Decodes what was added.  Rows are in order of address, each instruction once. */
int mic_listing_decode(struct mic_listing *listing, struct mic_error *err);
uint64_t mic_listing_rows(const struct mic_listing *listing);
int mic_listing_row(const struct mic_listing *listing, uint64_t index, struct mic_listing_row *out);
/* The functions at a row's address: how many, the first `room` of them in out[0..]. */
uint32_t mic_listing_frames(struct mic_listing *listing, uint64_t index,
                            struct mic_listing_frame *out, uint32_t room);
/* The path that the code was read from, and when that file was last written (CLOCK_REALTIME). */
const char *mic_listing_path(const struct mic_listing *listing);
uint64_t mic_listing_written_ns(const struct mic_listing *listing);
/* Why names or lines are missing, or NULL. */
const char *mic_listing_problem(const struct mic_listing *listing);
/* ffi:end */

#endif
