/*
 * perfdata_inside.h - a perf.data file as the files that read it share it.
 *
 * perfdata_file.c reads what stands around the records (header, attributes, features), and the same
 * facts where a pipe has them as records; perfdata_order.c finds the records and gives them in
 * order of time; perfdata_parts.c opens the other files of a folder; perfdata_image.c opens files
 * by build ID, perfdata_made.c perf maps; perfdata.c hands records to the target.
 */
#ifndef MIC_IMPORT_PERFDATA_INSIDE_H
#define MIC_IMPORT_PERFDATA_INSIDE_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/map.h"
#include "image/guard.h"
#include "import/perfdata.h"
#include "import/scratch.h"
#include "perf/record.h"
#include "perf/throttle.h"
#include "target/kernel.h"
#include "target/target.h"

/* How perf calls the kernel itself; in mappings the symbol follows that tells where it is. */
#define MIC_PERFDATA_KERNEL "[kernel.kallsyms]"

/* An event: one of the attributes the file begins with. */
struct mic_perfdata_event {
  struct mic_perf_layout layout;
  struct mic_perf_more more;
  uint64_t period; /* 0: by frequency, each sample has its own */
  uint64_t config;
  uint32_t type;
  uint32_t name;   /* the writer's string, 0: not told */
  uint32_t source; /* its row, or MIC_NONE */
  uint32_t max_stack;
  bool monotonic; /* stamped by CLOCK_MONOTONIC, else by the kernel's scheduler clock */
  bool inherits;  /* its threads' and children's events have its id */
  bool marks_all; /* sample_id_all: every record has a trailer */
};

struct mic_perfdata_build_id {
  uint8_t bytes[20];
  uint8_t size;
  bool ambiguous; /* several for one path: none is proven */
};

struct mic_perfdata_waiting {
  uint64_t time_ns;
  const uint8_t *bytes;
  uint64_t number, offset;
  uint32_t size, chunk; /* chunk: of decompressed records, or MIC_NONE */
};

/* Decompressed records, kept while some of them wait. */
struct mic_perfdata_chunk {
  uint8_t *bytes;
  size_t size;
  uint32_t held; /* records that wait, and 1 while it is read */
};

typedef MIC_VEC(struct mic_perfdata_waiting) mic_perfdata_waits;

/* A file of records: the perf.data itself, and data.N beside it. */
struct mic_perfdata_part {
  const uint8_t *bytes;
  uint64_t from, past;     /* where its records lie */
  uint64_t first;          /* how many records come before; UINT64_MAX: not reached yet */
  struct mic_guard *guard; /* of bytes that are a file's pages, which can be read again; or NULL */
  char *name;              /* in its folder; NULL: the perf.data itself */
  bool unpacked;           /* the records that were compressed in it */
};

struct mic_perfdata {
  const uint8_t *bytes;    /* the file */
  struct mic_guard *guard; /* of its pages, or NULL */
  size_t size;
  const char *name;
  bool pipe;
  bool files;                              /* files of this machine may be opened */
  const char *const *folders;              /* where else images may be; NULL: nowhere */
  uint64_t data, data_end;                 /* where its records lie */
  uint64_t features[4];                    /* bits */
  bool features_known;                     /* perf ended well */
  bool several;                            /* its records lie in other files of its folder too */
  MIC_VEC(struct mic_perfdata_part) parts; /* the perf.data first */
  char host[256];         /* where it was recorded; "": not told (HOST_NAME_MAX is 64) */
  uint64_t ended_wall_ns; /* when the file was last written, by the wall clock; 0: not known */
  MIC_VEC(struct mic_perfdata_event) events;
  struct mic_map by_id;         /* an event's id -> its number */
  struct mic_map counted_by_id; /* an event's id, and which thread's -> its number among counted */
  struct mic_id_map births;     /* a thread's id -> how often it was given, as far as is told */
  bool counts_threads;          /* births are of use */
  MIC_VEC(uint64_t) counted; /* what events of PERF_SAMPLE_READ had counted at their last sample */
  struct mic_interner paths; /* of build IDs, by the same number */
  MIC_VEC(struct mic_perfdata_build_id) build_ids;
  uint32_t id_at, id_before_end; /* words: where samples, and other records, have their id */
  bool finds_ids;
  uint64_t realtime_ns, realtime_at_ns; /* the wall clock at a time of the file's; 0: not known */

