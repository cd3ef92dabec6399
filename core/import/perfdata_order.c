/*
 * perfdata_order.c - find the records of a perf.data file and put them in order of time.
 *
 * perf writes the rings of all CPUs one after the other and ends each such round with a
 * FINISHED_ROUND: what is stamped up to the latest time of the round before can be given then
 * (tools/perf/util/ordered-events.c).  Records without a time, as perf itself makes them of what
 * ran before, are given at once.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/sort.h"
#include "import/perfdata_inside.h"

/* enum perf_user_event_type in tools/lib/perf/include/perf/event.h. */
enum {
  RECORD_USER = 64,
  RECORD_ATTR = 64,
  RECORD_TRACING_DATA = 66,
  RECORD_FINISHED_ROUND = 68,
  RECORD_AUXTRACE_INFO = 70,
  RECORD_AUXTRACE = 71,
  RECORD_COMPRESSED = 81,
  RECORD_COMPRESSED2 = 83
};

enum { CHUNK_BYTES = 256 * 1024, GIVE_BACK_BYTES = 4 * 1024 * 1024 };
/* Memory of what waits for the end of a round; perf's rounds are as long as its rings, which no
 * recording makes so large. */
#define HELD_MAX (2ULL << 30)

void mic_perfdata_bad(struct mic_perfdata *p, uint64_t number, uint64_t offset) {
  struct mic_perfdata_result *result = p->result;
  if (result->bad_records++) return;
  const struct mic_perfdata_part *part = mic_perfdata_part_of(p, number);
  result->first_bad = number - part->first;
  result->first_bad_offset = offset;
  mic_perfdata_part_name(part, result->first_bad_file, sizeof result->first_bad_file);
}

struct mic_perfdata_event *mic_perfdata_event(struct mic_perfdata *p, const uint8_t *bytes,
                                              size_t size) {
  uint32_t type;
  uint64_t id = 0;
  if (!p->events.count) return NULL;
  memcpy(&type, bytes, sizeof type);
  struct mic_perfdata_event *first = p->events.at;
  if (p->events.count == 1 || !p->finds_ids) return first;
  if (type != PERF_RECORD_SAMPLE && !first->marks_all) return first;
  size_t words = size / 8 - 1;
  size_t at = type == PERF_RECORD_SAMPLE ? p->id_at : words - p->id_before_end;
  if (at >= words) return NULL;
  memcpy(&id, bytes + 8 + at * 8, sizeof id);
  if (id == 0) return first; /* made by perf itself */
  uint32_t event = mic_map_get(&p->by_id, id, 0);
  return event == MIC_NONE ? NULL : &p->events.at[event];
}

/* ---- order ---- */

