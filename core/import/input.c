/* input.c - a file, or bytes, through zlib or zstd. */
#include "import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "import/output.h"
#include "import/scratch.h"

enum {
  ROOM = 256 * 1024,
  GZIP_WINDOW = 15 + 16 /* zlib: the largest window, with gzip's header and trailer */
};

struct mic_input {
  int fd; /* -1: memory */
  const uint8_t *memory;
  uint64_t size; /* of the file or memory */
  char *name;
  bool kept; /* no path leads to the bytes */
  uint32_t compression;
  z_stream gzip;
  bool gzip_open; /* within a member */
  ZSTD_DCtx *zstd;
  bool zstd_open; /* within a frame */
  uint64_t taken; /* bytes of the file read into raw */
  uint64_t offset;
  size_t raw_at, raw_count; /* raw[at, count) is not used yet */
  uint8_t raw[ROOM];
};

/* More of the file into raw, when that is used up.  At the end it stays empty. */
static int refill(struct mic_input *in, struct mic_error *err) {
  if (in->raw_at < in->raw_count) return 0;
  in->raw_at = in->raw_count = 0;
  uint64_t left = in->size - in->taken;
  if (in->fd < 0) {
    in->raw_count = left < ROOM ? (size_t)left : ROOM;
    if (in->raw_count) memcpy(in->raw, in->memory + in->taken, in->raw_count);
  } else {
    ssize_t got;
    do got = pread(in->fd, in->raw, ROOM, (off_t)in->taken);
    while (got < 0 && errno == EINTR);
    if (got < 0) return mic_fail_sys(err, "reading %.180s", in->name);
    in->raw_count = (size_t)got;
  }
  in->taken += in->raw_count;
  return 0;
}

static uint64_t raw_offset(const struct mic_input *in) {
  return in->taken - in->raw_count + in->raw_at;
}

static int damaged(const struct mic_input *in, const char *what, struct mic_error *err) {
  return mic_fail_at(err, raw_offset(in), "%.120s: byte %llu: %s", in->name,
                     (unsigned long long)raw_offset(in), what);
}

static int read_plain(struct mic_input *in, uint8_t *to, size_t size, size_t *got) {
  size_t have = in->raw_count - in->raw_at;
  *got = have < size ? have : size;
  memcpy(to, in->raw + in->raw_at, *got);
  in->raw_at += *got;
  return 0;
}

/* Bytes after a member that begin no other are padding or garbage: gzip ignores zeros only. */
static int start_member(struct mic_input *in, struct mic_error *err) {
  if (in->raw[in->raw_at] == 0) {
    in->raw_at++;
    return 0;
  }
  if (inflateReset(&in->gzip) != Z_OK) return damaged(in, "the gzip data is damaged", err);
  in->gzip_open = true;
  return 0;
}

static int read_gzip(struct mic_input *in, uint8_t *to, size_t size, size_t *got,
                     struct mic_error *err) {
  *got = 0;
  if (in->raw_at == in->raw_count)
    return in->gzip_open ? damaged(in, "the gzip data is cut short", err) : 0;
  if (!in->gzip_open) return start_member(in, err);
  in->gzip.next_in = in->raw + in->raw_at;
  in->gzip.avail_in = (uInt)(in->raw_count - in->raw_at);
  in->gzip.next_out = to;
  in->gzip.avail_out = (uInt)size;
  int code = inflate(&in->gzip, Z_NO_FLUSH);
  in->raw_at = in->raw_count - in->gzip.avail_in;
  *got = size - in->gzip.avail_out;
  if (code == Z_STREAM_END) in->gzip_open = false;
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return 0;
  return damaged(in, "the gzip data is damaged", err);
}