  struct mic_writer *writer;
  struct mic_target *target;
  struct mic_kernel_names *kernel;
  const char *kernel_problem; /* why it has no names; NULL: it has, or nothing told of it yet */
  struct mic_perfdata_result *result;
  uint64_t start_ns, end_ns; /* the times of the first and the last record that has one */
  bool started, sources;
  bool clock_told; /* clock's meta row is written */
  struct mic_throttle throttle;
  MIC_VEC(uint64_t) kernel_chain;
  MIC_VEC(uint64_t) user_chain;

  mic_perfdata_waits waiting, ready;
  uint64_t round_max_ns, flush_ns; /* the latest time so far; what the last round's end allows */
  MIC_VEC(struct mic_perfdata_chunk) chunks;
  uint64_t held_bytes;         /* of chunks */
  struct mic_scratch unpacked; /* decompressed records of the file that is read, of a folder's */
  bool in_unpacked;            /* of a part that was compressed */
  bool stopped;                /* nothing more of the file that is read can be */
  uint64_t given;              /* bytes of files' pages read since they were given back */
  void *zstd;
  uint8_t *part; /* a record of a compressed stream that is not whole yet */
  size_t part_size;
  /* A record that is not aligned where it lies; its size is 16 bits. */
  _Alignas(8) uint8_t scratch[65536];
};

/* ---- perfdata_file.c ---- */
int mic_perfdata_open(struct mic_perfdata *p, struct mic_error *err);
/* A record of perf's own that tells what the header of a file does.  0, also for all others. */
int mic_perfdata_told(struct mic_perfdata *p, const uint8_t *bytes, size_t size, uint64_t offset,
                      struct mic_error *err);
/* After the last attribute: where ids stand. */
int mic_perfdata_settle(struct mic_perfdata *p, struct mic_error *err);
void mic_perfdata_fact(struct mic_perfdata *p, const char *key, const char *value, size_t size);
/* The build ID of a path, or NULL. */
const struct mic_perfdata_build_id *mic_perfdata_build_id(const struct mic_perfdata *p,
                                                          const char *path, size_t size);

/* ---- perfdata_order.c ---- */
/* Gives every record, in order of time, to mic_perfdata_take. */
int mic_perfdata_records(struct mic_perfdata *p, struct mic_error *err);
void mic_perfdata_bad(struct mic_perfdata *p, uint64_t number, uint64_t offset);
/* The event of a record, or NULL. */
struct mic_perfdata_event *mic_perfdata_event(struct mic_perfdata *p, const uint8_t *bytes,
                                              size_t size);

/* ---- perfdata_parts.c ---- */
/* Whether the folder of a perf.data that does not tell holds other files of records. */
bool mic_perfdata_has_parts(const struct mic_perfdata *p);
int mic_perfdata_open_parts(struct mic_perfdata *p, struct mic_error *err);
/* Make what was decompressed of a part another one, read after all that are there. */
int mic_perfdata_add_unpacked(struct mic_perfdata *p, size_t part, struct mic_error *err);
/* The part that a record is of, by its number. */
const struct mic_perfdata_part *mic_perfdata_part_of(const struct mic_perfdata *p, uint64_t record);
/* "data.0, decompressed"; "" for the perf.data itself. */
void mic_perfdata_part_name(const struct mic_perfdata_part *part, char *out, size_t size);
void mic_perfdata_close_parts(struct mic_perfdata *p);

/* ---- perfdata_image.c ---- */
int mic_perfdata_open_image(void *data, const struct mic_target_map *map, const char **problem);

/* ---- perfdata_made.c ---- */
struct mic_made_code *mic_perfdata_open_made(void *data, const struct mic_made_process *process,
                                             char **path);

/* ---- perfdata.c ---- */
void mic_perfdata_take(struct mic_perfdata *p, const struct mic_perfdata_waiting *waiting);

#endif
