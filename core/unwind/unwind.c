/*
 * unwind.c - the step loop, its pc cache, and the reader of sampled state.
 *
 * The cache answers for (space, address) with all that a step needs in one cache line: what is
 * mapped there, and a copy of the rule.
 */
#include "unwind/unwind.h"

#include <string.h>

#include "capture/names.h"
#include "unwind/step.h"

/* 16,384 entries of a cache line: 1 MiB, what a core's second-level cache holds here; programs run
 * some thousands of distinct return addresses (measured in unwind.md). */
enum { CACHE_BITS = 14, SPACE_BITS = 10 };
/* The red zone (System V ABI, 3.2.2): memory further below the stack pointer is no part of it. */
enum { RED_ZONE_BYTES = 128 };

/* In rule.zero of a cached step: what it was asked for, and what its frame is. */
enum { STEP_EXACT = 1, STEP_NEXT = 2, STEP_KIND = 2 /* bits below the kind */ };

struct space_id {
  const void *data;
  uint64_t generation;
  uint32_t id; /* 0: empty */
};

struct mic_unwinder {
  struct mic_step *cache;
  struct space_id *spaces;
  uint32_t last_space;
  struct mic_frame *frames; /* MIC_FRAMES_MAX */
  size_t count;
  size_t reach;
};

struct sampled {
  struct mic_reader reader; /* first: the loop's reader is cast back */
  const uint8_t *bytes;
  uint64_t address;
  uint64_t readable; /* offsets below it begin 8 readable bytes */
  bool empty, full;
};

struct mic_unwinder *mic_unwinder_new(void) {
  struct mic_unwinder *u = mic_alloc(sizeof *u);
  size_t size = sizeof(struct mic_step) << CACHE_BITS;
  u->cache = aligned_alloc(sizeof(struct mic_step), size);
  if (!u->cache) abort();
  memset(u->cache, 0, size);
  u->spaces = mic_alloc(sizeof *u->spaces << SPACE_BITS);
  u->frames = mic_alloc(sizeof *u->frames * MIC_FRAMES_MAX);
  return u;
}