static int read_zstd(struct mic_input *in, uint8_t *to, size_t size, size_t *got,
                     struct mic_error *err) {
  *got = 0;
  if (in->raw_at == in->raw_count && !in->zstd_open) return 0;
  ZSTD_inBuffer from = {in->raw + in->raw_at, in->raw_count - in->raw_at, 0};
  ZSTD_outBuffer out = {to, size, 0};
  size_t left = ZSTD_decompressStream(in->zstd, &out, &from);
  bool ended = in->raw_at == in->raw_count;
  in->raw_at += from.pos;
  *got = out.pos;
  if (ZSTD_isError(left)) return damaged(in, "the zstd data is damaged", err);
  in->zstd_open = left != 0;
  if (ended && left != 0 && out.pos == 0) return damaged(in, "the zstd data is cut short", err);
  return 0;
}

static int read_some(struct mic_input *in, uint8_t *to, size_t size, size_t *got,
                     struct mic_error *err) {
  switch (in->compression) {
  case MIC_GZIP: return read_gzip(in, to, size, got, err);
  case MIC_ZSTD: return read_zstd(in, to, size, got, err);
  default: return read_plain(in, to, size, got);
  }
}

MIC_EXPORT int mic_input_read(struct mic_input *input, void *bytes, uint64_t size, uint64_t *got,
                              struct mic_error *err) {
  uint8_t *to = bytes;
  *got = 0;
  while (*got < size) {
    int code = refill(input, err);
    if (code) return code;
    uint64_t want = size - *got;
    size_t done, part = want < (1U << 30) ? (size_t)want : 1U << 30;
    code = read_some(input, to + *got, part, &done, err);
    if (code) return code;
    *got += done;
    input->offset += done;
    if (!done && input->raw_at == input->raw_count) {
      code = refill(input, err);
      if (code) return code;
      if (input->raw_count == 0 && !input->gzip_open && !input->zstd_open) break;
    }
  }
  return 0;
}

/* gzip: RFC 1952, 2.3.1.  zstd: RFC 8878, 3.1.1; skippable frames are left out, as no profile
 * begins with one. */
static uint32_t compression_of(const uint8_t *bytes, size_t size) {
  if (size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8) return MIC_GZIP;
  if (size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0) return MIC_ZSTD;
  return MIC_PLAIN;
}

static int start(struct mic_input *in, struct mic_error *err) {
  int code = refill(in, err);
  if (code) return code;
  in->compression = compression_of(in->raw, in->raw_count);
  if (in->compression == MIC_GZIP && inflateInit2(&in->gzip, GZIP_WINDOW) != Z_OK) {
    in->compression = MIC_PLAIN;
    return mic_fail(err, MIC_ELIMIT, "no memory to decompress");
  }
  if (in->compression == MIC_ZSTD && !(in->zstd = ZSTD_createDCtx()))
    return mic_fail(err, MIC_ELIMIT, "no memory to decompress");
  return 0;
}

MIC_EXPORT int mic_input_rewind(struct mic_input *input, struct mic_error *err) {
  input->taken = input->offset = 0;
  input->raw_at = input->raw_count = 0;
  input->gzip_open = input->zstd_open = false;
  if (input->zstd) ZSTD_DCtx_reset(input->zstd, ZSTD_reset_session_only);
  return refill(input, err);
}

/* What can be read once only, to a file that has no name. */
static int spool(struct mic_input *in, struct mic_error *err) {
  struct mic_scratch scratch;
  ssize_t got = 1;
  int code = mic_scratch_open(&scratch, in->name, err);
  while (!code && got > 0) {
    do got = read(in->fd, in->raw, ROOM);
    while (got < 0 && errno == EINTR);
    if (got < 0) code = mic_fail_sys(err, "reading %.180s", in->name);
    if (got > 0) code = mic_scratch_write(&scratch, in->raw, (size_t)got, err);
  }
  close(in->fd);
  in->fd = scratch.fd;
  return code;
}

