/* tape_format.h - the items of a tape, as tape.c writes and replay.c reads them. */
#ifndef MIC_RECORD_TAPE_FORMAT_H
#define MIC_RECORD_TAPE_FORMAT_H

#include <stdint.h>

#include "perf/record.h"

enum { MIC_TAPE_VERSION = 1 };

enum mic_tape_kind {
  MIC_TAPE_HEAD = 1,  /* struct mic_tape_head */
  MIC_TAPE_IMAGE = 2, /* struct mic_tape_image_head, path, parts: {struct mic_part, bytes} */
  MIC_TAPE_VDSO = 3,  /* its bytes */
  MIC_TAPE_CHUNK = 4, /* watermark u64, records */
  MIC_TAPE_END = 5    /* the time it was stopped, u64 */
};

struct mic_tape_item {
  uint32_t kind, zero;
  uint64_t size; /* of what follows, before padding to 8 */
};

struct mic_tape_head {
  uint32_t version, pid;
  struct mic_perf_layout layout;
  uint64_t start_ns, period;
};

struct mic_tape_image_head {
  uint64_t inode, file_size;
  uint32_t maj, min, path_size, parts;
  uint32_t opened, zero; /* opened 0: there was no file to be had */
};

#endif
