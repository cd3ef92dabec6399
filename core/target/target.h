/*
 * target.h - what is known of the recorded processes over time.
 *
 * Takes neutral events in order of time (forks, execs, mappings, names, exits, samples), follows
 * processes, threads and mappings, proves the image behind each mapping, unwinds samples, interns
 * their stacks and has their locations named; and writes all of it as rows of a capture. Recording,
 * tapes and other sources of events all feed this one tracker.
 *
 * Times are CLOCK_MONOTONIC nanoseconds; rows hold them relative to the options' start_ns.
 *
 * Owns:    the target owns its images (one descriptor and one mapping each) and its naming thread;
 *          it borrows the writer and appends to it from the calling thread only.
 * Threads: one user at a time.
 */
#ifndef MIC_TARGET_TARGET_H
#define MIC_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "unwind/unwind.h"

struct mic_target;

/* An executable mapping, as the kernel reports it. */
struct mic_target_map {
  uint64_t time_ns;
  uint32_t pid, tid;
  uint64_t address, size, file_offset;
  uint32_t maj, min;   /* device; both 0 for anonymous memory */
  uint64_t inode;      /* 0 for anonymous memory */
  uint64_t generation; /* of the inode; 0: not known */
  const char *path;    /* "//anon", "[vdso]", a path; borrowed for the call */
  /* The build ID that others say the file has; it is shown where the file cannot be opened. NULL:
   * none is known. */
  const uint8_t *build_id;
  uint32_t build_id_size;
  /* inode is a number that the caller gives each file that it can tell apart, as where records
   * have no inodes; it is not shown. */
  bool made_inode;
};

/* The file that a running process has mapped, proven to be it: a descriptor, or -1 with *problem
 * (static text) set. */
int mic_target_open_mapped(const struct mic_target_map *map, const char **problem);

struct mic_target_stack;
struct mic_made_code;

struct mic_made_process { /* whose code is asked for */
  uint32_t pid;
  bool began;        /* the program that it runs now began while it was watched */
  uint64_t start_ns; /* then: since time zero */
};

struct mic_target_options {
  struct mic_writer *writer; /* borrowed */
  uint64_t start_ns;         /* the recording's time zero */
  /* Opens the image mapped somewhere, as mic_target_open_mapped does, which NULL stands for. A tape
   * gives its own, "[vdso]" too: without a hook the vDSO is the recorder's own. */
  int (*open_image)(void *data, const struct mic_target_map *map, const char **problem);
  void *open_data;
  bool names_later; /* locations stay unnamed: no symbols and no debug information are read */
  bool keep_images; /* the parts of images that naming and unwinding need go into the capture */
  /* Shown each sample as it was unwound, borrowed for the call: for judges. NULL: no one looks. */
  void (*on_stack)(void *data, const struct mic_target_stack *stack);
  void *stack_data;
  bool elsewhere; /* the processes do not run here: /proc says nothing of them */
  /* Names of the code that a process made in anonymous memory (made.h), which the target then owns,
   * or NULL: it stays without.  Asked once a process, when a sample is in such memory; *path, of
   * what they are from, is copied.  NULL: no one knows. */
  struct mic_made_code *(*open_made)(void *data, const struct mic_made_process *process,
                                     char **path);
  void *made_data;
};

struct mic_target *mic_target_new(const struct mic_target_options *options);
/* Stops the naming thread and frees all; what was not finished is not written. NULL is fine. */
void mic_target_free(struct mic_target *target);

/* A process that ran before the recording: reads its threads, names and mappings from /proc now.
 * Fails with MIC_EGONE when there is no such process. */
int mic_target_adopt(struct mic_target *target, uint32_t pid, struct mic_error *err);

/* A process that is about to call exec: what it has mapped until then is the recorder's. */
void mic_target_launch(struct mic_target *target, uint32_t pid);
/* Sets time zero anew, before the first event: adopting took time that is not the recording's. */
void mic_target_start(struct mic_target *target, uint64_t start_ns);

void mic_target_fork(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid,
                     uint32_t parent_pid, uint32_t parent_tid);
void mic_target_name(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid,
                     const char *name, bool exec);
void mic_target_exit(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid);

void mic_target_map(struct mic_target *target, const struct mic_target_map *map);
/* The mapping will be given in its turn: open its image now, before file and process are gone. */
void mic_target_foresee(struct mic_target *target, const struct mic_target_map *map);

/* Records were lost: read the maps of every live process now.  What was read waits until
 * mic_target_time says that every record stamped before the read has been given. */
void mic_target_lost(struct mic_target *target);
/* Every event stamped up to time_ns has been given. */
void mic_target_time(struct mic_target *target, uint64_t time_ns);

/* Code of the kernel (MIC_MODULE_KERNEL), or of a module it loaded (MIC_MODULE_LOADED), for samples
 * that tell where they were in it. names (kernel.h) are borrowed until the target is freed; NULL:
 * its addresses stay without, for the reason given. */
struct mic_kernel_names;
void mic_target_kernel(struct mic_target *target, uint8_t kind, const struct mic_target_map *map,
                       struct mic_kernel_names *names, const char *problem);
/* Code of the kernel that is one function, which the map's path names, as a BPF program. */
void mic_target_loaded(struct mic_target *target, const struct mic_target_map *map);
/* No longer there. */
void mic_target_unloaded(struct mic_target *target, const struct mic_target_map *map);

/* A stack as the kernel walked it: addresses, innermost first. */
struct mic_target_chain {
  const uint64_t *kernel; /* inside the kernel */
  const uint64_t *user;
  uint32_t kernel_count, user_count;
  bool unwind; /* the user's part is unwound from registers and copy instead */
  /* The user's callers are places of calls, each one above where it is, as return addresses are,
   * from the processor's own record. */
  bool processor;
  enum mic_end end; /* of the user's part that is given, when its code does not tell */
};

struct mic_target_sample {
  uint64_t time_ns;
  uint32_t pid, tid;
  uint16_t cpu;
  uint8_t source; /* the row of the sources table */
  uint64_t weight;
  enum mic_end fault; /* NO_REGISTERS, COMPAT_CODE: why it cannot be unwound at all; else NONE */
  struct mic_regs regs;
  struct mic_stack_copy stack;
  const struct mic_target_chain *chain; /* NULL: all is unwound */
};
void mic_target_sample(struct mic_target *target, const struct mic_target_sample *sample);
struct mic_target_stack {
  const struct mic_target_sample *sample;
  const struct mic_space *space; /* NULL with a fault */
  const struct mic_frame *frames;
  size_t count;
  enum mic_end end;
};
/* How much of the last sample's stack copy was needed (mic_unwinder_reach). */
size_t mic_target_reach(const struct mic_target *target);

/* Counted, and a row of `problems` in the end. */
void mic_target_problem(struct mic_target *target, const char *text, uint64_t count);

/* Write every table that has not been written as it came: processes, threads, names, modules,
 * mappings, locations, functions, lines, problems.  Waits for the naming thread. */
void mic_target_finish(struct mic_target *target);

struct mic_target_counts {
  uint64_t frames, stack_bytes; /* unwound, copied: all samples */
  uint64_t samples, stacks, locations, processes, threads, modules;
  uint64_t memory_bytes; /* held by the tracker: stacks, locations, tables of images */
};
void mic_target_count(const struct mic_target *target, struct mic_target_counts *out);

#endif
