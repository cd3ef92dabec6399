/*
 * unwind_test.c - every way a stack can end, on images and stacks made for it.
 *
 * Real programs are in live_test.c; here each reason is pinned with the least that causes it.
 */
#include "unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixtures/unwind/synthetic.h"
#include "unwind/table_internal.h"

enum {
  BIAS = 0x500000,
  CODE = SYNTHETIC_CODE + BIAS,
  STACK = 0x6ff00000,
  ANON = 0x600000,
  NO_IMAGE = 0x610000,
  STACK_WORDS = 64
};

/* A thread over one synthetic image. */
struct world {
  uint8_t file[0x8000];
  struct mic_elf *elf;
  struct mic_table *table;
  struct mic_code codes[4];
  struct mic_space space;
  struct mic_regs regs;
  uint64_t words[STACK_WORDS];
  struct mic_stack_copy stack;
  const struct mic_frame *frames;
  size_t count;
};

static struct mic_unwinder *unwinder;

static const struct mic_code *find(void *data, uint64_t address) {
  struct world *w = data;
  for (size_t i = 0; i < 4; i++)
    if (address >= w->codes[i].start && address < w->codes[i].end) return &w->codes[i];
  return NULL;
}

/* One CIE (CFA rsp+8, return address at CFA-8) and an FDE for [SYNTHETIC_CODE, +0x80). */
static size_t make_eh_frame(uint8_t *out, const char *augmentation, const uint8_t *program,
                            size_t size) {
  uint8_t *p = out + 4;
  memcpy(p, "\0\0\0\0\1", 5);
  p += 5;
  memcpy(p, augmentation, strlen(augmentation) + 1);
  p += strlen(augmentation) + 1;
  memcpy(p, "\1\x78\x10\1\x1b\x0c\7\x08\x90\1", 10); /* 'R' is pcrel sdata4; def_cfa; offset */
  p += 10;
  while ((p - out) % 4) *p++ = 0;
  uint32_t length = (uint32_t)(p - out - 4);
  memcpy(out, &length, 4);
  uint8_t *fde = p;
  uint32_t back = (uint32_t)(fde + 4 - out);
  int32_t start = SYNTHETIC_CODE - (SYNTHETIC_EH_FRAME + (int32_t)(fde + 8 - out));
  memcpy(fde + 4, &back, 4);
  memcpy(fde + 8, &start, 4);
  memcpy(fde + 12, "\x80\0\0\0\0", 5);
  memcpy(fde + 17, program, size);
  p = fde + 17 + size;
  while ((p - out) % 4) *p++ = 0;
  length = (uint32_t)(p - fde - 4);
  memcpy(fde, &length, 4);
  memset(p, 0, 4);
  return (size_t)(p + 4 - out);
}

static void set_up(struct world *w, const char *code, size_t code_size, const char *augmentation,
                   const char *program, size_t program_size) {
  static uint64_t generation;
  uint8_t eh_frame[512];
  memset(w, 0, sizeof *w);
  struct synthetic s = {.code = code, .code_size = code_size, .eh_frame = eh_frame};
  if (augmentation)
    s.eh_frame_size = make_eh_frame(eh_frame, augmentation, (const uint8_t *)program, program_size);
  struct mic_error err;
  size_t size = synthetic_elf(&s, w->file);
  assert_int_equal(mic_elf_open_memory(w->file, size, "world", &w->elf, &err), MIC_OK);
  assert_int_equal(mic_table_new(w->elf, &w->table, &err), MIC_OK);
  w->codes[0] = (struct mic_code){
    SYNTHETIC_VADDR + BIAS, SYNTHETIC_VADDR + BIAS + 0x8000, BIAS, w->table, 7, MIC_CODE_IMAGE};
  w->codes[1] = (struct mic_code){ANON, ANON + 4096, 0, NULL, 8, MIC_CODE_ANON};
  w->codes[2] = (struct mic_code){NO_IMAGE, NO_IMAGE + 4096, 0, NULL, 9, MIC_CODE_NO_IMAGE};
  w->codes[3] = (struct mic_code){
    0xffffffffff600000, 0xffffffffff601000, 0xffffffffff600000, NULL, 10, MIC_CODE_VSYSCALL};
  w->space = (struct mic_space){find, w, ++generation};
  w->regs.known = (1U << MIC_REG_COUNT) - 1;
  w->regs.r[MIC_REG_RIP] = CODE;
  w->regs.r[MIC_REG_RSP] = STACK;
  w->stack = (struct mic_stack_copy){(const uint8_t *)w->words, STACK, sizeof w->words, false};
}

