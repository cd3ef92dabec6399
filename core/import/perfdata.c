/* perfdata.c - records of a perf.data file to a target's events. */
#include "import/perfdata.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "import/output.h"
#include "import/perfdata_inside.h"

enum {
  SOURCES_MAX = 255,            /* samples.source is a u8 */
  MAX_STACK = 127,              /* kernel.perf_event_max_stack, where the event does not say */
  MISC_FORK_SYNTHETIC = 1 << 13 /* PERF_RECORD_MISC_FORK_EXEC: made by perf of what ran before */
};
/* Older headers lack them; the numbers are the kernel's ABI. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define CONTEXT_FIRST ((uint64_t)-4095) /* PERF_CONTEXT_MAX */
enum { RECORD_CALLCHAIN_DEFERRED = 22 };

static uint64_t relative(const struct mic_perfdata *p, uint64_t time_ns) {
  return time_ns > p->start_ns ? time_ns - p->start_ns : 0;
}

/* ---- sources ---- */

static void write_source(struct mic_perfdata *p, struct mic_perfdata_event *event) {
  bool software = event->type == PERF_TYPE_SOFTWARE;
  struct mic_sources_row row = {.name = event->name, .period = event->period};
  char text[48];
  if (!row.name) {
    snprintf(text, sizeof text, "event %u:0x%llx", event->type, (unsigned long long)event->config);
    row.name = mic_writer_text(p->writer, text);
  }
  row.unit = MIC_UNIT_COUNT;
  if (software && event->config <= PERF_COUNT_SW_TASK_CLOCK) row.unit = MIC_UNIT_CPU_NS;
  if (event->type == PERF_TYPE_HARDWARE && (event->config & 0xffffffff) == PERF_COUNT_HW_CPU_CYCLES)
    row.unit = MIC_UNIT_CYCLES;
  /* What is counted is the event itself. */
  if (row.unit == MIC_UNIT_COUNT) row.unit_name = row.name;
  event->source = mic_writer_sources(p->writer, &row);
}

static bool is_dummy(const struct mic_perfdata_event *event) {
  return event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_DUMMY;
}

/* In the order of the events; what only tells of mappings is no source until it has a sample. */
static void write_sources(struct mic_perfdata *p) {
  if (p->sources) return;
  p->sources = true;
  for (size_t i = 0; i < p->events.count && i < SOURCES_MAX; i++)
    if (!is_dummy(&p->events.at[i])) write_source(p, &p->events.at[i]);
}

static bool source_of(struct mic_perfdata *p, struct mic_perfdata_event *event) {
  write_sources(p);
  if (event->source == MIC_NONE && mic_writer_rows(p->writer, MIC_TABLE_sources) < SOURCES_MAX)
    write_source(p, event);
  return event->source != MIC_NONE;
}

/* ---- mappings ---- */

/* Files that have no inode in their record are told apart by path and build ID: by 64 bits of a
 * digest, so that two of 10^6 files meet with a chance of 10^-8. */
static void make_inode(struct mic_target_map *map) {
  char key[4096 + 32];
  size_t size = strlen(map->path);
  if (size > 4096) size = 4096;
  memcpy(key, map->path, size);
  if (map->build_id) memcpy(key + size, map->build_id, map->build_id_size);
  struct mic_digest digest = mic_digest(key, size + map->build_id_size);
  map->maj = map->min = UINT32_MAX;
  map->inode = (uint64_t)digest.words[0] << 32 | digest.words[1];
  if (!map->inode) map->inode = 1;
  map->made_inode = true;
}

static void state_build_id(struct mic_perfdata *p, const struct mic_record *record,
                           struct mic_target_map *map) {
  if (record->build_id_size) {
    map->build_id = record->build_id;
    map->build_id_size = record->build_id_size;
    return;
  }
  const struct mic_perfdata_build_id *id = mic_perfdata_build_id(p, map->path, strlen(map->path));
  if (!id || id->ambiguous) return;
  map->build_id = id->bytes;
  map->build_id_size = id->size;
}

