/* fde.c - FDEs by address, from .eh_frame_hdr in place or from one scan. */
#include "image/fde.h"

enum {
  HEADER_ENTRY = 8, /* two sdata4 relative to the header's own address */
  PE_UDATA4 = 0x03,
  PE_DATAREL_SDATA4 = 0x3b
};

static int64_t header_start(const struct mic_fde_index *index, size_t i) {
  int32_t v;
  memcpy(&v, index->header + i * HEADER_ENTRY, sizeof v);
  return v;
}

static uint64_t header_fde(const struct mic_fde_index *index, size_t i) {
  int32_t v;
  memcpy(&v, index->header + i * HEADER_ENTRY + 4, sizeof v);
  return index->header_vaddr + (uint64_t)(int64_t)v;
}

/* The header's own view of where .eh_frame is, and its search table when that has the one form
 * linkers write.  False when there is no readable header. */
static bool read_header(struct mic_fde_index *index, uint64_t vaddr, uint64_t size,
                        uint64_t *eh_frame) {
  size_t left;
  const uint8_t *bytes = mic_elf_at(index->elf, vaddr, &left);
  if (!bytes) return false;
  struct mic_cfi here = {.bytes = bytes, .size = left < size ? left : size, .vaddr = vaddr};
  struct mic_cursor c = mic_cursor(bytes, here.size);
  uint8_t version = mic_cursor_u8(&c), pointer = mic_cursor_u8(&c), count = mic_cursor_u8(&c);
  uint8_t table = mic_cursor_u8(&c);
  if (c.bad || version != 1 || !mic_cfi_read_pointer(&c, &here, pointer, eh_frame)) return false;
  if (count != PE_UDATA4 || table != PE_DATAREL_SDATA4) return true;
  uint64_t entries = mic_cursor_u32(&c);
  if (c.bad || entries == 0 || entries * HEADER_ENTRY > mic_cursor_left(&c)) return true;
  index->header = c.at;
  index->header_count = (size_t)entries;
  index->header_vaddr = vaddr;
  return true;
}

void mic_fde_index_eh(struct mic_fde_index *index, struct mic_elf *elf) {
  *index = (struct mic_fde_index){.elf = elf};
  struct mic_error err;
  struct mic_elf_section s;
  uint64_t vaddr, size, eh_frame = 0;
  bool has_header =
    mic_elf_eh_frame_header(elf, &vaddr, &size) && read_header(index, vaddr, size, &eh_frame);
  if (mic_elf_section(elf, ".eh_frame", &s, &err)) {
    index->cfi = (struct mic_cfi){.bytes = s.bytes, .size = s.size, .vaddr = s.vaddr};
  } else if (has_header) { /* no section headers: it runs to its terminator */
    size_t left;
    const uint8_t *bytes = mic_elf_at(elf, eh_frame, &left);
    index->cfi = (struct mic_cfi){.bytes = bytes, .size = left, .vaddr = eh_frame};
    index->damaged = !bytes;
  } else {
    index->damaged = err.code != MIC_OK;
  }
  if (!index->cfi.bytes) index->header = NULL;
}

void mic_fde_index_debug(struct mic_fde_index *index, struct mic_elf *elf) {
  *index = (struct mic_fde_index){.elf = elf};
  struct mic_error err;
  struct mic_elf_section s;
  if (mic_elf_section(elf, ".debug_frame", &s, &err))
    index->cfi = (struct mic_cfi){.bytes = s.bytes, .size = s.size, .is_debug = true};
  else
    index->damaged = err.code != MIC_OK;
}

void mic_fde_index_free(struct mic_fde_index *index) { mic_vec_free(&index->places); }