static void tear_down(struct world *w) {
  mic_table_free(w->table);
  mic_elf_close(w->elf);
}

static enum mic_end unwind(struct world *w) {
  return mic_unwind_sample(unwinder, &w->space, &w->regs, &w->stack, &w->frames, &w->count);
}

#define BYTES(text) text, sizeof(text) - 1
#define NO_CFI NULL, NULL, 0
#define PLAIN "zR", BYTES("")

static void test_outermost(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), "zR", BYTES("\x07\x10")); /* DW_CFA_undefined rip */
  assert_int_equal(unwind(&w), MIC_END_OUTERMOST);
  assert_int_equal(w.count, 1);
  assert_int_equal(w.frames[0].address, CODE);
  assert_int_equal(w.frames[0].offset, SYNTHETIC_CODE);
  assert_int_equal(w.frames[0].module, 7);
  tear_down(&w);
}

static void test_registers_and_copy(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), PLAIN);
  w.regs.known = 0;
  assert_int_equal(unwind(&w), MIC_END_NO_REGISTERS);
  assert_int_equal(w.count, 0);
  w.regs.known = 1U << MIC_REG_RIP;
  assert_int_equal(unwind(&w), MIC_END_NO_REGISTERS);
  assert_int_equal(w.count, 1);
  w.regs.known |= 1U << MIC_REG_RSP;
  w.stack.size = 0;
  assert_int_equal(unwind(&w), MIC_END_NO_COPY);
  w.stack.size = 7;
  assert_int_equal(unwind(&w), MIC_END_OTHER_STACK);
  w.stack.full = true;
  assert_int_equal(unwind(&w), MIC_END_COPY_EXHAUSTED);
  assert_int_equal(w.count, 1);
  tear_down(&w);
}

/* Each word is a return address into the same function, until one is elsewhere. */
static void test_where_a_return_address_leads(void **state) {
  (void)state;
  static const struct {
    uint64_t address;
    enum mic_end end;
    uint8_t kind;
    uint32_t module;
  } cases[] = {
    {0x12345678, MIC_END_UNMAPPED_CODE, MIC_LOCATION_UNMAPPED, UINT32_MAX},
    {ANON + 16, MIC_END_ANONYMOUS_CODE, MIC_LOCATION_ANON, 8},
    {NO_IMAGE + 16, MIC_END_IMAGE_UNAVAILABLE, MIC_LOCATION_NATIVE, 9},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct world w;
    set_up(&w, BYTES("\x90"), PLAIN);
    w.words[0] = CODE + 0x20;
    w.words[1] = cases[i].address;
    assert_int_equal(unwind(&w), cases[i].end);
    assert_int_equal(w.count, 3);
    assert_int_equal(w.frames[1].address, CODE + 0x1f);
    assert_int_equal(w.frames[2].address, cases[i].address - 1);
    assert_int_equal(w.frames[2].kind, cases[i].kind);
    assert_int_equal(w.frames[2].module, cases[i].module);
    tear_down(&w);
  }
}

static void test_zero_is_no_return_address(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), PLAIN);
  assert_int_equal(unwind(&w), MIC_END_NO_CALLER);
  assert_int_equal(w.count, 1);
  tear_down(&w);
}

/* A CFA from rax: known where the thread is, not in its callers. */
static void test_caller_saved_register(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), "zR", BYTES("\x0c\x00\x10")); /* DW_CFA_def_cfa rax + 16 */
  w.regs.r[MIC_REG_RAX] = STACK;
  w.words[1] = CODE + 0x20;
  assert_int_equal(unwind(&w), MIC_END_REGISTER_UNAVAILABLE);
  assert_int_equal(w.count, 2);
  tear_down(&w);
}

static void test_no_progress_and_another_stack(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), "zR", BYTES("\x0c\x06\x10")); /* def_cfa rbp + 16; rbp kept */
  w.regs.r[MIC_REG_RBP] = STACK + 8;
  w.words[2] = CODE + 0x20;
  assert_int_equal(unwind(&w), MIC_END_NO_PROGRESS);
  w.regs.r[MIC_REG_RBP] = 0x5000;
  assert_int_equal(unwind(&w), MIC_END_OTHER_STACK);
  tear_down(&w);
}

