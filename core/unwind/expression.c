/*
 * expression.c - DWARF 5 section 2.5, the operations that 6.4.2 allows in call-frame information.
 */
#include "unwind/expression.h"

#include "base/cursor.h"

/* The deepest in system libraries uses 4 entries and runs 12 operations. */
enum { STACK_MAX = 32, STEPS_MAX = 512 };

struct eval {
  struct mic_cursor c;
  const struct mic_regs *regs;
  const struct mic_reader *reader;
  uint64_t stack[STACK_MAX];
  size_t depth;
  enum mic_end end;
  uint8_t reg;
};

static void fail(struct eval *e, enum mic_end end) {
  if (e->end == MIC_END_NONE) e->end = end;
}

static void push(struct eval *e, uint64_t value) {
  if (e->depth == STACK_MAX)
    fail(e, MIC_END_MALFORMED_UNWIND_INFO);
  else
    e->stack[e->depth++] = value;
}

static uint64_t pop(struct eval *e) {
  if (e->depth) return e->stack[--e->depth];
  fail(e, MIC_END_MALFORMED_UNWIND_INFO);
  return 0;
}

static void push_register(struct eval *e, uint64_t reg, int64_t offset) {
  if (reg >= MIC_REG_COUNT) {
    fail(e, MIC_END_UNSUPPORTED_RULE);
  } else if (!(e->regs->known >> reg & 1)) {
    e->reg = (uint8_t)reg;
    fail(e, MIC_END_REGISTER_UNAVAILABLE);
  } else {
    push(e, e->regs->r[reg] + (uint64_t)offset);
  }
}

static void dereference(struct eval *e, uint8_t size) {
  uint64_t address = pop(e), value = 0;
  if (e->end != MIC_END_NONE) return;
  if (size == 0 || size > 8) {
    fail(e, MIC_END_MALFORMED_UNWIND_INFO);
  } else if (!e->reader->read(e->reader, address, &value)) {
    fail(e, e->reader->missing(e->reader, address));
  } else {
    push(e, size == 8 ? value : value & ((1ULL << 8 * size) - 1));
  }
}

static void pick(struct eval *e, uint8_t index) {
  if (index >= e->depth)
    fail(e, MIC_END_MALFORMED_UNWIND_INFO);
  else
    push(e, e->stack[e->depth - 1 - index]);
}

static void rotate(struct eval *e) {
  uint64_t a = pop(e), b = pop(e), c = pop(e);
  push(e, a);
  push(e, c);
  push(e, b);
}

static void branch(struct eval *e, bool taken) {
  int16_t by = (int16_t)mic_cursor_u16(&e->c);
  if (!taken || e->c.bad) return;
  size_t to = mic_cursor_offset(&e->c) + (size_t)(ptrdiff_t)by;
  if (!mic_cursor_seek(&e->c, to)) fail(e, MIC_END_MALFORMED_UNWIND_INFO);
}

static void divide(struct eval *e, bool modulo) {
  uint64_t b = pop(e), a = pop(e);
  if (b == 0)
    fail(e, MIC_END_MALFORMED_UNWIND_INFO);
  else if (modulo)
    push(e, a % b);
  else
    push(e, b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b));
}

static void shift(struct eval *e, uint8_t op) {
  uint64_t by = pop(e), a = pop(e);
  if (op == 0x26)
    push(e, (uint64_t)((int64_t)a >> (by < 64 ? by : 63))); /* DW_OP_shra */
  else if (by >= 64)
    push(e, 0);
  else
    push(e, op == 0x24 ? a << by : a >> by);
}

static void binary(struct eval *e, uint8_t op) {
  uint64_t b = pop(e), a = pop(e);
  int64_t sb = (int64_t)b, sa = (int64_t)a;
  switch (op) {
  case 0x1a: push(e, a & b); return;
  case 0x1c: push(e, a - b); return;
  case 0x1e: push(e, a * b); return;
  case 0x21: push(e, a | b); return;
  case 0x22: push(e, a + b); return;
  case 0x27: push(e, a ^ b); return;
  case 0x29: push(e, sa == sb); return;
  case 0x2a: push(e, sa >= sb); return;
  case 0x2b: push(e, sa > sb); return;
  case 0x2c: push(e, sa <= sb); return;
  case 0x2d: push(e, sa < sb); return;
  default: push(e, sa != sb); return; /* 0x2e */
  }
}

