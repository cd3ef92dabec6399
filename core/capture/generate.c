/*
 * generate.c - a recording's tables from a seed, through the public writer.
 *
 * Only whole-number arithmetic decides anything, so the bytes are the same on every machine.
 */
#include "capture/generate.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capture/writer.h"

enum {
  SITES = 4,       /* call sites a function has in stacks */
  DEPTH_LEAST = 5, /* frames of the shallowest stack */
  ROOTS = 4
};

struct node {
  uint32_t parent, location, depth, children;
};
struct making {
  struct mic_generate_options options;
  struct mic_writer *w;
  uint64_t random;
  uint32_t locations;
  uint64_t gap_ns; /* from one CPU's timer to the next one's */
  MIC_VEC(struct node) nodes;
  uint32_t *stacks; /* the node of each distinct stack; the most sampled first */
};

/* SplitMix64: one multiplication chain, every seed is good. */
static uint64_t next(struct making *m) {
  uint64_t z = m->random += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}
/* Below a bound that is less than 2^32. */
static uint32_t below(struct making *m, uint32_t bound) {
  return (uint32_t)((next(m) >> 32) * bound >> 32);
}
/* Below a bound, each power of two as likely as any other: Zipf's law in whole numbers. */
static uint32_t ranked(struct making *m, uint32_t bound) {
  uint32_t octaves = 32 - (uint32_t)__builtin_clz(bound);
  for (;;) {
    uint32_t octave = below(m, octaves);
    uint32_t rank = (1U << octave) - 1 + below(m, 1U << octave);
    if (rank < bound) return rank;
  }
}

