/*
 * host.h - what Lua asks of the process it runs in.
 *
 * Threads: any.
 */
#ifndef MIC_SCRIPT_HOST_H
#define MIC_SCRIPT_HOST_H

#include <stddef.h>
#include <stdint.h>

/* ffi:begin */
/* The hash of the cdef text this library was built with; Lua refuses another's. */
uint32_t mic_api(void);
/* 1 when the kernel started this process with more rights than its user has (AT_SECURE):
 * no file that a user could have written is read then. */
int32_t mic_host_secure(void);
/* The effective user, who must own the files that extend microscope. */
uint32_t mic_host_uid(void);
/* 1 when the descriptor is a terminal. */
int32_t mic_host_is_terminal(int32_t fd);
/* 1 when the descriptor is a terminal that reads lines and echoes them.  Editors, pagers, shells
 * and all that edit a line switch that off while they own the screen. */
int32_t mic_host_reads_lines(int32_t fd);
/* The width of the terminal behind fd in columns; 0 when it is none or does not say. */
uint32_t mic_host_columns(int32_t fd);

struct mic_host_file {
  uint32_t uid;      /* who owns it */
  uint32_t mode;     /* as stat(2) gives it */
  uint64_t size;     /* bytes */
  uint32_t kind;     /* enum mic_host_kind */
  uint32_t readable; /* 1 when the real user may read it (access(2)) */
};
enum mic_host_kind { MIC_HOST_FILE = 0, MIC_HOST_FOLDER = 1, MIC_HOST_OTHER = 2 };
/* Facts of a file, symbolic links followed.  0, or errno. */
int32_t mic_host_stat(const char *path, struct mic_host_file *out);
/* ffi:end */

_Static_assert(sizeof(struct mic_host_file) == 24, "mic_host_file is part of the ABI");

#endif