static void run_constant(struct eval *e, uint8_t op) {
  struct mic_cursor *c = &e->c;
  switch (op) {
  case 0x08: push(e, mic_cursor_u8(c)); return;
  case 0x09: push(e, (uint64_t)(int64_t)(int8_t)mic_cursor_u8(c)); return;
  case 0x0a: push(e, mic_cursor_u16(c)); return;
  case 0x0b: push(e, (uint64_t)(int64_t)(int16_t)mic_cursor_u16(c)); return;
  case 0x0c: push(e, mic_cursor_u32(c)); return;
  case 0x0d: push(e, (uint64_t)(int64_t)(int32_t)mic_cursor_u32(c)); return;
  case 0x0e:
  case 0x0f: push(e, mic_cursor_u64(c)); return;
  case 0x10: push(e, mic_cursor_uleb(c)); return;
  default: push(e, (uint64_t)mic_cursor_sleb(c)); return; /* 0x11 */
  }
}

static void run_stack(struct eval *e, uint8_t op) {
  uint64_t a;
  switch (op) {
  case 0x12: pick(e, 0); return; /* dup */
  case 0x13: pop(e); return;     /* drop */
  case 0x14: pick(e, 1); return; /* over */
  case 0x15: pick(e, mic_cursor_u8(&e->c)); return;
  case 0x16: { /* swap */
    uint64_t b = pop(e);
    a = pop(e);
    push(e, b);
    push(e, a);
    return;
  }
  case 0x17: rotate(e); return;
  case 0x19:
    a = pop(e);
    push(e, (int64_t)a < 0 ? 0 - a : a);
    return;                                                  /* abs */
  case 0x1f: push(e, 0 - pop(e)); return;                    /* neg */
  case 0x20: push(e, ~pop(e)); return;                       /* not */
  default: push(e, pop(e) + mic_cursor_uleb(&e->c)); return; /* 0x23 plus_uconst */
  }
}

static void run_op(struct eval *e, uint8_t op) {
  if (op >= 0x30 && op <= 0x4f) return push(e, op - 0x30U); /* lit */
  if (op >= 0x70 && op <= 0x8f) return push_register(e, op - 0x70U, mic_cursor_sleb(&e->c));
  if (op >= 0x08 && op <= 0x11) return run_constant(e, op);
  uint64_t reg;
  switch (op) {
  case 0x06: return dereference(e, 8);
  case 0x94: return dereference(e, mic_cursor_u8(&e->c));
  case 0x92: /* bregx */
    reg = mic_cursor_uleb(&e->c);
    return push_register(e, reg, mic_cursor_sleb(&e->c));
  case 0x1b: return divide(e, false);
  case 0x1d: return divide(e, true);
  case 0x24:
  case 0x25:
  case 0x26: return shift(e, op);
  case 0x28: return branch(e, pop(e) != 0);
  case 0x2f: return branch(e, true);
  case 0x96: return; /* nop */
  case 0x12:
  case 0x13:
  case 0x14:
  case 0x15:
  case 0x16:
  case 0x17:
  case 0x19:
  case 0x1f:
  case 0x20:
  case 0x23: return run_stack(e, op);
  default: break;
  }
  if (op >= 0x1a && op <= 0x2e) return binary(e, op);
  fail(e, MIC_END_UNSUPPORTED_RULE);
}

enum mic_end mic_expression_run(const struct mic_string *expression, const struct mic_regs *regs,
                                const uint64_t *initial, const struct mic_reader *reader,
                                uint64_t *out, uint8_t *reg) {
  struct eval e;
  e.c = mic_cursor(expression->bytes, expression->size);
  e.regs = regs, e.reader = reader, e.depth = 0, e.end = MIC_END_NONE, e.reg = 0;
  if (initial) push(&e, *initial);
  for (int steps = 0; mic_cursor_left(&e.c) && e.end == MIC_END_NONE; steps++) {
    if (steps == STEPS_MAX) fail(&e, MIC_END_MALFORMED_UNWIND_INFO);
    run_op(&e, mic_cursor_u8(&e.c));
    if (e.c.bad) fail(&e, MIC_END_MALFORMED_UNWIND_INFO);
  }
  uint64_t value = pop(&e);
  *reg = e.reg;
  if (e.end == MIC_END_NONE) *out = value;
  return e.end;
}
