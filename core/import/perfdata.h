/*
 * perfdata.h - read perf.data: what `perf record` writes, as a file or to a pipe.
 *
 * Records go, in order of time, to the tracker that recordings use (target.h), so processes,
 * mappings and stacks are what a recording of ours would have made of them: chains that the kernel
 * walked by frame pointers, or registers and copies of stacks (--call-graph dwarf), unwound here.
 * A file on this machine stands for a mapped one only when it has the build ID that the perf.data
 * gives for it, wherever it lies.
 *
 * What is damaged is counted and told with its number; a file that ends early gives what is there.
 *
 * Fails:   MIC_EFORMAT with the offset, MIC_EUNSUPPORTED for what is not read (other machines,
 *          hardware traces), by name.
 * Threads: one user at a time.
 */
#ifndef MIC_IMPORT_PERFDATA_H
#define MIC_IMPORT_PERFDATA_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
enum { MIC_PERFDATA_NAME_SIZE = 96 };
struct mic_perfdata_result {
  uint64_t records; /* of the kernel's and of perf's, decompressed ones too */
  uint64_t samples;
  uint64_t bad_records; /* that do not hold together, or are of no event */
  uint64_t first_bad;   /* the number of the first in its file, from 1 */
  uint64_t first_bad_offset;
  uint64_t cut_record; /* where reading ended early: its number and offset; 0: it did not */
  uint64_t cut_offset;
  char first_bad_file[MIC_PERFDATA_NAME_SIZE]; /* in its folder, "": the perf.data itself */
  char cut_file[MIC_PERFDATA_NAME_SIZE];
  uint64_t missing_files; /* of a folder's data.0 and on, up to the last that is there */
  uint64_t first_missing; /* the number of the first */
  uint64_t left_files;    /* of a folder, that are no regular files */
  char left_file[MIC_PERFDATA_NAME_SIZE]; /* the first of them */
  const char *cut;                        /* why; static text */
  /* What samples and records hold that a capture has no place for. */
  uint64_t fields;   /* samples with a tracepoint's fields */
  uint64_t branches; /* samples with branch stacks */
  uint64_t calls;    /* samples of --call-graph lbr that have no branches */
  uint64_t deferred; /* samples whose user stack came in a later record */
  uint64_t reads;    /* counts that samples hold, of events that the file does not tell */
  uint64_t extras;   /* samples with weights, data sources, addresses and the like */
  uint64_t others;   /* records of other kinds: context switches, cgroups, BPF programs */
  uint64_t guests;   /* samples of virtual machines, whose stacks are left out */
};

/* Images are looked for at the paths that were mapped, then in the folders (a NULL-terminated list,
 * or NULL), as root file systems and by build ID, then in perf's own cache. */
int mic_perfdata_read(struct mic_input *input, struct mic_writer *writer,
                      const char *const *folders, struct mic_perfdata_result *result,
                      struct mic_error *err);
/* ffi:end */

/* As mic_perfdata_read over bytes.  No file on this machine is opened unless files is 1. */
int mic_perfdata_read_memory(const void *bytes, uint64_t size, int files, struct mic_writer *writer,
                             struct mic_perfdata_result *result, struct mic_error *err);

#endif
