/*
 * whole.c - the whole table of an image: rows by pc without overlap, gaps as rows of their own.
 *
 * This is the form that a kernel program searches.
 */
#include <inttypes.h>

#include "unwind/table_internal.h"

struct piece { /* where one FDE's rows hold */
  uint32_t from, to;
  uint32_t fde;
  bool is_debug;
};
struct pieces {
  MIC_VEC(struct piece) list;
  uint64_t dropped; /* FDEs that end over 4 GiB above the base */
};

static void add_piece(struct pieces *p, uint32_t from, uint32_t to, size_t fde, bool is_debug) {
  if (from < to) *mic_vec_push(&p->list) = (struct piece){from, to, (uint32_t)fde, is_debug};
}

static bool offsets(const struct mic_table *t, const struct mic_cfi_fde *fde, struct pieces *p,
                    uint32_t *from, uint32_t *to) {
  if (fde->start < t->base || fde->end - t->base > UINT32_MAX) {
    p->dropped++;
    return false;
  }
  *from = (uint32_t)(fde->start - t->base);
  *to = (uint32_t)(fde->end - t->base);
  return true;
}

/* Pieces of .eh_frame: the FDE that starts last has the word, as in a search by start. */
static void add_eh(struct mic_table *t, struct pieces *p) {
  size_t count = mic_fde_count(&t->eh);
  for (size_t i = 0; i < count; i++) {
    struct mic_cfi_fde fde;
    uint32_t from, to;
    if (!mic_fde_get(&t->eh, i, &fde) || !offsets(t, &fde, p, &from, &to)) continue;
    struct piece *last = p->list.count ? &p->list.at[p->list.count - 1] : NULL;
    if (last && last->to > from) last->to = from;
    add_piece(p, from, to, i, false);
  }
}

/* Pieces of .debug_frame: what .eh_frame leaves between. */
static void add_debug(struct mic_table *t, struct pieces *p, struct mic_fde_index *index) {
  size_t count = mic_fde_count(index), eh_count = p->list.count, eh = 0;
  uint32_t done = 0; /* also against overlaps among themselves */
  for (size_t i = 0; i < count; i++) {
    struct mic_cfi_fde fde;
    uint32_t from, to;
    if (!mic_fde_get(index, i, &fde) || !offsets(t, &fde, p, &from, &to)) continue;
    if (from < done) from = done;
    if (to > done) done = to;
    while (eh < eh_count && p->list.at[eh].to <= from) eh++;
    for (size_t k = eh; k < eh_count && p->list.at[k].from < to; k++) {
      add_piece(p, from, p->list.at[k].from, i, true);
      if (p->list.at[k].to > from) from = p->list.at[k].to;
    }
    add_piece(p, from, to, i, true);
  }
}

static int by_from(const void *a, const void *b) {
  const struct piece *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

static void push_row(struct mic_rows *rows, uint32_t pc, uint16_t rule) {
  size_t count = rows->pcs.count;
  if (count && rows->rules.at[count - 1] == rule) return;
  if (count && rows->pcs.at[count - 1] == pc) { /* a gap of no length */
    rows->rules.at[count - 1] = rule;
    return;
  }
  *mic_vec_push(&rows->pcs) = pc;
  *mic_vec_push(&rows->rules) = rule;
}

/* The rows of an FDE that hold within [from, to). */
static void push_piece(struct mic_rows *rows, const struct mic_rows *fde, const struct piece *p) {
  for (size_t i = 0; i < fde->pcs.count; i++) {
    uint32_t pc = fde->pcs.at[i];
    if (pc >= p->to) break;
    if (i + 1 < fde->pcs.count && fde->pcs.at[i + 1] <= p->from) continue;
    push_row(rows, pc < p->from ? p->from : pc, fde->rules.at[i]);
  }
  push_row(rows, p->to, MIC_RULE_ID_NONE);
}

static void compile_pieces(struct mic_table *t, const struct pieces *p, struct mic_rows *rows) {
  struct mic_rows one = {0};
  for (size_t i = 0; i < p->list.count; i++) {
    const struct piece *piece = &p->list.at[i];
    struct mic_fde_index *index = piece->is_debug ? &t->debug : &t->eh;
    struct mic_cfi_fde fde;
    one.pcs.count = one.rules.count = 0;
    if (!mic_fde_get(index, piece->fde, &fde)) continue;
    mic_compile_fde(&index->cfi, &fde, t->base, &t->rules, &one, &t->work_left);
    push_piece(rows, &one, piece);
  }
  mic_vec_free(&one.pcs);
  mic_vec_free(&one.rules);
}

static void become_whole(struct mic_table *t, struct mic_rows *rows) {
  mic_vec_free(&t->rows.pcs);
  mic_vec_free(&t->rows.rules);
  mic_vec_free(&t->compiled);
  mic_map_free(&t->fdes);
  t->rows = *rows;
  t->whole = true;
  free(t->cache);
  t->cache = NULL;
}

int mic_table_compile_all(struct mic_table *table, struct mic_error *err) {
  if (table->whole) return MIC_OK;
  struct pieces pieces = {0};
  struct mic_rows rows = {0};
  add_eh(table, &pieces);
  add_debug(table, &pieces, mic_table_debug_index(table));
  if (pieces.list.count) qsort(pieces.list.at, pieces.list.count, sizeof *pieces.list.at, by_from);
  compile_pieces(table, &pieces, &rows);
  uint64_t dropped = pieces.dropped;
  mic_vec_free(&pieces.list);
  const char *name = mic_elf_name(table->elf);
  int code = MIC_OK;
  if (mic_elf_damaged(table->elf))
    code = mic_fail(err, MIC_EFORMAT, "%s: the file shrank while it was read", name);
  else if (table->eh.damaged || table->debug.damaged)
    code = mic_fail(err, MIC_EFORMAT, "%s: malformed call-frame information", name);
  else if (table->work_left == 0)
    code = mic_fail(err, MIC_ELIMIT, "%s: call-frame information made to waste time", name);
  else if (dropped)
    code =
      mic_fail(err, MIC_ELIMIT, "%s: %" PRIu64 " functions lie over 4 GiB apart", name, dropped);
  if (code == MIC_OK) {
    become_whole(table, &rows);
  } else { /* each FDE on its own still serves, with its own answer */
    mic_vec_free(&rows.pcs);
    mic_vec_free(&rows.rules);
  }
  return code;
}

size_t mic_table_memory(const struct mic_table *t) {
  return sizeof *t + mic_rules_memory(&t->rules) + t->rows.pcs.room * sizeof *t->rows.pcs.at +
         t->rows.rules.room * sizeof *t->rows.rules.at + t->compiled.room * sizeof *t->compiled.at +
         t->fdes.room * sizeof *t->fdes.slots +
         (t->cache ? MIC_TABLE_CACHE * sizeof *t->cache : 0) +
         (t->eh.places.room + t->debug.places.room) * sizeof *t->eh.places.at;
}
