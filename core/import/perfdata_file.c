/*
 * perfdata_file.c - the header of a perf.data file, its attributes and features.
 *
 * The layout is tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/header.h of
 * the kernel's tree.  Every section's place is checked against the file before it is read.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "capture/names.h"
#include "import/perfdata_inside.h"

enum {
  HEADER_BYTES = 104,
  PIPE_HEADER_BYTES = 16,
  ATTR_MIN_BYTES = 64, /* PERF_ATTR_SIZE_VER0 */
  EVENTS_MAX = 4096,   /* perf itself opens one a PMU event; sources have a u8 */
  FACT_BYTES = 4096,
  MISC_BUILD_ID_SIZE = 1 << 15 /* PERF_RECORD_MISC_BUILD_ID_SIZE */
};

/* enum of HEADER_* in tools/perf/util/header.h. */
enum {
  FEATURE_BUILD_ID = 2,
  FEATURE_HOSTNAME = 3,
  FEATURE_OSRELEASE = 4,
  FEATURE_VERSION = 5,
  FEATURE_ARCH = 6,
  FEATURE_CPUDESC = 8,
  FEATURE_CMDLINE = 11,
  FEATURE_EVENT_DESC = 12,
  FEATURE_DIR_FORMAT = 24,
  FEATURE_CLOCK_DATA = 29,
  FEATURES = 256
};
/* enum perf_user_event_type in tools/lib/perf/include/perf/event.h. */
enum { RECORD_ATTR = 64, RECORD_BUILD_ID = 67, RECORD_UPDATE = 78, RECORD_FEATURE = 80 };
enum { UPDATE_NAME = 2 };

static int malformed(struct mic_perfdata *p, uint64_t offset, const char *what,
                     struct mic_error *err) {
  return mic_fail_at(err, offset, "%.120s: byte %llu: %s", p->name, (unsigned long long)offset,
                     what);
}

static uint64_t offset_of(const struct mic_perfdata *p, const void *at) {
  return (uint64_t)((const uint8_t *)at - p->bytes);
}

/* The bytes of a section; false when it is not in the file. */
static bool section(const struct mic_perfdata *p, uint64_t offset, uint64_t size,
                    struct mic_cursor *out) {
  if (offset > p->size || size > p->size - offset) return false;
  *out = mic_cursor(p->bytes + offset, size);
  return true;
}

void mic_perfdata_fact(struct mic_perfdata *p, const char *key, const char *value, size_t size) {
  struct mic_meta_row row = {
    .key = mic_writer_text(p->writer, key),
    .value = mic_writer_string(p->writer, value, size),
  };
  mic_writer_meta(p->writer, &row);
}

/* ---- attributes ---- */

static const char *name_of(uint32_t type, uint64_t config) {
  static const char *const hardware[] = {"cycles",
                                         "instructions",
                                         "cache-references",
                                         "cache-misses",
                                         "branches",
                                         "branch-misses",
                                         "bus-cycles",
                                         "stalled-cycles-frontend",
                                         "stalled-cycles-backend",
                                         "ref-cycles"};
  static const char *const software[] = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
  if (type == PERF_TYPE_HARDWARE && config < sizeof hardware / sizeof *hardware)
    return hardware[config];
  if (type == PERF_TYPE_SOFTWARE && config < sizeof software / sizeof *software)
    return software[config];
  return NULL;
}

static int add_event(struct mic_perfdata *p, const uint8_t *bytes, size_t size, uint64_t offset,
                     struct mic_error *err) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  if (size < ATTR_MIN_BYTES)
    return malformed(p, offset, "an event's attributes are cut short", err);
  memcpy(&attr, bytes, size < sizeof attr ? size : sizeof attr);
  if (p->events.count == EVENTS_MAX) return malformed(p, offset, "more than 4096 events", err);
  if (attr.sample_type & ~mic_perf_sample_all())
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "%.120s: byte %llu: samples have parts that are not known here "
                    "(sample_type 0x%llx)",
                    p->name, (unsigned long long)offset, (unsigned long long)attr.sample_type);
  const char *name = name_of(attr.type, attr.config);
  struct mic_perfdata_event event = {
    .layout = {attr.sample_type, attr.sample_regs_user, attr.sample_stack_user},
    .more = {attr.read_format, attr.branch_sample_type, attr.sample_regs_intr},
    .period = attr.freq ? 0 : attr.sample_period,
    .config = attr.config,
    .type = attr.type,
    .name = name ? mic_writer_text(p->writer, name) : 0,
    .source = MIC_NONE,
    .max_stack = attr.sample_max_stack,
    .monotonic = attr.use_clockid && attr.clockid == CLOCK_MONOTONIC,
    .inherits = attr.inherit,
    .marks_all = attr.sample_id_all,
  };
  p->counts_threads |= attr.inherit && attr.sample_type & PERF_SAMPLE_READ;
  *mic_vec_push(&p->events) = event;
  return 0;
}

