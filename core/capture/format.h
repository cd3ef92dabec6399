/*
 * format.h - the bytes of a capture, for the writer and the reader.
 *
 * docs/format.md is the normative text of what stands here.  All numbers are little-endian;
 * the structs below have no padding, so they are read and written whole.
 */
#ifndef MIC_CAPTURE_FORMAT_H
#define MIC_CAPTURE_FORMAT_H

#include <stdint.h>

#define MIC_FORMAT_MAGIC "\x89USPROF\n" /* 8 bytes; no text file begins so */

enum {
  MIC_FORMAT_MAJOR = 1, /* a changed meaning */
  MIC_FORMAT_MINOR = 1, /* a new table, column or enum value */
  /* Segments begin on a cache line. */
  MIC_FORMAT_ALIGN = 64,
  /* 64 Ki rows: at most 512 KiB, so a block and its decoded form stay in a core's L2 cache. */
  MIC_BLOCK_ROWS = 65536,
  MIC_BLOCK_BYTES = MIC_BLOCK_ROWS * 8,
  MIC_NAME_SIZE = 63 /* the longest name of a table or column */
};

/* A block's encoding: steps applied by the writer in this order, undone in the reverse. */
enum mic_encoding {
  MIC_ENCODING_DELTA = 1,   /* each row minus the one before, with wraparound; the first as is */
  MIC_ENCODING_SHUFFLE = 2, /* all rows' lowest bytes, then all second bytes, and so on */
  MIC_ENCODING_ZSTD = 4,
  MIC_ENCODING_KNOWN = 7
};

struct mic_format_header {
  uint8_t magic[8];
  uint16_t major, minor;
  uint32_t header_size;      /* 64 */
  uint64_t features;         /* a set bit that the reader does not know: it must refuse */
  uint64_t file_size;        /* of the whole file */
  uint64_t directory_offset; /* a multiple of 64; the directory runs to the file's end */
  uint64_t directory_size;
  uint64_t directory_checksum; /* XXH3, 64 bits, of the directory's bytes */
  uint64_t header_checksum;    /* XXH3, 64 bits, of the 56 bytes before */
};
_Static_assert(sizeof(struct mic_format_header) == 64, "the header is part of the format");

/* One block of one column in the directory. */
struct mic_format_block {
  uint64_t offset;   /* a multiple of 64 */
  uint32_t size;     /* stored bytes */
  uint32_t rows;     /* 1 to MIC_BLOCK_ROWS */
  uint64_t checksum; /* XXH3, 64 bits, of the stored bytes */
  uint32_t encoding; /* enum mic_encoding */
  uint32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct mic_format_block) == 32, "a block's entry is part of the format");

#endif
