/* replay.c - process a tape without a kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/map.h"
#include "image/parts.h"
#include "record/processor.h"
#include "record/replay.h"
#include "record/session.h"
#include "record/tape_format.h"

struct image {
  const uint8_t *bytes; /* the item's, after its head */
  struct mic_tape_image_head head;
};

struct replay {
  struct mic_replay_options options;
  struct mic_replay_judge judge;
  struct mic_replay_result result;
  uint8_t *bytes; /* the unpacked tape */
  size_t size;
  struct mic_tape_head head;
  struct mic_map images; /* (device, inode) -> index */
  MIC_VEC(struct image) image_list;
  const uint8_t *vdso;
  size_t vdso_size;
  uint64_t stop_ns;
  uint64_t spent_ns;      /* the processor's CPU time; copying records is the collector's work */
  uint64_t making_ns;     /* CPU time for the images' files, which a recording finds made */
  MIC_VEC(size_t) chunks; /* offsets of chunk items */
  struct mic_writer *writer;
  struct mic_target *target;
  struct mic_queue *queue;
  struct mic_processor *processor;
};

/* Unpacked tapes are kept in memory; one that claims more than this is not one of ours. */
#define TAPE_MAX (8ULL << 30)

/* Of chunks that wait for their watermark; many times what a recording's queue holds. */
#define WAITING_MAX (1ULL << 30)

static int unpack(struct replay *r, FILE *file, struct mic_error *err) {
  ZSTD_DStream *stream = ZSTD_createDStream();
  size_t in_room = ZSTD_DStreamInSize(), room = 0, left = 1;
  uint8_t *in = mic_alloc(in_room);
  int rc = MIC_OK;
  for (size_t got; rc == MIC_OK && (got = fread(in, 1, in_room, file)) > 0;) {
    ZSTD_inBuffer input = {in, got, 0};
    while (input.pos < input.size && rc == MIC_OK) {
      if (room - r->size < ZSTD_DStreamOutSize())
        r->bytes = mic_realloc(r->bytes, room = room ? room * 2 : 1 << 22);
      ZSTD_outBuffer output = {r->bytes, room, r->size};
      left = ZSTD_decompressStream(stream, &output, &input);
      r->size = output.pos;
      if (ZSTD_isError(left) || r->size > TAPE_MAX)
        rc = mic_fail_at(err, r->size, "%s is not a tape: it does not unpack", r->options.tape);
    }
  }
  if (rc == MIC_OK && left != 0)
    rc = mic_fail_at(err, r->size, "the tape %s is cut short", r->options.tape);
  free(in);
  ZSTD_freeDStream(stream);
  return rc;
}

static int malformed(struct replay *r, size_t at, struct mic_error *err) {
  return mic_fail_at(err, at, "the tape %s is malformed at offset %zu", r->options.tape, at);
}

static bool index_image(struct replay *r, struct mic_cursor c) {
  struct image image;
  const void *head = mic_cursor_take(&c, sizeof image.head);
  if (!head) return false;
  memcpy(&image.head, head, sizeof image.head);
  image.bytes = c.at;
  if (image.head.file_size > TAPE_MAX || !mic_cursor_take(&c, image.head.path_size)) return false;
  for (uint32_t i = 0; i < image.head.parts; i++) {
    struct mic_part part;
    const void *at = mic_cursor_take(&c, sizeof part);
    if (!at) return false;
    memcpy(&part, at, sizeof part);
    if (part.offset > image.head.file_size || part.size > image.head.file_size - part.offset ||
        !mic_cursor_take(&c, part.size))
      return false;
  }
  mic_map_put(&r->images, (uint64_t)image.head.maj << 32 | image.head.min, image.head.inode,
              (uint32_t)r->image_list.count);
  *mic_vec_push(&r->image_list) = image;
  return true;
}

static bool index_item(struct replay *r, const struct mic_tape_item *item, const uint8_t *bytes) {
  struct mic_cursor c = mic_cursor(bytes, item->size);
  switch (item->kind) {
  case MIC_TAPE_HEAD: {
    const void *head = mic_cursor_take(&c, sizeof r->head);
    if (head) memcpy(&r->head, head, sizeof r->head);
    return head && r->head.version == MIC_TAPE_VERSION;
  }
  case MIC_TAPE_IMAGE: return index_image(r, c);
  case MIC_TAPE_VDSO:
    r->vdso = bytes;
    r->vdso_size = item->size;
    return true;
  case MIC_TAPE_CHUNK:
    *mic_vec_push(&r->chunks) = (size_t)(bytes - r->bytes);
    return item->size >= 8 && item->size - 8 <= MIC_CHUNK_BYTES;
  case MIC_TAPE_END: r->stop_ns = mic_cursor_u64(&c); return !c.bad;
  default: return true;
  }
}

