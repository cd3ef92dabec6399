/* tape.c - write a tape. */
#include "record/tape.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "image/parts.h"
#include "record/tape_format.h"

/* Level 1 keeps up with a recording; tapes are for machines, not for keeping. */
enum { LEVEL = 1, BUFFER = 1 << 20 };

struct mic_tape_chunk {
  uint64_t watermark_ns;
  size_t used;
  uint8_t bytes[];
};

struct mic_tape {
  FILE *file;
  char *path;
  ZSTD_CStream *stream;
  uint8_t *buffer;
  struct mic_map images; /* (device, inode) -> 0 */
  bool has_vdso, failed;
  struct mic_perf_layout layout;
  MIC_VEC(struct mic_tape_chunk *) chunks; /* by turn, from first_turn on; NULL: still to come */
  uint64_t first_turn;
};

static void put(struct mic_tape *tape, const void *bytes, size_t size, ZSTD_EndDirective how) {
  ZSTD_inBuffer in = {bytes, size, 0};
  size_t left;
  do {
    ZSTD_outBuffer out = {tape->buffer, BUFFER, 0};
    left = ZSTD_compressStream2(tape->stream, &out, &in, how);
    if (ZSTD_isError(left) || fwrite(tape->buffer, 1, out.pos, tape->file) != out.pos) {
      tape->failed = true;
      return;
    }
  } while (in.pos < in.size || (how == ZSTD_e_end && left));
}

static void put_item(struct mic_tape *tape, uint32_t kind, uint64_t size) {
  struct mic_tape_item item = {.kind = kind, .size = size};
  put(tape, &item, sizeof item, ZSTD_e_continue);
}

static void put_padding(struct mic_tape *tape, uint64_t size) {
  static const uint8_t zeros[8];
  put(tape, zeros, (size_t)(-size & 7), ZSTD_e_continue);
}

int mic_tape_create(const char *path, const struct mic_perf *perf, uint32_t pid, uint64_t start_ns,
                    uint64_t period, struct mic_tape **out, struct mic_error *err) {
  FILE *file = fopen(path, "wbe");
  if (!file) return mic_fail_sys(err, "cannot write the tape %s", path);
  struct mic_tape *tape = mic_alloc(sizeof *tape);
  tape->file = file;
  tape->layout = *mic_perf_layout(perf);
  tape->path = mic_strndup(path, strlen(path));
  tape->stream = ZSTD_createCStream();
  ZSTD_CCtx_setParameter(tape->stream, ZSTD_c_compressionLevel, LEVEL);
  tape->buffer = mic_alloc(BUFFER);
  struct mic_tape_head head = {
    .version = MIC_TAPE_VERSION,
    .pid = pid,
    .layout = tape->layout,
    .start_ns = start_ns,
    .period = period,
  };
  put_item(tape, MIC_TAPE_HEAD, sizeof head);
  put(tape, &head, sizeof head, ZSTD_e_continue);
  *out = tape;
  return MIC_OK;
}

static void put_part(struct mic_tape *tape, int fd, const struct mic_part *part) {
  uint8_t bytes[65536];
  put(tape, part, sizeof *part, ZSTD_e_continue);
  for (uint64_t done = 0; done < part->size;) {
    size_t want = part->size - done < sizeof bytes ? (size_t)(part->size - done) : sizeof bytes;
    ssize_t got = pread(fd, bytes, want, (off_t)(part->offset + done));
    if (got <= 0) {
      /* Cut while it was read: the rest is zeros, as reading it later would have failed. */
      memset(bytes, 0, want);
      got = (ssize_t)want;
    }
    put(tape, bytes, (size_t)got, ZSTD_e_continue);
    done += (uint64_t)got;
  }
}

static void put_image(struct mic_tape *tape, const struct mic_tape_image_head *head,
                      const char *path, int fd, const mic_parts *parts) {
  uint64_t size = sizeof *head + head->path_size;
  for (size_t i = 0; i < parts->count; i++) size += sizeof *parts->at + parts->at[i].size;
  put_item(tape, MIC_TAPE_IMAGE, size);
  put(tape, head, sizeof *head, ZSTD_e_continue);
  put(tape, path, head->path_size, ZSTD_e_continue);
  for (size_t i = 0; i < parts->count; i++) put_part(tape, fd, &parts->at[i]);
  put_padding(tape, size);
}

