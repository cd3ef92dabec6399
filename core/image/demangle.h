/*
 * demangle.h - the name a person wrote, from the name in a symbol table.
 *
 * C++ (Itanium), Rust (legacy and v0) and D, through libiberty.  Names come from files that may
 * be hostile: how deep, how long and how large the work gets is bounded, and what cannot be
 * demangled within the bounds stays as it is.
 *
 * Threads: free of shared state.
 */
#ifndef MIC_IMAGE_DEMANGLE_H
#define MIC_IMAGE_DEMANGLE_H

#include <stddef.h>

/* What is shown for a symbol, owned by the caller: demangled with parameters as `c++filt -i`
 * prints it, without Rust's hash and without ThinLTO's `.llvm.HASH`.  NULL when that is the name
 * itself: not mangled, malformed, or over a bound. */
char *mic_demangle(const char *name);

#endif
