/* schema.c - the schema, the enums and the stack ends as data. */
#include "capture/schema.h"

#include <string.h>

#include "capture/names.h"

const struct mic_schema_table mic_schema_tables[MIC_TABLE_COUNT] = {
#define MIC_TABLE_BEGIN(table, doc) {#table, doc, MIC_FIRST_##table, MIC_PAST_##table},
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc)
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
};

/* What a ref's token stands for: a table's number or an enum's. */
enum {
  TARGET_none = 0,
#define MIC_TABLE_BEGIN(table, doc) TARGET_##table = MIC_TABLE_##table,
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc)
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
#define MIC_ENUM_BEGIN(name) TARGET_##name = MIC_ENUM_##name,
#define MIC_ENUM_VALUE(name, value, text)
#define MIC_ENUM_END(name)
#include "capture/enums.def"
#undef MIC_ENUM_BEGIN
#undef MIC_ENUM_VALUE
#undef MIC_ENUM_END
};

#define REF_TEXT(ref) (sizeof #ref == sizeof "none" && #ref[0] == 'n' && #ref[3] == 'e' ? "" : #ref)

const struct mic_schema_column mic_schema_columns[MIC_COLUMN_COUNT] = {
#define MIC_TABLE_BEGIN(table, doc)
#define MIC_COLUMN(table, type, name, unit, ref, flags, doc) \
  {#name,                                                    \
   REF_TEXT(ref),                                            \
   doc,                                                      \
   TARGET_##ref,                                             \
   MIC_TABLE_##table,                                        \
   sizeof(mic_##type),                                       \
   MIC_COLUMN_UNIT_##unit,                                   \
   (flags)&0xff,                                             \
   (flags) >> 8},
#define MIC_TABLE_END(table)
#include "capture/schema.def"
#undef MIC_TABLE_BEGIN
#undef MIC_COLUMN
#undef MIC_TABLE_END
};

struct word {
  uint32_t value;
  const char *text;
};
#define MIC_ENUM_BEGIN(name) static const struct word name##_names[] = {
#define MIC_ENUM_VALUE(name, value, text) {value, text},
#define MIC_ENUM_END(name) \
  }                        \
  ;
#include "capture/enums.def"
#undef MIC_ENUM_BEGIN
#undef MIC_ENUM_VALUE
#undef MIC_ENUM_END

static const struct {
  const char *name;
  const struct word *names;
  uint32_t count;
} enums[MIC_ENUM_COUNT] = {
#define MIC_ENUM_BEGIN(name) {#name, name##_names, sizeof name##_names / sizeof *name##_names},
#define MIC_ENUM_VALUE(name, value, text)
#define MIC_ENUM_END(name)
#include "capture/enums.def"
#undef MIC_ENUM_BEGIN
#undef MIC_ENUM_VALUE
#undef MIC_ENUM_END
};

uint32_t mic_enum_past(uint32_t which) {
  uint32_t past = 0;
  for (uint32_t i = 0; i < enums[which].count; i++)
    if (enums[which].names[i].value >= past) past = enums[which].names[i].value + 1;
  return past;
}

MIC_EXPORT const char *mic_enum_name(const char *name, uint32_t value) {
  for (uint32_t e = 0; e < MIC_ENUM_COUNT; e++)
    for (uint32_t i = 0; strcmp(enums[e].name, name) == 0 && i < enums[e].count; i++)
      if (enums[e].names[i].value == value) return enums[e].names[i].text;
  return NULL;
}

MIC_EXPORT const char *mic_end_text(uint32_t end) {
  switch (end) {
#define MIC_END(name, number, text, advice) \
  case number:                              \
    return text;
#include "capture/ends.def"
#undef MIC_END
  default: return NULL;
  }
}

MIC_EXPORT int32_t mic_end_is_whole(uint32_t end) {
  return end == MIC_END_OUTERMOST || end == MIC_END_ENTRY || end == MIC_END_NO_CALLER;
}

MIC_EXPORT int32_t mic_end_is_silent(uint32_t end) {
  return mic_end_is_whole(end) || end == MIC_END_NOT_STATED;
}

MIC_EXPORT int32_t mic_location_in_module(uint32_t kind) {
  return kind == MIC_LOCATION_NATIVE || kind == MIC_LOCATION_FILE || kind == MIC_LOCATION_RELATIVE;
}

MIC_EXPORT const char *mic_end_advice(uint32_t end) {
  switch (end) {
#define MIC_END(name, number, text, advice) \
  case number:                              \
    return advice;
#include "capture/ends.def"
#undef MIC_END
  default: return NULL;
  }
}
