/*
 * unwind.h - from registers and a copy of the stack to frames, each step proven.
 *
 * A table (table.h) is compiled from an image's call-frame information, an FDE at a time as
 * frames need it.  One step loop runs over a reader of the thread's state: here the registers and
 * the copied bytes of a sample.  A stack ends at its proven outermost frame or with the one
 * reason of enum mic_end that says why not.
 *
 * Owns:    a space's answers are borrowed for the call.
 * Threads: a table and an unwinder have one user at a time.
 */
#ifndef MIC_UNWIND_UNWIND_H
#define MIC_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/schema.h"
#include "unwind/table.h"

/* DWARF's numbers (System V ABI, AMD64, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip.
 */
enum {
  MIC_REG_RAX,
  MIC_REG_RDX,
  MIC_REG_RCX,
  MIC_REG_RBX,
  MIC_REG_RSI,
  MIC_REG_RDI,
  MIC_REG_RBP,
  MIC_REG_RSP,
  MIC_REG_R8,
  MIC_REG_RIP = 16,
  MIC_REG_COUNT = 17
};

struct mic_regs {
  uint64_t r[MIC_REG_COUNT];
  uint32_t known; /* bit i: r[i] holds the frame's value */
};

/* What is mapped at an address, as the unwinder needs to know it. */
enum mic_code_kind {
  MIC_CODE_UNMAPPED = 0, /* nothing known there */
  MIC_CODE_ANON = 1,     /* anonymous memory: generated code */
  MIC_CODE_IMAGE = 2,    /* an image with a table */
  MIC_CODE_NO_IMAGE = 3, /* a file that could not be opened or proven, or is no ELF image */
  MIC_CODE_VSYSCALL = 4  /* the vsyscall page: each entry only returns */
};
struct mic_code {
  uint64_t start, end;     /* the mapping: [start, end) */
  uint64_t bias;           /* address - bias is the address in the image's ELF space, modulo 2^64 */
  struct mic_table *table; /* MIC_CODE_IMAGE */
  uint32_t module;         /* the caller's id, passed through to frames */
  uint32_t kind;           /* enum mic_code_kind */
};

/* The target's memory map at the sample's time. */
struct mic_space {
  const struct mic_code *(*find)(void *data, uint64_t address); /* NULL: unmapped */
  void *data;
  uint64_t generation; /* changes whenever an answer of find may: what the pc cache is held against.
                          (data, generation) never comes back with other answers, nor does a table
                          end while an unwinder may meet its space again */
};

struct mic_stack_copy {
  const uint8_t *bytes; /* the memory at [address, address + size) */
  uint64_t address;     /* the sampled stack pointer */
  size_t size;          /* valid bytes (perf's dyn_size) */
  bool full;            /* as long as what was asked for: more stack may follow */
};

enum { MIC_FRAME_SIGNAL = 1 /* the kernel's signal frame; the next is an interrupted pc */ };
struct mic_frame {
  uint64_t address; /* absolute: the pc itself for the innermost frame, a signal frame and the
                       frame a signal interrupted, else return address - 1 */
  uint64_t offset;  /* the same in the image's ELF space; the address itself without an image */
  uint32_t module;  /* mic_code.module; UINT32_MAX without a mapping */
  uint8_t kind;     /* enum mic_location */
  uint8_t evidence; /* enum mic_evidence: how the step to this frame was proven */
  uint16_t zero;    /* so that from offset on frames compare as bytes */
};

struct mic_unwinder;
struct mic_unwinder *mic_unwinder_new(void);
void mic_unwinder_free(struct mic_unwinder *unwinder);

enum { MIC_FRAMES_MAX = 65536 };
/* Unwind a sample.  Frames are innermost first, borrowed until the next call; *count is at least 1
 * when the registers hold a pc.  Returns why the stack ends there (enum mic_end, never NONE). */
enum mic_end mic_unwind_sample(struct mic_unwinder *unwinder, const struct mic_space *space,
                               const struct mic_regs *regs, const struct mic_stack_copy *stack,
                               const struct mic_frame **frames, size_t *count);
/* How much of the last sample's copy was needed, in bytes from its start; SIZE_MAX when that cannot
 * be said: the stack did not end whole.  The same bytes alone give the same frames. */
size_t mic_unwinder_reach(const struct mic_unwinder *unwinder);

#endif
