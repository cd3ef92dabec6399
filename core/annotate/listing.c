/*
 * listing.c - collect ranges of code and decode them.
 */
#include "annotate/listing.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "annotate/listing_internal.h"
#include "image/symbols_cover.h"

enum {
  /* Some 250 MB of rows and texts; the largest functions of compilers' output (interpreters' loops)
   * have tens of thousands. */
  ROWS_MAX = 1 << 21,
  TEXT_MAX = 256, /* Zydis' own texts stay below 100 */
  NAME_MAX_SHOWN = 120
};

MIC_EXPORT int mic_listing_open(const struct mic_listing_source *source, struct mic_listing **out,
                                struct mic_error *err) {
  *out = NULL;
  if (source->size != sizeof *source || !source->path || !source->build_id)
    return mic_fail(err, MIC_EARG, "mic_listing_source: of another version, or without a path");
  struct mic_listing *l = mic_alloc(sizeof *l);
  l->intel = source->intel != 0;
  int code = mic_listing_open_image(l, source, err);
  if (code != MIC_OK) {
    mic_listing_close(l);
    return code;
  }
  *out = l;
  return MIC_OK;
}

MIC_EXPORT void mic_listing_close(struct mic_listing *l) {
  if (!l) return;
  mic_symbols_close(l->symbols);
  mic_elf_close(l->elf);
  mic_vec_free(&l->ranges);
  mic_vec_free(&l->rows);
  mic_arena_free(&l->texts);
  free(l->path);
  free(l);
}

static bool is_listed(const struct mic_listing *l, uint64_t address) {
  for (size_t i = 0; i < l->ranges.count; i++)
    if (address >= l->ranges.at[i].start && address < l->ranges.at[i].end) return true;
  return false;
}

MIC_EXPORT int mic_listing_add(struct mic_listing *l, uint64_t address, const char *linkage_name,
                               struct mic_error *err) {
  const struct mic_symbol *frames;
  size_t count = mic_symbols_lookup(l->symbols, address, &frames), depth = 0;
  while (depth < count && strcmp(frames[depth].linkage_name, linkage_name) != 0) depth++;
  if (depth == count)
    return mic_fail(err, MIC_ENOENT, "%s: %s is not at 0x%" PRIx64 " (other debug information?)",
                    l->path, linkage_name, address);
  if (is_listed(l, address)) return MIC_OK;
  size_t before = l->ranges.count;
  mic_symbols_extent(l->symbols, address, depth, &l->ranges);
  if (is_listed(l, address)) return MIC_OK;
  l->ranges.count = before;
  return mic_fail(err, MIC_ENOENT, "%s: nothing says how long %s at 0x%" PRIx64 " is", l->path,
                  linkage_name, address);
}

/* Sorted, and those that overlap or touch made one. */
static void join_ranges(mic_symbol_ranges *ranges) {
  size_t count = 0;
  mic_sort_records(ranges->at, ranges->count, sizeof *ranges->at);
  for (size_t i = 0; i < ranges->count; i++) {
    struct mic_symbol_range r = ranges->at[i];
    if (count > 0 && r.start <= ranges->at[count - 1].end) {
      if (r.end > ranges->at[count - 1].end) ranges->at[count - 1].end = r.end;
    } else {
      ranges->at[count++] = r;
    }
  }
  ranges->count = count;
}

/* Where a branch or call goes, as " <name+0x12>"; "" when nothing is proven there. */
static void append_target(struct mic_listing *l, uint64_t target, char *text, size_t room) {
  const struct mic_symbol *frames;
  size_t count = mic_symbols_lookup(l->symbols, target, &frames), size = strlen(text);
  if (count == 0) return;
  mic_symbol_ranges extent = {0};
  mic_symbols_extent(l->symbols, target, count - 1, &extent);
  uint64_t from = extent.count > 0 ? extent.at[0].start : target;
  mic_vec_free(&extent);
  const char *name = frames[count - 1].name;
  if (from < target)
    snprintf(text + size, room - size, " <%.*s+0x%" PRIx64 ">", NAME_MAX_SHOWN, name,
             target - from);
  else
    snprintf(text + size, room - size, " <%.*s>", NAME_MAX_SHOWN, name);
}

struct machine {
  ZydisDecoder decoder;
  ZydisFormatter formatter;
};

