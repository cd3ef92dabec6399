/*
 * step.c - the steps that are not the common one: expressions, signal frames, slots outside the
 * copy, the vsyscall page, and code without call-frame information.
 */
#include "unwind/step.h"

#include "image/plt.h"
#include "unwind/expression.h"

/* The kernel puts a signal frame at most this far below the interrupted stack pointer on the same
 * stack: the red zone of 128 bytes, the extended state (11 KiB with AMX), a frame of under 1 KiB
 * and alignment (arch/x86/kernel/signal.c). */
enum { SIGNAL_FRAME_MAX_BYTES = 16384 };

static const uint8_t slot_register[MIC_SLOT_COUNT] = MIC_SLOT_REGISTERS;

static bool knows(const struct mic_regs *regs, uint32_t reg) { return regs->known >> reg & 1; }

static enum mic_end missing(const struct mic_walk *w, const struct mic_reader *reader,
                            uint64_t address) {
  return w->other_stack ? MIC_END_OTHER_STACK : reader->missing(reader, address);
}

enum mic_end mic_step_lost(const struct mic_walk *w, uint32_t reg) {
  return w->lost >> reg & 1 ? (enum mic_end)w->lost_end : MIC_END_REGISTER_UNAVAILABLE;
}

static enum mic_end evaluate(const struct mic_walk *w, const struct mic_step *s, int32_t expression,
                             const uint64_t *initial, const struct mic_reader *reader,
                             uint64_t *out) {
  uint8_t reg;
  struct mic_string e = mic_interner_at(&s->table->rules.expressions, (uint32_t)expression);
  enum mic_end end = mic_expression_run(&e, &w->regs, initial, reader, out, &reg);
  if (end == MIC_END_REGISTER_UNAVAILABLE) return mic_step_lost(w, reg);
  return end != MIC_END_NONE && end != MIC_END_MALFORMED_UNWIND_INFO && w->other_stack
           ? MIC_END_OTHER_STACK
           : end;
}

