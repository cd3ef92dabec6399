/*
 * symbols.h - what an address of an image means: function, inlined functions, lines.
 *
 * Reads .symtab, .dynsym, .gnu_debugdata, and the separate debug file that is proven by build ID
 * or debuglink CRC; DWARF 2 to 5, split DWARF and dwz through elfutils.  A symbol without a size
 * names nothing but its own address.  Code that nothing names is told apart by where its
 * call-frame information begins (extent.h).  Asks the network only where find_file does.
 *
 * Owns:    what a lookup hands out is borrowed until the symbols are closed.
 * Threads: one user at a time, and all of them in one thread (elfutils is not thread-safe).
 */
#ifndef MIC_IMAGE_SYMBOLS_H
#define MIC_IMAGE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

struct mic_symbols_source {
  int fd;             /* the image itself, borrowed for the call (dup it); or -1 */
  const void *memory; /* the image in memory when fd is -1 (the vDSO); borrowed till close */
  size_t memory_size;
  const char *path;              /* its path in the target's view, for debuglink and messages */
  const char *root;              /* "/proc/PID/root" of the target, or "" for our own */
  const char *const *debug_dirs; /* folders with .build-id/ below, NULL-terminated; NULL: default */
  const char *name; /* what code without a symbol is called by; NULL: the path's last part */
  /* Asked when no folder has a file of a build ID: the path of one, which the caller frees, or
   * NULL.  What is there is used when its build ID proves it.  May be NULL. */
  char *(*find_file)(void *data, const uint8_t *build_id, size_t size);
  void *find_data;
};

/* One function that runs at an address; the innermost inlined one comes first. */
struct mic_symbol {
  const char *name; /* demangled, never NULL; MODULE+0xSTART for code without a symbol */
  /* As in the symbol table; equals name when not mangled; "" for code without a symbol. */
  const char *linkage_name;
  const char *file;      /* where the code at the address comes from; NULL: not known */
  uint32_t line;         /* 0: not known */
  const char *decl_file; /* where the function is declared; NULL: not known */
  uint32_t decl_line;
};

struct mic_symbols;

int mic_symbols_open(const struct mic_symbols_source *source, struct mic_symbols **out,
                     struct mic_error *err);
void mic_symbols_close(struct mic_symbols *symbols); /* NULL is fine */
/* The functions at an ELF address of the image; 0 when nothing is proven there.  *out is
 * borrowed until the next lookup, the strings in it until close. */
size_t mic_symbols_lookup(struct mic_symbols *symbols, uint64_t vaddr,
                          const struct mic_symbol **out);
struct mic_symbol_range { /* of code: [start, end) in ELF addresses */
  uint64_t start, end;
};
typedef MIC_VEC(struct mic_symbol_range) mic_symbol_ranges;

/* Appends the ranges of the function that is number depth of what a lookup of vaddr gives, sorted:
 * its symbol's for the outermost one, for an inlined one those of the code that this one copy left.
 * Nothing where no extent is proven, as for a symbol without size. */
void mic_symbols_extent(struct mic_symbols *symbols, uint64_t vaddr, size_t depth,
                        mic_symbol_ranges *out);
/* Why names or lines are missing ("no debug information", "split debug file foo.dwo not found",
 * "debug file /x has another build ID"), or NULL. One line; borrowed until close. */
const char *mic_symbols_problem(const struct mic_symbols *symbols);
/* The path of the separate debug file that is used, inside the root it was found in; NULL: none. */
const char *mic_symbols_debug_file(const struct mic_symbols *symbols);

#endif
