/*
 * schema.h - what a capture is made of, for C: enums, row structs, and the schema as data.
 *
 * schema.def is the one source of tables and columns, enums.def of the names of enum values,
 * ends.def the closed set of stack ends.  Lua sees the enums and asks for the rest through
 * reader.h.
 */
#ifndef MIC_CAPTURE_SCHEMA_H
#define MIC_CAPTURE_SCHEMA_H

#include <stdint.h>

/* ffi:begin */
enum mic_cost { MIC_COST_STARTUP = 0, MIC_COST_RUNNING = 1, MIC_COST_FINISHING = 2 };

enum mic_unit {
  MIC_UNIT_CPU_NS = 0,
  MIC_UNIT_CYCLES = 1,
  MIC_UNIT_COUNT = 2,
  MIC_UNIT_BYTES = 3,
  MIC_UNIT_NS = 4,   /* time that is not CPU time, or that is not known to be */
  MIC_UNIT_OTHER = 5 /* sources.unit_name says what */
};

enum mic_label { MIC_LABEL_TEXT = 0, MIC_LABEL_NUMBER = 1 };

enum mic_module_kind {
  MIC_MODULE_ELF = 0,
  MIC_MODULE_VDSO = 1,
  MIC_MODULE_VSYSCALL = 2,
  MIC_MODULE_OTHER = 3,  /* a mapped file that is no ELF image, or that could not be proven */
  MIC_MODULE_KERNEL = 4, /* the kernel itself: offsets are addresses as it ran */
  MIC_MODULE_LOADED = 5, /* a kernel module or BPF program: offsets from where its code began */
  MIC_MODULE_MADE = 6 /* code that a process made, named by its perf map: offsets are addresses */
};

enum mic_naming {
  MIC_NAMING_DONE = 0, /* symbols and debug information were looked for */
  MIC_NAMING_LATER = 1 /* left for later: nothing was looked for */
};

enum mic_location {
  MIC_LOCATION_NATIVE = 0,   /* module + offset */
  MIC_LOCATION_SIGNAL = 1,   /* the kernel's signal frame: module + offset of the trampoline */
  MIC_LOCATION_ANON = 2,     /* code in anonymous memory: offset is the address */
  MIC_LOCATION_UNMAPPED = 3, /* code in no known mapping: offset is the address */
  MIC_LOCATION_NAMED = 4,    /* offset is a string's id (imports) */
  MIC_LOCATION_FILE = 5,     /* module + offset in its file, where no ELF header told (imports) */
  MIC_LOCATION_RELATIVE = 6  /* module + address less that of its first segment; so too (imports) */
};

enum mic_evidence {
  MIC_EVIDENCE_CFI = 0,           /* call-frame information, or the sampled registers themselves */
  MIC_EVIDENCE_CODE = 1,          /* the function's own instructions prove the frame */
  MIC_EVIDENCE_FRAME_POINTER = 2, /* frame pointers, where no call-frame information exists */
  MIC_EVIDENCE_PROCESSOR = 3      /* the processor's own record of the calls (LBR) */
};

enum mic_loss { MIC_LOSS_SAMPLES = 0, MIC_LOSS_RECORDS = 1 };

enum mic_off { MIC_OFF_QUEUE = 0, MIC_OFF_BUDGET = 1, MIC_OFF_THROTTLE = 2 };

/* The unit of a column, as the file holds it. */
enum mic_column_unit {
  MIC_COLUMN_UNIT_NONE = 0,
  MIC_COLUMN_UNIT_NS = 1,
  MIC_COLUMN_UNIT_BYTES = 2,
  MIC_COLUMN_UNIT_COUNT = 3,
  MIC_COLUMN_UNIT_ADDRESS = 4,
  MIC_COLUMN_UNIT_LINE = 5,
  MIC_COLUMN_UNIT_ID = 6,   /* a row of the table the column's ref names */
  MIC_COLUMN_UNIT_ENUM = 7, /* a value of the enum the column's ref names */
  MIC_COLUMN_UNIT_FLAGS = 8
};
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

/* MIC_COLUMN_samples_stack and its kin: every column has one number, a table's follow one
 * another from MIC_FIRST_samples to before MIC_PAST_samples. */
enum mic_column_number {
#define MIC_TABLE_BEGIN(table, doc) MIC_FIRST_##table, MIC_FIRST_##table##_ = MIC_FIRST_##table - 1,
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) MIC_COLUMN_##table##_##name,
#define MIC_TABLE_END(table) MIC_PAST_##table, MIC_PAST_##table##_ = MIC_PAST_##table - 1,
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
  MIC_COLUMN_COUNT
};

enum mic_column_flag {
  MIC_COL_OPTIONAL = 1,
  MIC_COL_DELTA = 2, /* a hint to the writer: neighbours are near one another */
  MIC_COL_ASCENDING = 4,
  MIC_COL_BEFORE = 8
};
/* The minor version that brought a column is kept beside its flags; 0 is not written. */
#define MIC_COL_SINCE(minor) ((minor) << 8)

enum mic_enum {
#define MIC_ENUM_BEGIN(name) MIC_ENUM_##name,
#define MIC_ENUM_VALUE(name, value, text)
#define MIC_ENUM_END(name)
#include "capture/enums.def"
#undef MIC_ENUM_BEGIN
#undef MIC_ENUM_VALUE
#undef MIC_ENUM_END
  MIC_ENUM_COUNT
};

struct mic_schema_column {
  const char *name;
  const char *ref; /* the table's or enum's name, or "" */
  const char *doc;
  uint32_t target; /* enum mic_table_id of an ID's table, enum mic_enum of an ENUM's; else 0 */
  uint8_t table;   /* enum mic_table_id */
  uint8_t width;   /* bytes: 1, 2, 4, 8 */
  uint8_t unit;    /* enum mic_column_unit */
  uint8_t flags;   /* enum mic_column_flag */
  uint16_t since;  /* the minor version that brought it */
};
struct mic_schema_table {
  const char *name;
  const char *doc;
  uint32_t first, past; /* its columns: enum mic_column_number */
};
extern const struct mic_schema_table mic_schema_tables[MIC_TABLE_COUNT];
extern const struct mic_schema_column mic_schema_columns[MIC_COLUMN_COUNT];

uint32_t mic_enum_past(uint32_t which); /* one more than the greatest known value of the enum */

#endif
