/*
 * proc.h - facts of /proc: threads, names, times, namespaces.
 *
 * A pid alone names nothing, as pids are used again: (pid, start time) does.  Each read of a task
 * gives both.  Pids are those of the recorder's own namespace unless a name says otherwise.
 *
 * Owns:    vectors and structs are the caller's.
 * Fails:   MIC_EGONE when the task is not there (any more), MIC_EPERM, MIC_ESYS, MIC_EFORMAT for
 *          what the kernel would not write.
 * Threads: no state.
 */
#ifndef MIC_PROCESS_PROC_H
#define MIC_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

struct mic_pids {
  uint32_t *at; /* owned; ascending */
  size_t count, room;
};
void mic_pids_free(struct mic_pids *pids);
bool mic_pids_have(const struct mic_pids *pids, uint32_t pid);

enum { MIC_COMM_BYTES = 64 }; /* TASK_COMM_LEN is 16; kernel workers' names are longer in stat */

struct mic_task {
  uint32_t pid, tid; /* pid: the thread group */
  uint32_t ppid;
  uint64_t start_ticks; /* since boot, in units of sysconf(_SC_CLK_TCK) */
  char state;           /* R S D T t Z X I */
  uint32_t comm_size;
  char comm[MIC_COMM_BYTES]; /* the exact bytes, NUL-terminated */
};

/* One task from /proc/PID/task/TID/stat; tid 0: the main thread. */
int mic_task_read(uint32_t pid, uint32_t tid, struct mic_task *out, struct mic_error *err);
/* Where the stack of the program that a process runs began: its arguments and environment lie from
 * there on, its main thread's frames below.  0: not known, as without the right to trace it. */
uint64_t mic_process_stack_start(uint32_t pid);
/* Every thread, listed again until two lists agree (at most 100 times: then what was seen last,
 * and *stable is false).  An exited main thread (zombie) is left out when others live. */
int mic_process_threads(uint32_t pid, struct mic_pids *out, bool *stable, struct mic_error *err);
/* A thread through which the process's files can be read: the main thread, or another when that
 * one has exited.  MIC_EGONE when none is left. */
int mic_process_live_tid(uint32_t pid, uint32_t *tid, struct mic_error *err);
/* Processes whose parent is a thread of this one. */
int mic_process_children(uint32_t pid, struct mic_pids *out, struct mic_error *err);
/* All that come of it, itself not included; listed again until two lists agree.  What an exited
 * process between had made is another's child by then, and not among them. */
int mic_process_descendants(uint32_t pid, struct mic_pids *out, struct mic_error *err);
/* Whether (pid, start) is still running: false when gone, a zombie, or another by that pid. */
bool mic_process_alive(uint32_t pid, uint64_t start_ticks);
/* The thread group of a task. */
int mic_task_process(uint32_t tid, uint32_t *pid, struct mic_error *err);

enum { MIC_NSPIDS = 32 }; /* MAX_PID_NS_LEVEL of the kernel */
struct mic_process_status {
  uint32_t uid, euid, gid; /* real, effective; real */
  uint32_t threads;
  uint32_t nspids[MIC_NSPIDS]; /* outermost (as seen here) first */
  uint32_t nspid_count;        /* 1 when it is in the recorder's own namespace */
  uint64_t rss_bytes;          /* VmRSS; 0 without memory */
};
int mic_process_status(uint32_t pid, struct mic_process_status *out, struct mic_error *err);
/* The pid it has itself: the last of nspids. */
uint32_t mic_process_own_pid(const struct mic_process_status *status);

enum mic_namespace { MIC_NS_PID = 0, MIC_NS_MNT = 1, MIC_NS_USER = 2, MIC_NS_NET = 3 };
/* Whether its namespace is the recorder's: *same. */
int mic_process_same_ns(uint32_t pid, uint32_t ns, bool *same, struct mic_error *err);
/* Whether its root directory is the recorder's (same mount namespace, no chroot). */
int mic_process_same_root(uint32_t pid, bool *same, struct mic_error *err);

/* Strings of a process; *out is owned by the caller (free).  cgroup is the path in the unified
 * hierarchy, or else the first one listed; exe as readlink gives it (" (deleted)" and all);
 * command line with its NULs, *size bytes. */
int mic_process_cgroup(uint32_t pid, char **out, struct mic_error *err);
int mic_process_exe(uint32_t pid, char **out, struct mic_error *err);
int mic_process_command(uint32_t pid, char **out, size_t *size, struct mic_error *err);

/* A descriptor that becomes readable when the process has ended (pidfd_open, Linux 5.3), proven
 * to be the one that started at start_ticks (0: any). */
int mic_process_fd(uint32_t pid, uint64_t start_ticks, int *fd, struct mic_error *err);

#endif