/* rbx popped, but its rule still says it is saved below: the pop's ret proves the rest. */
static void test_epilogue(void **state) {
  (void)state;
  struct world w;
  /* def_cfa rsp+8 all through, rbx at CFA-16: as GCC leaves it; the caller's CFA is rbx + 16. */
  set_up(&w, BYTES("\xc3"), "zR", BYTES("\x83\x02"));
  w.words[0] = ANON + 5;
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  tear_down(&w);
  set_up(&w, BYTES("\x90\xe8"), "zR", BYTES("\x83\x02\x61\x0c\x03\x10"));
  w.words[0] = CODE + 0x30; /* there, 0x21 bytes in, the CFA is rbx + 16 */
  assert_int_equal(unwind(&w), MIC_END_BELOW_COPY);
  assert_int_equal(w.count, 2);
  tear_down(&w);
}

static void test_return_address_in_a_register(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x0f\x05"), "zR", BYTES("\x0e\x00\x09\x10\x05")); /* as vfork: rip in rdi */
  w.regs.r[MIC_REG_RDI] = ANON + 9;
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.frames[1].address, ANON + 8);
  w.regs.r[MIC_REG_RDI] = CODE + 0x20; /* its caller would have to have rip in rdi too */
  assert_int_equal(unwind(&w), MIC_END_REGISTER_UNAVAILABLE);
  tear_down(&w);
}

static void test_malformed_and_unsupported(void **state) {
  (void)state;
  static const struct {
    const char *program;
    size_t size;
    enum mic_end end;
  } cases[] = {
    {BYTES("\x0b"), MIC_END_MALFORMED_UNWIND_INFO},         /* restore_state without remember */
    {BYTES("\x3f"), MIC_END_MALFORMED_UNWIND_INFO},         /* no such instruction */
    {BYTES("\x00\x00\x0c"), MIC_END_MALFORMED_UNWIND_INFO}, /* an operand is missing */
    {BYTES("\x0f\x7f\x11"), MIC_END_MALFORMED_UNWIND_INFO}, /* an expression runs out of the FDE */
    {BYTES("\x0f\x01\x22"), MIC_END_MALFORMED_UNWIND_INFO}, /* DW_OP_plus of nothing */
    {BYTES("\x0f\x03\x2f\xfd\xff"), MIC_END_MALFORMED_UNWIND_INFO}, /* DW_OP_skip for ever */
    {BYTES("\x0f\x01\xe0"), MIC_END_UNSUPPORTED_RULE},              /* no such operation */
    {BYTES("\x0c\x20\x08"), MIC_END_UNSUPPORTED_RULE},  /* the CFA from a vector register */
    {BYTES("\x08\x10"), MIC_END_MALFORMED_UNWIND_INFO}, /* rip keeps its value */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct world w;
    set_up(&w, BYTES("\x90"), "zR", cases[i].program, cases[i].size);
    w.words[0] = CODE + 0x20;
    enum mic_end end = unwind(&w);
    if (end != cases[i].end) fail_msg("case %zu: end %d, not %d", i, end, cases[i].end);
    assert_int_equal(w.count, 1);
    tear_down(&w);
  }
}

static void test_plt_expression(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\xff\x25"), "zR",
         BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"));
  assert_int_equal(mic_table_rule(w.table, SYNTHETIC_CODE)->cfa, MIC_CFA_PLT);
  w.words[0] = ANON + 3;
  w.words[1] = ANON + 4;
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.frames[1].address, ANON + 2);
  w.regs.r[MIC_REG_RIP] = CODE + 11; /* past the push */
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.frames[1].address, ANON + 3);
  tear_down(&w);
}

/* A trampoline without call-frame information, known by its code; the stack it returns to. */
static void test_signal_frame_by_code(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"), NO_CFI);
  w.words[168 / 8] = ANON + 3;      /* rip */
  w.words[160 / 8] = STACK + 0x100; /* rsp */
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.frames[0].kind, MIC_LOCATION_SIGNAL);
  assert_int_equal(w.frames[1].address, ANON + 3); /* where it was interrupted, exactly */
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  w.regs.r[MIC_REG_RIP] = CODE + 9; /* in the system call */
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.count, 2);
  w.words[168 / 8] = 0; /* a null pointer was called: 0 is where it ran, not who called */
  assert_int_equal(unwind(&w), MIC_END_UNMAPPED_CODE);
  tear_down(&w);
}