static struct mic_target_map map_of(const struct mic_record *record, const char *path) {
  return (struct mic_target_map){
    .time_ns = record->time_ns,
    .pid = record->pid,
    .tid = record->tid,
    .address = record->addr,
    .size = record->len,
    .file_offset = record->pgoff,
    .maj = record->maj,
    .min = record->min,
    .inode = record->ino,
    .generation = record->ino_generation,
    .path = path,
  };
}

static void ask_kernel(struct mic_perfdata *p, const struct mic_target_map *map, const char *symbol,
                       uint64_t address) {
  char text[32];
  int size = snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
  struct mic_kernel_text where = {
    map->build_id, map->build_id_size, symbol, address, "",
  };
  if (p->kernel || p->kernel_problem) return;
  p->kernel_problem = "the recording does not say where the kernel was";
  if (!*symbol) return;
  mic_perfdata_fact(p, "kernel_text", text, (size_t)size);
  mic_perfdata_fact(p, "kernel_text_symbol", symbol, strlen(symbol));
  p->kernel_problem = "names of this machine are not looked up";
  if (p->files) p->kernel = mic_kernel_names_open(&where, &p->kernel_problem);
}

static void take_module(struct mic_perfdata *p, const struct mic_record *record) {
  struct mic_target_map map = map_of(record, record->name);
  const char *problem = p->kernel_problem;
  struct mic_kernel_names *names = NULL;
  state_build_id(p, record, &map);
  struct mic_kernel_module module = {
    map.path, map.build_id, map.build_id_size, map.address, map.size,
  };
  if (p->kernel) names = mic_kernel_names_module(p->kernel, &module, &problem);
  if (!names && !problem) problem = "the recording does not say where the kernel was";
  mic_target_kernel(p->target, MIC_MODULE_LOADED, &map, names, problem);
}

/* perf tells of the kernel's code to _etext.  What ran when it started lies after its data; up to
 * where modules may be, all is the kernel's own (Documentation/arch/x86/x86_64/mm.rst). */
static void extend_kernel(struct mic_target_map *map) {
  uint64_t lowest = 0xffffffff80000000, modules = 0xffffffffa0000000;
  if (map->address >= lowest && map->address < modules && map->size < modules - map->address)
    map->size = modules - map->address;
}

/* "[kernel.kallsyms]_text" tells where _text is in pgoff; others are modules. */
static void take_kernel(struct mic_perfdata *p, const struct mic_record *record) {
  static const char kernel[] = MIC_PERFDATA_KERNEL;
  if (strncmp(record->name, kernel, sizeof kernel - 1) != 0) {
    take_module(p, record);
    return;
  }
  struct mic_target_map map = map_of(record, kernel);
  state_build_id(p, record, &map);
  ask_kernel(p, &map, record->name + sizeof kernel - 1, record->pgoff);
  extend_kernel(&map);
  mic_target_kernel(p->target, MIC_MODULE_KERNEL, &map, p->kernel, p->kernel_problem);
}

/* Code that the kernel made while it ran, and its name; of no kernel's own. */
static void take_ksymbol(struct mic_perfdata *p, const struct mic_record *record) {
  if (!record->name) return;
  struct mic_target_map map = map_of(record, record->name);
  if (record->out)
    mic_target_unloaded(p->target, &map);
  else
    mic_target_loaded(p->target, &map);
}

static void take_mapping(struct mic_perfdata *p, const struct mic_record *record) {
  uint32_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
  if (record->data || !record->name) return;
  if (mode == PERF_RECORD_MISC_KERNEL) {
    take_kernel(p, record);
    return;
  }
  if (mode != PERF_RECORD_MISC_USER) return;
  struct mic_target_map map = map_of(record, record->name);
  state_build_id(p, record, &map);
  if (!record->has_inode && (record->build_id_size || record->name[0] == '/') &&
      strncmp(record->name, "//", 2) != 0 && record->name[0] != '[')
    make_inode(&map);
  mic_target_map(p->target, &map);
}

/* ---- samples ---- */

