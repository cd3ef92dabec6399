/*
 * schema.h - what a capture is made of, for C: enums, row structs, and the schema as data.
 *
 * schema.def is the one source; ends.def the closed set of stack ends.  Lua sees the enums and
 * asks for the rest through reader.h.
 */
#ifndef MIC_CAPTURE_SCHEMA_H
#define MIC_CAPTURE_SCHEMA_H

#include <stdint.h>

/* ffi:begin */
enum mic_cost { MIC_COST_STARTUP = 0, MIC_COST_RUNNING = 1, MIC_COST_FINISHING = 2 };

enum mic_unit { MIC_UNIT_CPU_NS = 0, MIC_UNIT_CYCLES = 1, MIC_UNIT_COUNT = 2, MIC_UNIT_BYTES = 3 };

enum mic_module_kind {
  MIC_MODULE_ELF = 0,
  MIC_MODULE_VDSO = 1,
  MIC_MODULE_VSYSCALL = 2,
  MIC_MODULE_OTHER = 3 /* a mapped file that is no ELF image, or that could not be proven */
};

enum mic_location {
  MIC_LOCATION_NATIVE = 0, /* module + offset */
  MIC_LOCATION_SIGNAL = 1, /* the kernel's signal frame: module + offset of the trampoline */
  MIC_LOCATION_ANON = 2,   /* code in anonymous memory: offset is the address */
  MIC_LOCATION_UNMAPPED = 3, /* code in no known mapping: offset is the address */
  MIC_LOCATION_NAMED = 4   /* offset is a string's id (imports) */
};

enum mic_evidence {
  MIC_EVIDENCE_CFI = 0,          /* call-frame information, or the sampled registers themselves */
  MIC_EVIDENCE_CODE = 1,         /* the function's own instructions prove the frame */
  MIC_EVIDENCE_FRAME_POINTER = 2 /* frame pointers, where no call-frame information exists */
};

enum mic_loss { MIC_LOSS_SAMPLES = 0, MIC_LOSS_RECORDS = 1 };

enum mic_off { MIC_OFF_QUEUE = 0, MIC_OFF_BUDGET = 1, MIC_OFF_THROTTLE = 2 };
/* ffi:end */

enum mic_end {
  MIC_END_NONE = 0, /* not a root */
#define MIC_END(name, number, text, advice) MIC_END_##name = number,
#include "capture/ends.def"
#undef MIC_END
  MIC_END_COUNT
};

/* struct mic_samples_row and its kin: one row of each table. */
typedef uint8_t mic_u8;
typedef uint16_t mic_u16;
typedef uint32_t mic_u32;
typedef uint64_t mic_u64;
#define MIC_TABLE_BEGIN(table, doc) struct mic_##table##_row {
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) mic_##type name;
#define MIC_TABLE_END(table) \
  }                          \
  ;
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END

enum mic_table_id {
#define MIC_TABLE_BEGIN(table, doc) MIC_TABLE_##table,
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc)
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
  MIC_TABLE_COUNT
};

enum mic_column_flag {
  MIC_COL_OPTIONAL = 1,
  MIC_COL_DELTA = 2,
  MIC_COL_ASCENDING = 4,
  MIC_COL_BEFORE = 8
};

#endif