void mic_unwinder_free(struct mic_unwinder *unwinder) {
  if (!unwinder) return;
  free(unwinder->cache);
  free(unwinder->spaces);
  free(unwinder->frames);
  free(unwinder);
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
  return (a ^ b * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL; /* odd constants; top bits used */
}

static uint32_t space_id(struct mic_unwinder *u, const struct mic_space *space) {
  struct space_id *s =
    &u->spaces[mix((uintptr_t)space->data, space->generation) >> (64 - SPACE_BITS)];
  if (s->id && s->data == space->data && s->generation == space->generation) return s->id;
  if (++u->last_space == 0) { /* ids are used up: forget all that had one */
    memset(u->cache, 0, sizeof *u->cache << CACHE_BITS);
    memset(u->spaces, 0, sizeof *u->spaces << SPACE_BITS);
    u->last_space = 1;
  }
  *s = (struct space_id){space->data, space->generation, u->last_space};
  return s->id;
}

/* What CFI does not say of an image's address, or says of another one, the code may. */
static void resolve_by_code(struct mic_step *s, uint64_t vaddr, bool exact) {
  const struct mic_elf *elf = mic_table_elf(s->table);
  bool covered = s->rule.cfa != MIC_CFA_NONE;
  if (s->rule.flags & MIC_RULE_SIGNAL) return;
  if (mic_code_is_sigreturn(elf, exact ? vaddr : vaddr + 1, exact)) {
    s->rule =
      (struct mic_rule){.cfa = MIC_CFA_SIGRETURN, .flags = MIC_RULE_SIGNAL | MIC_RULE_BY_CODE};
  } else if (!covered && exact && mic_code_follows_syscall(elf, vaddr)) {
    /* In a system call that ends the function: the address past it is the next one's, or none's. */
    s->rule = *mic_table_rule(s->table, vaddr - 1);
  } else if (!covered && mic_code_is_entry(elf, vaddr)) {
    s->rule.cfa = MIC_CFA_ENTRY;
  }
}

static __attribute__((noinline)) void resolve(struct mic_step *s, const struct mic_space *space,
                                              uint32_t id, uint64_t address, bool exact) {
  static const uint8_t cfa_of[] = {MIC_CFA_UNMAPPED, MIC_CFA_ANON, MIC_CFA_NONE, MIC_CFA_NO_IMAGE,
                                   MIC_CFA_VSYSCALL};
  const struct mic_code *code = space->find(space->data, address);
  *s = (struct mic_step){.address = address, .space = id, .module = UINT32_MAX};
  s->rule.cfa = MIC_CFA_UNMAPPED;
  if (code && code->kind < sizeof cfa_of) {
    s->rule.cfa = cfa_of[code->kind];
    s->module = code->kind == MIC_CODE_UNMAPPED ? UINT32_MAX : code->module;
    s->bias = code->kind <= MIC_CODE_ANON ? 0 : code->bias;
    s->table = code->kind == MIC_CODE_IMAGE ? code->table : NULL;
  }
  if (s->table) {
    s->rule = *mic_table_rule(s->table, address - s->bias);
    resolve_by_code(s, address - s->bias, exact);
  }
  bool signal = s->rule.flags & MIC_RULE_SIGNAL;
  uint16_t kind = signal                            ? MIC_LOCATION_SIGNAL
                  : s->rule.cfa == MIC_CFA_ANON     ? MIC_LOCATION_ANON
                  : s->rule.cfa == MIC_CFA_UNMAPPED ? MIC_LOCATION_UNMAPPED
                                                    : MIC_LOCATION_NATIVE;
  /* A signal frame stands for its pc itself, also where it was looked up by pc - 1. */
  uint16_t next = signal && !exact ? STEP_NEXT : 0;
  s->rule.zero = (uint16_t)((exact ? STEP_EXACT : 0) | next | kind << STEP_KIND);
}

static inline const struct mic_step *find_step(struct mic_unwinder *u,
                                               const struct mic_space *space, uint32_t id,
                                               uint64_t address, bool exact) {
  struct mic_step *s = &u->cache[mix(address, id * 2 + exact) >> (64 - CACHE_BITS)];
  if (s->address != address || s->space != id || (s->rule.zero & STEP_EXACT) != exact)
    resolve(s, space, id, address, exact);
  return s;
}

static inline void push_frame(struct mic_unwinder *u, const struct mic_walk *w,
                              const struct mic_step *s) {
  uint64_t address = s->address + (s->rule.zero >> 1 & 1);
  u->frames[u->count++] = (struct mic_frame){
    .address = address,
    .offset = address - s->bias,
    .module = s->module,
    .kind = (uint8_t)(s->rule.zero >> STEP_KIND),
    .evidence = w->evidence,
  };
}

/* Code cannot return to address 0 (vm.mmap_min_addr): nothing called a frame whose proven return
 * address that is, as runtimes begin their own stacks (Go's runtime.goexit).  Frame pointers prove
 * no return address; and where a signal interrupted, 0 was run, as by a call of a null pointer. */
static enum mic_end end_at_zero(const struct mic_walk *w) {
  if (w->exact) return MIC_END_UNMAPPED_CODE;
  return w->evidence == MIC_EVIDENCE_FRAME_POINTER ? MIC_END_FRAME_POINTER : MIC_END_NO_CALLER;
}

static inline __attribute__((always_inline)) enum mic_end
walk(struct mic_unwinder *u, struct mic_walk *w, const struct mic_reader *reader,
     bool (*read)(const struct mic_reader *, uint64_t, uint64_t *)) {
  uint32_t id = space_id(u, w->space);
  for (u->count = 0; u->count < MIC_FRAMES_MAX;) {
    uint64_t address = w->regs.r[MIC_REG_RIP] - !w->exact;
    const struct mic_step *s = find_step(u, w->space, id, address, w->exact);
    push_frame(u, w, s);
    enum mic_end end = mic_step(w, s, reader, read);
    if (end != MIC_END_NONE) return end;
    if (w->regs.r[MIC_REG_RIP] == 0) return end_at_zero(w);
  }
  return MIC_END_DEPTH_LIMIT;
}

static inline bool sampled_read(const struct mic_reader *reader, uint64_t address, uint64_t *out) {
  const struct sampled *s = (const struct sampled *)reader;
  uint64_t offset = address - s->address;
  if (offset >= s->readable) return false;
  memcpy(out, s->bytes + offset, sizeof *out);
  return true;
}

static enum mic_end sampled_missing(const struct mic_reader *reader, uint64_t address) {
  const struct sampled *s = (const struct sampled *)reader;
  if (s->empty) return MIC_END_NO_COPY;
  if (address < s->address)
    return s->address - address <= RED_ZONE_BYTES ? MIC_END_BELOW_COPY : MIC_END_OTHER_STACK;
  return s->full ? MIC_END_COPY_EXHAUSTED : MIC_END_OTHER_STACK;
}

/* A step reads below the stack pointer of the caller it finds, so nothing above the last one was
 * read. */
static size_t reach_of(const struct mic_walk *w, const struct mic_stack_copy *stack,
                       enum mic_end end) {
  uint64_t reach = w->regs.r[MIC_REG_RSP] - stack->address;
  return mic_end_is_whole(end) && !w->other_stack && reach <= stack->size ? (size_t)reach
                                                                          : SIZE_MAX;
}

size_t mic_unwinder_reach(const struct mic_unwinder *unwinder) { return unwinder->reach; }

enum mic_end mic_unwind_sample(struct mic_unwinder *unwinder, const struct mic_space *space,
                               const struct mic_regs *regs, const struct mic_stack_copy *stack,
                               const struct mic_frame **frames, size_t *count) {
  struct sampled sampled = {
    .reader = {sampled_read, sampled_missing},
    .bytes = stack->bytes,
    .address = stack->address,
    .readable = stack->size >= 8 ? stack->size - 7 : 0,
    .empty = stack->size == 0,
    .full = stack->full,
  };
  struct mic_walk w = {.space = space, .regs = *regs, .exact = true};
  enum mic_end end = MIC_END_NO_REGISTERS;
  unwinder->count = 0;
  if (regs->known >> MIC_REG_RIP & 1) {
    if (regs->known >> MIC_REG_RSP & 1) {
      end = walk(unwinder, &w, &sampled.reader, sampled_read);
    } else { /* where it runs is known, but not from where */
      uint32_t id = space_id(unwinder, space);
      uint64_t rip = regs->r[MIC_REG_RIP];
      push_frame(unwinder, &w, find_step(unwinder, space, id, rip, true));
    }
  }
  unwinder->reach = reach_of(&w, stack, end);
  *frames = unwinder->frames;
  *count = unwinder->count;
  return end;
}