/* The addresses of a chain by where they are; false when part of it is in a guest. */
static bool split_chain(struct mic_perfdata *p, const struct mic_record *record) {
  uint64_t context = record->user ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL;
  bool whole = true;
  for (uint32_t i = 0; i < record->ip_count; i++) {
    uint64_t address;
    memcpy(&address, record->ips + i, sizeof address);
    if (address >= CONTEXT_FIRST) {
      context = address;
      if (context != CONTEXT_USER_DEFERRED) continue;
      i++; /* a cookie follows, by which the user's part is found when it comes */
      p->result->deferred++;
      continue;
    }
    if (context == PERF_CONTEXT_KERNEL)
      *mic_vec_push(&p->kernel_chain) = address;
    else if (context == PERF_CONTEXT_USER)
      *mic_vec_push(&p->user_chain) = address;
    else
      whole = false;
  }
  return whole;
}

/* Asked for where code has no frame pointers: what the kernel found by them is not to be believed,
 * but for the first address, which the registers told. */
static bool has_call_stack(const struct mic_perfdata_event *event) {
  return event->layout.sample_type & PERF_SAMPLE_BRANCH_STACK &&
         event->more.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

/* The calls that have not returned, the last first: {u64 from, to, flags} each. */
static void take_call_stack(struct mic_perfdata *p, const struct mic_record *record) {
  if (p->user_chain.count > 1) p->user_chain.count = 1;
  if (record->branch_count == 0) p->result->calls++;
  if (!p->user_chain.count && record->user) *mic_vec_push(&p->user_chain) = record->ip;
  if (!p->user_chain.count) return; /* where it entered the kernel is not known */
  for (uint32_t i = 0; i < record->branch_count; i++) {
    uint64_t from;
    memcpy(&from, record->branches + (size_t)i * 24, sizeof from);
    *mic_vec_push(&p->user_chain) = from + 1;
  }
}

static void make_chain(struct mic_perfdata *p, const struct mic_perfdata_event *event,
                       const struct mic_record *record, struct mic_target_chain *chain) {
  uint64_t type = event->layout.sample_type;
  p->kernel_chain.count = p->user_chain.count = 0;
  bool whole = split_chain(p, record);
  chain->processor = has_call_stack(event);
  if (chain->processor) take_call_stack(p, record);
  chain->unwind = (type & PERF_SAMPLE_REGS_USER) && (type & PERF_SAMPLE_STACK_USER);
  chain->end = MIC_END_NOT_STATED;
  if (!(type & PERF_SAMPLE_CALLCHAIN)) chain->end = MIC_END_NO_COPY;
  /* Without a chain the place itself is known. */
  bool user = record->user, bare = (type & PERF_SAMPLE_IP) != 0;
  if (bare && user && !p->user_chain.count) *mic_vec_push(&p->user_chain) = record->ip;
  if (bare && !user && !p->kernel_chain.count) *mic_vec_push(&p->kernel_chain) = record->ip;
  uint32_t most = event->max_stack ? event->max_stack : MAX_STACK;
  if (!whole || p->kernel_chain.count + p->user_chain.count >= most)
    chain->end = whole ? MIC_END_DEPTH_LIMIT : MIC_END_NOT_STATED;
  chain->kernel = p->kernel_chain.at;
  chain->kernel_count = (uint32_t)p->kernel_chain.count;
  chain->user = p->user_chain.at;
  chain->user_count = (uint32_t)p->user_chain.count;
}

static enum mic_end fault_of(const struct mic_record *record) {
  if (record->regs_abi == PERF_SAMPLE_REGS_ABI_NONE) return MIC_END_NO_REGISTERS;
  return record->regs_abi == PERF_SAMPLE_REGS_ABI_32 ? MIC_END_COMPAT_CODE : MIC_END_NONE;
}

enum { NO_RAW_BYTES = 4 };

/* What the kernel tells of an access where there is none: PERF_MEM_NA (include/linux/perf_event.h),
 * before Linux 6.1 without the level's number. */
static bool is_access(uint64_t source) {
  static const uint64_t old = PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA) |
                              PERF_MEM_S(LOCK, NA) | PERF_MEM_S(TLB, NA);
  return source && source != old && source != (old | PERF_MEM_S(LVLNUM, NA));
}