static enum mic_end find_cfa(const struct mic_walk *w, const struct mic_step *s,
                             const struct mic_reader *reader, uint64_t *cfa) {
  const struct mic_rule *rule = &s->rule;
  if (rule->cfa == MIC_CFA_PLT) { /* the stub has pushed 8 bytes from this place on */
    bool pushed = (w->regs.r[MIC_REG_RIP] & 15) >= (uint64_t)rule->cfa_offset;
    *cfa = w->regs.r[MIC_REG_RSP] + (pushed ? 16 : 8);
    return MIC_END_NONE;
  }
  if (rule->cfa == MIC_CFA_EXPRESSION) return evaluate(w, s, rule->cfa_offset, NULL, reader, cfa);
  if (!knows(&w->regs, rule->cfa_register)) return mic_step_lost(w, rule->cfa_register);
  *cfa = w->regs.r[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
  return MIC_END_NONE;
}

/* A caller in the making. */
struct caller {
  struct mic_regs regs;
  uint32_t lost;
  uint8_t lost_end;
  uint8_t evidence;
};

static void set(struct caller *c, uint32_t reg, uint64_t value) {
  c->regs.r[reg] = value;
  c->regs.known |= 1U << reg;
  c->lost &= ~(1U << reg);
}

static void lose(struct caller *c, uint32_t reg, enum mic_end why) {
  c->regs.known &= ~(1U << reg);
  c->lost |= 1U << reg;
  c->lost_end = (uint8_t)why;
}

static void apply_extra(struct caller *c, const struct mic_walk *w, const struct mic_step *s,
                        const struct mic_extra *x, uint64_t cfa, const struct mic_reader *reader) {
  uint64_t value = cfa + (uint64_t)(int64_t)x->value;
  enum mic_end end = MIC_END_NONE;
  switch (x->how) {
  case MIC_EXTRA_UNDEFINED: c->regs.known &= ~(1U << x->reg); return;
  case MIC_EXTRA_SAME:
    value = w->regs.r[x->reg];
    if (!knows(&w->regs, x->reg)) end = mic_step_lost(w, x->reg);
    break;
  case MIC_EXTRA_REGISTER:
    value = w->regs.r[x->value];
    if (!knows(&w->regs, (uint32_t)x->value)) end = mic_step_lost(w, (uint32_t)x->value);
    break;
  case MIC_EXTRA_IS: break;
  case MIC_EXTRA_AT_EXPRESSION:
  case MIC_EXTRA_IS_EXPRESSION: end = evaluate(w, s, x->value, &cfa, reader, &value); break;
  default: break; /* MIC_EXTRA_AT */
  }
  bool in_memory = x->how == MIC_EXTRA_AT || x->how == MIC_EXTRA_AT_EXPRESSION;
  uint64_t at = value;
  if (end == MIC_END_NONE && in_memory && !reader->read(reader, at, &value))
    end = missing(w, reader, at);
  if (end == MIC_END_NONE)
    set(c, x->reg, value);
  else
    lose(c, x->reg, end);
}

/* The instruction before is a pop that ends the frame by that much: this is an epilogue. */
static bool after_pop(const struct mic_step *s, uint64_t vaddr) {
  struct mic_rule before = *mic_table_rule(s->table, vaddr - 1);
  return before.cfa == MIC_CFA_REGISTER && before.cfa_register == MIC_REG_RSP &&
         s->rule.cfa_register == MIC_REG_RSP && before.cfa_offset == s->rule.cfa_offset + 8 &&
         mic_code_follows_pop(mic_table_elf(s->table), vaddr);
}

/* Slots below the stack pointer: GCC leaves out the restores in epilogues.  Where the rest of the
 * function is seen to end right there, the registers are what they will be on return. */
static void prove_by_code(struct caller *c, const struct mic_walk *w, const struct mic_step *s,
                          uint64_t cfa, const struct mic_reader *reader) {
  struct mic_regs after = w->regs;
  uint64_t rip = w->regs.r[MIC_REG_RIP] - s->bias;
  struct mic_code_at at = {s->table, rip, cfa, after_pop(s, rip)};
  if (!mic_code_run_to_return(&at, &after, reader)) return;
  if (after.r[MIC_REG_RIP] != c->regs.r[MIC_REG_RIP]) return;
  for (uint32_t reg = 0; reg < MIC_REG_COUNT; reg++)
    if (c->lost >> reg & 1 && MIC_PRESERVED >> reg & 1 && knows(&after, reg))
      set(c, reg, after.r[reg]);
  c->evidence = MIC_EVIDENCE_CODE;
}

static void apply_slots(struct caller *c, const struct mic_walk *w, const struct mic_step *s,
                        uint64_t cfa, const struct mic_reader *reader) {
  for (uint32_t left = s->rule.saved; left; left &= left - 1) {
    int slot = __builtin_ctz(left);
    uint64_t value, at = cfa + (uint64_t)((int64_t)s->rule.slot[slot] * 8);
    if (reader->read(reader, at, &value))
      set(c, slot_register[slot], value);
    else
      lose(c, slot_register[slot], missing(w, reader, at));
  }
}

/* The caller's stack lies above, unless a signal or a switch of stacks led here.  Where the thread
 * is, the return address may stand in a register with nothing left on the stack (vfork). */
static enum mic_end check_progress(const struct mic_walk *w, const struct caller *c, bool signal,
                                   const struct mic_reader *reader) {
  uint64_t before = w->regs.r[MIC_REG_RSP], after = c->regs.r[MIC_REG_RSP], ignored;
  if (signal || after > before || (w->exact && after == before)) return MIC_END_NONE;
  return reader->read(reader, after, &ignored) ? MIC_END_NO_PROGRESS : MIC_END_OTHER_STACK;
}

static void become(struct mic_walk *w, const struct caller *c, bool signal) {
  uint64_t rise = c->regs.r[MIC_REG_RSP] - w->regs.r[MIC_REG_RSP];
  if (signal && (rise == 0 || rise > SIGNAL_FRAME_MAX_BYTES)) w->other_stack = true;
  w->regs = c->regs;
  w->lost = c->lost;
  w->lost_end = c->lost_end;
  w->evidence = c->evidence;
  w->exact = signal;
}

static struct caller new_caller(const struct mic_walk *w, uint32_t kept) {
  struct caller c = {.regs = w->regs, .lost = w->lost & kept, .lost_end = w->lost_end};
  c.regs.known &= kept;
  c.evidence = MIC_EVIDENCE_CFI;
  return c;
}

static enum mic_end step_rule(struct mic_walk *w, const struct mic_step *s,
                              const struct mic_reader *reader) {
  uint64_t cfa = 0;
  enum mic_end end = find_cfa(w, s, reader, &cfa);
  if (end != MIC_END_NONE) return end;
  struct caller c = new_caller(w, MIC_PRESERVED);
  set(&c, MIC_REG_RSP, cfa);
  apply_slots(&c, w, s, cfa, reader);
  for (uint32_t i = 0; i < s->rule.extra_count; i++)
    apply_extra(&c, w, s, &s->table->rules.extras.at[s->rule.extra + i], cfa, reader);
  if (!knows(&c.regs, MIC_REG_RIP))
    return c.lost >> MIC_REG_RIP & 1 ? (enum mic_end)c.lost_end : MIC_END_REGISTER_UNAVAILABLE;
  if (!knows(&c.regs, MIC_REG_RSP))
    return c.lost >> MIC_REG_RSP & 1 ? (enum mic_end)c.lost_end : MIC_END_REGISTER_UNAVAILABLE;
  bool fell_below = c.lost && c.lost_end == MIC_END_BELOW_COPY;
  if (w->exact && fell_below) prove_by_code(&c, w, s, cfa, reader);
  bool signal = s->rule.flags & MIC_RULE_SIGNAL;
  end = check_progress(w, &c, signal, reader);
  if (end == MIC_END_NONE) become(w, &c, signal);
  return end;
}

/* struct sigcontext in the ucontext at rsp (arch/x86/include/uapi/asm/sigcontext.h). */
static enum mic_end step_sigreturn(struct mic_walk *w, const struct mic_step *s,
                                   const struct mic_reader *reader) {
  static const uint8_t at[MIC_REG_COUNT] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
                                            48,  56,  64,  72,  80,  88,  96,  168};
  uint64_t base = w->regs.r[MIC_REG_RSP], value;
  struct caller c = new_caller(w, 0);
  for (uint32_t reg = 0; reg < MIC_REG_COUNT; reg++) {
    if (reader->read(reader, base + at[reg], &value))
      set(&c, reg, value);
    else if (reg == MIC_REG_RIP || reg == MIC_REG_RSP)
      return missing(w, reader, base + at[reg]);
    else
      lose(&c, reg, missing(w, reader, base + at[reg]));
  }
  if (s->rule.flags & MIC_RULE_BY_CODE) c.evidence = MIC_EVIDENCE_CODE;
  become(w, &c, true);
  return MIC_END_NONE;
}

