/*
 * insn.h - the length and operands of one x86-64 instruction.
 *
 * Enough to step through compiled code and to know what an instruction writes to general
 * registers; not a disassembler.  Intel SDM volume 2, appendix A.
 */
#ifndef MIC_UNWIND_INSN_H
#define MIC_UNWIND_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIC_INSN_NO_REG = 0xff };
enum mic_insn_map { MIC_MAP_ONE = 0, MIC_MAP_0F = 1, MIC_MAP_0F38 = 2, MIC_MAP_0F3A = 3 };

struct mic_insn {
  uint8_t length;
  uint8_t map; /* enum mic_insn_map */
  uint8_t opcode;
  bool vector; /* VEX or EVEX */
  bool wide;   /* REX.W */
  bool operand16;
  bool address32; /* base and index then are no plain registers: none is given */
  uint8_t rex;    /* its low four bits */
  bool has_modrm;
  uint8_t mod, reg,
    rm;                /* reg and rm extended by REX, in hardware order (rax rcx rdx rbx rsp ...) */
  uint8_t base, index; /* of a memory operand; MIC_INSN_NO_REG */
  bool rip_relative;
  int32_t displacement;
  int64_t immediate;
};

/* False for what is no instruction, or not one of 64-bit user code, or is cut short. */
bool mic_insn_decode(const uint8_t *bytes, size_t left, struct mic_insn *out);

#endif