/* What the sample holds that no table has a place for. */
static void count_parts(struct mic_perfdata *p, const struct mic_perfdata_event *event,
                        const struct mic_record *record) {
  uint64_t type = event->layout.sample_type;
  /* Of an event without any the kernel writes 4 bytes of 0 (perf_output_sample). */
  if (record->raw_size > NO_RAW_BYTES) p->result->fields++;
  if (type & PERF_SAMPLE_BRANCH_STACK && !has_call_stack(event)) p->result->branches++;
  /* perf asks for addresses and accesses with --call-graph dwarf too, where there are none. */
  if (record->data_addr || is_access(record->data_source) ||
      type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_TRANSACTION |
              PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_AUX | PERF_SAMPLE_CGROUP |
              PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE))
    p->result->extras++;
}

_Static_assert((int)MIC_RECORD_REGS == (int)MIC_REG_COUNT, "one register order on both floors");

static void give_sample(struct mic_perfdata *p, struct mic_perfdata_event *event,
                        struct mic_target_sample *sample, uint64_t weight) {
  if (!source_of(p, event)) {
    mic_target_problem(p->target, "samples of more than 255 events are left out", 1);
    return;
  }
  sample->source = (uint8_t)event->source;
  sample->weight = weight;
  p->result->samples++;
  mic_target_sample(p->target, sample);
}

/* Of an inherited event each thread has a count of its own, with the id of the event that it comes
 * from (perf_event_open(2), "inherit"): which thread, also when its own id was used before. */
static uint64_t counter_of(const struct mic_perfdata *p, const struct mic_perfdata_event *event,
                           uint32_t tid) {
  if (!event->inherits) return 0;
  uint32_t births = mic_id_map_get(&p->births, tid);
  return (births == MIC_NONE ? 1ULL : births + 1ULL) << 32 | tid;
}

/* What an event has counted since its last sample. */
static uint64_t counted_since(struct mic_perfdata *p, uint64_t id, uint64_t counter,
                              uint64_t value) {
  uint32_t next = (uint32_t)p->counted.count;
  uint32_t at = mic_map_intern(&p->counted_by_id, id, counter, next, NULL);
  if (at == next) *mic_vec_push(&p->counted) = 0;
  uint64_t last = p->counted.at[at];
  p->counted.at[at] = value;
  return value < last ? value : value - last; /* it began anew */
}

/* A sample that tells what its event, or each of its group, has counted is one of each that
 * counted, and weighs what it did: as perf has it, for periods are of the group's first alone. */
static void give_counts(struct mic_perfdata *p, const struct mic_perfdata_event *event,
                        const struct mic_record *record, struct mic_target_sample *sample) {
  uint64_t counter = counter_of(p, event, record->tid);
  for (uint32_t i = 0; i < record->read_count; i++) {
    uint64_t id, value = mic_perf_read_value(&event->more, record, i, &id);
    uint32_t of = mic_map_get(&p->by_id, id, 0);
    if (of == MIC_NONE) {
      p->result->reads++;
      continue;
    }
    uint64_t weight = counted_since(p, id, counter, value);
    if (weight) give_sample(p, &p->events.at[of], sample, weight);
  }
}

static void copy_stack(const struct mic_record *record, struct mic_target_sample *sample) {
  sample->fault = fault_of(record);
  sample->regs.known = record->regs.known;
  memcpy(sample->regs.r, record->regs.r, sizeof sample->regs.r);
  sample->stack = (struct mic_stack_copy){
    .bytes = record->stack,
    .address = record->regs.r[MIC_REG_RSP],
    .size = record->stack ? record->stack_size : 0,
    .full = record->stack_full,
  };
}