/* The return address is on top of the stack or near: at a function's first instruction, in a PLT
 * stub, and all through the vsyscall page (arch/x86/entry/vsyscall/vsyscall_emu_64.S: mov, syscall,
 * ret). */
static enum mic_end step_top(struct mic_walk *w, uint64_t pushed, bool pushed_rbp,
                             const struct mic_reader *reader) {
  uint64_t rip, rbp, at = w->regs.r[MIC_REG_RSP] + pushed;
  struct caller c = new_caller(w, MIC_PRESERVED);
  if (!reader->read(reader, at, &rip)) return missing(w, reader, at);
  if (pushed_rbp && reader->read(reader, at - 8, &rbp)) set(&c, MIC_REG_RBP, rbp);
  set(&c, MIC_REG_RIP, rip);
  set(&c, MIC_REG_RSP, at + 8);
  c.evidence = MIC_EVIDENCE_CODE;
  become(w, &c, false);
  return MIC_END_NONE;
}

/* A leaf without a frame: the return address on top of the stack follows a call of code that runs
 * on to here and never moves the stack pointer. */
static bool step_leaf(struct mic_walk *w, const struct mic_step *s,
                      const struct mic_reader *reader) {
  uint64_t rip, target;
  uint32_t named;
  if (!reader->read(reader, w->regs.r[MIC_REG_RSP], &rip)) return false;
  const struct mic_code *code = w->space->find(w->space->data, rip - 1);
  if (!code || code->kind != MIC_CODE_IMAGE || code->table != s->table || code->bias != s->bias)
    return false;
  const struct mic_elf *elf = mic_table_elf(s->table);
  if (!mic_code_follows_call(elf, rip - s->bias, &target) || !target) return false;
  if (!mic_code_is_leaf(elf, target, s->address - s->bias, &named)) return false;
  w->regs.known &= ~(named & ~(1U << MIC_REG_RSP));
  return step_top(w, 0, false, reader) == MIC_END_NONE;
}

static bool step_by_code(struct mic_walk *w, const struct mic_step *s,
                         const struct mic_reader *reader) {
  const struct mic_elf *elf = mic_table_elf(s->table);
  uint64_t rip = w->regs.r[MIC_REG_RIP] - s->bias;
  enum mic_code_place place = mic_code_place(elf, rip);
  bool pushed_rbp = place == MIC_PLACE_PUSHED_RBP;
  uint64_t pushed = pushed_rbp ? 8 : 0;
  if (place != MIC_PLACE_UNKNOWN || mic_plt_is_stub(elf, rip, &pushed))
    return step_top(w, pushed, pushed_rbp, reader) == MIC_END_NONE;
  struct caller c = new_caller(w, UINT32_MAX);
  struct mic_code_at at = {s->table, rip, 0, false};
  if (!mic_code_run_to_return(&at, &c.regs, reader)) return step_leaf(w, s, reader);
  c.regs.known &= MIC_PRESERVED | 1U << MIC_REG_RIP;
  c.evidence = MIC_EVIDENCE_CODE;
  if (c.regs.r[MIC_REG_RSP] <= w->regs.r[MIC_REG_RSP]) return false;
  become(w, &c, false);
  return true;
}

