/*
 * names.h - name locations in a thread of its own, the only one that touches elfutils.
 *
 * Owns:    the names own their thread and all that lookups gave.  An image given with a request
 *          must stay until mic_names_finish or mic_names_free.
 * Threads: requests come from one thread; results are read after mic_names_finish.
 */
#ifndef MIC_TARGET_NAMES_H
#define MIC_TARGET_NAMES_H

#include <stdint.h>

#include "capture/writer.h"

struct mic_image; /* image.h */
struct mic_names;

struct mic_names *mic_names_new(void);
void mic_names_free(struct mic_names *names); /* drops what is not yet named; NULL is fine */
/* Name the location at an ELF address of an image.  The thread is not woken for each. */
void mic_names_ask(struct mic_names *names, uint32_t location, struct mic_image *image,
                   uint64_t vaddr);
/* Wake the thread if anything was asked. */
void mic_names_wake(struct mic_names *names);
/* Wait until all is named, then append the files, functions and lines to the writer.  Modules
 * whose names are missing have their problem set (image.h). */
void mic_names_finish(struct mic_names *names, struct mic_writer *writer);

#endif