static void take_sample(struct mic_perfdata *p, struct mic_perfdata_event *event,
                        const struct mic_record *record) {
  uint64_t type = event->layout.sample_type;
  uint32_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
  struct mic_target_chain chain = {0};
  struct mic_target_sample sample = {
    .time_ns = record->time_ns,
    .pid = record->pid,
    .tid = record->tid,
    .cpu = (uint16_t)record->cpu,
    .chain = &chain,
  };
  count_parts(p, event, record);
  if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER) {
    p->result->guests++;
    chain.end = MIC_END_NOT_STATED;
  } else {
    make_chain(p, event, record, &chain);
  }
  if (chain.unwind) copy_stack(record, &sample);
  /* Without ids it is the event's own count, of which the period tells the same. */
  if (record->reads && event->more.read_format & PERF_FORMAT_ID)
    give_counts(p, event, record, &sample);
  else
    give_sample(p, event, &sample, type & PERF_SAMPLE_PERIOD ? record->period : event->period);
}

/* ---- losses ---- */

static void take_loss(struct mic_perfdata *p, const struct mic_record *record) {
  struct mic_losses_row row = {
    .time_ns = relative(p, record->time_ns),
    .kind = record->kind == MIC_RECORD_LOST_SAMPLES ? MIC_LOSS_SAMPLES : MIC_LOSS_RECORDS,
    .count = record->lost,
    .cpu = (uint16_t)record->cpu,
  };
  if (record->lost) mic_writer_losses(p->writer, &row);
}

static void put_throttled(struct mic_perfdata *p, const struct mic_throttle_span *span) {
  struct mic_off_spans_row row = {
    .start_ns = relative(p, span->start_ns),
    .end_ns = relative(p, span->end_ns),
    .kind = MIC_OFF_THROTTLE,
    .cpu = (uint16_t)span->cpu,
  };
  if (row.end_ns > row.start_ns) mic_writer_off_spans(p->writer, &row);
}

static void take_throttle(struct mic_perfdata *p, const struct mic_record *record) {
  struct mic_throttle_span span;
  if (mic_throttle_take(&p->throttle, record, &span)) put_throttled(p, &span);
}

/* ---- records ---- */

static void take_fork(struct mic_perfdata *p, const struct mic_record *record) {
  if (p->counts_threads) {
    uint32_t births = mic_id_map_get(&p->births, record->tid);
    mic_id_map_put(&p->births, record->tid, births == MIC_NONE ? 1 : births + 1);
  }
  /* What perf made of /proc has the mappings that follow, not those of its parent. */
  if (record->misc & MISC_FORK_SYNTHETIC && record->pid != record->ppid) return;
  mic_target_fork(p->target, record->time_ns, record->pid, record->tid, record->ppid, record->ptid);
}

static void take_record(struct mic_perfdata *p, struct mic_perfdata_event *event,
                        const struct mic_record *record) {
  struct mic_target *target = p->target;
  switch (record->kind) {
  case MIC_RECORD_SAMPLE: take_sample(p, event, record); break;
  case MIC_RECORD_MMAP: take_mapping(p, record); break;
  case MIC_RECORD_COMM:
    if (record->name)
      mic_target_name(target, record->time_ns, record->pid, record->tid, record->name,
                      record->exec);
    break;
  case MIC_RECORD_FORK: take_fork(p, record); break;
  case MIC_RECORD_EXIT: mic_target_exit(target, record->time_ns, record->pid, record->tid); break;
  case MIC_RECORD_KSYMBOL: take_ksymbol(p, record); break;
  case MIC_RECORD_LOST:
  case MIC_RECORD_LOST_SAMPLES: take_loss(p, record); break;
  case MIC_RECORD_THROTTLE:
  case MIC_RECORD_UNTHROTTLE: take_throttle(p, record); break;
  default:
    /* Of what is deferred each sample tells. */
    if (record->type != RECORD_CALLCHAIN_DEFERRED) p->result->others++;
  }
}

/* The first record in order begins the recording. */
static void note_time(struct mic_perfdata *p, uint64_t time_ns) {
  if (!time_ns) return;
  if (!p->started) {
    p->started = true;
    p->start_ns = p->end_ns = time_ns;
    mic_target_start(p->target, time_ns);
  }
  if (time_ns > p->end_ns) p->end_ns = time_ns;
}

