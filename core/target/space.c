/* space.c - intervals by address. */
#include "target/space.h"

#include <string.h>

struct place {
  size_t part, at;
};

/* The first mapping that ends above the address; the place behind all where there is none. */
static struct place first_above(const struct mic_code_space *maps, uint64_t address) {
  size_t low = 0, high = maps->parts.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const mic_mappings *part = &maps->parts.at[middle];
    if (part->at[part->count - 1].code.end > address)
      high = middle;
    else
      low = middle + 1;
  }
  struct place place = {low, 0};
  if (low == maps->parts.count) return place;
  const mic_mappings *part = &maps->parts.at[low];
  for (high = part->count; place.at < high;) {
    size_t middle = place.at + (high - place.at) / 2;
    if (part->at[middle].code.end > address)
      high = middle;
    else
      place.at = middle + 1;
  }
  return place;
}

/* The mapping at a place, or NULL behind all. */
static struct mic_mapping *at_place(const struct mic_code_space *maps, struct place place) {
  return place.part < maps->parts.count ? &maps->parts.at[place.part].at[place.at] : NULL;
}

static struct place after(const struct mic_code_space *maps, struct place place) {
  if (++place.at < maps->parts.at[place.part].count) return place;
  return (struct place){place.part + 1, 0};
}

const struct mic_mapping *mic_code_space_find(const struct mic_code_space *maps, uint64_t address) {
  const struct mic_mapping *found = at_place(maps, first_above(maps, address));
  return found && found->code.start <= address ? found : NULL;
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

/* Takes the mappings from a place on off, so many, and gives where those behind stand then. */
static struct place take_off(struct mic_code_space *maps, struct place place, size_t count) {
  while (count) {
    mic_mappings *part = &maps->parts.at[place.part];
    size_t here = part->count - place.at, off = here < count ? here : count;
    if (here > off)
      memmove(&part->at[place.at], &part->at[place.at + off], (here - off) * sizeof *part->at);
    part->count -= off;
    count -= off;
    if (!part->count) {
      mic_vec_free(part);
      size_t behind = --maps->parts.count - place.part;
      memmove(part, part + 1, behind * sizeof *part);
    } else if (place.at == part->count) {
      place = (struct place){place.part + 1, 0};
    }
  }
  return place;
}

/* A new part behind one. */
static mic_mappings *add_part(struct mic_code_space *maps, size_t number) {
  mic_vec_begin(&maps->parts, 1); /* a short process has but one mapping of code */
  *mic_vec_push(&maps->parts) = (mic_mappings){0};
  mic_mappings *part = &maps->parts.at[number];
  memmove(part + 1, part, (maps->parts.count - 1 - number) * sizeof *part);
  *part = (mic_mappings){0};
  return part;
}

/* The upper half of a part that has become too large to one of its own; of the last part, to which
 * mappings in ascending order go, what is too much. */
static void split(struct mic_code_space *maps, size_t number) {
  bool last = number + 1 == maps->parts.count;
  size_t half = last ? MIC_SPACE_PART : maps->parts.at[number].count / 2;
  mic_mappings *upper = add_part(maps, number + 1), *lower = upper - 1;
  mic_vec_reserve(upper, lower->count - half);
  upper->count = lower->count - half;
  memcpy(upper->at, &lower->at[half], upper->count * sizeof *upper->at);
  lower->count = half;
  mic_vec_fit(lower, half);
}

/* Puts mappings in front of those at a place. */
static void put(struct mic_code_space *maps, struct place place, const struct mic_mapping *others,
                size_t count) {
  if (place.part == maps->parts.count) {
    if (place.part == 0) add_part(maps, 0);
    place.part = maps->parts.count - 1;
    place.at = maps->parts.at[place.part].count;
  }
  mic_mappings *part = &maps->parts.at[place.part];
  mic_vec_begin(part, count);
  mic_vec_reserve(part, part->count + count);
  memmove(&part->at[place.at + count], &part->at[place.at],
          (part->count - place.at) * sizeof *part->at);
  memcpy(&part->at[place.at], others, count * sizeof *others);
  part->count += count;
  if (part->count > MIC_SPACE_PART) split(maps, place.part);
}

bool mic_code_space_insert(struct mic_code_space *maps, const struct mic_mapping *mapping,
                           mic_mappings *ended) {
  uint64_t start = mapping->code.start, end = mapping->code.end;
  if (start >= end) return false;
  struct place from = first_above(maps, start), to = from;
  const struct mic_mapping *old = at_place(maps, from);
  if (old && holds(old, mapping)) return false;
  struct mic_mapping pieces[3], behind;
  size_t count = 0, covered = 0;
  bool is_behind = false;
  for (; old && old->code.start < end; old = at_place(maps, to)) {
    *mic_vec_push(ended) = part(old, start, end);
    if (old->code.start < start) pieces[count++] = part(old, old->code.start, start);
    is_behind = old->code.end > end;
    if (is_behind) behind = part(old, end, old->code.end);
    to = after(maps, to);
    covered++;
  }
  pieces[count++] = *mapping;
  if (is_behind) pieces[count++] = behind;
  put(maps, take_off(maps, from, covered), pieces, count);
  return true;
}

static void append(struct mic_code_space *maps, const struct mic_mapping *mapping) {
  put(maps, (struct place){maps->parts.count, 0}, mapping, 1);
}

void mic_code_space_copy(struct mic_code_space *to, const struct mic_code_space *from,
                         uint64_t start_ns) {
  for (size_t p = 0; p < from->parts.count; p++) {
    const mic_mappings *part = &from->parts.at[p];
    mic_mappings copy = {0};
    mic_vec_reserve(&copy, part->count);
    for (size_t i = 0; i < part->count; i++) {
      *mic_vec_push(&copy) = part->at[i];
      copy.at[i].start_ns = start_ns;
    }
    *mic_vec_push(&to->parts) = copy;
  }
}

void mic_code_space_clear(struct mic_code_space *maps) {
  for (size_t p = 0; p < maps->parts.count; p++) mic_vec_free(&maps->parts.at[p]);
  mic_vec_free(&maps->parts);
}

bool mic_code_space_keep(struct mic_code_space *maps, const mic_mappings *kept,
                         mic_mappings *ended) {
  bool changed = false;
  struct mic_code_space left = {.generation = maps->generation};
  struct place place = {0, 0};
  size_t k = 0;
  for (const struct mic_mapping *old; (old = at_place(maps, place)); place = after(maps, place)) {
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
      if (to <= at) continue;
      struct mic_mapping rest = part(old, at, to);
      append(&left, &rest);
      at = to;
    }
  }
  mic_code_space_clear(maps);
  *maps = left;
  return changed;
}
