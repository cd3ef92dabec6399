/*
 * load.c - read, check, decode and scan every block, on a few threads.
 *
 * Blocks are independent, so threads take the next one from a counter.  A block is scanned
 * (ids, enums, order) right after it is decoded, while it is in the cache.  Of several faults
 * the first in the file's own order is reported, however many threads there are.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/map.h"
#include "capture/block.h"
#include "capture/inside.h"

enum {
  THREADS_MAX = 4,             /* more only fight for memory bandwidth */
  ALONE = 4 * 1024 * 1024,     /* decoded bytes under which starting a thread costs more */
  LARGE_PAGE = 2 * 1024 * 1024 /* fewer page faults for columns of this size and more */
};

struct job {
  uint32_t column, block;
};
struct load {
  struct mic_capture *cap;
  const struct mic_capture_source *source;
  struct job *jobs;
  size_t count;
  atomic_size_t next;   /* the next job to take */
  atomic_size_t failed; /* the first job that failed; count: none */
  pthread_mutex_t lock; /* guards error and failed's lowering */
  struct mic_error error;
};

const uint8_t *mic_capture_read(const struct mic_capture_source *source, uint64_t offset,
                                size_t size, void *room, struct mic_error *err) {
  if (source->fd < 0) return source->bytes + offset;
  for (size_t done = 0; done < size;) {
    ssize_t got = pread(source->fd, (uint8_t *)room + done, size - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      mic_fail_sys(err, "reading the capture at byte %llu", (unsigned long long)offset);
      return NULL;
    }
    if (got == 0) {
      mic_fail_at(err, offset, "the file became shorter while it was read");
      return NULL;
    }
    done += (size_t)got;
  }
  return room;
}

/* Scans give the first row at fault, or count.  Each runs branch-free over the whole block
 * first, so the usual answer costs little. */
#define SCANS(type)                                                                       \
  /* Greater than last, and not none (all ones) where that is allowed. */                 \
  static uint32_t past_##type(const type *at, uint32_t count, type last, bool optional) { \
    type none = optional ? (type)-1 : last, bad = 0;                                      \
    for (uint32_t i = 0; i < count; i++) bad |= (type)((at[i] > last) & (at[i] != none)); \
    if (!bad) return count;                                                               \
    for (uint32_t i = 0; i < count; i++)                                                  \
      if (at[i] > last && at[i] != none) return i;                                        \
    return count;                                                                         \
  }                                                                                       \
  static uint32_t falling_##type(const type *at, uint32_t count) {                        \
    type bad = 0;                                                                         \
    for (uint32_t i = 1; i < count; i++) bad |= (type)(at[i] < at[i - 1]);                \
    if (!bad) return count;                                                               \
    for (uint32_t i = 1; i < count; i++)                                                  \
      if (at[i] < at[i - 1]) return i;                                                    \
    return count;                                                                         \
  }
SCANS(uint8_t)
SCANS(uint16_t)
SCANS(uint32_t)
SCANS(uint64_t)
#undef SCANS

static uint32_t past(const void *at, uint32_t count, uint32_t width, uint64_t last, bool optional) {
  uint64_t most = width == 8 ? UINT64_MAX : (1ULL << width * 8) - 1;
  if (last > most) last = most;
  switch (width) {
  case 1: return past_uint8_t(at, count, (uint8_t)last, optional);
  case 2: return past_uint16_t(at, count, (uint16_t)last, optional);
  case 4: return past_uint32_t(at, count, (uint32_t)last, optional);
  default: return past_uint64_t(at, count, last, optional);
  }
}

static uint32_t falling(const void *at, uint32_t count, uint32_t width) {
  switch (width) {
  case 1: return falling_uint8_t(at, count);
  case 2: return falling_uint16_t(at, count);
  case 4: return falling_uint32_t(at, count);
  default: return falling_uint64_t(at, count);
  }
}

/* Rows that are neither none nor less than their own number.  Such columns are u32. */
static uint32_t not_before(const uint32_t *at, uint32_t count, uint64_t row) {
  uint32_t bad = 0, base = (uint32_t)row;
  for (uint32_t i = 0; i < count; i++) bad |= (at[i] >= base + i) & (at[i] != MIC_NONE);
  if (!bad) return count;
  for (uint32_t i = 0; i < count; i++)
    if (at[i] >= base + i && at[i] != MIC_NONE) return i;
  return count;
}

static uint64_t value(const void *at, uint32_t index, uint32_t width) {
  uint64_t v = 0; /* little-endian, as this reader's machine is */
  memcpy(&v, (const uint8_t *)at + (size_t)index * width, width);
  return v;
}

static int scan_ids(const struct mic_capture *cap, uint32_t c, const void *at, uint32_t count,
                    uint64_t row, struct mic_error *err) {
  const struct mic_schema_column *s = &mic_schema_columns[c];
  uint64_t limit = cap->tables[s->target].rows;
  bool optional = s->flags & MIC_COL_OPTIONAL;
  /* Into an empty table only none can point. */
  uint32_t bad;
  if (limit)
    bad = past(at, count, s->width, limit - 1, optional);
  else
    for (bad = 0; optional && bad < count;) {
      if (value(at, bad, s->width) != (UINT64_MAX >> (64 - 8 * s->width))) break;
      bad++;
    }
  if (bad < count)
    return mic_capture_bad_row(cap, c, row + bad, err, "%llu is no row of %s, which has %llu",
                               (unsigned long long)value(at, bad, s->width), s->ref,
                               (unsigned long long)limit);
  if (!(s->flags & MIC_COL_BEFORE) || (bad = not_before(at, count, row)) == count) return 0;
  return mic_capture_bad_row(cap, c, row + bad, err, "%llu is not a row before its own",
                             (unsigned long long)value(at, bad, s->width));
}

