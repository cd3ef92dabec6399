/*
 * find.h - a file that is proven to be a module of a capture.
 *
 * find.c looks for images that processes mapped, vmlinux.c for the kernel, loaded.c for what it
 * loaded.
 *
 * The module's own path on this host, the folders given, what the capture kept of it, and a
 * debuginfod server; each is used only when its build ID is the module's.  A path alone proves
 * nothing.  Without any image a debug file of the build ID stands for it: it has the symbols and
 * the debug information.
 *
 * Owns:    a found image is the caller's to release.
 * Threads: one user at a time.
 */
#ifndef MIC_SYMBOLIZE_FIND_H
#define MIC_SYMBOLIZE_FIND_H

#include "capture/reader.h"
#include "image/elf.h"
#include "image/symbols_problem.h"
#include "symbolize/fetch.h"
#include "symbolize/kept.h"
#include "symbolize/scan.h"
#include "target/kernel.h"

struct mic_finder {
  struct mic_kept kept;
  const char *const *folders;    /* as given; borrowed, NULL-terminated */
  const char *const *debug_dirs; /* those, and where debug files lie below them and here */
  struct mic_scan scan;
  struct mic_fetch *fetch;     /* NULL: no server is asked; owned */
  struct mic_problem *problem; /* of the module that is looked for */
  /* Where the kernel ran, as the capture tells; symbol "": it does not. */
  char *kernel_symbol, *kernel_release; /* owned */
  uint64_t kernel_address;
};

struct mic_wanted { /* a module */
  uint32_t module;
  uint8_t kind;
  const char *path, *name; /* NUL-terminated */
  uint8_t build_id[MIC_BUILD_ID_MAX];
  size_t build_id_size; /* 0: it has none */
};

struct mic_found {
  int fd;             /* -1: memory */
  const void *memory; /* the own vDSO */
  size_t memory_size;
  char *path;        /* of a file; the module's own for what the capture kept */
  const char *label; /* what `naming` says it was: path, or words */
  /* A location's offset less this is an address of the file; wraps. */
  uint64_t slide;
  uint64_t code_size;              /* offsets from here on are none of the file's; 0: all may be */
  bool alone;                      /* no other file is to be looked for beside it */
  struct mic_kernel_names *kernel; /* names instead of a file's; owned */
};

bool mic_finder_image(struct mic_finder *finder, const struct mic_wanted *wanted,
                      struct mic_found *out);
void mic_found_release(struct mic_found *found);
/* The same for the kernel (MIC_MODULE_KERNEL) and what it loaded (MIC_MODULE_LOADED). */
bool mic_finder_kernel(struct mic_finder *finder, const struct mic_wanted *wanted,
                       struct mic_found *out);
bool mic_finder_loaded(struct mic_finder *finder, const struct mic_wanted *wanted,
                       struct mic_found *out);
/* As mic_symbols_source.find_file, data being the finder. */
char *mic_finder_file(void *data, const uint8_t *build_id, size_t size);
void mic_finder_free(struct mic_finder *finder);

#endif