static void test_signal_on_another_stack(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05\x90\x90"), NO_CFI);
  w.words[168 / 8] = CODE; /* the trampoline again, on a stack that is not here */
  w.words[160 / 8] = STACK + 0x100000;
  w.stack.full = true;
  assert_int_equal(unwind(&w), MIC_END_OTHER_STACK);
  assert_int_equal(w.count, 2);
  tear_down(&w);
}

static void test_vsyscall_page(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), PLAIN);
  w.regs.r[MIC_REG_RIP] = 0xffffffffff600400;
  w.words[0] = ANON + 3;
  assert_int_equal(unwind(&w), MIC_END_ANONYMOUS_CODE);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.frames[0].module, 10);
  assert_int_equal(w.frames[0].offset, 0x400);
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  tear_down(&w);
}

/* The code runs on from the entry: nothing called it.  Past its jump nothing is known. */
static void test_entry(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x48\x89\xe7\xe8\x10\x00\x00\x00\x41\xff\xe4\x0f\x1f\x00"), NO_CFI);
  assert_int_equal(unwind(&w), MIC_END_ENTRY);
  w.regs.r[MIC_REG_RIP] = CODE + 8;
  assert_int_equal(unwind(&w), MIC_END_ENTRY);
  w.regs.r[MIC_REG_RIP] = CODE + 11;
  w.regs.r[MIC_REG_RBP] = 0;
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  tear_down(&w);
}

/* f at +0x20 keeps a frame pointer and is called at +0x60 and +0x70; the code is not at the entry.
 */
static void frame_pointer_world(struct world *w) {
  uint8_t code[0x80];
  memset(code, 0x90, sizeof code);
  code[0] = 0xc3;
  memcpy(code + 0x20, "\x55\x48\x89\xe5", 4);
  memcpy(code + 0x50, "\xe8\x20\x00\x00\x00", 5); /* a call: the way on is not all there is */
  code[0x5f] = 0xc3;
  memcpy(code + 0x60, "\xe8\xbb\xff\xff\xff", 5); /* call f */
  memcpy(code + 0x70, "\xff\xd0", 2);             /* call *%rax */
  set_up(w, (const char *)code, sizeof code, NO_CFI);
  w->regs.r[MIC_REG_RIP] = CODE + 0x40;
  w->regs.r[MIC_REG_RBP] = STACK + 16;
  w->words[2] = STACK + 64; /* the caller's rbp */
  w->words[3] = CODE + 0x65;
}

static void test_frame_pointers(void **state) {
  (void)state;
  struct world w;
  frame_pointer_world(&w);
  w.words[8] = 0;
  w.words[9] = ANON + 3; /* generated code: nothing shows that it was called from there */
  assert_int_equal(unwind(&w), MIC_END_FRAME_POINTER);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.frames[1].address, CODE + 0x64);
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_FRAME_POINTER);
  w.words[3] = CODE + 0x72; /* after the indirect call */
  assert_int_equal(unwind(&w), MIC_END_FRAME_POINTER);
  w.words[1] = CODE + 0x65; /* what may be the return address of a function without a frame */
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  assert_int_equal(w.count, 1);
  w.words[1] = 0;
  w.words[3] = CODE + 0x30; /* after no call */
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  assert_int_equal(w.count, 1);
  w.words[3] = CODE + 0x65;
  w.regs.r[MIC_REG_RBP] = STACK - 8; /* below the stack pointer */
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  w.regs.r[MIC_REG_RBP] = STACK + 17; /* not aligned */
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  tear_down(&w);
}

/* As .fini is: sub $8,%rsp; add $8,%rsp; ret, called through a pointer by a function whose frame
 * pointer is in rbp.  Each instruction leads to the return, none to the frame pointer. */
static void test_frameless_under_a_frame_pointer(void **state) {
  (void)state;
  static const int pcs[] = {0x40, 0x44, 0x48};
  struct world w;
  uint8_t code[0x80];
  memset(code, 0x90, sizeof code);
  code[0] = 0xc3; /* not the entry */
  memcpy(code + 0x40, "\x48\x83\xec\x08\x48\x83\xc4\x08\xc3", 9);
  memcpy(code + 0x70, "\xff\xd0", 2); /* call *%rax */
  memcpy(code + 0x74, "\xff\xd0", 2);
  for (size_t i = 0; i < 3; i++) {
    set_up(&w, (const char *)code, sizeof code, NO_CFI);
    w.regs.r[MIC_REG_RIP] = CODE + (uint64_t)pcs[i];
    w.regs.r[MIC_REG_RBP] = STACK + 32;
    w.words[i == 1 ? 1 : 0] = CODE + 0x72;
    w.words[5] = CODE + 0x76;
    unwind(&w);
    assert_true(w.count >= 2);
    assert_int_equal(w.frames[1].address, CODE + 0x71);
    assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
    tear_down(&w);
  }
}

