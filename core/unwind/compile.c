/*
 * compile.c - the call-frame instructions of DWARF 5 (6.4.2, table 7.29), run once per FDE.
 *
 * Registers above rip's number (vector registers) are read and dropped: no address depends on
 * them.
 */
#include "unwind/compile.h"

#include <string.h>

enum { REGISTERS = 17, RSP = 7, RIP = 16 };
/* Compilers nest DW_CFA_remember_state once; hand-written code a few times. */
enum { REMEMBER_MAX = 16 };

enum how { UNSPECIFIED = 0, SAVED_AT = MIC_EXTRA_AT }; /* else enum mic_extra_how */

struct state {
  uint8_t cfa; /* MIC_CFA_NONE (not yet defined), _REGISTER or _EXPRESSION */
  uint64_t cfa_register;
  int64_t cfa_offset; /* or the expression */
  struct {
    uint8_t how;
    int64_t value;
  } reg[REGISTERS];
};

struct run {
  const struct mic_cfi *cfi;
  const struct mic_cfi_fde *fde;
  struct mic_rules *rules;
  struct mic_rows *out;
  uint64_t base;
  uint64_t pc;
  uint64_t *work_left;
  struct state now, initial, remembered[REMEMBER_MAX];
  size_t remembered_count;
  bool in_cie;
};

static const uint8_t slot_register[MIC_SLOT_COUNT] = MIC_SLOT_REGISTERS;

/* "DW_OP_breg7 offset" and nothing else. */
static bool is_rsp_plus(const struct mic_string *e, int64_t offset) {
  struct mic_cursor c = mic_cursor(e->bytes, e->size);
  return mic_cursor_u8(&c) == 0x77 && mic_cursor_sleb(&c) == offset && !c.bad &&
         mic_cursor_left(&c) == 0;
}

/* The expression that every x86-64 linker writes for PLT stubs: the stub pushes 8 bytes at a
 * known place in its 16.  Gives that place, or 0. */
static uint8_t plt_push_end(const struct mic_string *e) {
  static const uint8_t form[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
  if (e->size != sizeof form) return 0;
  for (size_t i = 0; i < sizeof form; i++)
    if (i != 6 && (uint8_t)e->bytes[i] != form[i]) return 0;
  uint8_t literal = (uint8_t)e->bytes[6]; /* DW_OP_lit1 to lit15 */
  return literal > 0x30 && literal < 0x40 ? (uint8_t)(literal - 0x30) : 0;
}

/* Linux's signal frame: [rsp] is a ucontext, registers from offset 40 in struct sigcontext's
 * order (arch/x86/include/uapi/asm/sigcontext.h). */
static bool is_sigreturn(const struct run *r) {
  static const uint8_t at[REGISTERS] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
                                        48,  56,  64,  72,  80,  88,  96,  168};
  struct mic_string e = mic_interner_at(&r->rules->expressions, (uint32_t)r->now.cfa_offset);
  struct mic_string without_deref = {e.bytes, e.size - 1};
  if (e.size < 2 || e.bytes[e.size - 1] != 0x06 || !is_rsp_plus(&without_deref, at[RSP]))
    return false;
  for (size_t i = 0; i < REGISTERS; i++) {
    if (r->now.reg[i].how != MIC_EXTRA_AT_EXPRESSION) return false;
    struct mic_string x = mic_interner_at(&r->rules->expressions, (uint32_t)r->now.reg[i].value);
    if (!is_rsp_plus(&x, at[i])) return false;
  }
  return true;
}

