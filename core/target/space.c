/* space.c - intervals by address. */
#include "target/space.h"

#include <string.h>

/* The first mapping that ends above the address. */
static size_t first_above(const struct mic_code_space *maps, uint64_t address) {
  size_t low = 0, high = maps->all.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (maps->all.at[middle].code.end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

const struct mic_mapping *mic_code_space_find(const struct mic_code_space *maps, uint64_t address) {
  size_t at = first_above(maps, address);
  if (at == maps->all.count || maps->all.at[at].code.start > address) return NULL;
  return &maps->all.at[at];
}

/* The part of a mapping that lies in [start, end). */
static struct mic_mapping part(const struct mic_mapping *whole, uint64_t start, uint64_t end) {
  struct mic_mapping cut = *whole;
  if (start > cut.code.start) {
    cut.file_offset += start - cut.code.start;
    cut.code.start = start;
  }
  if (end < cut.code.end) cut.code.end = end;
  return cut;
}

static bool holds(const struct mic_mapping *old, const struct mic_mapping *new) {
  return old->code.start <= new->code.start &&new->code.end <= old->code.end &&
         old->image == new->image && old->code.bias == new->code.bias &&
         old->code.kind == new->code.kind &&
         (!new->image ||
          old->file_offset + (new->code.start - old->code.start) == new->file_offset);
}

/* Replace count mappings at an index by others. */
static void splice(struct mic_code_space *maps, size_t at, size_t count,
                   const struct mic_mapping *others, size_t other_count) {
  size_t tail = maps->all.count - at - count;
  mic_vec_reserve(&maps->all, maps->all.count - count + other_count);
  memmove(&maps->all.at[at + other_count], &maps->all.at[at + count], tail * sizeof *maps->all.at);
  if (other_count) memcpy(&maps->all.at[at], others, other_count * sizeof *others);
  maps->all.count = at + other_count + tail;
}

bool mic_code_space_insert(struct mic_code_space *maps, const struct mic_mapping *mapping,
                           mic_mappings *ended) {
  uint64_t start = mapping->code.start, end = mapping->code.end;
  if (start >= end) return false;
  size_t from = first_above(maps, start), to = from;
  if (from < maps->all.count && holds(&maps->all.at[from], mapping)) return false;
  struct mic_mapping pieces[3];
  size_t count = 0;
  for (; to < maps->all.count && maps->all.at[to].code.start < end; to++) {
    const struct mic_mapping *old = &maps->all.at[to];
    *mic_vec_push(ended) = part(old, start, end);
    if (old->code.start < start) pieces[count++] = part(old, old->code.start, start);
  }
  pieces[count++] = *mapping;
  if (to > from && maps->all.at[to - 1].code.end > end)
    pieces[count++] = part(&maps->all.at[to - 1], end, maps->all.at[to - 1].code.end);
  splice(maps, from, to - from, pieces, count);
  return true;
}

bool mic_code_space_keep(struct mic_code_space *maps, const mic_mappings *kept,
                         mic_mappings *ended) {
  bool changed = false;
  mic_mappings left = {0};
  size_t k = 0;
  for (size_t i = 0; i < maps->all.count; i++) {
    const struct mic_mapping *old = &maps->all.at[i];
    uint64_t at = old->code.start;
    while (k < kept->count && kept->at[k].code.end <= at) k++;
    for (size_t j = k; at < old->code.end; j++) {
      bool more = j < kept->count && kept->at[j].code.start < old->code.end;
      if (more && old->image && old->image != kept->at[j].image) continue;
      uint64_t from = more ? kept->at[j].code.start : old->code.end;
      if (from > at) {
        *mic_vec_push(ended) = part(old, at, from);
        changed = true;
        at = from;
      }
      if (!more) break;
      uint64_t to = kept->at[j].code.end < old->code.end ? kept->at[j].code.end : old->code.end;
      if (to > at) *mic_vec_push(&left) = part(old, at, to);
      if (to > at) at = to;
    }
  }
  mic_vec_free(&maps->all);
  maps->all = left;
  return changed;
}