static int index_tape(struct replay *r, struct mic_error *err) {
  struct mic_cursor c = mic_cursor(r->bytes, r->size);
  while (mic_cursor_left(&c)) {
    size_t at = mic_cursor_offset(&c);
    struct mic_tape_item item;
    const void *head = mic_cursor_take(&c, sizeof item);
    if (head) memcpy(&item, head, sizeof item);
    const uint8_t *bytes = head ? mic_cursor_take(&c, item.size) : NULL;
    if (!bytes || !index_item(r, &item, bytes)) return malformed(r, at, err);
    size_t padding = (size_t)(-item.size & 7);
    if (mic_cursor_left(&c)) mic_cursor_take(&c, padding);
  }
  if (r->head.version == 0 || r->stop_ns == 0) return malformed(r, r->size, err);
  return MIC_OK;
}

static int memory_file(const void *bytes, size_t size, uint64_t file_size) {
  int fd = memfd_create("tape", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)file_size) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) {
    close(fd);
    return -1;
  }
  return fd;
}

/* The file a tape's image stands for: its parts in place, zeros elsewhere. Checked by index_image.
 */
static int image_file(const struct image *image) {
  int fd = memory_file("", 0, image->head.file_size);
  const uint8_t *at = image->bytes + image->head.path_size;
  mic_parts parts = {0};
  bool ok = fd >= 0;
  for (uint32_t i = 0; ok && i < image->head.parts; i++) {
    struct mic_part part;
    memcpy(&part, at, sizeof part);
    at += sizeof part;
    *mic_vec_push(&parts) = part;
    ok = pwrite(fd, at, part.size, (off_t)part.offset) == (ssize_t)part.size;
    at += part.size;
  }
  if (ok) mic_image_blank(fd, &parts);
  mic_vec_free(&parts);
  if (ok || fd < 0) return fd;
  close(fd);
  return -1;
}

static int find_image(struct replay *r, const struct mic_target_map *map, const char **problem) {
  if (strcmp(map->path, "[vdso]") == 0)
    return r->vdso ? memory_file(r->vdso, r->vdso_size, r->vdso_size) : -1;
  uint32_t at = mic_map_get(&r->images, (uint64_t)map->maj << 32 | map->min, map->inode);
  if (at == MIC_NONE || !r->image_list.at[at].head.opened) {
    *problem = "the tape holds no such image";
    return -1;
  }
  return image_file(&r->image_list.at[at]);
}

static int open_image(void *data, const struct mic_target_map *map, const char **problem) {
  struct replay *r = data;
  uint64_t before_ns = mic_clock_thread_cpu_ns();
  int fd = find_image(r, map, problem);
  r->making_ns += mic_clock_thread_cpu_ns() - before_ns;
  return fd;
}

/* One chunk's records; of a later pass only its samples. False when none is left: a recording
 * holds far fewer at a time, so the tape's watermarks are wrong. */
static bool feed(struct replay *r, size_t offset, bool samples_only) {
  struct mic_tape_item item;
  memcpy(&item, r->bytes + offset - sizeof item, sizeof item);
  struct mic_chunk *chunk = mic_queue_take(r->queue, false);
  if (!chunk) return false;
  memcpy(&chunk->watermark_ns, r->bytes + offset, 8);
  size_t size = item.size - 8;
  const uint8_t *from = r->bytes + offset + 8;
  for (size_t at = 0; at + 8 <= size;) {
    uint32_t type;
    uint16_t bytes;
    memcpy(&type, from + at, 4);
    memcpy(&bytes, from + at + 6, 2);
    if (bytes < 8 || bytes > size - at) break;
    bool exit = type == PERF_RECORD_EXIT && r->options.passes > 1;
    if (samples_only ? type == PERF_RECORD_SAMPLE : !exit) {
      memcpy(chunk->bytes + chunk->used, from + at, bytes);
      chunk->used += bytes;
    }
    at += bytes;
  }
  if (samples_only) chunk->watermark_ns = UINT64_MAX;
  uint64_t before_ns = mic_clock_thread_cpu_ns();
  mic_processor_feed(r->processor, chunk);
  r->spent_ns += mic_clock_thread_cpu_ns() - before_ns;
  return true;
}