static bool fill_cfa(const struct run *r, struct mic_rule *rule) {
  const struct state *s = &r->now;
  if (s->cfa_offset != (int32_t)s->cfa_offset || s->cfa_register >= REGISTERS) return false;
  rule->cfa = s->cfa;
  rule->cfa_offset = (int32_t)s->cfa_offset;
  rule->cfa_register = (uint8_t)s->cfa_register;
  if (s->cfa != MIC_CFA_EXPRESSION) return true;
  rule->cfa_register = 0;
  struct mic_string e = mic_interner_at(&r->rules->expressions, (uint32_t)s->cfa_offset);
  uint8_t push_end = plt_push_end(&e);
  if (push_end) {
    rule->cfa = MIC_CFA_PLT;
    rule->cfa_offset = push_end;
  } else if (is_sigreturn(r)) {
    rule->cfa = MIC_CFA_SIGRETURN;
    rule->cfa_offset = 0;
    rule->flags = MIC_RULE_SIGNAL;
  }
  return true;
}

/* The slot of a register, or -1. */
static int slot_of(size_t reg) {
  for (int i = 0; i < MIC_SLOT_COUNT; i++)
    if (slot_register[i] == reg) return i;
  return -1;
}

/* What the fixed part cannot hold becomes an extra; false when not even that can. */
static bool fill_register(const struct state *s, size_t reg, struct mic_rule *rule,
                          struct mic_extra *extras, size_t *count) {
  uint8_t how = s->reg[reg].how;
  int64_t value = s->reg[reg].value;
  int slot = slot_of(reg);
  if (how == UNSPECIFIED) return true;
  if (how == MIC_EXTRA_SAME && slot > MIC_SLOT_RIP) return true; /* what a clear bit means */
  if (how == SAVED_AT && slot >= 0 && value % 8 == 0 && value / 8 == (int16_t)(value / 8)) {
    rule->saved |= (uint8_t)(1U << slot);
    rule->slot[slot] = (int16_t)(value / 8);
    return true;
  }
  if (value != (int32_t)value) return false;
  extras[(*count)++] = (struct mic_extra){.reg = (uint8_t)reg, .how = how, .value = (int32_t)value};
  return true;
}

static uint16_t current_rule(struct run *r) {
  const struct state *s = &r->now;
  struct mic_rule rule = {.flags = r->fde->cie.signal ? MIC_RULE_SIGNAL : 0};
  struct mic_extra extras[REGISTERS];
  size_t count = 0;
  uint8_t how = s->reg[RIP].how;
  if (how == MIC_EXTRA_UNDEFINED) {
    rule.cfa = MIC_CFA_OUTERMOST;
    return mic_rules_intern(r->rules, &rule, NULL, 0);
  }
  /* Without a word on rip the caller would be the frame itself. */
  if (s->cfa == MIC_CFA_NONE || how == UNSPECIFIED || how == MIC_EXTRA_SAME)
    return MIC_RULE_ID_MALFORMED;
  if (!fill_cfa(r, &rule)) return MIC_RULE_ID_UNSUPPORTED;
  for (size_t i = 0; i < REGISTERS && rule.cfa != MIC_CFA_SIGRETURN; i++)
    if (!fill_register(s, i, &rule, extras, &count)) return MIC_RULE_ID_UNSUPPORTED;
  return mic_rules_intern(r->rules, &rule, extras, count);
}

static void push_row(struct mic_rows *out, uint32_t pc, uint16_t rule) {
  *mic_vec_push(&out->pcs) = pc;
  *mic_vec_push(&out->rules) = rule;
}

/* The state holds from r->pc up to `next`. */
static bool advance(struct run *r, uint64_t next, size_t first_row) {
  if (r->in_cie || next < r->pc) return false;
  if (next == r->pc || r->pc >= r->fde->end) return true;
  uint16_t rule = current_rule(r);
  size_t count = r->out->rules.count;
  if (count == first_row || r->out->rules.at[count - 1] != rule)
    push_row(r->out, (uint32_t)(r->pc - r->base), rule);
  r->pc = next;
  return true;
}

static void set_register(struct run *r, uint64_t reg, uint8_t how, int64_t value) {
  if (reg >= REGISTERS) return;
  r->now.reg[reg].how = how;
  r->now.reg[reg].value = value;
}

