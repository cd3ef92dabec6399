/*
 * tracker.h - the inside of a target, shared by its files.
 *
 * target.c follows processes and threads, chain.c makes frames of addresses, loaded.c follows what
 * the kernel has loaded, adopt.c reads /proc, write.c makes the rows.
 */
#ifndef MIC_TARGET_TRACKER_H
#define MIC_TARGET_TRACKER_H

#include "base/map.h"
#include "target/image.h"
#include "target/names.h"
#include "target/space.h"
#include "target/stacks.h"
#include "target/target.h"

struct mic_process {
  uint32_t id, pid, ns_pid;
  uint32_t parent;           /* id or MIC_NONE */
  uint32_t name, cgroup;     /* the writer's strings */
  struct mic_thread *live;   /* its threads that have not ended */
  uint64_t exec_ns;          /* of an exec whose program is not known yet; 0: none */
  uint64_t start_ns, end_ns; /* relative; end UINT64_MAX while it lives */
  struct mic_code_space maps;
  struct mic_image *made; /* names of its anonymous code; NULL: none are known */
  bool made_asked;
  bool began;          /* its program began while it was watched */
  uint64_t program_ns; /* then: when, relative */
};

struct mic_thread {
  uint32_t id, tid, process;
  uint32_t name;
  uint64_t start_ns, end_ns;
  struct mic_thread *next, **link; /* among its process's live ones; what points to it */
  struct mic_stack_memory memory;
};

/* A read of a process's maps that waits for the records stamped before it. */
struct mic_pending_read {
  uint64_t time_ns;
  uint32_t process;
  MIC_VEC(struct mic_target_map) maps; /* paths owned */
};

struct mic_target {
  struct mic_target_options options;
  struct mic_writer *writer;
  struct mic_images images;
  struct mic_stacks stacks;
  struct mic_names *names;
  struct mic_unwinder *unwinder;
  MIC_VEC(struct mic_process *) processes; /* by id */
  MIC_VEC(struct mic_thread *) threads;    /* by id */
  struct mic_id_map by_pid, by_tid;        /* of those that live */
  MIC_VEC(struct mic_pending_read) reads;
  struct mic_map problems; /* text -> index */
  MIC_VEC(struct mic_problems_row) problem_rows;
  uint64_t generation; /* the newest of any process's maps */
  bool lost;           /* records other than samples were lost */
  uint64_t samples, frames, stack_bytes;
  mic_mappings ended; /* scratch */
  struct mic_code_space kernel_maps;
  struct mic_map loaded;           /* (name, size) of functions that the kernel made -> image */
  MIC_VEC(struct mic_frame) chain; /* scratch */
};

uint64_t mic_target_relative(const struct mic_target *target, uint64_t time_ns);
struct mic_process *mic_target_process(struct mic_target *target, uint64_t time_ns, uint32_t pid);
struct mic_thread *mic_target_thread(struct mic_target *target, uint64_t time_ns, uint32_t pid,
                                     uint32_t tid);
void mic_target_rename(struct mic_target *target, struct mic_thread *thread, uint64_t time_ns,
                       const char *name);
/* Put a mapping into a process under its proven image. */
void mic_target_map_into(struct mic_target *target, struct mic_process *process,
                         const struct mic_target_map *map);
/* The frames of a chain: those inside the kernel, then *frames as unwound from registers and copy,
 * which ended for a reason, or the chain's own. Gives why the stack ends. */
enum mic_end mic_target_chain_frames(struct mic_target *target, struct mic_process *process,
                                     const struct mic_target_chain *chain, enum mic_end end,
                                     const struct mic_frame **frames, size_t *count);
/* Write the rows of mappings that ended. */
void mic_target_write_mappings(struct mic_target *target, const struct mic_process *process,
                               const mic_mappings *mappings, uint64_t end_ns);
/* All that a process has mapped. */
void mic_target_write_space(struct mic_target *target, const struct mic_process *process,
                            uint64_t end_ns);
void mic_target_write_exec(struct mic_target *target, const struct mic_process *process,
                           uint64_t time_ns, const char *path);
/* Read the executable mappings of a live process now, to be used when its time has come. */
void mic_target_read_later(struct mic_target *target, struct mic_process *process);
void mic_pending_read_free(struct mic_pending_read *read);

#endif
