/*
 * unwind_fuzz.c - any registers, stack, code and call-frame information: stepping them must end.
 */
#include <stdint.h>

#include "base/cursor.h"
#include "fixtures/unwind/synthetic.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 15, CODE_BYTES = 256, STACK_ADDRESS = 0x7ff00000, BIAS = 0x500000 };

struct world {
  struct mic_code image, anonymous, vsyscall;
};

static const struct mic_code *find(void *data, uint64_t address) {
  const struct world *w = data;
  const struct mic_code *all[] = {&w->image, &w->anonymous, &w->vsyscall};
  for (size_t i = 0; i < 3; i++)
    if (address >= all[i]->start && address < all[i]->end) return all[i];
  return NULL;
}

/* Registers near what they mostly hold: a byte picks code, stack or anything. */
static struct mic_regs read_registers(struct mic_cursor *c) {
  static const uint64_t bases[] = {0, STACK_ADDRESS, SYNTHETIC_CODE + BIAS, 0x600000};
  struct mic_regs regs = {.known = mic_cursor_u32(c) | 1U << MIC_REG_RIP | 1U << MIC_REG_RSP};
  for (size_t i = 0; i < MIC_REG_COUNT; i++) {
    uint64_t base = bases[mic_cursor_u8(c) & 3];
    regs.r[i] = base ? base + (mic_cursor_u16(c) & 0xfff) : mic_cursor_u64(c);
  }
  return regs;
}

static void unwind(struct mic_table *table, struct mic_cursor *c) {
  static struct mic_unwinder *unwinder;
  static uint64_t generation;
  if (!unwinder) unwinder = mic_unwinder_new();
  struct world world = {
    .image = {SYNTHETIC_VADDR + BIAS, SYNTHETIC_VADDR + BIAS + 0x10000, BIAS, table, 1,
              MIC_CODE_IMAGE},
    .anonymous = {0x600000, 0x601000, 0, NULL, 2, MIC_CODE_ANON},
    .vsyscall = {0xffffffffff600000, 0xffffffffff601000, 0, NULL, 3, MIC_CODE_VSYSCALL},
  };
  struct mic_space space = {find, &world, ++generation};
  struct mic_regs regs = read_registers(c);
  bool full = mic_cursor_u8(c) & 1;
  size_t size = mic_cursor_left(c);
  const uint8_t *bytes = mic_cursor_take(c, size);
  struct mic_stack_copy stack = {bytes, regs.r[MIC_REG_RSP], bytes ? size : 0, full};
  const struct mic_frame *frames;
  size_t count;
  enum mic_end end = mic_unwind_sample(unwinder, &space, &regs, &stack, &frames, &count);
  if (end == MIC_END_NONE || end >= MIC_END_COUNT || count == 0) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t file[INPUT_MAX + 0x4000];
  if (size > INPUT_MAX) return 0;
  struct mic_cursor c = mic_cursor(data, size);
  size_t cfi_size = mic_cursor_u16(&c) & 0x3ff;
  struct synthetic s = {.code_size = CODE_BYTES, .eh_frame_size = cfi_size};
  s.code = mic_cursor_take(&c, CODE_BYTES);
  s.eh_frame = mic_cursor_take(&c, cfi_size);
  if (c.bad) return 0;
  struct mic_elf *elf;
  struct mic_table *table;
  struct mic_error err;
  if (mic_elf_open_memory(file, synthetic_elf(&s, file), "fuzz", &elf, &err) != MIC_OK) return 0;
  mic_table_new(elf, &table, &err);
  unwind(table, &c);
  mic_table_free(table);
  mic_elf_close(elf);
  return 0;
}
