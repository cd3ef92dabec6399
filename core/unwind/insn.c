/* insn.c - decode one instruction by the opcode maps of the Intel SDM, appendix A. */
#include "unwind/insn.h"

#include "base/cursor.h"

enum { LENGTH_MAX = 15 }; /* the processor refuses longer instructions */

/* One-byte opcodes, a character each: '.' no operand bytes; 'm' ModRM; 'b' imm8; 'B' ModRM and
 * imm8; 'z' imm32 (imm16 by operand size); 'Z' ModRM and that; 'd' rel32; 'w' imm16; 'e' enter;
 * 'o' 8-byte address; 'v' imm by operand size up to 64; 'f', 'F' the test groups; ' ' none. */
static const char one_byte[] =
  "mmmmbz  mmmmbz  mmmmbz  mmmmbz  mmmmbz  mmmmbz  mmmmbz  mmmmbz  "  /* 00-3f */
  "                ................   m    zZbB....bbbbbbbbbbbbbbbb"  /* 40-7f: 40-4f are REX */
  "BZ Bmmmmmmmmmmmm.......... .....oooo....bz......bbbbbbbbvvvvvvvv"  /* 80-bf */
  "BBw.  BZe.w..b .mmmm   .mmmmmmmmbbbbbbbbdd b....     .fF......mm"; /* c0-ff */

/* The same for 0F xx. */
static const char two_byte[] =
  "mmmm .... . .m. mmmmmmmmmmmmmmmmmmmm    mmmmmmmm........        "  /* 00-3f */
  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmBBBBmmm.mmmmmmmm"  /* 40-7f */
  "ddddddddddddddddmmmmmmmmmmmmmmmm...mBm  ...mBmmmmmmmmmmmmmBmmmmm"  /* 80-bf */
  "mmBmBBBm........mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"; /* c0-ff */
_Static_assert(sizeof one_byte == 257 && sizeof two_byte == 257, "one character an opcode");

static int32_t sign_extend(uint8_t byte) { return (byte ^ 0x80) - 0x80; }

static void read_memory_operand(struct mic_cursor *c, uint8_t rex, struct mic_insn *out) {
  uint8_t base = out->rm & 7;
  if (base == 4) { /* SIB */
    uint8_t sib = mic_cursor_u8(c);
    uint8_t index = (uint8_t)((sib >> 3 & 7) | (rex & 2) << 2);
    out->index = index == 4 ? MIC_INSN_NO_REG : index;
    base = sib & 7;
    out->base = (uint8_t)(base | (rex & 1) << 3);
    if (base == 5 && out->mod == 0) out->base = MIC_INSN_NO_REG;
  } else {
    out->base = out->rm;
    out->rip_relative = base == 5 && out->mod == 0;
    if (out->rip_relative) out->base = MIC_INSN_NO_REG;
  }
  if (out->address32) out->base = out->index = MIC_INSN_NO_REG;
  if (out->mod == 1) out->displacement = sign_extend(mic_cursor_u8(c));
  if (out->mod == 2 || (base == 5 && out->mod == 0)) out->displacement = (int32_t)mic_cursor_u32(c);
}

static void read_modrm(struct mic_cursor *c, uint8_t rex, struct mic_insn *out) {
  uint8_t modrm = mic_cursor_u8(c);
  out->has_modrm = true;
  out->mod = modrm >> 6;
  out->reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
  out->rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
  if (out->mod != 3) read_memory_operand(c, rex, out);
}

static bool read_operands(struct mic_cursor *c, char form, uint8_t rex, struct mic_insn *out) {
  if (form == 'm' || form == 'B' || form == 'Z' || form == 'f' || form == 'F')
    read_modrm(c, rex, out);
  if (form == 'f') form = (out->reg & 7) < 2 ? 'b' : '.'; /* test has an immediate, not does not */
  if (form == 'F') form = (out->reg & 7) < 2 ? 'z' : '.';
  switch (form) {
  case '.':
  case 'm': return true;
  case 'b':
  case 'B': out->immediate = sign_extend(mic_cursor_u8(c)); return true;
  case 'w': out->immediate = mic_cursor_u16(c); return true;
  case 'd': out->immediate = (int32_t)mic_cursor_u32(c); return true;
  case 'v':
    if (out->wide) {
      out->immediate = (int64_t)mic_cursor_u64(c);
      return true;
    } /* fall through */
  case 'z':
  case 'Z':
    out->immediate = out->operand16 ? (int16_t)mic_cursor_u16(c) : (int32_t)mic_cursor_u32(c);
    return true;
  case 'e': mic_cursor_take(c, 3); return true;
  case 'o': mic_cursor_take(c, out->address32 ? 4 : 8); return true;
  default: return false;
  }
}

/* VEX (c4, c5) and EVEX (62) prefixes; gives REX bits as R=4 X=2 B=1. */
static bool read_vector_prefix(struct mic_cursor *c, uint8_t first, uint8_t *rex,
                               struct mic_insn *out) {
  out->vector = true;
  uint8_t p = mic_cursor_u8(c);
  *rex = (uint8_t)(~p >> 5 & 7);
  out->map = MIC_MAP_0F;
  if (first == 0xc5) {
    *rex &= 4;
    return true;
  }
  out->map = p & (first == 0x62 ? 0x07 : 0x1f);
  out->wide = mic_cursor_u8(c) >> 7;
  if (first == 0x62) mic_cursor_u8(c);
  return out->map >= MIC_MAP_0F && out->map <= MIC_MAP_0F3A;
}

static uint8_t read_prefixes(struct mic_cursor *c, struct mic_insn *out) {
  for (;;) {
    uint8_t b = mic_cursor_u8(c);
    if (b == 0x66)
      out->operand16 = true;
    else if (b == 0x67)
      out->address32 = true;
    else if (b != 0xf2 && b != 0xf3 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 &&
             b != 0x64 && b != 0x65 && b != 0xf0)
      return b;
  }
}

bool mic_insn_decode(const uint8_t *bytes, size_t left, struct mic_insn *out) {
  *out = (struct mic_insn){.base = MIC_INSN_NO_REG, .index = MIC_INSN_NO_REG};
  struct mic_cursor c = mic_cursor(bytes, left < LENGTH_MAX ? left : LENGTH_MAX);
  uint8_t rex = 0, b = read_prefixes(&c, out);
  if ((b & 0xf0) == 0x40) {
    rex = b & 15;
    out->wide = rex >> 3;
    out->rex = rex;
    b = mic_cursor_u8(&c);
  }
  if (b == 0xc4 || b == 0xc5 || b == 0x62) {
    if (!read_vector_prefix(&c, b, &rex, out)) return false;
    b = mic_cursor_u8(&c);
  } else if (b == 0x0f) {
    out->map = MIC_MAP_0F;
    b = mic_cursor_u8(&c);
    if (b == 0x38 || b == 0x3a) {
      out->map = b == 0x38 ? MIC_MAP_0F38 : MIC_MAP_0F3A;
      b = mic_cursor_u8(&c);
    }
  }
  out->opcode = b;
  char form = out->map == MIC_MAP_ONE    ? one_byte[b]
              : out->map == MIC_MAP_0F   ? two_byte[b]
              : out->map == MIC_MAP_0F38 ? 'm'
                                         : 'B';
  if (!read_operands(&c, form, rex, out) || c.bad) return false;
  out->length = (uint8_t)mic_cursor_offset(&c);
  return true;
}
