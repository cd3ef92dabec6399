/*
 * table.h - an image's call-frame information as a compact table.
 *
 * Rows are {pc offset u32, rule u16} with a dictionary of rules (docs/internals/unwind.md), a
 * layout that a kernel program can walk as well.  User space compiles an FDE when a frame first
 * needs it; mic_table_compile_all makes the whole table.
 */
#ifndef MIC_UNWIND_TABLE_H
#define MIC_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/elf.h"

struct mic_table;

/* Indexes the image's .eh_frame (through .eh_frame_hdr where it has one) and .debug_frame; never
 * fails for lack of them.  The image is borrowed until the table is freed. */
int mic_table_new(struct mic_elf *elf, struct mic_table **out, struct mic_error *err);
void mic_table_free(struct mic_table *table); /* NULL is fine */
int mic_table_compile_all(struct mic_table *table, struct mic_error *err);
size_t mic_table_memory(const struct mic_table *table); /* bytes held */

#endif