static int add_ids(struct mic_perfdata *p, struct mic_cursor ids, struct mic_error *err) {
  if (mic_cursor_left(&ids) % 8)
    return malformed(p, offset_of(p, ids.start), "an event's ids are no whole numbers", err);
  while (mic_cursor_left(&ids))
    mic_map_put(&p->by_id, mic_cursor_u64(&ids), 0, (uint32_t)p->events.count - 1);
  return 0;
}

/* Each is the attributes and the section of its ids. */
static int read_attrs(struct mic_perfdata *p, struct mic_cursor all, uint64_t each,
                      struct mic_error *err) {
  uint64_t where = offset_of(p, all.start);
  if (each < ATTR_MIN_BYTES + 16 || each % 8 || mic_cursor_left(&all) % each)
    return malformed(p, where, "the events' attributes have a size that cannot be", err);
  while (mic_cursor_left(&all)) {
    uint64_t at = offset_of(p, all.at);
    const uint8_t *bytes = mic_cursor_take(&all, (size_t)each - 16);
    uint64_t offset = mic_cursor_u64(&all), size = mic_cursor_u64(&all);
    struct mic_cursor ids;
    if (!section(p, offset, size, &ids))
      return malformed(p, at, "an event's ids are not in the file", err);
    int code = add_event(p, bytes, (size_t)each - 16, at, err);
    if (!code) code = add_ids(p, ids, err);
    if (code) return code;
  }
  return 0;
}

/* ---- features ---- */

/* A length and that many bytes, of which the text ends at the first NUL. */
static const char *text_of(struct mic_cursor *c, size_t *size) {
  uint32_t room = mic_cursor_u32(c);
  const char *bytes = mic_cursor_take(c, room);
  *size = bytes ? strnlen(bytes, room) : 0;
  return bytes;
}

static void fact_of(struct mic_perfdata *p, const char *key, struct mic_cursor c) {
  size_t size;
  const char *text = text_of(&c, &size);
  if (text && size && size <= FACT_BYTES) mic_perfdata_fact(p, key, text, size);
}

static void read_host(struct mic_perfdata *p, struct mic_cursor c) {
  struct mic_cursor again = c;
  size_t size;
  const char *text = text_of(&again, &size);
  if (text) snprintf(p->host, sizeof p->host, "%.*s", (int)(size < 255 ? size : 255), text);
  fact_of(p, "host", c);
}

static void read_command(struct mic_perfdata *p, struct mic_cursor c) {
  MIC_VEC(char) line = {0};
  uint32_t count = mic_cursor_u32(&c);
  for (uint32_t i = 0; i < count && !c.bad; i++) {
    size_t size;
    const char *text = text_of(&c, &size);
    if (!text || line.count + size > FACT_BYTES) break;
    if (i) *mic_vec_push(&line) = ' ';
    for (size_t k = 0; k < size; k++) *mic_vec_push(&line) = text[k];
  }
  if (line.count) mic_perfdata_fact(p, "command", line.at, line.count);
  mic_vec_free(&line);
}

