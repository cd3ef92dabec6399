/*
 * record.h - one raw perf record as a neutral struct.
 *
 * Records are the kernel's bytes, or bytes that claim to be: every length is checked here, once,
 * and a record that does not hold together is one error.  A type this decoder does not know is
 * MIC_RECORD_OTHER with its size, not an error: kernels grow types.
 *
 * Owns:    nothing.  The pointers of a mic_record borrow from the bytes that were decoded.
 * Fails:   MIC_EFORMAT with the offset inside the record.
 * Threads: no state.
 */
#ifndef MIC_PERF_RECORD_H
#define MIC_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum mic_record_kind {
  MIC_RECORD_OTHER = 0,        /* a type not decoded; .type says which */
  MIC_RECORD_SAMPLE = 1,       /* ip, period, regs, stack, ips, raw: what the layout holds */
  MIC_RECORD_MMAP = 2,         /* PERF_RECORD_MMAP and MMAP2 */
  MIC_RECORD_COMM = 3,         /* a thread's name; .exec when it comes of an exec */
  MIC_RECORD_FORK = 4,         /* pid/tid made by ppid/ptid; a thread when pid == ppid */
  MIC_RECORD_EXIT = 5,         /* pid/tid ended */
  MIC_RECORD_LOST = 6,         /* .lost records of the ring never entered it before this one */
  MIC_RECORD_LOST_SAMPLES = 7, /* .lost samples dropped before the ring (hardware) */
  MIC_RECORD_THROTTLE = 8,     /* the kernel stopped the event: too many interrupts */
  MIC_RECORD_UNTHROTTLE = 9,   /* and let it run again */
  MIC_RECORD_SWITCH = 10,      /* the thread went on CPU, or off it when .out */
  MIC_RECORD_KSYMBOL = 11      /* the kernel made code (addr, len, name), or removed it when .out */
};

/* How the samples of an event are laid out: what perf_event_attr said. */
struct mic_perf_layout {
  uint64_t sample_type; /* PERF_SAMPLE_* bits; only those of mic_perf_sample_known */
  uint64_t regs_user;   /* sample_regs_user; may hold any of PERF_REG_X86_* */
  uint32_t stack_bytes; /* sample_stack_user, as asked (the kernel may give a smaller slot) */
};

/* What samples of other tools' recordings may hold beside; all 0: nothing. */
struct mic_perf_more {
  uint64_t read_format;        /* of PERF_SAMPLE_READ */
  uint64_t branch_sample_type; /* of PERF_SAMPLE_BRANCH_STACK */
  uint64_t regs_intr;          /* sample_regs_intr */
};

/* DWARF's order (System V ABI AMD64, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip.
 * The same shape as struct mic_regs of unwind/unwind.h, on a floor that cannot see it. */
enum { MIC_RECORD_REGS = 17 };
struct mic_record_regs {
  uint64_t r[MIC_RECORD_REGS];
  uint32_t known; /* bit i: r[i] was in the record */
};

struct mic_record {
  uint32_t kind; /* enum mic_record_kind */
  uint32_t type; /* PERF_RECORD_* */
  uint32_t size; /* bytes of the whole record */
  uint16_t misc; /* PERF_RECORD_MISC_* */
  /* From the sample itself or the trailer of every other record (sample_id_all). */
  uint64_t time_ns; /* CLOCK_MONOTONIC */
  uint64_t id;      /* the event: what mic_perf_id_* answers about; inherited events have the
                       id of the event they came from */
  uint32_t cpu;
  /* Whom the record is about, in the pid namespace of the recorder.  For LOST and THROTTLE
   * whoever happened to run. */
  uint32_t pid, tid;
  uint32_t ppid, ptid; /* FORK, EXIT: the parent */
  uint32_t by_tid;     /* the thread that ran when it was written: a name can be given by another */

  /* MMAP */
  uint64_t addr, len, pgoff;
  uint64_t ino, ino_generation;
  uint32_t maj, min;     /* st_dev of the inode as the mapping's file system gives it */
  uint32_t prot, flags;  /* PROT_*, MAP_*; MMAP without 2 has PROT_EXEC or PROT_READ, flags 0 */
  uint8_t build_id[20];  /* when build_id_size is not 0; then maj, min, ino are unknown (0) */
  uint8_t build_id_size; /* 0..20 */
  bool has_inode;        /* maj, min, ino, ino_generation are there */
  bool data;             /* MISC_MMAP_DATA: not executable */
  bool exec;             /* COMM: comes of an exec */
  bool out, preempted;   /* SWITCH; KSYMBOL: out */
  bool user;             /* SAMPLE: the ip is user space (MISC_CPUMODE) */
  bool stack_full;       /* SAMPLE: the copy filled the slot, more stack may follow */
  const char *name;      /* MMAP: file; COMM: thread; KSYMBOL: code.  NUL-terminated.  Else NULL */
  uint32_t name_size;    /* without the NUL */

  uint64_t lost;   /* LOST, LOST_SAMPLES */
  uint64_t stream; /* THROTTLE, UNTHROTTLE: the one event, inherited ones apart */

  /* SAMPLE */
  uint64_t ip, data_addr, data_source, period; /* data_source: PERF_MEM_*, other tools' only */
  uint64_t regs_abi; /* PERF_SAMPLE_REGS_ABI_NONE (a kernel thread), _32 or _64 */
  struct mic_record_regs regs;
  const uint8_t *stack; /* memory from the sampled rsp on; NULL when there is none */
  uint32_t stack_size;  /* valid bytes (dyn_size) */
  const uint64_t *ips;  /* CALLCHAIN, with PERF_CONTEXT_* marks; NULL without */
  uint32_t ip_count;
  const uint8_t *branches; /* BRANCH_STACK: {u64 from, to, flags} each, the last first; or NULL */
  uint32_t branch_count;
  const uint8_t *raw; /* RAW; NULL without */
  uint32_t raw_size;
  const uint8_t *reads; /* READ: what mic_perf_read_value takes apart; NULL without */
  uint32_t read_count;  /* of its events: 1, or as many as are in its group */
};

/* The sample_type bits a layout may hold: IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD
 * CALLCHAIN RAW REGS_USER STACK_USER.  A layout with others is MIC_EUNSUPPORTED. */
uint64_t mic_perf_sample_known(void);

/* Decode one record.  bytes is 8-byte aligned; size is what is there, at least the record's own
 * size (which *record gets). */
int mic_perf_decode(const struct mic_perf_layout *layout, const void *bytes, size_t size,
                    struct mic_record *record, struct mic_error *err);

/* The same for samples with any part that Linux 6.18 has: what this program never asks for is
 * checked and passed over. */
int mic_perf_decode_more(const struct mic_perf_layout *layout, const struct mic_perf_more *more,
                         const void *bytes, size_t size, struct mic_record *record,
                         struct mic_error *err);
uint64_t mic_perf_sample_all(void); /* the bits that such a layout may hold */

/* The i-th of a sample's read_count values, what its event had counted by then, and the event's id
 * (0 where read_format has no PERF_FORMAT_ID). */
uint64_t mic_perf_read_value(const struct mic_perf_more *more, const struct mic_record *record,
                             uint32_t i, uint64_t *id);

/* Only time, id and kind of a record, without the rest: what ordering needs.  False when it does
 * not hold together. */
bool mic_perf_peek(const struct mic_perf_layout *layout, const void *bytes, size_t size,
                   uint64_t *time_ns, uint64_t *id, uint32_t *type);

#endif