/* One instruction at an address: its length and text. */
static uint8_t decode_one(struct mic_listing *l, const struct machine *m, const uint8_t *bytes,
                          size_t size, uint64_t address, char text[TEXT_MAX]) {
  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&m->decoder, bytes, size, &insn, operands)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&m->formatter, &insn, operands,
                                                    insn.operand_count_visible, text, TEXT_MAX / 2,
                                                    address, NULL))) {
    snprintf(text, TEXT_MAX, "(bad)");
    return 1;
  }
  ZyanU64 target;
  if (insn.operand_count_visible > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
      operands[0].imm.is_relative &&
      ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operands[0], address, &target)))
    append_target(l, target, text, TEXT_MAX);
  return insn.length;
}

static int decode_range(struct mic_listing *l, const struct machine *m, uint32_t range,
                        struct mic_error *err) {
  struct mic_symbol_range r = l->ranges.at[range];
  for (uint64_t at = r.start; at < r.end;) {
    size_t left;
    const uint8_t *bytes = mic_elf_at(l->elf, at, &left);
    if (!bytes)
      return mic_fail(err, MIC_EFORMAT, "%s: no bytes in the file for the code at 0x%" PRIx64,
                      l->path, at);
    if (l->rows.count == ROWS_MAX)
      return mic_fail(err, MIC_ELIMIT, "%s: more than %d instructions to show", l->path, ROWS_MAX);
    if (left > r.end - at) left = (size_t)(r.end - at);
    char text[TEXT_MAX];
    uint8_t length = decode_one(l, m, bytes, left, at, text);
    *mic_vec_push(&l->rows) = (struct mic_listing_code){
      at, mic_arena_strndup(&l->texts, text, strlen(text)), range, length};
    at += length;
  }
  return MIC_OK;
}

MIC_EXPORT int mic_listing_decode(struct mic_listing *l, struct mic_error *err) {
  struct machine m;
  l->rows.count = 0;
  mic_arena_free(&l->texts);
  join_ranges(&l->ranges);
  ZydisDecoderInit(&m.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&m.formatter,
                     l->intel ? ZYDIS_FORMATTER_STYLE_INTEL : ZYDIS_FORMATTER_STYLE_ATT);
  /* As objdump writes them: 0x1f, not 0x000000000000001F. */
  ZydisFormatterSetProperty(&m.formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  ZydisFormatterSetProperty(&m.formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                            ZYDIS_PADDING_DISABLED);
  ZydisFormatterSetProperty(&m.formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
                            ZYDIS_PADDING_DISABLED);
  ZydisFormatterSetProperty(&m.formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
                            ZYDIS_PADDING_DISABLED);
  ZydisFormatterSetProperty(&m.formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
  for (uint32_t i = 0; i < l->ranges.count; i++) {
    int code = decode_range(l, &m, i, err);
    if (code != MIC_OK) return code;
  }
  if (mic_elf_damaged(l->elf))
    return mic_fail(err, MIC_EFORMAT, "%s: the file shrank while it was read", l->path);
  return MIC_OK;
}

MIC_EXPORT uint64_t mic_listing_rows(const struct mic_listing *l) { return l->rows.count; }

MIC_EXPORT int mic_listing_row(const struct mic_listing *l, uint64_t index,
                               struct mic_listing_row *out) {
  if (index >= l->rows.count) return MIC_ENOENT;
  const struct mic_listing_code *code = &l->rows.at[index];
  size_t left;
  *out = (struct mic_listing_row){
    .address = code->address,
    .length = code->length,
    .range = code->range,
    .text = code->text,
    .bytes = mic_elf_at(l->elf, code->address, &left),
  };
  return MIC_OK;
}

MIC_EXPORT uint32_t mic_listing_frames(struct mic_listing *l, uint64_t index,
                                       struct mic_listing_frame *out, uint32_t room) {
  if (index >= l->rows.count) return 0;
  const struct mic_symbol *frames;
  size_t count = mic_symbols_lookup(l->symbols, l->rows.at[index].address, &frames);
  for (size_t i = 0; i < count && i < room; i++)
    out[i] = (struct mic_listing_frame){frames[i].name, frames[i].linkage_name, frames[i].file,
                                        frames[i].line};
  return (uint32_t)count;
}

MIC_EXPORT const char *mic_listing_path(const struct mic_listing *l) { return l->path; }

MIC_EXPORT uint64_t mic_listing_written_ns(const struct mic_listing *l) { return l->written_ns; }

MIC_EXPORT const char *mic_listing_problem(const struct mic_listing *l) {
  return mic_symbols_problem(l->symbols);
}