static int open_file(struct mic_input *in, const char *path, struct mic_error *err) {
  struct stat st;
  bool standard = strcmp(path, "-") == 0;
  const char *name = standard ? "standard input" : path;
  in->name = mic_strndup(name, strlen(name));
  in->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (in->fd < 0 || fstat(in->fd, &st) != 0) return mic_fail_sys(err, "opening %.180s", name);
  if (S_ISDIR(st.st_mode)) return mic_fail(err, MIC_EARG, "%.180s is a folder", name);
  const bool path_leads = S_ISREG(st.st_mode);
  if (!path_leads) {
    int code = spool(in, err);
    if (code) return code;
    if (fstat(in->fd, &st) != 0) return mic_fail_sys(err, "reading %.180s", name);
  }
  in->kept = standard || !path_leads;
  in->size = (uint64_t)st.st_size;
  return 0;
}

MIC_EXPORT int mic_input_open(const char *path, struct mic_input **out, struct mic_error *err) {
  struct mic_input *in = mic_alloc(sizeof *in);
  *out = NULL;
  in->fd = -1;
  int code = open_file(in, path, err);
  if (!code) code = start(in, err);
  if (code)
    mic_input_close(in);
  else
    *out = in;
  return code;
}

int mic_input_memory(const void *bytes, uint64_t size, struct mic_input **out,
                     struct mic_error *err) {
  struct mic_input *in = mic_alloc(sizeof *in);
  *out = NULL;
  in->fd = -1;
  in->memory = bytes;
  in->size = size;
  in->name = mic_strndup("input", 5);
  int code = start(in, err);
  if (code)
    mic_input_close(in);
  else
    *out = in;
  return code;
}

int mic_input_file(struct mic_input *input, int *fd, struct mic_error *err) {
  if (input->compression == MIC_PLAIN) {
    *fd = fcntl(input->fd, F_DUPFD_CLOEXEC, 0);
    return *fd >= 0 ? 0 : mic_fail_sys(err, "opening %.180s", input->name);
  }
  uint8_t *part = mic_alloc(ROOM);
  uint64_t got = 1;
  struct mic_scratch scratch;
  int code = mic_scratch_open(&scratch, input->name, err);
  if (!code) code = mic_input_rewind(input, err);
  while (!code && got) {
    code = mic_input_read(input, part, ROOM, &got, err);
    if (!code) code = mic_scratch_write(&scratch, part, got, err);
  }
  free(part);
  *fd = scratch.fd;
  if (code && *fd >= 0) close(*fd);
  return code;
}

static void stop_decompressing(struct mic_input *in) {
  if (in->compression == MIC_GZIP) inflateEnd(&in->gzip);
  ZSTD_freeDCtx(in->zstd);
  in->zstd = NULL;
  in->compression = MIC_PLAIN;
}

MIC_EXPORT int mic_input_unpack(struct mic_input *input, struct mic_error *err) {
  struct stat st;
  int fd;
  if (input->compression == MIC_PLAIN) return mic_input_rewind(input, err);
  int code = mic_input_file(input, &fd, err);
  if (code) return code;
  close(input->fd);
  input->fd = fd;
  input->kept = true;
  stop_decompressing(input);
  if (fstat(fd, &st) != 0) return mic_fail_sys(err, "reading %.180s", input->name);
  input->size = (uint64_t)st.st_size;
  return mic_input_rewind(input, err);
}

MIC_EXPORT uint64_t mic_input_offset(const struct mic_input *input) { return input->offset; }
MIC_EXPORT uint64_t mic_input_size(const struct mic_input *input) { return input->size; }
MIC_EXPORT uint32_t mic_input_compression(const struct mic_input *input) {
  return input->compression;
}
MIC_EXPORT int32_t mic_input_kept(const struct mic_input *input) {
  return input->kept ? input->fd : -1;
}
const char *mic_input_name(const struct mic_input *input) { return input->name; }

MIC_EXPORT void mic_input_close(struct mic_input *input) {
  if (!input) return;
  stop_decompressing(input);
  if (input->fd >= 0) close(input->fd);
  free(input->name);
  free(input);
}