/* At push %rbp and before mov %rsp,%rbp the frame pointer is still the caller's. */
static void test_frame_pointer_prologue(void **state) {
  (void)state;
  struct world w;
  frame_pointer_world(&w);
  w.regs.r[MIC_REG_RIP] = CODE + 0x20;
  w.words[0] = CODE + 0x65;
  unwind(&w);
  assert_int_equal(w.frames[1].address, CODE + 0x64);
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  w.regs.r[MIC_REG_RIP] = CODE + 0x21;
  w.words[0] = STACK + 16;
  w.words[1] = CODE + 0x65;
  unwind(&w);
  assert_int_equal(w.frames[1].address, CODE + 0x64);
  assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  tear_down(&w);
}

/* A leaf at +0x20 without a frame, called at +0x60: mov $0,%eax; add $1,%rax; cmp $9,%rax; jne
 * back; ret. */
static void test_leaf(void **state) {
  (void)state;
  struct world w;
  uint8_t code[0x80];
  memset(code, 0x90, sizeof code);
  code[0] = 0xc3; /* not the entry */
  memcpy(code + 0x20, "\xb8\x00\x00\x00\x00\x48\x83\xc0\x01\x48\x83\xf8\x09\x75\xf6\xc3", 16);
  memcpy(code + 0x60, "\xe8\xbb\xff\xff\xff", 5); /* call +0x20 */
  code[0x6f] = 0xc3;
  set_up(&w, (const char *)code, sizeof code, NO_CFI);
  w.words[0] = CODE + 0x65;
  for (int pc = 0x20; pc < 0x2f; pc += pc == 0x20 ? 5 : 4) {
    w.regs.r[MIC_REG_RIP] = CODE + (uint64_t)pc;
    w.regs.r[MIC_REG_RBP] = 0;
    unwind(&w);
    assert_true(w.count >= 2);
    assert_int_equal(w.frames[1].address, CODE + 0x64);
    assert_int_equal(w.frames[1].evidence, MIC_EVIDENCE_CODE);
  }
  /* What may follow a return is not known to run with the same stack. */
  w.regs.r[MIC_REG_RIP] = CODE + 0x34;
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  assert_int_equal(w.count, 1);
  /* In the middle of an instruction. */
  w.regs.r[MIC_REG_RIP] = CODE + 0x22;
  assert_int_equal(unwind(&w), MIC_END_NO_UNWIND_INFO);
  tear_down(&w);
}

/* The same with an instruction that moves the stack pointer, or makes rbp unknown. */
static void test_leaf_with_more(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size, frames;
  } cases[] = {
    {"\x50", 1, 1},                 /* push %rax */
    {"\x41\x54", 2, 1},             /* push %r12 */
    {"\x48\x83\xec\x08", 4, 1},     /* sub $8,%rsp */
    {"\x48\x8d\x64\x24\xf8", 5, 1}, /* lea -8(%rsp),%rsp */
    {"\xff\xd0", 2, 1},             /* call *%rax */
    {"\xff\x30", 2, 1},             /* push (%rax) */
    {"\x48\x89\x44\x24\xf8", 5, 2}, /* mov %rax,-8(%rsp) */
    {"\x48\x83\xe0\x01", 4, 2},     /* and $1,%rax: /4 is no register */
    {"\x0f\x05", 2, 2},             /* syscall */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct world w;
    uint8_t code[0x80];
    memset(code, 0x90, sizeof code);
    code[0] = 0xc3; /* not the entry */
    memcpy(code + 0x20, cases[i].bytes, cases[i].size);
    memcpy(code + 0x40, "\xeb\xfe", 2);             /* a jump to itself: no way on to a return */
    memcpy(code + 0x60, "\xe8\xbb\xff\xff\xff", 5); /* call +0x20 */
    code[0x6f] = 0xc3;
    set_up(&w, (const char *)code, sizeof code, NO_CFI);
    w.regs.r[MIC_REG_RIP] = CODE + 0x40;
    w.regs.r[MIC_REG_RBP] = 0;
    w.words[0] = CODE + 0x65;
    unwind(&w);
    assert_int_equal(w.count, cases[i].frames);
    tear_down(&w);
  }
}