void mic_perfdata_take(struct mic_perfdata *p, const struct mic_perfdata_waiting *waiting) {
  struct mic_perfdata_event *event = mic_perfdata_event(p, waiting->bytes, waiting->size);
  const uint8_t *bytes = waiting->bytes;
  struct mic_record record;
  uint32_t type;
  if (!event) return;
  struct mic_perf_layout layout = event->layout;
  memcpy(&type, bytes, sizeof type);
  if (type != PERF_RECORD_SAMPLE && !event->marks_all) layout.sample_type = 0;
  if ((uintptr_t)bytes % 8) {
    memcpy(p->scratch, bytes, waiting->size);
    bytes = p->scratch;
  }
  if (mic_perf_decode_more(&layout, &event->more, bytes, waiting->size, &record, NULL) != 0) {
    mic_perfdata_bad(p, waiting->number, waiting->offset);
    return;
  }
  record.time_ns = waiting->time_ns;
  note_time(p, record.time_ns);
  take_record(p, event, &record);
}

/* ---- the whole ---- */

static void write_clocks(struct mic_perfdata *p) {
  bool monotonic = p->events.count && p->events.at[0].monotonic;
  struct mic_clocks_row row = {
    .monotonic_ns = monotonic ? p->start_ns : 0,
    .duration_ns = p->end_ns - p->start_ns,
    .boot_id = mic_writer_text(p->writer, ""),
  };
  if (p->realtime_ns) row.realtime_ns = p->realtime_ns + (p->start_ns - p->realtime_at_ns);
  mic_writer_clocks(p->writer, &row);
  char text[32];
  int size = snprintf(text, sizeof text, "%llu", (unsigned long long)p->start_ns);
  /* What perf itself shows as the time of this capture's time 0. */
  mic_perfdata_fact(p, "perf_start_ns", text, (size_t)size);
}

/* No sample, and something that is wrong. */
static int refuse_all(const struct mic_perfdata *p, struct mic_error *err) {
  const struct mic_perfdata_result *result = p->result;
  bool cut = result->cut != NULL;
  const char *file = cut ? result->cut_file : result->first_bad_file;
  uint64_t number = cut ? result->cut_record : result->first_bad;
  uint64_t offset = cut ? result->cut_offset : result->first_bad_offset;
  return mic_fail_at(err, offset, "%.100s: record %llu at byte %llu%s%s: %s", p->name,
                     (unsigned long long)number, (unsigned long long)offset, *file ? " of " : "",
                     file, cut ? result->cut : "it does not hold together");
}

static int read_all(struct mic_perfdata *p, struct mic_error *err) {
  struct mic_target_options options = {
    .writer = p->writer,
    .open_image = mic_perfdata_open_image,
    .open_data = p,
    .open_made = mic_perfdata_open_made,
    .made_data = p,
    .names_later = !p->files,
    .elsewhere = true,
  };
  p->target = mic_target_new(&options);
  int code = mic_perfdata_open(p, err);
  if (!code) code = mic_perfdata_open_parts(p, err);
  if (!code) code = mic_perfdata_records(p, err);
  if (code) return code;
  if (p->result->cut)
    mic_target_problem(p->target, "the perf.data's records end early: the rest is left out", 1);
  if (p->result->bad_records)
    mic_target_problem(p->target, "records of the perf.data do not hold together",
                       p->result->bad_records);
  struct mic_throttle_span span;
  while (mic_throttle_end(&p->throttle, p->end_ns, &span)) put_throttled(p, &span);
  write_sources(p);
  mic_target_finish(p->target);
  write_clocks(p);
  if (p->result->samples || !(p->result->cut || p->result->bad_records)) return 0;
  return refuse_all(p, err);
}