static uint32_t text(struct making *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static uint32_t text(struct making *m, const char *fmt, ...) {
  char line[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  return mic_writer_text(m->w, line);
}

static void make_facts(struct making *m) {
  const struct mic_generate_options *o = &m->options;
  uint64_t duration = o->samples / o->cpus * o->period_ns + 1000000;
  const char *facts[][2] = {{"host", "generated"}, {"program", "/usr/bin/generated"}};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    mic_writer_meta(m->w,
                    &(struct mic_meta_row){text(m, "%s", facts[i][0]), text(m, "%s", facts[i][1])});
  mic_writer_settings(m->w, &(struct mic_settings_row){
                              text(m, "seed"), text(m, "%llu", (unsigned long long)o->seed)});
  mic_writer_clocks(m->w, &(struct mic_clocks_row){.monotonic_ns = 1000000000000ULL,
                                                   .realtime_ns = 1700000000000000000ULL,
                                                   .duration_ns = duration,
                                                   .boot_id = text(m, "%s", "")});
  mic_writer_costs(m->w, &(struct mic_costs_row){MIC_COST_STARTUP, 8000000, 9000000});
  mic_writer_costs(m->w, &(struct mic_costs_row){MIC_COST_RUNNING, duration / 200, duration});
  mic_writer_costs(m->w, &(struct mic_costs_row){MIC_COST_FINISHING, 40000000, 41000000});
  mic_writer_sources(m->w, &(struct mic_sources_row){.name = text(m, "cpu-clock"),
                                                     .unit = MIC_UNIT_CPU_NS,
                                                     .period = o->period_ns,
                                                     .unit_name = text(m, "%s", "")});
}

static void make_threads(struct making *m) {
  const struct mic_generate_options *o = &m->options;
  for (uint32_t i = 0; i < o->processes; i++) {
    uint32_t name = text(m, "server-%u", i);
    mic_writer_processes(m->w, &(struct mic_processes_row){.pid = 1000 + i,
                                                           .ns_pid = 1000 + i,
                                                           .parent = i ? 0 : MIC_NONE,
                                                           .name = name,
                                                           .end_ns = UINT64_MAX});
    mic_writer_process_execs(m->w,
                             &(struct mic_process_execs_row){i, text(m, "/usr/bin/generated"), 0});
  }
  for (uint32_t i = 0, process = 0; i < o->threads; i++) {
    uint32_t name = text(m, i < o->processes ? "main" : "worker-%u", i);
    mic_writer_threads(m->w,
                       &(struct mic_threads_row){
                         .process = process, .tid = 1000 + i, .name = name, .end_ns = UINT64_MAX});
    mic_writer_thread_names(m->w, &(struct mic_thread_names_row){i, name, 0});
    if (++process == o->processes) process = 0;
  }
}

static void make_modules(struct making *m) {
  for (uint32_t i = 0; i < m->options.modules; i++) {
    uint32_t name = i ? text(m, "libpart%u.so.%u", i, i % 7) : text(m, "generated");
    uint32_t path = i ? text(m, "/usr/lib/x86_64-linux-gnu/libpart%u.so.%u", i, i % 7)
                      : text(m, "/usr/bin/generated");
    uint64_t id = next(m);
    mic_writer_modules(
      m->w, &(struct mic_modules_row){.kind = MIC_MODULE_ELF,
                                      .path = path,
                                      .name = name,
                                      .build_id = text(m, "%016llx%024llx", (unsigned long long)id,
                                                       (unsigned long long)next(m)),
                                      .inode = 100000 + i,
                                      .size = 1 << 20});
    for (uint32_t p = 0; p < m->options.processes; p++)
      mic_writer_mappings(
        m->w, &(struct mic_mappings_row){.process = p,
                                         .module = i,
                                         .address = 0x7f0000000000ULL + ((uint64_t)i << 24),
                                         .size = 1 << 20,
                                         .end_ns = UINT64_MAX});
  }
}

/* A function in a name space, of a class, with arguments: about as long as C++ names are. */
static uint32_t make_name(struct making *m, uint32_t i) {
  static const char *verbs[] = {"parse", "encode", "lookup",  "insert", "visit", "commit",
                                "flush", "poll",   "compare", "reduce", "merge", "hash"};
  static const char *types[] = {"Buffer", "Index", "Request", "Session", "Table",
                                "Node",   "Token", "Query",   "Stream",  "Cache"};
  const char *verb = verbs[below(m, sizeof verbs / sizeof *verbs)];
  const char *type = types[below(m, sizeof types / sizeof *types)];
  if (i % 3 == 0) return text(m, "%s_%s_%u", verb, type, i);
  return text(m, "part%u::%s%u::%s(part%u::%s const&, unsigned long)", i % 17, type, i, verb,
              i % 13, type);
}

static void make_functions(struct making *m) {
  uint32_t files = m->options.functions / 20 + 1;
  for (uint32_t i = 0; i < files; i++)
    mic_writer_files(m->w,
                     &(struct mic_files_row){text(m, "/build/part%u/src/unit_%u.cc", i % 17, i)});
  for (uint32_t i = 0; i < m->options.functions; i++) {
    uint32_t name = make_name(m, i);
    mic_writer_functions(m->w, &(struct mic_functions_row){.name = name,
                                                           .linkage_name = name,
                                                           .module = i % m->options.modules,
                                                           .file = i / 20,
                                                           .line = 10 + i % 20 * 40});
  }
}

/* The lines of a location: of three one has a function or two inlined into its own. */
static void make_lines(struct making *m, uint32_t location) {
  uint32_t function = location / SITES, inlined = below(m, 3) == 0 ? 1 + below(m, 2) : 0;
  for (uint32_t depth = 0; depth <= inlined; depth++) {
    uint32_t runs = depth == inlined ? function : below(m, m->options.functions);
    mic_writer_lines(m->w, &(struct mic_lines_row){.location = location,
                                                   .function = runs,
                                                   .file = runs / 20,
                                                   .line = 11 + runs % 20 * 40 + below(m, 30),
                                                   .depth = depth});
  }
}

static void make_locations(struct making *m) {
  m->locations = m->options.functions * SITES;
  for (uint32_t i = 0; i < m->locations; i++) {
    uint32_t function = i / SITES;
    mic_writer_locations(
      m->w, &(struct mic_locations_row){
              .kind = MIC_LOCATION_NATIVE,
              .evidence = MIC_EVIDENCE_CFI,
              .module = function % m->options.modules,
              .offset = 0x1000 + function / m->options.modules * 256ULL + i % SITES * 40,
            });
    make_lines(m, i);
  }
}

static uint32_t add_node(struct making *m, uint32_t parent, uint32_t location, uint8_t end) {
  uint32_t depth = parent == MIC_NONE ? 0 : m->nodes.at[parent].depth + 1;
  *mic_vec_push(&m->nodes) = (struct node){parent, location, depth, 0};
  return mic_writer_stacks(m->w, &(struct mic_stacks_row){parent, location, end});
}

/* A new callee.  What a place calls lies together, mostly among a few often called functions;
 * the count of its children keeps the places of siblings apart. */
static uint32_t add_callee(struct making *m, uint32_t parent) {
  struct node *node = &m->nodes.at[parent];
  uint64_t u = ((uint64_t)node->location + 1) * 0x9e3779b97f4a7c15ULL >> 32;
  uint64_t cube = (u * u >> 32) * u >> 32;
  uint64_t location = ((cube * m->locations >> 32) + node->children++) % m->locations;
  return add_node(m, parent, (uint32_t)location, MIC_END_NONE);
}

/* A distinct stack: from an earlier one some frames up, then down again. */
static uint32_t make_stack(struct making *m, uint32_t number) {
  uint32_t from = number ? m->stacks[ranked(m, number)] : 0;
  if (number < ROOTS || below(m, 50) == 0) from = ranked(m, ROOTS);
  uint32_t up = 1 + ranked(m, 16);
  while (up-- && m->nodes.at[from].parent != MIC_NONE) from = m->nodes.at[from].parent;
  uint32_t depth = m->nodes.at[from].depth, most = m->options.depth_max;
  uint32_t target = depth + 1 + ranked(m, 8);
  if (target < DEPTH_LEAST) target = DEPTH_LEAST + below(m, most - DEPTH_LEAST + 1) / 2;
  if (target > most) target = most;
  while (target <= depth) depth = m->nodes.at[from = m->nodes.at[from].parent].depth;
  while (depth++ < target) from = add_callee(m, from);
  return from;
}

static void make_stacks(struct making *m) {
  static const uint8_t ends[ROOTS] = {MIC_END_OUTERMOST, MIC_END_ENTRY, MIC_END_COPY_EXHAUSTED,
                                      MIC_END_NO_UNWIND_INFO};
  for (uint32_t i = 0; i < ROOTS; i++) add_node(m, MIC_NONE, MIC_NONE, ends[i]);
  m->stacks = mic_alloc((size_t)m->options.stacks * sizeof *m->stacks);
  for (uint32_t i = 0; i < m->options.stacks; i++) m->stacks[i] = make_stack(m, i);
}

/* Each CPU's timer fires once a period, a little apart from the others; now and then a thread
 * moves, and a stack is often seen twice. */
static void make_samples(struct making *m) {
  const struct mic_generate_options *o = &m->options;
  uint32_t *thread_of = mic_alloc(o->cpus * sizeof *thread_of);
  uint32_t *stack_of = mic_alloc(o->cpus * sizeof *stack_of);
  for (uint32_t i = 0; i < o->cpus; i++) {
    thread_of[i] = below(m, o->threads);
    stack_of[i] = m->stacks[ranked(m, o->stacks)];
  }
  uint64_t turn_ns = 0;
  uint32_t cpu = 0;
  for (uint64_t i = 0; i < o->samples; i++) {
    uint64_t bits = next(m);
    if (bits % 16 == 0) thread_of[cpu] = below(m, o->threads);
    if (bits >> 4 & 3) stack_of[cpu] = m->stacks[ranked(m, o->stacks)];
    uint64_t jitter_ns = (bits >> 8 & 0x3ff) * m->gap_ns >> 11; /* up to half a gap */
    mic_writer_samples(m->w,
                       &(struct mic_samples_row){.time_ns = turn_ns + cpu * m->gap_ns + jitter_ns,
                                                 .thread = thread_of[cpu],
                                                 .stack = stack_of[cpu],
                                                 .weight = o->period_ns,
                                                 .cpu = (uint16_t)cpu});
    if (++cpu < o->cpus) continue;
    cpu = 0;
    turn_ns += o->period_ns;
  }
  free(thread_of);
  free(stack_of);
}

/* Texts and numbers in turn; the first sample has the first label. */
static void make_labels(struct making *m) {
  const struct mic_generate_options *o = &m->options;
  for (uint32_t i = 0; i < o->labels; i++) {
    bool number = i % 2;
    mic_writer_labels(m->w, &(struct mic_labels_row){
                              .key = text(m, number ? "request_bytes" : "route"),
                              .kind = number ? MIC_LABEL_NUMBER : MIC_LABEL_TEXT,
                              .text = number ? text(m, "%s", "") : text(m, "/route/%u", i),
                              .number = number ? i * 1000ULL : 0,
                              .unit = number ? text(m, "bytes") : text(m, "%s", ""),
                            });
  }
  uint32_t label = 0;
  for (uint64_t i = 0; i < o->samples; i += o->labelled) {
    mic_writer_sample_labels(m->w, &(struct mic_sample_labels_row){(uint32_t)i, label});
    if (++label >= o->labels) label = 0;
  }
}

/* Of two one lies inside the other; the last has no end, so it runs past the one around it. */
static void make_zones(struct making *m) {
  const struct mic_generate_options *o = &m->options;
  for (uint32_t i = 0; i < 2; i++)
    mic_writer_sites(m->w, &(struct mic_sites_row){.name = text(m, i ? "query" : "handle"),
                                                   .category = text(m, "server"),
                                                   .file = i ? MIC_NONE : 0,
                                                   .line = i ? 0 : 12});
  for (uint32_t i = 0; i < o->zones; i++) {
    uint64_t start_ns = (i / 2 * 4 + i % 2) * o->period_ns;
    uint64_t length_ns = (3 - i % 2 * 2) * o->period_ns;
    bool open = i + 1 == o->zones;
    mic_writer_zones(m->w,
                     &(struct mic_zones_row){.thread = i / 2 % o->threads,
                                             .site = i % 2,
                                             .start_ns = start_ns,
                                             .end_ns = open ? UINT64_MAX : start_ns + length_ns,
                                             .lane = open});
  }
}

static void make_losses(struct making *m) {
  uint64_t period = m->options.period_ns;
  mic_writer_losses(m->w, &(struct mic_losses_row){10 * period, MIC_LOSS_SAMPLES, 3, 1});
  mic_writer_off_spans(
    m->w, &(struct mic_off_spans_row){20 * period, 25 * period, MIC_OFF_QUEUE, UINT16_MAX});
  mic_writer_duty(m->w, &(struct mic_duty_row){0, 1000, period / 100});
  mic_writer_problems(m->w, &(struct mic_problems_row){text(m, "a generated problem"), 2});
}

/* Two parts of the first module's file, and what naming made of it. */
static void make_images(struct making *m) {
  enum { PART_BYTES = 64 };
  for (uint32_t part = 0; part < 2; part++) {
    for (uint32_t i = 0; i < PART_BYTES; i++)
      mic_writer_image_bytes(m->w, &(struct mic_image_bytes_row){(uint8_t)i});
    mic_writer_image_parts(m->w, &(struct mic_image_parts_row){.module = 0,
                                                               .offset = 4096 * part,
                                                               .end = PART_BYTES * (part + 1)});
  }
  mic_writer_naming(m->w, &(struct mic_naming_row){.module = 0,
                                                   .state = MIC_NAMING_DONE,
                                                   .named = m->options.functions,
                                                   .problem = text(m, "no debug information")});
}

static int check(struct mic_generate_options *o, struct mic_error *err) {
#define DEFAULT(field, value) \
  if (!o->field) o->field = value
  DEFAULT(processes, 1);
  DEFAULT(threads, 8);
  DEFAULT(cpus, 4);
  DEFAULT(modules, 20);
  DEFAULT(functions, 5000);
  DEFAULT(stacks, 10000);
  DEFAULT(depth_max, 60);
  DEFAULT(labels, 4);
  DEFAULT(labelled, 1000);
  DEFAULT(zones, 8);
  DEFAULT(samples, 100000);
  DEFAULT(period_ns, 1000000);
#undef DEFAULT
  if (o->depth_max < DEPTH_LEAST || o->threads < o->processes || o->cpus > UINT16_MAX ||
      o->functions > UINT32_MAX / SITES / 2 || o->stacks > UINT32_MAX / 64)
    return mic_fail(err, MIC_EARG, "generate: an option is out of its range");
  return 0;
}

MIC_EXPORT int mic_capture_generate(const struct mic_generate_options *options, const char *path,
                                    struct mic_error *err) {
  if (options->size != sizeof *options)
    return mic_fail(err, MIC_EARG, "generate: options of %u bytes, not %zu", options->size,
                    sizeof *options);
  struct mic_writer *writer = NULL;
  struct making m = {.options = *options, .random = options->seed};
  int code = check(&m.options, err);
  if (!code) code = mic_writer_open(path, &writer, err);
  if (code) return code;
  m.w = writer;
  m.gap_ns = m.options.period_ns / m.options.cpus;
  make_facts(&m);
  make_threads(&m);
  make_modules(&m);
  make_functions(&m);
  make_locations(&m);
  make_stacks(&m);
  make_samples(&m);
  make_labels(&m);
  make_zones(&m);
  make_losses(&m);
  make_images(&m);
  mic_vec_free(&m.nodes);
  free(m.stacks);
  return mic_writer_finish(m.w, false, err);
}