static int scan(const struct mic_capture *cap, uint32_t c, const void *at, uint32_t count,
                uint64_t row, struct mic_error *err) {
  const struct mic_schema_column *s = &mic_schema_columns[c];
  int code = 0;
  if (s->unit == MIC_COLUMN_UNIT_ID) code = scan_ids(cap, c, at, count, row, err);
  /* A newer minor version may have brought values; its readers show them as unknown. */
  if (s->unit == MIC_COLUMN_UNIT_ENUM && cap->minor <= MIC_FORMAT_MINOR) {
    uint32_t bad = past(at, count, s->width, mic_enum_past(s->target) - 1, false);
    if (bad < count)
      return mic_capture_bad_row(cap, c, row + bad, err, "%llu is no value of %s",
                                 (unsigned long long)value(at, bad, s->width), s->ref);
  }
  if (!code && (s->flags & MIC_COL_ASCENDING)) {
    uint32_t bad = falling(at, count, s->width);
    if (bad < count)
      return mic_capture_bad_row(cap, c, row + bad, err, "it is less than the row before");
  }
  return code;
}

struct worker {
  struct load *load;
  struct mic_decoder *decoder;
  uint8_t *room; /* a stored block */
};

static int run_job(struct worker *w, const struct job *job, struct mic_error *err) {
  struct mic_capture *cap = w->load->cap;
  const struct mic_schema_column *s = &mic_schema_columns[job->column];
  const struct mic_capture_column *column = &cap->columns[job->column];
  const struct mic_format_block *entry = &column->entries[job->block];
  uint64_t row = cap->tables[s->table].starts[job->block];
  uint8_t *out = (uint8_t *)column->data + row * s->width;
  const uint8_t *stored =
    mic_capture_read(w->load->source, entry->offset, entry->size, w->room, err);
  if (!stored) return err->code;
  const char *fault =
    mic_hash(stored, entry->size) != entry->checksum ? "its checksum is wrong"
    : !mic_decode(w->decoder, stored, entry->size, entry->encoding, out, entry->rows, s->width)
      ? "it does not decode to its rows"
      : NULL;
  if (fault)
    return mic_fail_at(err, entry->offset, "%s.%s, block at byte %llu: %s" MIC_MEND,
                       mic_schema_tables[s->table].name, s->name, (unsigned long long)entry->offset,
                       fault);
  return scan(cap, job->column, out, entry->rows, row, err);
}

static void note_failure(struct load *load, size_t job, const struct mic_error *err) {
  pthread_mutex_lock(&load->lock);
  if (job < atomic_load(&load->failed)) {
    atomic_store(&load->failed, job);
    load->error = *err;
  }
  pthread_mutex_unlock(&load->lock);
}

static void *work(void *argument) {
  struct load *load = argument;
  struct worker w = {.load = load, .decoder = mic_decoder_new()};
  if (load->source->fd >= 0) w.room = mic_realloc(NULL, MIC_BLOCK_BYTES);
  for (;;) {
    size_t job = atomic_fetch_add(&load->next, 1);
    if (job >= load->count || job > atomic_load(&load->failed)) break;
    struct mic_error err = {0};
    if (run_job(&w, &load->jobs[job], &err) != 0) note_failure(load, job, &err);
  }
  mic_decoder_free(w.decoder);
  free(w.room);
  return NULL;
}

/* The threads take no signals: those are for the threads that the program made. */
static void run(struct load *load, int helpers) {
  pthread_t threads[THREADS_MAX];
  sigset_t all, before;
  int started = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < helpers && pthread_create(&threads[started], NULL, work, load) == 0) started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  work(load);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static void *column_memory(uint64_t bytes) {
  size_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : MIC_FORMAT_ALIGN;
  void *at = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (at && align == LARGE_PAGE) madvise(at, bytes, MADV_HUGEPAGE); /* a wish: may be refused */
  return at;
}

static int make_jobs(struct load *load, struct mic_error *err) {
  struct mic_capture *cap = load->cap;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++)
    if (cap->columns[c].present) load->count += cap->tables[mic_schema_columns[c].table].blocks;
  load->jobs = mic_try_alloc(load->count, sizeof *load->jobs);
  if (!load->jobs) return mic_fail(err, MIC_ELIMIT, "no memory for %zu blocks", load->count);
  size_t at = 0;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    struct mic_capture_table *table = &cap->tables[mic_schema_columns[c].table];
    if (!cap->columns[c].present || !table->rows) continue;
    uint64_t bytes = table->rows * mic_schema_columns[c].width;
    cap->columns[c].data = column_memory(bytes);
    if (!cap->columns[c].data)
      return mic_fail(err, MIC_ELIMIT, "no memory for the %llu rows of %s",
                      (unsigned long long)table->rows,
                      mic_schema_tables[mic_schema_columns[c].table].name);
    for (uint32_t b = 0; b < table->blocks; b++) load->jobs[at++] = (struct job){c, b};
  }
  return 0;
}

int mic_capture_load(struct mic_capture *cap, const struct mic_capture_source *source,
                     struct mic_error *err) {
  struct load load = {.cap = cap, .source = source, .lock = PTHREAD_MUTEX_INITIALIZER};
  int code = make_jobs(&load, err);
  if (!code) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int helpers = cap->memory < ALONE || cpus < 2 ? 0
                  : cpus < THREADS_MAX            ? (int)cpus - 1
                                                  : THREADS_MAX - 1;
    atomic_store(&load.failed, load.count);
    run(&load, helpers);
    code = load.error.code;
    if (code && err) *err = load.error;
  }
  free(load.jobs);
  return code;
}