static void release(struct mic_perfdata *p) {
  mic_perfdata_close_parts(p);
  mic_target_free(p->target);
  mic_kernel_names_free(p->kernel);
  mic_vec_free(&p->events);
  mic_map_free(&p->by_id);
  mic_map_free(&p->counted_by_id);
  mic_id_map_free(&p->births);
  mic_vec_free(&p->counted);
  mic_interner_free(&p->paths);
  mic_vec_free(&p->build_ids);
  mic_throttle_free(&p->throttle);
  mic_vec_free(&p->kernel_chain);
  mic_vec_free(&p->user_chain);
  mic_vec_free(&p->waiting);
  mic_vec_free(&p->ready);
  for (size_t i = 0; i < p->chunks.count; i++) free(p->chunks.at[i].bytes);
  mic_vec_free(&p->chunks);
  ZSTD_freeDStream(p->zstd);
  free(p->part);
  free(p);
}

static int check_part(const struct mic_perfdata *p, const struct mic_perfdata_part *part,
                      struct mic_error *err) {
  char file[MIC_PERFDATA_NAME_SIZE];
  if (!part->guard || !mic_guard_damaged(part->guard)) return 0;
  mic_perfdata_part_name(part, file, sizeof file);
  return mic_fail(err, MIC_EFORMAT, "%.120s: %s became shorter while it was read", p->name,
                  *file ? file : "it");
}

/* What asks of a reading has bytes, size, name, files, folders and writer. */
static int read_asked(const struct mic_perfdata *asked, struct mic_perfdata_result *result,
                      struct mic_error *err) {
  struct mic_perfdata *p = mic_alloc(sizeof *p);
  *result = (struct mic_perfdata_result){0};
  *p = *asked;
  p->unpacked.fd = -1;
  p->result = result;
  int code = read_all(p, err);
  for (size_t i = 0; i < p->parts.count && !code; i++) code = check_part(p, &p->parts.at[i], err);
  release(p);
  return code;
}

int mic_perfdata_read_memory(const void *bytes, uint64_t size, int files, struct mic_writer *writer,
                             struct mic_perfdata_result *result, struct mic_error *err) {
  struct mic_perfdata asked = {
    .bytes = bytes, .size = size, .name = "input", .files = files != 0, .writer = writer};
  return read_asked(&asked, result, err);
}

/* Before all of a compressed file is given room: whether it begins as a perf.data.  What a plain
 * one lacks is said better when it is opened. */
static int check_magic(struct mic_input *input, struct mic_error *err) {
  char magic[8];
  uint64_t got;
  if (mic_input_compression(input) == MIC_PLAIN) return 0;
  int code = mic_input_read(input, magic, sizeof magic, &got, err);
  if (code) return code;
  if (got == sizeof magic &&
      (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0 ||
       memcmp(magic, "PERFFILE", 8) == 0))
    return 0;
  return mic_fail_at(err, 0, "%.150s: byte 0: no perf.data", mic_input_name(input));
}

MIC_EXPORT int mic_perfdata_read(struct mic_input *input, struct mic_writer *writer,
                                 const char *const *folders, struct mic_perfdata_result *result,
                                 struct mic_error *err) {
  int fd;
  struct stat st;
  struct mic_guard *guard = NULL;
  int code = check_magic(input, err);
  if (!code) code = mic_input_file(input, &fd, err);
  if (code) return code;
  if (fstat(fd, &st) != 0)
    code = mic_fail_sys(err, "reading %.180s", mic_input_name(input));
  else if (st.st_size == 0)
    code = mic_fail_at(err, 0, "%.150s: byte 0: no perf.data: it is empty", mic_input_name(input));
  else
    code = mic_guard_map(fd, (size_t)st.st_size, mic_input_name(input), &guard, err);
  close(fd);
  if (!guard) return code;
  struct mic_perfdata asked = {
    .bytes = mic_guard_bytes(guard),
    .guard = guard,
    .size = (size_t)st.st_size,
    .name = mic_input_name(input),
    .files = true,
    .folders = folders,
    .ended_wall_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
    .writer = writer,
  };
  code = read_asked(&asked, result, err);
  mic_guard_unmap(guard);
  return code;
}