static int run(struct replay *r, struct mic_error *err) {
  for (size_t i = 0; i < r->chunks.count; i++)
    if (!feed(r, r->chunks.at[i], false)) return malformed(r, r->chunks.at[i], err);
  uint64_t before_ns = mic_clock_thread_cpu_ns();
  if (r->options.passes > 1) mic_processor_finish(r->processor, r->stop_ns);
  r->spent_ns += mic_clock_thread_cpu_ns() - before_ns;
  r->result.cold_cpu_ns = r->spent_ns - r->making_ns;
  struct mic_target_counts counts;
  mic_target_count(r->target, &counts);
  r->result.samples = counts.samples;
  r->result.frames = counts.frames;
  r->result.stack_bytes = counts.stack_bytes;
  r->spent_ns = 0;
  for (uint32_t pass = 1; pass < r->options.passes; pass++)
    for (size_t i = 0; i < r->chunks.count; i++)
      if (!feed(r, r->chunks.at[i], true)) return malformed(r, r->chunks.at[i], err);
  r->result.warm_cpu_ns = r->spent_ns;
  mic_target_count(r->target, &counts);
  r->result.warm_samples = counts.samples - r->result.samples;
  mic_processor_finish(r->processor, r->stop_ns);
  return MIC_OK;
}

static int make(struct replay *r, struct mic_error *err) {
  char scratch[] = "/tmp/microscope-replay-XXXXXX";
  const char *output = r->options.output;
  if (!output) {
    int fd = mkstemp(scratch);
    if (fd < 0) return mic_fail_sys(err, "cannot make a temporary file");
    close(fd);
    unlink(scratch);
    output = scratch;
  }
  int rc = mic_writer_open(output, &r->writer, err);
  if (rc != MIC_OK) return rc;
  struct mic_target_options target = {
    .writer = r->writer,
    .start_ns = r->head.start_ns,
    .open_image = open_image,
    .open_data = r,
    .on_stack = r->judge.on_stack,
    .stack_data = r->judge.data,
    .names_later = r->options.symbols == MIC_SYMBOLS_LATER,
    .keep_images = r->options.keep_images != 0,
    .elsewhere = true,
  };
  r->target = mic_target_new(&target);
  mic_target_launch(r->target, r->head.pid);
  r->queue = mic_queue_new(WAITING_MAX);
  struct mic_processor_options processor = {
    .queue = r->queue,
    .layout = &r->head.layout,
    .target = r->target,
    .writer = r->writer,
    .start_ns = r->head.start_ns,
    .follow_children = true,
  };
  r->processor = mic_processor_new(&processor);
  struct mic_sources_row source = {
    .name = mic_writer_text(r->writer, "cpu-clock"),
    .unit = MIC_UNIT_CPU_NS,
    .period = r->head.period,
  };
  mic_writer_sources(r->writer, &source);
  return MIC_OK;
}

static int finish(struct replay *r, struct mic_error *err) {
  mic_target_finish(r->target);
  struct mic_clocks_row clocks = {
    .monotonic_ns = r->head.start_ns,
    .duration_ns = r->stop_ns > r->head.start_ns ? r->stop_ns - r->head.start_ns : 0,
    .boot_id = mic_writer_text(r->writer, ""),
  };
  mic_writer_clocks(r->writer, &clocks);
  struct mic_writer *writer = r->writer;
  r->writer = NULL;
  if (r->options.output) return mic_writer_finish(writer, false, err);
  mic_writer_discard(writer);
  return MIC_OK;
}

static void release(struct replay *r) {
  mic_processor_free(r->processor);
  mic_target_free(r->target);
  mic_queue_free(r->queue);
  mic_writer_discard(r->writer);
  mic_map_free(&r->images);
  mic_vec_free(&r->image_list);
  mic_vec_free(&r->chunks);
  free(r->bytes);
}

MIC_EXPORT int mic_tape_replay(const struct mic_replay_options *options,
                               struct mic_replay_result *out, struct mic_error *err) {
  struct mic_replay_judge none = {0};
  return mic_tape_judge(options, &none, out, err);
}

int mic_tape_judge(const struct mic_replay_options *options, const struct mic_replay_judge *judge,
                   struct mic_replay_result *out, struct mic_error *err) {
  if (options->size != sizeof *options || !options->tape || !options->passes)
    return mic_fail(err, MIC_EARG, "bad replay options");
  FILE *file = fopen(options->tape, "rbe");
  if (!file) return mic_fail_sys(err, "cannot read the tape %s", options->tape);
  struct replay r = {.options = *options, .judge = *judge};
  int rc = unpack(&r, file, err);
  fclose(file);
  if (rc == MIC_OK) rc = index_tape(&r, err);
  if (rc == MIC_OK) rc = make(&r, err);
  if (rc == MIC_OK) rc = run(&r, err);
  if (rc == MIC_OK) rc = finish(&r, err);
  *out = r.result;
  release(&r);
  return rc;
}