static int by_start(const void *a, const void *b) {
  const struct mic_fde_place *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* FDEs of functions that the linker dropped stay in .debug_frame, at addresses without code. */
static void scan(struct mic_fde_index *index) {
  index->scanned = true;
  index->header = NULL;
  for (size_t at = 0; index->cfi.bytes;) {
    struct mic_cfi_entry e = mic_cfi_entry_at(&index->cfi, at);
    if (e.kind == MIC_CFI_BAD) index->damaged = true;
    if (e.kind == MIC_CFI_BAD || e.kind == MIC_CFI_END) break;
    struct mic_cfi_fde fde;
    if (e.kind == MIC_CFI_FDE) {
      if (!mic_cfi_read_fde(&index->cfi, &e, &fde))
        index->damaged = true;
      else if (fde.end > fde.start && mic_elf_is_code(index->elf, fde.start, 1))
        *mic_vec_push(&index->places) = (struct mic_fde_place){fde.start, at};
    }
    at = e.next;
  }
  if (index->places.count)
    qsort(index->places.at, index->places.count, sizeof *index->places.at, by_start);
}

static void check_header(struct mic_fde_index *index) {
  index->header_checked = true;
  for (size_t i = 1; i < index->header_count; i++) {
    if (header_start(index, i - 1) < header_start(index, i)) continue;
    scan(index);
    return;
  }
}

/* The last entry that starts at or below, or SIZE_MAX. */
static size_t search_header(const struct mic_fde_index *index, uint64_t vaddr) {
  int64_t want = (int64_t)(vaddr - index->header_vaddr);
  size_t low = 0, high = index->header_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (header_start(index, middle) <= want)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

static size_t search_places(const struct mic_fde_index *index, uint64_t vaddr) {
  size_t low = 0, high = index->places.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (index->places.at[middle].start <= vaddr)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

static bool read_at(const struct mic_fde_index *index, uint64_t entry, struct mic_cfi_fde *out) {
  if (entry >= index->cfi.size) return false;
  struct mic_cfi_entry e = mic_cfi_entry_at(&index->cfi, (size_t)entry);
  return mic_cfi_read_fde(&index->cfi, &e, out);
}

/* The header's i-th FDE; false when the header does not tell the truth about it. */
static bool read_by_header(const struct mic_fde_index *index, size_t i, struct mic_cfi_fde *out,
                           size_t *entry) {
  *entry = (size_t)(header_fde(index, i) - index->cfi.vaddr);
  return read_at(index, *entry, out) &&
         out->start == index->header_vaddr + (uint64_t)header_start(index, i);
}

enum mic_fde_found mic_fde_find(struct mic_fde_index *index, uint64_t vaddr,
                                struct mic_cfi_fde *out, size_t *entry) {
  if (index->header) {
    size_t i = search_header(index, vaddr);
    bool candidate = i != SIZE_MAX;
    if (candidate && !read_by_header(index, i, out, entry))
      scan(index);
    else if (candidate && vaddr >= out->start && vaddr < out->end)
      return MIC_FDE_FOUND;
    else if (!index->header_checked)
      check_header(index);
    if (index->header) return MIC_FDE_ABSENT;
  }
  if (!index->scanned) scan(index);
  size_t i = search_places(index, vaddr);
  if (i != SIZE_MAX && read_at(index, index->places.at[i].entry, out) && vaddr < out->end) {
    *entry = (size_t)index->places.at[i].entry;
    return MIC_FDE_FOUND;
  }
  return index->damaged ? MIC_FDE_DAMAGED : MIC_FDE_ABSENT;
}

size_t mic_fde_count(struct mic_fde_index *index) {
  if (index->header && !index->header_checked) check_header(index);
  struct mic_cfi_fde fde;
  size_t entry;
  for (size_t i = 0; index->header && i < index->header_count; i++)
    if (!read_by_header(index, i, &fde, &entry)) scan(index);
  if (index->header) return index->header_count;
  if (!index->scanned) scan(index);
  return index->places.count;
}

bool mic_fde_get(struct mic_fde_index *index, size_t i, struct mic_cfi_fde *out) {
  size_t entry;
  if (index->header) return read_by_header(index, i, out, &entry);
  return read_at(index, index->places.at[i].entry, out);
}
