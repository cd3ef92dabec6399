/* code.c - proofs by decoding instructions. */
#include "unwind/code.h"

#include <elf.h>
#include <string.h>

#include "image/plt.h"
#include "unwind/insn.h"

/* Hardware's register numbers to DWARF's (System V ABI, figure 3.36). */
static const uint8_t dwarf_of[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
enum { HW_RAX = 0, HW_RCX = 1, HW_RDX = 2, HW_RSP = 4, HW_RBP = 5, HW_R11 = 11 };

/* An epilogue of every register, vector restores among them, has under 40 instructions. */
enum { RUN_MAX = 64 };
/* ld.so's entry, the longest seen, runs on for 61 bytes to its jump. */
enum { ENTRY_MAX_BYTES = 256 };
/* What is looked through to see that a pc is in a function; the larger ones are left unproven. */
enum { FUNCTION_MAX_BYTES = 65536 };
/* Compilers schedule a few instructions between push %rbp and mov %rsp,%rbp. */
enum { PROLOGUE_MAX_BYTES = 32 };

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t push_rbp = 0x55;
static const uint8_t mov_rsp_rbp[] = {0x48, 0x89, 0xe5};
static const uint8_t mov_rsp_rbp_other[] = {0x48, 0x8b, 0xec}; /* the same, the other encoding */

struct run {
  struct mic_table *table;
  const struct mic_reader *reader;
  struct mic_regs *regs;
  uint64_t pc, cfa;
  bool popped; /* it is in an epilogue */
};

enum outcome { GO_ON, RETURNS, FAILS };

static uint64_t *reg_at(struct run *r, uint8_t hardware) { return &r->regs->r[dwarf_of[hardware]]; }

static bool knows(const struct run *r, uint8_t hardware) {
  return r->regs->known >> dwarf_of[hardware] & 1;
}

static void forget(struct run *r, uint8_t hardware) {
  r->regs->known &= ~(1U << dwarf_of[hardware]);
}

static void set(struct run *r, uint8_t hardware, uint64_t value) {
  *reg_at(r, hardware) = value;
  r->regs->known |= 1U << dwarf_of[hardware];
}

static enum outcome pop(struct run *r, uint8_t hardware) {
  uint64_t value, *rsp = reg_at(r, HW_RSP);
  if (hardware == HW_RSP) return FAILS;
  if (r->reader->read(r->reader, *rsp, &value))
    set(r, hardware, value);
  else
    forget(r, hardware);
  *rsp += 8;
  r->popped = true;
  return GO_ON;
}

/* A write to a register by an instruction whose result is not followed. */
static enum outcome clobber(struct run *r, uint8_t hardware) {
  if (hardware == HW_RSP) return FAILS;
  forget(r, hardware);
  return GO_ON;
}

static enum outcome move(struct run *r, uint8_t to, uint8_t from, bool wide) {
  if (!wide || !knows(r, from)) return clobber(r, to);
  set(r, to, *reg_at(r, from));
  return GO_ON;
}

static enum outcome load_address(struct run *r, const struct mic_insn *i) {
  if (!i->wide || i->base == MIC_INSN_NO_REG || i->index != MIC_INSN_NO_REG || !knows(r, i->base))
    return clobber(r, i->reg);
  set(r, i->reg, *reg_at(r, i->base) + (uint64_t)(int64_t)i->displacement);
  return GO_ON;
}

static enum outcome finish(struct run *r) {
  uint64_t *rsp = reg_at(r, HW_RSP);
  if (r->cfa && *rsp + 8 != r->cfa) return FAILS;
  uint64_t address;
  if (!r->reader->read(r->reader, *rsp, &address)) return FAILS;
  *rsp += 8;
  r->regs->r[MIC_REG_RIP] = address;
  r->regs->known |= 1U << MIC_REG_RIP;
  return RETURNS;
}

/* By call-frame information the frame at vaddr is a return address and nothing more. */
static bool is_bare(struct run *r, uint64_t vaddr) {
  const struct mic_rule *rule = mic_table_rule(r->table, vaddr);
  if (rule->cfa == MIC_CFA_PLT)
    return (vaddr & 15) < (uint64_t)rule->cfa_offset && rule->saved == 1 && !rule->extra_count;
  return rule->cfa == MIC_CFA_REGISTER && rule->cfa_register == MIC_REG_RSP &&
         rule->cfa_offset == 8 && rule->saved == 1 && rule->slot[MIC_SLOT_RIP] == -1 &&
         !rule->extra_count;
}

/* Without call-frame information the one way just goes on at a direct jump's target. */
static enum outcome jump(struct run *r, const struct mic_insn *i, bool direct) {
  if (direct) r->pc += (uint64_t)i->immediate;
  bool bare = r->cfa && *reg_at(r, HW_RSP) + 8 == r->cfa;
  if (bare && (r->popped || (direct && is_bare(r, r->pc)))) return finish(r);
  return direct ? GO_ON : FAILS;
}

/* A store: the compiler knows that no pointer leads to return addresses and saved registers; what
 * goes through rsp or rbp is the frame's own. */
static enum outcome store(const struct mic_insn *i) {
  return i->base == HW_RSP || i->base == HW_RBP ? FAILS : GO_ON;
}

static enum outcome write_rm(struct run *r, const struct mic_insn *i) {
  return i->mod == 3 ? clobber(r, i->rm) : store(i);
}

/* Of the byte registers, numbers 4 to 7 are ah to bh or spl to dil, by prefix: not told apart. */
static enum outcome write_rm_byte(struct run *r, const struct mic_insn *i) {
  return i->mod == 3 && i->rm >= 4 && i->rm <= 7 ? FAILS : write_rm(r, i);
}

/* The eight operations of 00-3f, 81 and 83; the last, cmp, writes nothing. */
static enum outcome arithmetic(struct run *r, const struct mic_insn *i) {
  uint8_t op = i->opcode;
  if (op == 0x81 || op == 0x83) {
    uint8_t what = i->reg & 7;
    if (what == 7) return GO_ON;
    if (i->mod != 3 || i->rm != HW_RSP) return write_rm(r, i);
    /* add $n,%rsp takes a frame down; sub sets one up, where the run begins at a function's start:
     * with a CFA given the frame is there already. */
    if ((what != 0 && (what != 5 || r->cfa)) || !i->wide) return FAILS;
    *reg_at(r, HW_RSP) += what ? -(uint64_t)i->immediate : (uint64_t)i->immediate;
    return GO_ON;
  }
  if (op >= 0x40 || (op & 7) >= 6) return FAILS;
  if ((op & 0x38) == 0x38) return GO_ON;
  if ((op & 7) >= 4) return clobber(r, HW_RAX);
  if (!(op & 1) && op & 2 && i->reg >= 4 && i->reg <= 7)
    return FAILS; /* a byte register, as above */
  if (op & 2) return clobber(r, i->reg);
  return op & 1 ? write_rm(r, i) : write_rm_byte(r, i);
}

static enum outcome run_one_byte(struct run *r, const struct mic_insn *i, uint8_t low) {
  uint8_t op = i->opcode;
  if (op >= 0x58 && op <= 0x5f) return i->operand16 ? FAILS : pop(r, low);
  if (op >= 0xb8 && op <= 0xbf) return clobber(r, low); /* mov $n,%r */
  switch (op) {
  case 0x90:
  case 0x84:
  case 0x85:
  case 0xa8:
  case 0xa9: return GO_ON; /* nop, test */
  case 0xc3: return finish(r);
  case 0xeb:
  case 0xe9: return jump(r, i, true);
  case 0xff: return (i->reg & 7) == 4 ? jump(r, i, false) : FAILS;
  case 0xc9: /* leave */
    if (!knows(r, HW_RBP)) return FAILS;
    *reg_at(r, HW_RSP) = *reg_at(r, HW_RBP);
    return pop(r, HW_RBP);
  case 0x89: return i->mod == 3 ? move(r, i->rm, i->reg, i->wide) : store(i);
  case 0x8b: return i->mod == 3 ? move(r, i->reg, i->rm, i->wide) : clobber(r, i->reg);
  case 0x8d: return load_address(r, i);
  case 0x63: return clobber(r, i->reg); /* movslq */
  case 0xc7:
  case 0xc1:
  case 0xd1: return write_rm(r, i); /* mov, shifts */
  case 0x88:
  case 0xc6:
  case 0xc0:
  case 0xd0: return write_rm_byte(r, i);
  default: return arithmetic(r, i);
  }
}

/* SSE and AVX instructions of 0F xx that read memory and write vector registers only. */
static bool writes_vectors_only(uint8_t op) {
  return op == 0x10 || op == 0x12 || op == 0x28 || op == 0x2e || op == 0x2f || op == 0x6e ||
         op == 0x6f || op == 0x77 || op == 0xef || (op >= 0x51 && op <= 0x5f);
}

static enum outcome run_two_byte(struct run *r, const struct mic_insn *i) {
  uint8_t op = i->opcode;
  if (writes_vectors_only(op)) return GO_ON;
  if (op == 0x11 || op == 0x29 || op == 0x7f || op == 0xd6) /* vector stores */
    return i->mod == 3 ? GO_ON : store(i);
  if (i->vector) return FAILS;
  if (op >= 0x40 && op <= 0x4f) return clobber(r, i->reg);  /* cmov */
  if (op >= 0x90 && op <= 0x9f) return write_rm_byte(r, i); /* setcc */
  switch (op) {
  case 0x1e:
  case 0x1f: return GO_ON; /* endbr64, nop */
  case 0x05:               /* syscall (SDM): rcx and r11 change; the kernel sets rax */
    clobber(r, HW_RAX);
    clobber(r, HW_RCX);
    return clobber(r, HW_R11);
  case 0xb6:
  case 0xb7:
  case 0xbe:
  case 0xbf:
  case 0xaf: return clobber(r, i->reg); /* movzx, movsx, imul */
  default: return FAILS;
  }
}

bool mic_code_run_to_return(const struct mic_code_at *at, struct mic_regs *regs,
                            const struct mic_reader *reader) {
  const struct mic_elf *elf = mic_table_elf(at->table);
  struct run r = {at->table, reader, regs, at->vaddr, at->cfa, at->popped};
  if (!knows(&r, HW_RSP)) return false;
  for (int n = 0; n < RUN_MAX; n++) {
    size_t left;
    struct mic_insn i;
    const uint8_t *bytes = mic_elf_at(elf, r.pc, &left);
    if (!bytes || !mic_insn_decode(bytes, left, &i)) return false;
    r.pc += i.length;
    uint8_t low = (uint8_t)((i.opcode & 7) | (i.rex & 1) << 3); /* of opcodes that name one */
    enum outcome o = i.map == MIC_MAP_ONE  ? run_one_byte(&r, &i, low)
                     : i.map == MIC_MAP_0F ? run_two_byte(&r, &i)
                                           : FAILS;
    if (o != GO_ON) return o == RETURNS && !mic_elf_damaged(elf);
  }
  return false;
}

/* size bytes at vaddr, or NULL. */
static const uint8_t *bytes_at(const struct mic_elf *elf, uint64_t vaddr, size_t size) {
  size_t left;
  const uint8_t *bytes = mic_elf_at(elf, vaddr, &left);
  return bytes && left >= size ? bytes : NULL;
}

static bool has_bytes(const struct mic_elf *elf, uint64_t vaddr, const uint8_t *want, size_t size) {
  const uint8_t *bytes = bytes_at(elf, vaddr, size);
  return bytes && memcmp(bytes, want, size) == 0;
}

static bool is_mov_rsp_rbp(const struct mic_elf *elf, uint64_t vaddr) {
  return has_bytes(elf, vaddr, mov_rsp_rbp, sizeof mov_rsp_rbp) ||
         has_bytes(elf, vaddr, mov_rsp_rbp_other, sizeof mov_rsp_rbp_other);
}

bool mic_code_follows_pop(const struct mic_elf *elf, uint64_t vaddr) {
  const uint8_t *b = bytes_at(elf, vaddr - 2, 2);
  if (!b) return false;
  if (b[0] == 0x41) return b[1] >= 0x5c && b[1] <= 0x5f; /* r12-r15 */
  return b[1] == 0x5b || b[1] == 0x5d;                   /* rbx, rbp */
}

/* Neither jumps, nor calls, nor moves the stack pointer. */
static bool is_harmless(const struct mic_insn *i) {
  uint8_t op = i->opcode;
  if (i->map == MIC_MAP_0F) return op < 0x80 || op > 0x8f; /* jcc */
  if (i->map != MIC_MAP_ONE) return true;
  bool writes_rsp = i->has_modrm && i->mod == 3 && i->rm == HW_RSP;
  bool jumps = (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xeb) || op == 0xc2 || op == 0xc3;
  bool stacks = (op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a || op == 0x8f || op == 0xc9;
  return !writes_rsp && !jumps && !stacks && op != 0xff && op != 0xcc && op != 0xf4;
}

/* From vaddr on, harmless instructions lead to mov %rsp,%rbp; *pushes when a push of rbp is among
 * them. */
static bool leads_to_mov(const struct mic_elf *elf, uint64_t vaddr, bool *pushes) {
  *pushes = false;
  struct mic_insn i;
  for (uint64_t at = vaddr; at < vaddr + PROLOGUE_MAX_BYTES; at += i.length) {
    size_t left;
    const uint8_t *b = mic_elf_at(elf, at, &left);
    if (is_mov_rsp_rbp(elf, at)) return true;
    if (!b || !mic_insn_decode(b, left, &i)) return false;
    if (*b == push_rbp && !*pushes)
      *pushes = true;
    else if (!is_harmless(&i))
      return false;
  }
  return false;
}

/* A push of rbp before vaddr leads to it through harmless instructions. */
static bool comes_from_push(const struct mic_elf *elf, uint64_t vaddr) {
  for (uint64_t back = 1; back <= PROLOGUE_MAX_BYTES; back++) {
    if (!has_bytes(elf, vaddr - back, &push_rbp, 1)) continue;
    uint64_t at = vaddr - back + 1;
    while (at < vaddr) {
      size_t left;
      struct mic_insn i;
      const uint8_t *b = mic_elf_at(elf, at, &left);
      if (!b || !mic_insn_decode(b, left, &i) || !is_harmless(&i)) break;
      at += i.length;
    }
    if (at == vaddr) return true;
  }
  return false;
}

enum mic_code_place mic_code_place(const struct mic_elf *elf, uint64_t vaddr) {
  bool pushes;
  if (!leads_to_mov(elf, vaddr, &pushes) || mic_elf_damaged(elf)) return MIC_PLACE_UNKNOWN;
  if (pushes) return MIC_PLACE_ENTRY;
  return comes_from_push(elf, vaddr) ? MIC_PLACE_PUSHED_RBP : MIC_PLACE_UNKNOWN;
}

bool mic_code_follows_call(const struct mic_elf *elf, uint64_t vaddr, uint64_t *target) {
  static const uint8_t lengths[] = {2, 3, 4, 6, 7}; /* of ff /2 without prefixes (SDM, call) */
  *target = 0;
  const uint8_t *b = bytes_at(elf, vaddr - 5, 5);
  if (b && b[0] == 0xe8) {
    int32_t relative;
    memcpy(&relative, b + 1, sizeof relative);
    *target = vaddr + (uint64_t)(int64_t)relative;
    return true;
  }
  for (size_t k = 0; k < sizeof lengths; k++) {
    struct mic_insn i;
    b = bytes_at(elf, vaddr - lengths[k], lengths[k]);
    if (b && b[0] == 0xff && mic_insn_decode(b, lengths[k], &i) && i.length == lengths[k] &&
        (i.reg & 7) == 2)
      return true;
  }
  return false;
}

static bool runs_on(const struct mic_insn *i) {
  if (i->map != MIC_MAP_ONE) return true;
  bool jumps = i->opcode == 0xeb || i->opcode == 0xe9 || i->opcode == 0xc3 || i->opcode == 0xc2 ||
               i->opcode == 0xcc || (i->opcode == 0xff && (i->reg & 6) == 4);
  return !jumps;
}

static bool sets_frame_pointer(const struct mic_elf *elf, uint64_t vaddr) {
  if (!has_bytes(elf, vaddr, &push_rbp, 1)) return false;
  struct mic_insn i = {.length = 1};
  for (uint64_t at = vaddr + 1; at < vaddr + PROLOGUE_MAX_BYTES; at += i.length) {
    if (is_mov_rsp_rbp(elf, at)) return true;
    size_t left;
    const uint8_t *b = mic_elf_at(elf, at, &left);
    if (!b || !mic_insn_decode(b, left, &i)) return false;
  }
  return false;
}

/* No other function begins between: a push of rbp where nothing runs on into it. */
static bool is_same_function(const struct mic_elf *elf, uint64_t start, uint64_t pc) {
  bool ended = false;
  if (pc < start || pc - start > FUNCTION_MAX_BYTES) return false;
  for (uint64_t at = start; at < pc;) {
    size_t left;
    struct mic_insn i;
    const uint8_t *b = mic_elf_at(elf, at, &left);
    if (!b || !mic_insn_decode(b, left, &i)) return false;
    bool pads = (i.map == MIC_MAP_ONE && (i.opcode == 0x90 || i.opcode == 0xcc)) ||
                (i.map == MIC_MAP_0F && (i.opcode == 0x1e || i.opcode == 0x1f));
    if (ended && *b == push_rbp) return false;
    if (!pads) ended = !runs_on(&i);
    at += i.length;
  }
  return true;
}

enum mic_code_keeps mic_code_keeps_frame_pointer(const struct mic_elf *elf, uint64_t vaddr,
                                                 uint64_t pc) {
  uint64_t start = vaddr, pushed;
  if (mic_plt_is_stub(elf, vaddr, &pushed)) return MIC_KEEPS_UNKNOWN;
  if (has_bytes(elf, start, endbr64, sizeof endbr64)) start += sizeof endbr64;
  bool proven = sets_frame_pointer(elf, start) && is_same_function(elf, start, pc);
  return proven ? MIC_KEEPS_PROVEN : MIC_KEEPS_NOT;
}

/* What stands in ModRM.reg is part of the opcode (SDM volume 2, appendix A.4). */
static bool extends_opcode(const struct mic_insn *i) {
  uint8_t o = i->opcode;
  if (i->vector) return false;
  if (i->map == MIC_MAP_0F)
    return o == 0x0d || (o >= 0x18 && o <= 0x1f) || o == 0xae || o == 0xba || o == 0xc7;
  return i->map == MIC_MAP_ONE &&
         ((o >= 0x80 && o <= 0x83) || o == 0x8f || o == 0xc0 || o == 0xc1 || o == 0xc6 ||
          o == 0xc7 || (o >= 0xd0 && o <= 0xd3) || (o >= 0xd8 && o <= 0xdf) || o == 0xf6 ||
          o == 0xf7 || o == 0xfe || o == 0xff);
}

/* The registers, by hardware's numbers, that an instruction names other than in an address. */
static uint32_t registers_named(const struct mic_insn *i) {
  uint32_t mask = 0;
  bool in_opcode = (i->map == MIC_MAP_ONE && (i->opcode & 0xf8) == 0x90) ||
                   (i->map == MIC_MAP_ONE && (i->opcode & 0xf0) == 0xb0) ||
                   (i->map == MIC_MAP_0F && (i->opcode & 0xf8) == 0xc8);
  if (in_opcode) mask |= 1U << ((i->opcode & 7) | (i->rex & 1) << 3);
  if (!i->has_modrm) return mask;
  if (!extends_opcode(i)) mask |= 1U << (i->reg & 15);
  if (i->mod == 3) mask |= 1U << (i->rm & 15);
  return mask;
}

/* It pushes, pops or calls. */
static bool moves_stack(const struct mic_insn *i) {
  uint8_t o = i->opcode, extension = i->reg & 7;
  if (i->map == MIC_MAP_0F) return o == 0xa0 || o == 0xa1 || o == 0xa8 || o == 0xa9;
  if (i->map != MIC_MAP_ONE) return false;
  return (o & 0xf0) == 0x50 || o == 0x68 || o == 0x6a || o == 0x8f || o == 0x9c || o == 0x9d ||
         o == 0xc8 || o == 0xc9 || o == 0xe8 ||
         (o == 0xff && (extension == 2 || extension == 3 || extension == 6));
}

bool mic_code_is_leaf(const struct mic_elf *elf, uint64_t vaddr, uint64_t pc, uint32_t *named) {
  uint32_t mask = 0;
  *named = 0;
  if (pc < vaddr || pc - vaddr > FUNCTION_MAX_BYTES) return false;
  while (vaddr < pc) {
    size_t left;
    struct mic_insn i;
    const uint8_t *b = mic_elf_at(elf, vaddr, &left);
    if (!b || !mic_insn_decode(b, left, &i) || moves_stack(&i) || !runs_on(&i)) return false;
    if (i.map == MIC_MAP_0F && i.opcode == 0x0b) return false; /* ud2 */
    mask |= registers_named(&i);
    vaddr += i.length;
  }
  for (uint32_t hardware = 0; hardware < 16; hardware++)
    if (mask >> hardware & 1) *named |= 1U << dwarf_of[hardware];
  return vaddr == pc && !(mask >> HW_RSP & 1) && !mic_elf_damaged(elf);
}

bool mic_code_is_sigreturn(const struct mic_elf *elf, uint64_t vaddr, bool within) {
  static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static const uint8_t narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  if (has_bytes(elf, vaddr, wide, sizeof wide) || has_bytes(elf, vaddr, narrow, sizeof narrow))
    return true;
  for (uint64_t past = 0; within && past <= 2; past += 2) /* the system call has 2 bytes */
    if (has_bytes(elf, vaddr - sizeof wide + 2 - past, wide, sizeof wide) ||
        has_bytes(elf, vaddr - sizeof narrow + 2 - past, narrow, sizeof narrow))
      return true;
  return false;
}

bool mic_code_follows_syscall(const struct mic_elf *elf, uint64_t vaddr) {
  static const uint8_t syscall[] = {0x0f, 0x05};
  return has_bytes(elf, vaddr - sizeof syscall, syscall, sizeof syscall);
}

bool mic_code_is_entry(const struct mic_elf *elf, uint64_t vaddr) {
  uint64_t at = mic_elf_entry(elf);
  if (at == 0 || vaddr - at >= ENTRY_MAX_BYTES) return false;
  for (;;) {
    size_t left;
    struct mic_insn i;
    const uint8_t *b = mic_elf_at(elf, at, &left);
    if (!b || !mic_insn_decode(b, left, &i)) return false;
    if (vaddr - at < i.length) return !mic_elf_damaged(elf);
    if (!runs_on(&i)) return false;
    at += i.length;
  }
}