static bool restore(struct run *r, uint64_t reg) {
  if (r->in_cie) return false;
  if (reg < REGISTERS) r->now.reg[reg] = r->initial.reg[reg];
  return true;
}

static int64_t take_expression(struct run *r, struct mic_cursor *c) {
  uint64_t size = mic_cursor_uleb(c);
  const char *bytes = mic_cursor_take(c, (size_t)size);
  return bytes ? (int64_t)mic_intern(&r->rules->expressions, bytes, (size_t)size) : 0;
}

static int64_t scaled(const struct run *r, uint64_t factor) {
  return (int64_t)((uint64_t)r->fde->cie.data_align * factor); /* wraps like the addresses do */
}

static void define_cfa(struct run *r, uint8_t kind, uint64_t reg, int64_t offset) {
  r->now.cfa = kind;
  r->now.cfa_register = reg;
  r->now.cfa_offset = offset;
}

static bool run_cfa_op(struct run *r, struct mic_cursor *c, uint8_t op) {
  struct state *s = &r->now;
  uint64_t reg;
  if ((op == 0x0d || op == 0x0e || op == 0x13) && s->cfa != MIC_CFA_REGISTER) return false;
  switch (op) {
  case 0x0c: /* DW_CFA_def_cfa */
    reg = mic_cursor_uleb(c);
    define_cfa(r, MIC_CFA_REGISTER, reg, (int64_t)mic_cursor_uleb(c));
    return true;
  case 0x12: /* DW_CFA_def_cfa_sf */
    reg = mic_cursor_uleb(c);
    define_cfa(r, MIC_CFA_REGISTER, reg, scaled(r, (uint64_t)mic_cursor_sleb(c)));
    return true;
  case 0x0d: s->cfa_register = mic_cursor_uleb(c); return true;        /* DW_CFA_def_cfa_register */
  case 0x0e: s->cfa_offset = (int64_t)mic_cursor_uleb(c); return true; /* DW_CFA_def_cfa_offset */
  case 0x13:                                                           /* ..._offset_sf */
    s->cfa_offset = scaled(r, (uint64_t)mic_cursor_sleb(c));
    return true;
  case 0x0f: /* DW_CFA_def_cfa_expression */
    define_cfa(r, MIC_CFA_EXPRESSION, 0, take_expression(r, c));
    return true;
  default: return false;
  }
}

static bool run_register_op(struct run *r, struct mic_cursor *c, uint8_t op) {
  uint64_t reg = mic_cursor_uleb(c);
  switch (op) {
  case 0x05: /* DW_CFA_offset_extended */
    set_register(r, reg, MIC_EXTRA_AT, scaled(r, mic_cursor_uleb(c)));
    return true;
  case 0x11: /* DW_CFA_offset_extended_sf */
    set_register(r, reg, MIC_EXTRA_AT, scaled(r, (uint64_t)mic_cursor_sleb(c)));
    return true;
  case 0x2f: /* DW_CFA_GNU_negative_offset_extended */
    set_register(r, reg, MIC_EXTRA_AT, scaled(r, 0 - mic_cursor_uleb(c)));
    return true;
  case 0x14: /* DW_CFA_val_offset */
    set_register(r, reg, MIC_EXTRA_IS, scaled(r, mic_cursor_uleb(c)));
    return true;
  case 0x15: /* DW_CFA_val_offset_sf */
    set_register(r, reg, MIC_EXTRA_IS, scaled(r, (uint64_t)mic_cursor_sleb(c)));
    return true;
  case 0x06: return restore(r, reg); /* DW_CFA_restore_extended */
  case 0x07: set_register(r, reg, MIC_EXTRA_UNDEFINED, 0); return true; /* DW_CFA_undefined */
  case 0x08: set_register(r, reg, MIC_EXTRA_SAME, 0); return true;      /* DW_CFA_same_value */
  case 0x09: { /* DW_CFA_register: one that no frame keeps makes this one undefined */
    uint64_t in = mic_cursor_uleb(c);
    if (in < REGISTERS)
      set_register(r, reg, MIC_EXTRA_REGISTER, (int64_t)in);
    else
      set_register(r, reg, MIC_EXTRA_UNDEFINED, 0);
    return in < REGISTERS || reg != RIP;
  }
  case 0x10: /* DW_CFA_expression */
    set_register(r, reg, MIC_EXTRA_AT_EXPRESSION, take_expression(r, c));
    return true;
  case 0x16: /* DW_CFA_val_expression */
    set_register(r, reg, MIC_EXTRA_IS_EXPRESSION, take_expression(r, c));
    return true;
  default: return false;
  }
}

