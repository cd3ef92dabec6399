/*
 * host.h - what Lua asks of the process it runs in.
 *
 * Owns:    a mic_host_names owns its texts.
 * Threads: any; interrupts are watched by one.
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
  uint32_t uid;        /* who owns it */
  uint32_t mode;       /* as stat(2) gives it */
  uint64_t size;       /* bytes */
  uint32_t kind;       /* enum mic_host_kind */
  uint32_t readable;   /* 1 when the real user may read it (access(2)) */
  uint64_t written_ns; /* when its bytes were last written, CLOCK_REALTIME */
};
enum mic_host_kind { MIC_HOST_FILE = 0, MIC_HOST_FOLDER = 1, MIC_HOST_OTHER = 2 };
/* Facts of a file, symbolic links followed.  0, or errno. */
int32_t mic_host_stat(const char *path, struct mic_host_file *out);

/* The names in a folder in the order of their bytes, hidden ones left out.  0, or errno. */
struct mic_host_names;
int32_t mic_host_names(const char *folder, struct mic_host_names **out);
const char *mic_host_name(const struct mic_host_names *names, uint32_t index); /* or NULL */
void mic_host_names_free(struct mic_host_names *names);                        /* NULL is fine */

/* Make a folder and those above it, for the user alone.  0, also when it is there; or errno. */
int32_t mic_host_make_folder(const char *path);

/* Note SIGINT instead of dying of it (on = 1), or die of it again (0).  A second one that comes
 * before the first was asked for ends the process: what runs then does not look. */
void mic_host_watch_interrupt(int32_t on);
/* 1 when an interrupt came since this was last asked. */
int32_t mic_host_interrupted(void);
/* ffi:end */

_Static_assert(sizeof(struct mic_host_file) == 32, "mic_host_file is part of the ABI");

#endif
