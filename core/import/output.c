/* output.c - bytes to zlib or zstd to a file that is published at the end. */
#include "import/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/leftover.h"
#include "base/publish.h"
#include "import/json_text.h"

enum {
  ROOM = 128 * 1024,
  GZIP_WINDOW = 15 + 16,     /* zlib: the largest window, with gzip's header and trailer */
  GZIP_LEVEL = 6,            /* zlib's default */
  ZSTD_LEVEL = 3,            /* zstd's default */
  ALL_WHOM_UMASK_LETS = 0666 /* what is exported is made to be handed on */
};

struct mic_output {
  struct mic_publish file;
  bool direct; /* not a regular file: file.fd alone is used */
  uint32_t compression;
  z_stream gzip;
  ZSTD_CCtx *zstd;
  struct mic_error failure;
  const char *name; /* for messages: borrowed from file, or "standard output" */
  size_t pending;
  uint8_t in[ROOM], out[ROOM];
};

static void send(struct mic_output *o, const uint8_t *bytes, size_t size) {
  while (size && !o->failure.code) {
    ssize_t done = write(o->file.fd, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      mic_fail_sys(&o->failure, "writing %.150s", o->name);
      return;
    }
    bytes += done;
    size -= (size_t)done;
  }
}

static void deflate_pending(struct mic_output *o, bool last) {
  o->gzip.next_in = o->in;
  o->gzip.avail_in = (uInt)o->pending;
  do {
    o->gzip.next_out = o->out;
    o->gzip.avail_out = ROOM;
    deflate(&o->gzip, last ? Z_FINISH : Z_NO_FLUSH);
    send(o, o->out, ROOM - o->gzip.avail_out);
  } while (o->gzip.avail_out == 0 && !o->failure.code);
}

static void zstd_pending(struct mic_output *o, bool last) {
  ZSTD_inBuffer in = {o->in, o->pending, 0};
  size_t left;
  do {
    ZSTD_outBuffer out = {o->out, ROOM, 0};
    left = ZSTD_compressStream2(o->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) {
      mic_fail(&o->failure, MIC_ESYS, "compressing %.120s: %.60s", o->name,
               ZSTD_getErrorName(left));
      return;
    }
    send(o, o->out, out.pos);
  } while (!o->failure.code && (last ? left != 0 : in.pos < in.size));
}

static void drain(struct mic_output *o, bool last) {
  if (!o->failure.code) {
    if (o->compression == MIC_GZIP)
      deflate_pending(o, last);
    else if (o->compression == MIC_ZSTD)
      zstd_pending(o, last);
    else
      send(o, o->in, o->pending);
  }
  o->pending = 0;
}

static int start_compressing(struct mic_output *o, struct mic_error *err) {
  if (o->compression == MIC_GZIP &&
      deflateInit2(&o->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return mic_fail(err, MIC_ELIMIT, "no memory to compress");
  if (o->compression == MIC_ZSTD) {
    o->zstd = ZSTD_createCCtx();
    if (!o->zstd) return mic_fail(err, MIC_ELIMIT, "no memory to compress");
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1);
  }
  return 0;
}

/* Descriptors for what has no name to publish: standard output, pipes, terminals. */
static int open_direct(struct mic_output *o, const char *path, struct mic_error *err) {
  struct stat st;
  o->name = strcmp(path, "-") == 0 ? "standard output" : path;
  if (strcmp(path, "-") == 0) {
    o->file.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
    o->file.fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    return 0;
  }
  if (o->file.fd < 0) return mic_fail_sys(err, "opening %.150s", o->name);
  o->direct = true;
  return 0;
}

static void release(struct mic_output *o) {
  if (o->compression == MIC_GZIP) deflateEnd(&o->gzip);
  ZSTD_freeCCtx(o->zstd);
  mic_publish_close(&o->file);
  free(o);
}

MIC_EXPORT int mic_output_open(const char *path, uint32_t compression, struct mic_output **out,
                               struct mic_error *err) {
  struct mic_output *o = mic_alloc(sizeof *o);
  *out = NULL;
  o->file.fd = -1;
  int code = open_direct(o, path, err);
  if (!code && !o->direct) {
    code = mic_publish_open(&o->file, path, ALL_WHOM_UMASK_LETS, err);
    o->name = o->file.path;
  }
  if (!code) {
    o->compression = compression;
    code = start_compressing(o, err);
  }
  if (code)
    release(o);
  else
    *out = o;
  return code;
}

MIC_EXPORT void mic_output_write(struct mic_output *output, const char *bytes, uint64_t size) {
  while (size && !output->failure.code) {
    size_t room = ROOM - output->pending;
    size_t part = size < room ? (size_t)size : room;
    memcpy(output->in + output->pending, bytes, part);
    output->pending += part;
    bytes += part;
    size -= part;
    if (output->pending == ROOM) drain(output, false);
  }
}

MIC_EXPORT void mic_output_write_json(struct mic_output *output, const char *text, uint64_t size) {
  for (uint64_t at = 0; at < size && !output->failure.code;) {
    char *room = (char *)output->in + output->pending;
    output->pending += mic_json_text(text, size, &at, room, ROOM - output->pending);
    if (at < size) drain(output, false);
  }
}

MIC_EXPORT int mic_output_failed(const struct mic_output *output) {
  return output->failure.code != 0;
}

MIC_EXPORT int mic_output_finish(struct mic_output *output, struct mic_error *err) {
  drain(output, true);
  if (!output->failure.code && !output->direct)
    mic_publish_finish(&output->file, false, &output->failure);
  int code = output->failure.code;
  if (code && err) *err = output->failure;
  release(output);
  return code;
}

MIC_EXPORT void mic_output_discard(struct mic_output *output) {
  if (output) release(output);
}

MIC_EXPORT int mic_output_scratch(char *path) {
  sigset_t before;
  mic_leftover_hold(&before);
  int fd = mkostemp(path, O_CLOEXEC), failed = errno;
  if (fd >= 0) mic_leftover_add(path);
  mic_leftover_release(&before);
  if (fd < 0) return failed;
  close(fd);
  return 0;
}

MIC_EXPORT void mic_output_scratch_remove(const char *path) {
  unlink(path);
  mic_leftover_forget(path);
}