/* The names of events: the attributes again, ids, and how perf calls them. */
static void read_names(struct mic_perfdata *p, struct mic_cursor c) {
  uint32_t count = mic_cursor_u32(&c), attr_size = mic_cursor_u32(&c);
  for (uint32_t i = 0; i < count && !c.bad; i++) {
    mic_cursor_take(&c, attr_size);
    uint32_t ids = mic_cursor_u32(&c);
    size_t size;
    const char *text = text_of(&c, &size);
    if (ids > mic_cursor_left(&c) / 8) return;
    uint32_t event = i;
    for (uint32_t k = 0; k < ids; k++) {
      uint32_t known = mic_map_get(&p->by_id, mic_cursor_u64(&c), 0);
      if (k == 0 && known != MIC_NONE) event = known;
    }
    if (text && size && event < p->events.count)
      p->events.at[event].name = mic_writer_string(p->writer, text, size);
  }
}

static void read_clock(struct mic_perfdata *p, struct mic_cursor c) {
  uint32_t version = mic_cursor_u32(&c);
  mic_cursor_u32(&c); /* the clock: as the events have it */
  uint64_t wall_ns = mic_cursor_u64(&c), at_ns = mic_cursor_u64(&c);
  if (c.bad || version != 1) return;
  p->realtime_ns = wall_ns;
  p->realtime_at_ns = at_ns;
}

static void note_build_id(struct mic_perfdata *p, const char *path, size_t size,
                          const struct mic_perfdata_build_id *id) {
  size_t known = p->paths.strings.count;
  uint32_t at = mic_intern(&p->paths, path, size);
  if (at == known) {
    *mic_vec_push(&p->build_ids) = *id;
    return;
  }
  struct mic_perfdata_build_id *old = &p->build_ids.at[at];
  if (old->size != id->size || memcmp(old->bytes, id->bytes, id->size) != 0) old->ambiguous = true;
}

/* The kernel is by the name of its vmlinux where perf had one; modules are "[NAME]" or a file. */
static bool is_whole_kernel(const char *path, size_t size) {
  return size > 0 && path[0] != '[' && !memmem(path, size, ".ko", 3) &&
         !memmem(path, size, "bpf_", 4);
}

/* {header, pid, 20 bytes, their number, 3 bytes, path}: the record of a pipe has the same form. */
static bool read_build_id(struct mic_perfdata *p, struct mic_cursor *c) {
  mic_cursor_u32(c);
  uint16_t misc = mic_cursor_u16(c), size = mic_cursor_u16(c);
  if (c->bad || size < 36 || size - 8U > mic_cursor_left(c)) return false;
  struct mic_cursor body = mic_cursor(mic_cursor_take(c, size - 8U), size - 8U);
  mic_cursor_u32(&body);
  struct mic_perfdata_build_id id = {.size = 20};
  memcpy(id.bytes, mic_cursor_take(&body, 20), 20);
  uint8_t told = mic_cursor_u8(&body);
  mic_cursor_take(&body, 3);
  if (misc & MISC_BUILD_ID_SIZE) id.size = told;
  if (id.size > 20 || id.size == 0) return true;
  size_t room = mic_cursor_left(&body);
  const char *path = mic_cursor_take(&body, room);
  if (!path) return true;
  size_t path_size = strnlen(path, room);
  if ((misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
      is_whole_kernel(path, path_size))
    note_build_id(p, MIC_PERFDATA_KERNEL, sizeof MIC_PERFDATA_KERNEL - 1, &id);
  else
    note_build_id(p, path, path_size, &id);
  return true;
}

const struct mic_perfdata_build_id *mic_perfdata_build_id(const struct mic_perfdata *p,
                                                          const char *path, size_t size) {
  uint32_t at = mic_interner_find(&p->paths, path, size);
  return at == MIC_NONE ? NULL : &p->build_ids.at[at];
}

/* The machine whose registers and addresses these are. */
static int read_machine(struct mic_perfdata *p, struct mic_cursor c, struct mic_error *err) {
  size_t size;
  const char *text = text_of(&c, &size);
  if (!text || !size) return 0;
  if (size > 64 || strncmp(text, "x86_64", size) != 0)
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "%.120s was recorded on %.*s: only recordings of x86_64 are read", p->name,
                    size > 64 ? 64 : (int)size, text);
  mic_perfdata_fact(p, "machine", text, size);
  return 0;
}

/* PERF_DIR_SINGLE_FILE, 0, is a folder's only file with records (perf record --kcore);
 * PERF_DIR_VERSION, 1, one of several (--threads). */