/* Whether a call comes before the address, and where it goes (0: not known). */
static bool follows_call(const struct mic_walk *w, uint64_t rip, const struct mic_code **code,
                         uint64_t *target) {
  *code = w->space->find(w->space->data, rip - 1);
  if (!*code || (*code)->kind != MIC_CODE_IMAGE) return false;
  const struct mic_elf *elf = mic_table_elf((*code)->table);
  return mic_code_follows_call(elf, rip - (*code)->bias, target) && !mic_elf_damaged(elf);
}

/* No word of the frame, up to the frame pointer, can be a return address: a function that keeps no
 * frame pointer, called by the one whose frame pointer this is, would have its own there. */
static bool is_one_frame(const struct mic_walk *w, uint64_t frame,
                         const struct mic_reader *reader) {
  const struct mic_code *code;
  uint64_t word, target;
  for (uint64_t at = (w->regs.r[MIC_REG_RSP] + 7) & ~7ULL; at < frame; at += 8)
    if (!reader->read(reader, at, &word) || follows_call(w, word, &code, &target)) return false;
  return true;
}

/* A frame pointer is believed when it points into the stack above, and the return address there
 * follows a call of a function that keeps one: by its code or, where what is called is not known,
 * when nothing speaks against it. */
static bool frame_pointer_holds(const struct mic_walk *w, const struct mic_step *s, uint64_t frame,
                                uint64_t rip, const struct mic_reader *reader) {
  const struct mic_code *code;
  uint64_t target;
  enum mic_code_keeps keeps = MIC_KEEPS_UNKNOWN;
  if (!follows_call(w, rip, &code, &target)) return false;
  bool elsewhere = code->table != s->table || code->bias != s->bias; /* it calls by a stub */
  uint64_t pc = elsewhere ? 0 : s->address - s->bias;
  if (target) keeps = mic_code_keeps_frame_pointer(mic_table_elf(code->table), target, pc);
  if (keeps == MIC_KEEPS_UNKNOWN) return is_one_frame(w, frame, reader);
  return keeps == MIC_KEEPS_PROVEN;
}

static enum mic_end step_frame_pointer(struct mic_walk *w, const struct mic_step *s,
                                       const struct mic_reader *reader) {
  bool followed = w->followed_frame_pointer;
  enum mic_end none = followed ? MIC_END_FRAME_POINTER : MIC_END_NO_UNWIND_INFO;
  uint64_t frame = w->regs.r[MIC_REG_RBP], rbp, rip;
  if (!knows(&w->regs, MIC_REG_RBP) || frame < w->regs.r[MIC_REG_RSP] || frame % 8) return none;
  if (!reader->read(reader, frame, &rbp) || !reader->read(reader, frame + 8, &rip))
    return followed ? missing(w, reader, frame + 8) : none;
  if (!frame_pointer_holds(w, s, frame, rip, reader)) return none;
  struct caller c = new_caller(w, 0);
  set(&c, MIC_REG_RBP, rbp);
  set(&c, MIC_REG_RIP, rip);
  set(&c, MIC_REG_RSP, frame + 16);
  c.evidence = MIC_EVIDENCE_FRAME_POINTER;
  become(w, &c, false);
  w->followed_frame_pointer = true;
  return MIC_END_NONE;
}

enum mic_end mic_step_rare(struct mic_walk *w, const struct mic_step *s,
                           const struct mic_reader *reader) {
  switch (s->rule.cfa) {
  case MIC_CFA_REGISTER:
  case MIC_CFA_PLT:
  case MIC_CFA_EXPRESSION: return step_rule(w, s, reader);
  case MIC_CFA_SIGRETURN: return step_sigreturn(w, s, reader);
  case MIC_CFA_NONE:
    if (w->exact && step_by_code(w, s, reader)) return MIC_END_NONE;
    return step_frame_pointer(w, s, reader);
  case MIC_CFA_OUTERMOST: return MIC_END_OUTERMOST;
  case MIC_CFA_ENTRY: return MIC_END_ENTRY;
  case MIC_CFA_UNMAPPED: return MIC_END_UNMAPPED_CODE;
  case MIC_CFA_ANON: return MIC_END_ANONYMOUS_CODE;
  case MIC_CFA_NO_IMAGE: return MIC_END_IMAGE_UNAVAILABLE;
  case MIC_CFA_VSYSCALL: return step_top(w, 0, false, reader);
  case MIC_CFA_UNSUPPORTED: return MIC_END_UNSUPPORTED_RULE;
  default: return MIC_END_MALFORMED_UNWIND_INFO;
  }
}
