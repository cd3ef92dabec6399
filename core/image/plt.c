/*
 * plt.c - stubs of procedure linkage tables by their instructions.
 *
 * A stub jumps through its slot, or pushes the slot's number and jumps to the table's head, which
 * pushes once more and jumps to the resolver (System V ABI for AMD64, 5.2, and its IBT form).
 */
#include "image/plt.h"

#include <string.h>

/* The parts a stub is made of, as they may follow each other. */
enum part {
  NONE,
  BRANCH,      /* f3 0f 1e fa: endbr64 */
  JUMP_SLOT,   /* [f2] ff 25 rel32: jmp *slot */
  PUSH_NUMBER, /* 68 imm32 */
  JUMP_HEAD,   /* [f2] e9 rel32 */
  PUSH_MAP     /* ff 35 rel32: the head pushes its link map */
};

static enum part part_at(const struct mic_elf *elf, uint64_t vaddr, uint64_t *length) {
  static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  size_t left;
  const uint8_t *b = mic_elf_at(elf, vaddr, &left);
  *length = 0;
  if (!b || left < 7) return NONE;
  uint64_t bnd = b[0] == 0xf2;
  *length = 6 + bnd;
  if (b[bnd] == 0xff && b[bnd + 1] == 0x25) return JUMP_SLOT;
  *length = 5 + bnd;
  if (b[bnd] == 0xe9) return JUMP_HEAD;
  *length = 5;
  if (b[0] == 0x68) return PUSH_NUMBER;
  *length = 6;
  if (b[0] == 0xff && b[1] == 0x35) return PUSH_MAP;
  *length = sizeof endbr64;
  return memcmp(b, endbr64, sizeof endbr64) == 0 ? BRANCH : NONE;
}

/* The bytes before vaddr are that part. */
static bool follows(const struct mic_elf *elf, uint64_t vaddr, enum part part) {
  for (uint64_t length = 4; length <= 7; length++) {
    uint64_t found;
    if (part_at(elf, vaddr - length, &found) == part && found == length) return true;
  }
  return false;
}

static bool is_slot_jump(const struct mic_elf *elf, uint64_t vaddr, uint64_t *pushed) {
  if (follows(elf, vaddr, PUSH_MAP)) {
    *pushed = 16;
    return true;
  }
  return vaddr % 8 == 0 || (vaddr % 8 == 4 && follows(elf, vaddr, BRANCH));
}

bool mic_plt_is_stub(const struct mic_elf *elf, uint64_t vaddr, uint64_t *pushed) {
  uint64_t length, next_length;
  enum part part = part_at(elf, vaddr, &length);
  enum part next = part_at(elf, vaddr + length, &next_length);
  *pushed = 0;
  switch (part) {
  case JUMP_SLOT: return is_slot_jump(elf, vaddr, pushed) && !mic_elf_damaged(elf);
  case BRANCH: return vaddr % 16 == 0 && (next == JUMP_SLOT || next == PUSH_NUMBER);
  case PUSH_NUMBER:
    return next == JUMP_HEAD && (follows(elf, vaddr, JUMP_SLOT) || follows(elf, vaddr, BRANCH));
  case JUMP_HEAD: *pushed = 8; return follows(elf, vaddr, PUSH_NUMBER);
  case PUSH_MAP: *pushed = 8; return vaddr % 16 == 0 && next == JUMP_SLOT;
  default: return false;
  }
}