static bool remember(struct run *r) {
  if (r->remembered_count == REMEMBER_MAX) return false;
  r->remembered[r->remembered_count++] = r->now;
  return true;
}

static bool recall(struct run *r) {
  if (r->remembered_count == 0) return false;
  r->now = r->remembered[--r->remembered_count];
  return true;
}

static bool run_op(struct run *r, struct mic_cursor *c, size_t first_row) {
  uint8_t op = mic_cursor_u8(c);
  uint64_t align = r->fde->cie.code_align, to;
  switch (op & 0xc0) {
  case 0x40: return advance(r, r->pc + (op & 0x3f) * align, first_row); /* DW_CFA_advance_loc */
  case 0x80:                                                            /* DW_CFA_offset */
    set_register(r, op & 0x3f, MIC_EXTRA_AT, scaled(r, mic_cursor_uleb(c)));
    return true;
  case 0xc0: return restore(r, op & 0x3f); /* DW_CFA_restore */
  default: break;
  }
  switch (op) {
  case 0x00: return true; /* DW_CFA_nop */
  case 0x01:              /* DW_CFA_set_loc */
    return mic_cfi_read_pointer(c, r->cfi, r->fde->cie.encoding, &to) && advance(r, to, first_row);
  case 0x02: return advance(r, r->pc + mic_cursor_u8(c) * align, first_row);
  case 0x03: return advance(r, r->pc + mic_cursor_u16(c) * align, first_row);
  case 0x04: return advance(r, r->pc + mic_cursor_u32(c) * align, first_row);
  case 0x0a: return remember(r);
  case 0x0b: return recall(r);
  case 0x0c:
  case 0x0d:
  case 0x0e:
  case 0x0f:
  case 0x12:
  case 0x13: return run_cfa_op(r, c, op);
  case 0x2e: mic_cursor_uleb(c); return true; /* DW_CFA_GNU_args_size: for exceptions only */
  default: return run_register_op(r, c, op);
  }
}

static bool run_program(struct run *r, const uint8_t *program, size_t size, size_t first_row) {
  struct mic_cursor c = mic_cursor(program, size);
  while (mic_cursor_left(&c) && !c.bad) {
    if (*r->work_left == 0) return false;
    --*r->work_left;
    if (!run_op(r, &c, first_row)) return false;
  }
  return !c.bad;
}

void mic_compile_fde(const struct mic_cfi *cfi, const struct mic_cfi_fde *fde, uint64_t base,
                     struct mic_rules *rules, struct mic_rows *out, uint64_t *work_left) {
  struct run r;
  r.cfi = cfi, r.fde = fde, r.rules = rules, r.out = out, r.base = base, r.work_left = work_left;
  r.pc = fde->start;
  r.now = (struct state){0};
  r.remembered_count = 0;
  r.in_cie = true;
  size_t first_row = out->pcs.count;
  bool good = run_program(&r, fde->cie.program, fde->cie.program_size, first_row);
  r.initial = r.now;
  r.in_cie = false;
  good = good && run_program(&r, fde->program, fde->program_size, first_row) &&
         (r.pc >= fde->end || advance(&r, fde->end, first_row));
  if (good && out->pcs.count > first_row) return;
  out->pcs.count = out->rules.count = first_row;
  push_row(out, (uint32_t)(fde->start - base), MIC_RULE_ID_MALFORMED);
}
