/*
 * build.h - what importers share: functions, locations, stacks, threads and labels, each once.
 *
 * A builder appends to a writer and remembers what it appended, so that the same function, place
 * or stack has one row.  Ids are row numbers; strings are the writer's (mic_writer_string).  Ids
 * that are given to it are not checked here: the writer checks all rows in the end.
 *
 * Owns:    borrows the writer, which must outlive it.
 * Threads: one user at a time.
 */
#ifndef MIC_IMPORT_BUILD_H
#define MIC_IMPORT_BUILD_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"

/* ffi:begin */
struct mic_build;

struct mic_build *mic_build_new(struct mic_writer *writer);
void mic_build_free(struct mic_build *build); /* NULL is fine */

uint32_t mic_build_source(struct mic_build *build, uint32_t name, uint32_t unit, uint64_t period,
                          uint32_t unit_name);
/* The unit that another tool's word stands for, of a quantity of that name: nanoseconds of "cpu"
 * are CPU time, others only time.  MIC_UNIT_OTHER for a word that no unit has. */
uint32_t mic_build_unit(const char *name, uint64_t name_size, const char *unit, uint64_t size);
uint32_t mic_build_file(struct mic_build *build, uint32_t path);
/* A module by its path and build ID; name: the path's last part. */
uint32_t mic_build_module(struct mic_build *build, uint32_t path, uint32_t build_id);
uint32_t mic_build_function(struct mic_build *build, uint32_t name, uint32_t linkage_name,
                            uint32_t module, uint32_t file, uint32_t line);
/* A place that is known by its function alone: a location with one line. */
uint32_t mic_build_place(struct mic_build *build, uint32_t function, uint32_t module, uint32_t file,
                         uint32_t line);
/* The node of a root (enum mic_end) and of a frame under a node. */
uint32_t mic_build_root(struct mic_build *build, uint32_t end);
uint32_t mic_build_node(struct mic_build *build, uint32_t parent, uint32_t location);
/* The end that a frame's name stands for, "[depth limit]", or MIC_END_NONE. */
uint32_t mic_build_end(const char *name, uint64_t size);
/* A process and a thread by id and name: those that a file does not tell are 0 and "". */
uint32_t mic_build_process(struct mic_build *build, uint32_t pid, uint32_t name);
uint32_t mic_build_thread(struct mic_build *build, uint32_t process, uint32_t tid, uint32_t name);
uint32_t mic_build_label(struct mic_build *build, uint32_t key, uint32_t kind, uint32_t text,
                         uint64_t number, uint32_t unit);
uint32_t mic_build_site(struct mic_build *build, uint32_t name, uint32_t category);
/* ffi:end */

/* Free what is known of a table's rows: none is looked for any more. */
void mic_build_forget(struct mic_build *build, enum mic_table_id table);

#endif