static int read_folder(struct mic_perfdata *p, struct mic_cursor c, struct mic_error *err) {
  uint64_t version = mic_cursor_u64(&c);
  p->several = version == 1;
  if (version <= 1) return 0;
  return mic_fail(err, MIC_EUNSUPPORTED,
                  "%.120s: its folder has a form that is not known here (version %llu)", p->name,
                  (unsigned long long)version);
}

static int read_feature(struct mic_perfdata *p, uint64_t feature, struct mic_cursor c,
                        struct mic_error *err) {
  switch (feature) {
  case FEATURE_BUILD_ID:
    while (mic_cursor_left(&c) && read_build_id(p, &c)) {
    }
    break;
  case FEATURE_HOSTNAME: read_host(p, c); break;
  case FEATURE_OSRELEASE: fact_of(p, "kernel", c); break;
  case FEATURE_VERSION: fact_of(p, "perf", c); break;
  case FEATURE_CPUDESC: fact_of(p, "cpu", c); break;
  case FEATURE_CMDLINE: read_command(p, c); break;
  case FEATURE_EVENT_DESC: read_names(p, c); break;
  case FEATURE_CLOCK_DATA: read_clock(p, c); break;
  case FEATURE_ARCH: return read_machine(p, c, err);
  case FEATURE_DIR_FORMAT: return read_folder(p, c, err);
  default: break;
  }
  return 0;
}

/* After the records: one section of each feature there is. */
static int read_features(struct mic_perfdata *p, struct mic_error *err) {
  struct mic_cursor table;
  if (!section(p, p->data_end, p->size - p->data_end, &table)) return 0;
  for (uint32_t feature = 0; feature < FEATURES; feature++) {
    if (!(p->features[feature / 64] >> feature % 64 & 1)) continue;
    uint64_t offset = mic_cursor_u64(&table), size = mic_cursor_u64(&table);
    struct mic_cursor c;
    if (table.bad || !section(p, offset, size, &c)) {
      mic_target_problem(p->target, "a part of what perf wrote after the records is not there", 1);
      return 0;
    }
    int code = read_feature(p, feature, c, err);
    if (code) return code;
  }
  return 0;
}

/* ---- the header ---- */

/* perf writes the size of the records last: 0 means that it was ended before. */
static void bound_data(struct mic_perfdata *p, uint64_t offset, uint64_t size) {
  p->data = offset;
  p->features_known = size != 0 && size <= p->size - offset;
  p->data_end = p->features_known ? offset + size : p->size;
  if (p->features_known) return;
  mic_target_problem(p->target,
                     size ? "the perf.data is shorter than its header says"
                          : "perf record did not end the perf.data, as when it is killed",
                     1);
}

static int read_header(struct mic_perfdata *p, struct mic_error *err) {
  struct mic_cursor c = mic_cursor(p->bytes, p->size), attrs;
  mic_cursor_take(&c, 16);
  uint64_t attr_size = mic_cursor_u64(&c);
  uint64_t attrs_at = mic_cursor_u64(&c), attrs_size = mic_cursor_u64(&c);
  uint64_t data_at = mic_cursor_u64(&c), data_size = mic_cursor_u64(&c);
  mic_cursor_take(&c, 16); /* event types: no longer used */
  for (int i = 0; i < 4; i++) p->features[i] = mic_cursor_u64(&c);
  if (c.bad) return malformed(p, p->size, "the header is cut short", err);
  if (!section(p, attrs_at, attrs_size, &attrs))
    return malformed(p, 24, "the events' attributes are not in the file", err);
  if (data_at > p->size) return malformed(p, 40, "the records are not in the file", err);
  bound_data(p, data_at, data_size);
  int code = read_attrs(p, attrs, attr_size, err);
  if (!code && p->features_known) code = read_features(p, err);
  if (!p->features_known) p->several = mic_perfdata_has_parts(p);
  return code;
}

