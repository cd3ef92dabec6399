/*
 * code.h - what a function's own instructions prove, where call-frame information cannot.
 *
 * The instructions come from the image's file, which is what ran.  Nothing here guesses: an
 * instruction that is not fully understood ends the proof.
 */
#ifndef MIC_UNWIND_CODE_H
#define MIC_UNWIND_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "image/elf.h"
#include "unwind/table_internal.h"
#include "unwind/unwind.h"

/* Memory of the thread: sampled, or of a stopped process. */
struct mic_reader {
  bool (*read)(const struct mic_reader *reader, uint64_t address, uint64_t *out);
  enum mic_end (*missing)(const struct mic_reader *reader, uint64_t address); /* why read failed */
};

/* Where to run instructions in mind. */
struct mic_code_at {
  struct mic_table *table; /* of the image */
  uint64_t vaddr;
  uint64_t cfa; /* by call-frame information; 0 where there is none */
  bool popped;  /* the instruction before was a pop of an epilogue */
};
/* Runs the instructions at vaddr until the function returns: pops, moves and the like, along the
 * one way there is.  regs become the caller's, rsp and rip among them.  With a cfa the return must
 * pop just below it; a jump counts as the return where nothing of the frame is left: when it
 * leaves an epilogue, or goes where call-frame information has every register in place. */
bool mic_code_run_to_return(const struct mic_code_at *at, struct mic_regs *regs,
                            const struct mic_reader *reader);
/* The bytes before vaddr are a pop of a register that calls preserve. */
bool mic_code_follows_pop(const struct mic_elf *elf, uint64_t vaddr);

enum mic_code_place {
  MIC_PLACE_UNKNOWN = 0,
  MIC_PLACE_ENTRY = 1,     /* push %rbp and mov %rsp,%rbp come next: nothing pushed yet */
  MIC_PLACE_PUSHED_RBP = 2 /* between the two */
};
enum mic_code_place mic_code_place(const struct mic_elf *elf, uint64_t vaddr);

/* The instruction before vaddr is a call.  *target is where a direct one goes, else 0. */
bool mic_code_follows_call(const struct mic_elf *elf, uint64_t vaddr, uint64_t *target);
enum mic_code_keeps {
  MIC_KEEPS_NOT = 0,
  MIC_KEEPS_UNKNOWN = 1, /* vaddr is a stub, which jumps on to a function unknown */
  MIC_KEEPS_PROVEN = 2
};
/* Whether the function at vaddr sets up a frame pointer and, as far as its instructions show, is
 * the one that pc is in. */
enum mic_code_keeps mic_code_keeps_frame_pointer(const struct mic_elf *elf, uint64_t vaddr,
                                                 uint64_t pc);
/* The instructions from vaddr run on to pc and leave the stack as the call made it, so that the
 * return address is on top of it.  *named are the registers (DWARF's numbers) that one of them may
 * have written. */
bool mic_code_is_leaf(const struct mic_elf *elf, uint64_t vaddr, uint64_t pc, uint32_t *named);
/* vaddr begins the trampoline that returns from signals (mov $15,%rax; syscall), or with `within`
 * is also its system call's address or the one past it. */
bool mic_code_is_sigreturn(const struct mic_elf *elf, uint64_t vaddr, bool within);
bool mic_code_follows_syscall(const struct mic_elf *elf, uint64_t vaddr);
/* vaddr is in the code that runs on from the image's entry without a jump: the kernel starts it,
 * nothing calls it. */
bool mic_code_is_entry(const struct mic_elf *elf, uint64_t vaddr);

#endif
