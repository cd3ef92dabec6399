/*
 * rule.h - one step of unwinding as data, in a form that any executor can walk.
 *
 * A rule is 32 bytes without pointers; an image has some hundreds of distinct ones, so a row of
 * its table needs only {pc offset u32, rule u16}.  What almost every rule says fits the fixed
 * part: the CFA is a register plus an offset, and registers that calls preserve are saved at
 * multiples of 8 from it.  The rest goes to side arrays by index: extras and expressions.
 */
#ifndef MIC_UNWIND_RULE_H
#define MIC_UNWIND_RULE_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum mic_cfa {
  MIC_CFA_NONE = 0, /* no call-frame information covers the pc */
  MIC_CFA_MALFORMED = 1,
  MIC_CFA_UNSUPPORTED = 2,
  MIC_CFA_OUTERMOST = 3,  /* the return address is undefined: nothing called this */
  MIC_CFA_REGISTER = 4,   /* cfa_register + cfa_offset */
  MIC_CFA_PLT = 5,        /* rsp + 8 + ((rip & 15) >= cfa_offset ? 8 : 0): a linker's PLT stub */
  MIC_CFA_SIGRETURN = 6,  /* all registers stand in the ucontext at rsp; no extras */
  MIC_CFA_EXPRESSION = 7, /* cfa_offset is an expression */
  /* Not from tables: what the unwinder's pc cache says of code without an image. */
  MIC_CFA_UNMAPPED = 8,
  MIC_CFA_ANON = 9,
  MIC_CFA_NO_IMAGE = 10,
  MIC_CFA_VSYSCALL = 11,
  MIC_CFA_ENTRY = 12 /* the image's entry, proven by its code */
};

enum { MIC_RULE_SIGNAL = 1 }; /* flags: augmentation 'S' */

/* The registers that have a slot, rip first: those a call preserves (System V ABI, 3.2.1). */
enum { MIC_SLOT_RIP = 0, MIC_SLOT_COUNT = 7 };
#define MIC_SLOT_REGISTERS \
  { 16, 3, 6, 12, 13, 14, 15 } /* rip rbx rbp r12-r15, DWARF's numbers */

struct mic_rule {
  uint8_t cfa; /* enum mic_cfa */
  uint8_t cfa_register;
  uint8_t flags;
  uint8_t saved; /* bit i: slot register i is at CFA + 8 * slot[i]; else it kept its value */
  int32_t cfa_offset;
  int16_t slot[8]; /* MIC_SLOT_COUNT are used */
  uint32_t extra;  /* first of extra_count extras, which come before what the slots say */
  uint16_t extra_count;
  uint16_t zero;
};
_Static_assert(sizeof(struct mic_rule) == 32, "a kernel program reads rules as well");

enum mic_extra_how {
  MIC_EXTRA_UNDEFINED = 1,
  MIC_EXTRA_SAME = 2,
  MIC_EXTRA_AT = 3,            /* saved at CFA + value */
  MIC_EXTRA_IS = 4,            /* equals CFA + value */
  MIC_EXTRA_REGISTER = 5,      /* is in register value */
  MIC_EXTRA_AT_EXPRESSION = 6, /* saved where expression value says */
  MIC_EXTRA_IS_EXPRESSION = 7  /* equals what expression value says */
};
struct mic_extra {
  uint8_t reg;
  uint8_t how; /* enum mic_extra_how */
  uint16_t zero;
  int32_t value;
};
_Static_assert(sizeof(struct mic_extra) == 8, "a kernel program reads extras as well");

/* The dictionary of an image's rules. */
struct mic_rules {
  struct mic_interner keys; /* rule and extras as bytes; a rule's id is its key's */
  MIC_VEC(struct mic_rule) rules;
  MIC_VEC(struct mic_extra) extras;
  struct mic_interner expressions; /* DWARF expressions by content */
};

enum { MIC_RULES_MAX = 65535 }; /* ids are u16; 1,280 system images have at most 2,250 */
/* The first ids of every dictionary. */
enum { MIC_RULE_ID_NONE = 0, MIC_RULE_ID_MALFORMED = 1, MIC_RULE_ID_UNSUPPORTED = 2 };

void mic_rules_init(struct mic_rules *rules);
void mic_rules_free(struct mic_rules *rules);
/* The id of a rule with these extras; MIC_RULE_ID_UNSUPPORTED when the dictionary is full. */
uint16_t mic_rules_intern(struct mic_rules *rules, const struct mic_rule *rule,
                          const struct mic_extra *extras, size_t extra_count);
size_t mic_rules_memory(const struct mic_rules *rules);

#endif
