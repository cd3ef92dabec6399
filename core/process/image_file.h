/*
 * image_file.h - open the very file that a process has mapped.
 *
 * A path proves nothing: the file may have been deleted or replaced, or the path may be another
 * mount namespace's.  Tried in this order:
 *   1. /proc/PID/map_files/START-END: the mapped inode itself, whatever became of its name.  Needs
 *      CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN (in the initial user namespace).
 *   2. /proc/PID/root/PATH, with device and inode compared.
 *   3. PATH in the recorder's own view, compared in the same way (when the process's root cannot be
 *      entered).
 *   4. /proc/PID/exe, when its inode is the mapped one: a deleted program without (1).
 *
 * overlayfs and btrfs give other device numbers to stat than to maps (fs/proc/task_mmu.c prints
 * the superblock's): such a file with the right inode is opened as MIC_PROOF_INODE, and the caller
 * compares build IDs with memory (memory.h) before it believes.
 *
 * Owns:    the descriptor is the caller's; O_CLOEXEC, read-only.
 * Fails:   see enum mic_no_file.
 * Threads: no state.
 */
#ifndef MIC_PROCESS_IMAGE_FILE_H
#define MIC_PROCESS_IMAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "process/maps.h"

enum mic_file_proof {
  MIC_PROOF_NONE = 0,
  MIC_PROOF_MAPPING = 1, /* through map_files: it is the mapped file */
  MIC_PROOF_DEVICE = 2,  /* device and inode (and generation, when known) are the mapping's */
  MIC_PROOF_INODE = 3    /* the inode is, the device differs or is unknown: verify by build ID */
};
enum mic_no_file {
  MIC_FILE_OPEN = 0,        /* there is a file */
  MIC_FILE_ANON = 1,        /* the mapping has no file */
  MIC_FILE_GONE = 2,        /* the process is gone and the path holds no such file */
  MIC_FILE_DELETED = 3,     /* no path leads to it any more, and map_files may not be read */
  MIC_FILE_REPLACED = 4,    /* the path holds another file now */
  MIC_FILE_DENIED = 5,      /* permission; .sys */
  MIC_FILE_NOT_REGULAR = 6, /* a device or the like: not opened, as opening may act */
  MIC_FILE_FAILED = 7       /* another error; .sys */
};
struct mic_image_file {
  int fd;              /* -1 without */
  uint8_t proof;       /* enum mic_file_proof */
  uint8_t reason;      /* enum mic_no_file */
  int32_t sys;         /* errno behind the reason */
  uint64_t size;       /* of the file */
  uint64_t dev, inode; /* as fstat gives them */
  uint64_t mtime_ns;
  bool generation_checked;
};

/* What is known of the mapping: a row of maps or an MMAP record.  maj, min, inode all 0: unknown
 * (a record with a build ID), then only map_files proves. */
struct mic_mapped {
  uint32_t pid;
  uint64_t start,
    end; /* as mapped; a mapping that was split or unmapped since is not in map_files */
  uint32_t maj, min;
  uint64_t inode;
  uint64_t generation; /* inode generation; 0: unknown */
  const char *path;    /* as the record or row names it */
};

/* Always fills *out; true when there is a file. */
bool mic_image_file_open(const struct mic_mapped *mapped, struct mic_image_file *out);
void mic_image_file_close(struct mic_image_file *file);
const char *mic_no_file_text(uint32_t reason); /* one clause for a report; static storage */

#endif
