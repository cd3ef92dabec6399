/*
 * step.h - the one step: from a frame's registers and its rule to the caller's registers.
 *
 * Inline and parameterised by the read function, so that a reader of sampled bytes and one of a
 * stopped process each get straight-line code.  What is rare stands in step.c.
 */
#ifndef MIC_UNWIND_STEP_H
#define MIC_UNWIND_STEP_H

#include "unwind/code.h"
#include "unwind/table_internal.h"

/* The registers that a call preserves, rsp among them: rbx rbp rsp r12-r15. */
enum { MIC_PRESERVED = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15 };

struct mic_walk {
  const struct mic_space *space;
  struct mic_regs regs; /* of the frame to step from */
  uint32_t lost;        /* registers whose saved value could not be read, and ... */
  uint8_t lost_end;     /* ... why: enum mic_end */
  uint8_t evidence;     /* enum mic_evidence of the last step */
  bool exact;           /* rip is where the thread is, not a return address */
  bool other_stack;     /* a signal frame led to a stack that was not copied */
  bool followed_frame_pointer;
};

/* What the pc cache says of an address: one cache line. */
struct mic_step {
  uint64_t address;
  uint64_t bias;
  struct mic_table *table; /* NULL: no image */
  uint32_t space;          /* whose address it is; 0: an empty entry */
  uint32_t module;
  struct mic_rule rule; /* rule.zero is the cache's (unwind.c) */
};
_Static_assert(sizeof(struct mic_step) == 64, "one cache line an entry");

enum { MIC_RULE_BY_CODE = 2 }; /* mic_rule.flags: recognised by its instructions, not from CFI */

enum mic_end mic_step_rare(struct mic_walk *w, const struct mic_step *s,
                           const struct mic_reader *reader);
enum mic_end mic_step_lost(const struct mic_walk *w, uint32_t reg);

/* Enter the caller: what a call does not preserve is gone. */
static inline void mic_walk_enter(struct mic_walk *w, uint64_t cfa, uint64_t rip, uint32_t known) {
  w->regs.r[MIC_REG_RSP] = cfa;
  w->regs.r[MIC_REG_RIP] = rip;
  w->regs.known = known | 1U << MIC_REG_RSP | 1U << MIC_REG_RIP;
  w->exact = false;
}

/* One step by a rule.  MIC_END_NONE, or why there is none. */
static inline __attribute__((always_inline)) enum mic_end
mic_step(struct mic_walk *w, const struct mic_step *s, const struct mic_reader *reader,
         bool (*read)(const struct mic_reader *, uint64_t, uint64_t *)) {
  static const uint8_t registers[MIC_SLOT_COUNT] = MIC_SLOT_REGISTERS;
  const struct mic_rule *rule = &s->rule;
  if (rule->cfa != MIC_CFA_REGISTER || rule->extra_count || rule->flags)
    return mic_step_rare(w, s, reader);
  if (!(w->regs.known >> rule->cfa_register & 1)) return mic_step_lost(w, rule->cfa_register);
  uint64_t cfa = w->regs.r[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
  uint64_t value[MIC_SLOT_COUNT];
  uint32_t saved = rule->saved;
  for (uint32_t left = saved; left; left &= left - 1) {
    int slot = __builtin_ctz(left);
    uint64_t at = cfa + (uint64_t)((int64_t)rule->slot[slot] * 8);
    if (!read(reader, at, &value[slot])) return mic_step_rare(w, s, reader);
  }
  if (!(saved & 1) || cfa <= w->regs.r[MIC_REG_RSP]) return mic_step_rare(w, s, reader);
  uint32_t known = w->regs.known & MIC_PRESERVED;
  for (uint32_t left = saved & ~1U; left; left &= left - 1) {
    int slot = __builtin_ctz(left);
    w->regs.r[registers[slot]] = value[slot];
    known |= 1U << registers[slot];
  }
  w->evidence = MIC_EVIDENCE_CFI;
  mic_walk_enter(w, cfa, value[MIC_SLOT_RIP], known);
  return MIC_END_NONE;
}

#endif