void mic_tape_image(struct mic_tape *tape, const struct mic_target_map *map, int fd) {
  bool added;
  mic_map_intern(&tape->images, (uint64_t)map->maj << 32 | map->min, map->inode, 0, &added);
  if (!added) return;
  struct mic_tape_image_head head = {
    .maj = map->maj,
    .min = map->min,
    .inode = map->inode,
    .path_size = (uint32_t)strlen(map->path),
  };
  mic_parts parts = {0};
  if (fd >= 0) {
    off_t size = lseek(fd, 0, SEEK_END);
    head.file_size = size > 0 ? (uint64_t)size : 0;
    mic_image_parts(fd, true, &parts, NULL);
  }
  head.parts = (uint32_t)parts.count;
  head.opened = fd >= 0;
  put_image(tape, &head, map->path, fd, &parts);
  mic_vec_free(&parts);
}

void mic_tape_vdso(struct mic_tape *tape, const void *bytes, size_t size) {
  if (tape->has_vdso) return;
  tape->has_vdso = true;
  put_item(tape, MIC_TAPE_VDSO, size);
  put(tape, bytes, size, ZSTD_e_continue);
  put_padding(tape, size);
}

/* One record as the tape keeps it: a sample's stack slot cut to its valid bytes. More room than is
 * valid stays, since that is what says that the slot was not full (perf/ring.h). */
static size_t copy_record(const struct mic_tape *tape, uint8_t *to, const uint8_t *from,
                          uint16_t size) {
  struct mic_record record;
  memcpy(to, from, size);
  if (mic_perf_decode(&tape->layout, from, size, &record, NULL) != 0 || !record.stack ||
      record.stack_full)
    return size;
  size_t head = (size_t)(record.stack - from); /* up to the slot */
  uint64_t valid = record.stack_size, slot = (valid + 8) & ~7ULL;
  if (head + slot + 8 >= size) return size;
  uint16_t cut = (uint16_t)(head + slot + 8);
  memcpy(to + offsetof(struct perf_event_header, size), &cut, sizeof cut);
  memcpy(to + head - 8, &slot, sizeof slot);
  memcpy(to + head + slot, &valid, sizeof valid);
  return cut;
}

static struct mic_tape_chunk *compact(const struct mic_tape *tape, const struct mic_chunk *chunk) {
  struct mic_tape_chunk *kept = mic_alloc(sizeof *kept + chunk->used);
  kept->watermark_ns = chunk->watermark_ns;
  for (size_t at = 0; at + sizeof(struct perf_event_header) <= chunk->used;) {
    uint16_t size;
    memcpy(&size, chunk->bytes + at + offsetof(struct perf_event_header, size), sizeof size);
    if (size < sizeof(struct perf_event_header) || size > chunk->used - at) break;
    kept->used += copy_record(tape, kept->bytes + kept->used, chunk->bytes + at, size);
    at += size;
  }
  return kept;
}

static void put_chunk(struct mic_tape *tape, struct mic_tape_chunk *kept) {
  put_item(tape, MIC_TAPE_CHUNK, sizeof kept->watermark_ns + kept->used);
  put(tape, &kept->watermark_ns, sizeof kept->watermark_ns, ZSTD_e_continue);
  put(tape, kept->bytes, kept->used, ZSTD_e_continue);
  put_padding(tape, kept->used);
  free(kept);
}

void mic_tape_chunk(struct mic_tape *tape, const struct mic_chunk *chunk) {
  while (tape->chunks.count <= chunk->turn - tape->first_turn) *mic_vec_push(&tape->chunks) = NULL;
  tape->chunks.at[chunk->turn - tape->first_turn] = compact(tape, chunk);
  size_t ready = 0;
  while (ready < tape->chunks.count && tape->chunks.at[ready])
    put_chunk(tape, tape->chunks.at[ready++]);
  tape->chunks.count -= ready;
  tape->first_turn += ready;
  if (ready)
    memmove(tape->chunks.at, tape->chunks.at + ready, tape->chunks.count * sizeof *tape->chunks.at);
}

int mic_tape_close(struct mic_tape *tape, uint64_t stop_ns, struct mic_error *err) {
  put_item(tape, MIC_TAPE_END, sizeof stop_ns);
  put(tape, &stop_ns, sizeof stop_ns, ZSTD_e_end);
  bool bad = tape->failed | (fclose(tape->file) != 0);
  int rc = bad ? mic_fail_sys(err, "cannot write the tape %s", tape->path) : MIC_OK;
  ZSTD_freeCStream(tape->stream);
  for (size_t i = 0; i < tape->chunks.count; i++) free(tape->chunks.at[i]);
  mic_vec_free(&tape->chunks);
  mic_map_free(&tape->images);
  free(tape->buffer);
  free(tape->path);
  free(tape);
  return rc;
}