static void test_depth_limit(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"), NO_CFI);
  w.words[168 / 8] = CODE; /* a signal frame that returns to itself */
  w.words[160 / 8] = STACK;
  assert_int_equal(unwind(&w), MIC_END_DEPTH_LIMIT);
  assert_int_equal(w.count, MIC_FRAMES_MAX);
  tear_down(&w);
}

/* A header that is out of order is found out before anything is called absent. */
static void test_lying_header(void **state) {
  (void)state;
  uint8_t file[0x8000], eh_frame[512], header[12 + 16];
  size_t eh_size = make_eh_frame(eh_frame, "zR", (const uint8_t *)"", 0);
  int32_t entries[4] = {0x7000, 0, -0x7000, 0}; /* descending, and no FDE is there */
  uint32_t two = 2;
  memcpy(header, "\x01\x03\x03\x3b\0\0\0\0", 8);
  memcpy(header + 8, &two, 4);
  memcpy(header + 12, entries, 16);
  struct synthetic s = {.code = "\x90",
                        .code_size = 1,
                        .eh_frame = eh_frame,
                        .eh_frame_size = eh_size,
                        .header = header,
                        .header_size = sizeof header};
  struct mic_elf *elf;
  struct mic_table *table;
  struct mic_error err;
  size_t size = synthetic_elf(&s, file);
  assert_int_equal(mic_elf_open_memory(file, size, "lying", &elf, &err), MIC_OK);
  mic_table_new(elf, &table, &err);
  assert_non_null(table->eh.header);
  assert_int_equal(mic_table_rule(table, SYNTHETIC_CODE)->cfa, MIC_CFA_REGISTER);
  assert_null(table->eh.header);
  mic_table_free(table);
  mic_elf_close(elf);
}

static void test_damaged_section(void **state) {
  (void)state;
  struct world w;
  set_up(&w, BYTES("\x90"), PLAIN);
  assert_int_equal(mic_table_rule(w.table, SYNTHETIC_CODE + 0x100)->cfa, MIC_CFA_NONE);
  tear_down(&w);
  set_up(&w, BYTES("\x90"), "zQ", BYTES("")); /* an augmentation unknown: its FDEs are not read */
  assert_int_equal(mic_table_rule(w.table, SYNTHETIC_CODE)->cfa, MIC_CFA_MALFORMED);
  struct mic_error err = {0};
  assert_int_equal(mic_table_compile_all(w.table, &err), MIC_EFORMAT);
  assert_int_equal(unwind(&w), MIC_END_MALFORMED_UNWIND_INFO);
  tear_down(&w);
}

static int begin(void **state) {
  (void)state;
  unwinder = mic_unwinder_new();
  return 0;
}

static int finish(void **state) {
  (void)state;
  mic_unwinder_free(unwinder);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_outermost),
    cmocka_unit_test(test_registers_and_copy),
    cmocka_unit_test(test_where_a_return_address_leads),
    cmocka_unit_test(test_zero_is_no_return_address),
    cmocka_unit_test(test_caller_saved_register),
    cmocka_unit_test(test_no_progress_and_another_stack),
    cmocka_unit_test(test_epilogue),
    cmocka_unit_test(test_return_address_in_a_register),
    cmocka_unit_test(test_malformed_and_unsupported),
    cmocka_unit_test(test_plt_expression),
    cmocka_unit_test(test_signal_frame_by_code),
    cmocka_unit_test(test_signal_on_another_stack),
    cmocka_unit_test(test_vsyscall_page),
    cmocka_unit_test(test_entry),
    cmocka_unit_test(test_frame_pointers),
    cmocka_unit_test(test_frame_pointer_prologue),
    cmocka_unit_test(test_frameless_under_a_frame_pointer),
    cmocka_unit_test(test_leaf),
    cmocka_unit_test(test_leaf_with_more),
    cmocka_unit_test(test_depth_limit),
    cmocka_unit_test(test_lying_header),
    cmocka_unit_test(test_damaged_section),
  };
  return cmocka_run_group_tests(tests, begin, finish);
}