int mic_perfdata_open(struct mic_perfdata *p, struct mic_error *err) {
  struct mic_cursor c = mic_cursor(p->bytes, p->size);
  const char *magic = mic_cursor_take(&c, 8);
  uint64_t size = mic_cursor_u64(&c);
  if (c.bad) return malformed(p, 0, "no perf.data: it has no header", err);
  if (memcmp(magic, "2ELIFREP", 8) == 0)
    return mic_fail(err, MIC_EUNSUPPORTED, "%.120s was recorded on a big-endian machine", p->name);
  if (memcmp(magic, "PERFFILE", 8) == 0)
    return mic_fail(
      err, MIC_EUNSUPPORTED,
      "%.120s is a perf.data of before Linux 3.2; `perf inject` of that time rewrites it", p->name);
  if (memcmp(magic, "PERFILE2", 8) != 0) return malformed(p, 0, "no perf.data", err);
  if (size == PIPE_HEADER_BYTES) {
    p->pipe = true;
    p->data = PIPE_HEADER_BYTES;
    p->data_end = p->size;
    return 0;
  }
  if (size < HEADER_BYTES) return malformed(p, 8, "a header of a size that cannot be", err);
  int code = read_header(p, err);
  if (!code && !p->events.count) return malformed(p, 24, "it has no events", err);
  return code ? code : mic_perfdata_settle(p, err);
}

static int told_attr(struct mic_perfdata *p, struct mic_cursor c, uint64_t offset,
                     struct mic_error *err) {
  uint32_t size = 0;
  if (mic_cursor_left(&c) < ATTR_MIN_BYTES)
    return malformed(p, offset, "an event's attributes are cut short", err);
  memcpy(&size, c.at + 4, 4); /* perf_event_attr.size */
  if (size == 0) size = ATTR_MIN_BYTES;
  const uint8_t *bytes = mic_cursor_take(&c, size);
  if (!bytes) return malformed(p, offset, "an event's attributes are cut short", err);
  int code = add_event(p, bytes, size, offset, err);
  if (!code) code = add_ids(p, mic_cursor(c.at, mic_cursor_left(&c)), err);
  return code ? code : mic_perfdata_settle(p, err);
}

static void told_update(struct mic_perfdata *p, struct mic_cursor c) {
  uint64_t kind = mic_cursor_u64(&c);
  uint32_t event = mic_map_get(&p->by_id, mic_cursor_u64(&c), 0);
  if (c.bad || kind != UPDATE_NAME || event == MIC_NONE) return;
  size_t size = strnlen((const char *)c.at, mic_cursor_left(&c));
  if (size) p->events.at[event].name = mic_writer_string(p->writer, (const char *)c.at, size);
}

int mic_perfdata_told(struct mic_perfdata *p, const uint8_t *bytes, size_t size, uint64_t offset,
                      struct mic_error *err) {
  uint32_t type;
  memcpy(&type, bytes, 4);
  struct mic_cursor c = mic_cursor(bytes, size);
  if (type == RECORD_BUILD_ID) {
    read_build_id(p, &c);
    return 0;
  }
  mic_cursor_take(&c, 8);
  if (type == RECORD_ATTR) return told_attr(p, c, offset, err);
  if (type == RECORD_UPDATE) told_update(p, c);
  if (type != RECORD_FEATURE) return 0;
  uint64_t feature = mic_cursor_u64(&c);
  return read_feature(p, feature, mic_cursor(c.at, mic_cursor_left(&c)), err);
}

/* ---- where ids stand ---- */

static uint32_t count_of(uint64_t type, uint64_t bits) {
  return (uint32_t)__builtin_popcountll(type & bits);
}

int mic_perfdata_settle(struct mic_perfdata *p, struct mic_error *err) {
  for (size_t i = 0; i < p->events.count; i++) {
    uint64_t type = p->events.at[i].layout.sample_type;
    uint32_t at = 0, before_end = 1;
    bool finds = (type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)) != 0;
    if (!(type & PERF_SAMPLE_IDENTIFIER)) {
      at = count_of(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
      before_end = 1 + count_of(type, PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID);
    }
    if (i == 0) {
      p->id_at = at;
      p->id_before_end = before_end;
      p->finds_ids = finds;
    } else if (finds != p->finds_ids ||
               (finds && (at != p->id_at || before_end != p->id_before_end)) ||
               (!finds && type != p->events.at[0].layout.sample_type)) {
      return mic_fail(err, MIC_EUNSUPPORTED,
                      "%.120s: the records of its events cannot be told apart", p->name);
    }
  }
  return 0;
}
