/*
 * maps.h - /proc/PID/maps as rows.
 *
 * The parser works on text in memory, fed in pieces of any size; reading a process is apart.  The
 * format is the kernel's fs/proc/task_mmu.c: a name's newlines are written as \012, nothing else
 * is escaped, and " (deleted)" is appended to the path of an unlinked file, which a file name
 * may end in as well: the row says that the mark is there, image_file.h finds out what it means.
 *
 * Owns:    mic_maps owns its rows and names.
 * Fails:   a malformed line is skipped and counted, with the number of the first one.
 * Threads: one user at a time.
 */
#ifndef MIC_PROCESS_MAPS_H
#define MIC_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

enum mic_map_kind {
  MIC_MAP_ANON = 0,     /* no name */
  MIC_MAP_FILE = 1,     /* a path, or a file of the kernel's own ("/memfd:x", "/dev/zero") */
  MIC_MAP_VDSO = 2,     /* [vdso] */
  MIC_MAP_VVAR = 3,     /* [vvar], [vvar_vclock] */
  MIC_MAP_VSYSCALL = 4, /* [vsyscall] */
  MIC_MAP_STACK = 5,    /* [stack] */
  MIC_MAP_HEAP = 6,     /* [heap] */
  MIC_MAP_NAMED = 7,    /* [anon:NAME], [anon_shmem:NAME]: named by the program */
  MIC_MAP_OTHER = 8     /* another [name], or "anon_inode:..." */
};

struct mic_map_row {
  uint64_t start, end; /* [start, end) */
  uint64_t offset;     /* into the file */
  uint64_t inode;      /* 0: none */
  uint32_t maj, min;   /* device */
  uint32_t prot;       /* PROT_READ | PROT_WRITE | PROT_EXEC */
  uint8_t kind;        /* enum mic_map_kind */
  bool shared;
  bool deleted_mark; /* the name as written ends in " (deleted)" */
  const char *name;  /* unescaped, with the mark; NUL-terminated; "" without one */
  uint32_t name_size;
  uint32_t path_size; /* name without the mark, if there is one */
};

struct mic_maps {
  MIC_VEC(struct mic_map_row) rows; /* in the order written: by address */
  struct mic_arena names;
  MIC_VEC(char) pending; /* a line not yet ended */
  uint64_t lines;        /* seen, bad ones too */
  uint64_t bad_lines;
  uint64_t first_bad_line; /* 1-based; 0: none */
};

/* Feed text; end it with mic_maps_end.  Zero-initialise mic_maps before. */
void mic_maps_feed(struct mic_maps *maps, const char *text, size_t size);
void mic_maps_end(struct mic_maps *maps);
/* Read those of a process.  tid is any live thread of it (0: pid): with the main thread gone only
 * the files of the others have them; mic_process_live_tid finds one.  MIC_EGONE, MIC_EPERM;
 * MIC_EFORMAT when there were malformed lines (the good rows are kept). */
int mic_maps_read(struct mic_maps *maps, uint32_t pid, uint32_t tid, struct mic_error *err);
void mic_maps_free(struct mic_maps *maps); /* leaves it zero-initialised */
const struct mic_map_row *mic_maps_find(const struct mic_maps *maps,
                                        uint64_t address); /* or NULL */

#endif