static int by_time(const void *a, const void *b) {
  const struct mic_perfdata_waiting *x = a, *y = b;
  if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* All of a chunk is kept while one of its records waits. */
static void release(struct mic_perfdata *p, uint32_t chunk) {
  if (chunk == MIC_NONE || --p->chunks.at[chunk].held) return;
  p->held_bytes -= p->chunks.at[chunk].size;
  free(p->chunks.at[chunk].bytes);
  p->chunks.at[chunk].bytes = NULL;
}

/* Pages that were read are given back, as those of a large file would all stay in memory; what is
 * still needed of them is read from the file once more. */
static void give_back(struct mic_perfdata *p, uint64_t read) {
  p->given += read;
  if (p->given < GIVE_BACK_BYTES) return;
  p->given = 0;
  for (size_t i = 0; i < p->parts.count; i++) {
    const struct mic_perfdata_part *part = &p->parts.at[i];
    if (part->guard) madvise((void *)(uintptr_t)part->bytes, part->past, MADV_DONTNEED);
  }
}

/* What is stamped up to a time goes from those that wait to those that are ready. */
static void choose(struct mic_perfdata *p, uint64_t limit_ns) {
  size_t left = 0;
  p->ready.count = 0;
  if (limit_ns == UINT64_MAX) { /* all, which may be all there is: no copy of it */
    mic_perfdata_waits all = p->waiting;
    p->waiting = p->ready;
    p->ready = all;
    return;
  }
  for (size_t i = 0; i < p->waiting.count; i++) {
    if (p->waiting.at[i].time_ns <= limit_ns)
      *mic_vec_push(&p->ready) = p->waiting.at[i];
    else
      p->waiting.at[left++] = p->waiting.at[i];
  }
  p->waiting.count = left;
}

/* Give every waiting record stamped up to a time. */
static void flush(struct mic_perfdata *p, uint64_t limit_ns) {
  choose(p, limit_ns);
  mic_sort(p->ready.at, p->ready.count, sizeof *p->ready.at, by_time);
  for (size_t i = 0; i < p->ready.count; i++) {
    const struct mic_perfdata_waiting *record = &p->ready.at[i];
    mic_perfdata_take(p, record);
    if (record->chunk == MIC_NONE)
      give_back(p, record->size);
    else
      release(p, record->chunk);
  }
}

/* A record of the kernel's. */
static void wait_for(struct mic_perfdata *p, struct mic_perfdata_waiting *record) {
  struct mic_perfdata_event *event = mic_perfdata_event(p, record->bytes, record->size);
  uint64_t id;
  uint32_t type;
  if (!event) {
    mic_perfdata_bad(p, record->number, record->offset);
    return;
  }
  struct mic_perf_layout layout = event->layout;
  memcpy(&type, record->bytes, sizeof type);
  if (type != PERF_RECORD_SAMPLE && !event->marks_all) layout.sample_type = 0;
  if (!mic_perf_peek(&layout, record->bytes, record->size, &record->time_ns, &id, &type)) {
    mic_perfdata_bad(p, record->number, record->offset);
    return;
  }
  if (record->time_ns == 0 || record->time_ns == UINT64_MAX) {
    record->time_ns = 0;
    mic_perfdata_take(p, record);
    return;
  }
  if (record->time_ns > p->round_max_ns) p->round_max_ns = record->time_ns;
  if (record->chunk != MIC_NONE) p->chunks.at[record->chunk].held++;
  *mic_vec_push(&p->waiting) = *record;
}

/* ---- framing ---- */

/* The size of the record there; 0: none that is whole. */
static uint32_t record_size(const uint8_t *bytes, size_t left) {
  uint16_t size;
  if (left < sizeof(struct perf_event_header)) return 0;
  memcpy(&size, bytes + 6, sizeof size);
  return size < sizeof(struct perf_event_header) || size > left ? 0 : size;
}

/* Nothing more of this file is read; what is told is of the first. */
static void cut(struct mic_perfdata *p, uint64_t offset, const char *why) {
  p->stopped = true;
  if (p->result->cut) return;
  p->result->cut = why;
  const struct mic_perfdata_part *part = mic_perfdata_part_of(p, p->result->records + 1);
  p->result->cut_record = p->result->records + 1 - part->first;
  p->result->cut_offset = offset;
  mic_perfdata_part_name(part, p->result->cut_file, sizeof p->result->cut_file);
}

static const char *trace_name(const uint8_t *bytes, uint32_t size) {
  static const char *const names[] = {"a hardware",       "an Intel PT", "an Intel BTS",
                                      "an ARM CoreSight", "an ARM SPE",  "an s390 CPU measurement"};
  uint32_t kind = 0;
  if (size >= 12) memcpy(&kind, bytes + 8, sizeof kind);
  return names[kind < sizeof names / sizeof *names ? kind : 0];
}

static int refuse_trace(struct mic_perfdata *p, const uint8_t *bytes, uint32_t size,
                        uint64_t offset, struct mic_error *err) {
  return mic_fail(err, MIC_EUNSUPPORTED,
                  "%.100s: record %llu at byte %llu: it holds %s trace, which is not decoded; "
                  "record samples, as with -e cpu-clock",
                  p->name, (unsigned long long)p->result->records, (unsigned long long)offset,
                  trace_name(bytes, size));
}

static int decompress(struct mic_perfdata *p, struct mic_cursor in, uint64_t offset,
                      struct mic_error *err);

static int ingest(struct mic_perfdata *p, const uint8_t *bytes, uint32_t size, uint64_t offset,
                  uint32_t chunk, struct mic_error *err) {
  uint32_t type;
  memcpy(&type, bytes, sizeof type);
  p->result->records++;
  if (type < RECORD_USER) {
    if (size % 8) {
      mic_perfdata_bad(p, p->result->records, offset);
      return 0;
    }
    struct mic_perfdata_waiting record = {
      .bytes = bytes, .size = size, .number = p->result->records, .offset = offset, .chunk = chunk};
    wait_for(p, &record);
    return 0;
  }
  struct mic_cursor body = mic_cursor(bytes + 8, size - 8);
  switch (type) {
  case RECORD_AUXTRACE_INFO:
  case RECORD_AUXTRACE:
    return refuse_trace(p, bytes, type == RECORD_AUXTRACE ? 0 : size, offset, err);
  case RECORD_FINISHED_ROUND:
    if (p->parts.count > 1) return 0; /* of one file: others may have earlier records */
    flush(p, p->flush_ns);
    p->flush_ns = p->round_max_ns;
    return 0;
  case RECORD_COMPRESSED2: {
    uint64_t told = mic_cursor_u64(&body);
    if (told > mic_cursor_left(&body)) {
      mic_perfdata_bad(p, p->result->records, offset);
      return 0;
    }
    body.end = body.at + told;
  } /* fall through */
  case RECORD_COMPRESSED:
    if (chunk != MIC_NONE || p->in_unpacked) { /* compressed twice: perf never does */
      mic_perfdata_bad(p, p->result->records, offset);
      return 0;
    }
    return decompress(p, mic_cursor(body.at, mic_cursor_left(&body)), offset, err);
  default: return 0;
  }
}

/* ---- compressed records ---- */

/* The whole records of a chunk; the rest is kept for the next. */
static int ingest_chunk(struct mic_perfdata *p, uint8_t *bytes, size_t size, uint64_t offset,
                        struct mic_error *err) {
  uint32_t number = (uint32_t)p->chunks.count, record = 0;
  *mic_vec_push(&p->chunks) = (struct mic_perfdata_chunk){bytes, size, 1};
  p->held_bytes += size;
  size_t at = 0;
  int code = 0;
  while (!code && (record = record_size(bytes + at, size - at)) != 0) {
    code = ingest(p, bytes + at, record, offset, number, err);
    at += record;
  }
  if (code) at = size; /* what follows is not looked at, and may be more than a record */
  uint16_t want = 0;
  if (size - at >= 8) memcpy(&want, bytes + at + 6, sizeof want);
  if (size - at >= 8 && want < 8) {
    cut(p, offset, "a record in compressed data has a size that cannot be");
    at = size;
  }
  p->part_size = size - at;
  if (p->part_size) memcpy(p->part, bytes + at, p->part_size);
  release(p, number);
  uint64_t waiting = p->waiting.count * sizeof *p->waiting.at;
  if (!code && p->held_bytes + waiting > HELD_MAX)
    code =
      mic_fail(err, MIC_ELIMIT, "%.120s: more than 2 GiB of records wait for their order", p->name);
  return code;
}

/* A folder's records all wait for the last, so what is decompressed of them goes to a file. */
static int unpack(struct mic_perfdata *p, ZSTD_inBuffer *from, uint64_t offset,
                  struct mic_error *err) {
  uint8_t *bytes = mic_alloc(CHUNK_BYTES);
  int code = p->unpacked.fd < 0 ? mic_scratch_open(&p->unpacked, p->name, err) : 0;
  for (size_t got = CHUNK_BYTES; !code && (from->pos < from->size || got == CHUNK_BYTES);) {
    ZSTD_outBuffer out = {bytes, CHUNK_BYTES, 0};
    size_t before = from->pos;
    if (ZSTD_isError(ZSTD_decompressStream(p->zstd, &out, from))) {
      cut(p, offset, "compressed records are damaged");
      break;
    }
    if (!out.pos && from->pos == before) break;
    got = out.pos;
    code = mic_scratch_write(&p->unpacked, bytes, got, err);
  }
  free(bytes);
  return code;
}

static int decompress(struct mic_perfdata *p, struct mic_cursor in, uint64_t offset,
                      struct mic_error *err) {
  if (!p->zstd) {
    p->zstd = ZSTD_createDStream();
    p->part = mic_alloc(65536); /* less than one record */
  }
  if (!p->zstd) return mic_fail(err, MIC_ELIMIT, "no memory to decompress");
  ZSTD_inBuffer from = {in.at, mic_cursor_left(&in), 0};
  if (p->parts.count > 1) return unpack(p, &from, offset, err);
  bool full = false;
  while ((from.pos < from.size || full) && !p->stopped) {
    uint8_t *bytes = mic_alloc(CHUNK_BYTES);
    ZSTD_outBuffer out = {bytes, CHUNK_BYTES, p->part_size};
    if (p->part_size) memcpy(bytes, p->part, p->part_size);
    size_t before = from.pos, left = ZSTD_decompressStream(p->zstd, &out, &from);
    if (ZSTD_isError(left)) {
      free(bytes);
      cut(p, offset, "compressed records are damaged");
      return 0;
    }
    bool stuck = from.pos == before && out.pos == p->part_size;
    full = out.pos == out.size;
    if (out.pos == p->part_size) {
      free(bytes);
      if (stuck) return 0;
      continue;
    }
    bytes = mic_realloc(bytes, out.pos);
    int code = ingest_chunk(p, bytes, out.pos, offset, err);
    if (code) return code;
  }
  return 0;
}

/* ---- the file ---- */

/* Data that follows some of perf's records and is not in their size. */
static uint64_t payload_of(const uint8_t *bytes, uint32_t size) {
  uint32_t type, tracing = 0;
  uint64_t aux = 0;
  memcpy(&type, bytes, sizeof type);
  if (type == RECORD_TRACING_DATA && size >= 12) memcpy(&tracing, bytes + 8, sizeof tracing);
  if (type == RECORD_AUXTRACE && size >= 16) memcpy(&aux, bytes + 8, sizeof aux);
  return type == RECORD_AUXTRACE ? aux : ((uint64_t)tracing + 7) & ~7ULL;
}

static int walk(struct mic_perfdata *p, const struct mic_perfdata_part *part, bool first_pass,
                struct mic_error *err) {
  uint64_t at = part->from;
  int code = 0;
  p->stopped = false;
  while (!code && at < part->past && !p->stopped) {
    const uint8_t *bytes = part->bytes + at;
    uint32_t size = record_size(bytes, part->past - at);
    if (!size) {
      cut(p, at, part->past - at < 65536 ? "a record is not whole" : "a record's size cannot be");
      break;
    }
    code = first_pass ? mic_perfdata_told(p, bytes, size, at, err)
                      : ingest(p, bytes, size, at, MIC_NONE, err);
    uint64_t payload = payload_of(bytes, size);
    at += size;
    at = payload > part->past - at ? part->past : at + payload;
    give_back(p, size);
  }
  return code;
}

/* The compressed records of each file are a stream of their own. */
static void begin_stream(struct mic_perfdata *p) {
  if (p->zstd) ZSTD_initDStream(p->zstd);
  p->part_size = 0;
}

static int walk_all(struct mic_perfdata *p, struct mic_error *err) {
  int code = 0;
  for (size_t i = 0; i < p->parts.count && !code; i++) {
    p->parts.at[i].first = p->result->records;
    p->in_unpacked = p->parts.at[i].unpacked;
    begin_stream(p);
    code = walk(p, &p->parts.at[i], false, err);
    if (!code && p->unpacked.fd >= 0 && p->unpacked.size)
      code = mic_perfdata_add_unpacked(p, i, err);
  }
  return code;
}

int mic_perfdata_records(struct mic_perfdata *p, struct mic_error *err) {
  int code = 0;
  if (p->pipe) {
    code = walk(p, &p->parts.at[0], true, err);
    p->result->cut = NULL;
    p->result->cut_record = p->result->cut_offset = 0;
    if (!code && !p->events.count)
      code = mic_fail_at(err, p->data, "%.120s: byte %llu: it has no events", p->name,
                         (unsigned long long)p->data);
  }
  if (!code) code = walk_all(p, err);
  if (!code) flush(p, UINT64_MAX);
  return code;
}
