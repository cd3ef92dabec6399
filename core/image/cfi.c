/* cfi.c - CIEs and FDEs out of hostile bytes. */
#include "image/cfi.h"

/* DW_EH_PE_: the low four bits are the format, the next three what it is relative to. */
enum { PE_FORMAT = 0x0f, PE_BASE = 0x70, PE_PCREL = 0x10, PE_INDIRECT = 0x80, PE_OMIT = 0xff };

/* Bounds of work a CIE can cause each time one of its FDEs is compiled.  The longest seen: 5
 * letters; and some 150 bytes of instructions (signal trampolines). */
enum { AUGMENTATION_MAX = 16, CIE_PROGRAM_MAX = 4096 };

static bool read_format(struct mic_cursor *c, uint8_t encoding, uint64_t *out) {
  switch (encoding & PE_FORMAT) {
  case 0x00: /* absptr */
  case 0x04: /* udata8 */
  case 0x08: /* signed absptr */
  case 0x0c: *out = mic_cursor_u64(c); break;
  case 0x01: *out = mic_cursor_uleb(c); break;
  case 0x02: *out = mic_cursor_u16(c); break;
  case 0x03: *out = mic_cursor_u32(c); break;
  case 0x09: *out = (uint64_t)mic_cursor_sleb(c); break;
  case 0x0a: *out = (uint64_t)(int64_t)(int16_t)mic_cursor_u16(c); break;
  case 0x0b: *out = (uint64_t)(int64_t)(int32_t)mic_cursor_u32(c); break;
  default: return false;
  }
  return !c->bad;
}

bool mic_cfi_read_pointer(struct mic_cursor *c, const struct mic_cfi *cfi, uint8_t encoding,
                          uint64_t *out) {
  uint64_t place = cfi->vaddr + (uint64_t)(c->at - cfi->bytes);
  if (encoding == PE_OMIT || encoding & PE_INDIRECT || !read_format(c, encoding, out)) return false;
  uint8_t base = encoding & PE_BASE;
  if (base == PE_PCREL) *out += place;
  return base == 0 || base == PE_PCREL;
}

struct mic_cfi_entry mic_cfi_entry_at(const struct mic_cfi *cfi, size_t offset) {
  struct mic_cfi_entry e = {.kind = MIC_CFI_BAD, .next = cfi->size};
  struct mic_cursor c = mic_cursor(cfi->bytes, cfi->size);
  if (!mic_cursor_seek(&c, offset)) return e;
  if (mic_cursor_left(&c) == 0) {
    e.kind = MIC_CFI_END;
    return e;
  }
  uint64_t length = mic_cursor_u32(&c);
  if (length == 0 && !c.bad) { /* .eh_frame's end; .debug_frame has none */
    e.kind = cfi->is_debug ? MIC_CFI_BAD : MIC_CFI_END;
    return e;
  }
  bool is_64 = length == UINT32_MAX;
  if (is_64) length = mic_cursor_u64(&c);
  if (c.bad || length > mic_cursor_left(&c)) return e;
  size_t id_at = mic_cursor_offset(&c);
  e.next = id_at + (size_t)length;
  /* In .eh_frame the id has 4 bytes in either format. */
  uint64_t id = is_64 && cfi->is_debug ? mic_cursor_u64(&c) : mic_cursor_u32(&c);
  e.body = mic_cursor_offset(&c);
  if (c.bad || e.body > e.next) return e;
  if (cfi->is_debug) {
    e.kind = id == (is_64 ? UINT64_MAX : UINT32_MAX) ? MIC_CFI_CIE : MIC_CFI_FDE;
    e.cie = (size_t)id;
  } else {
    e.kind = id == 0 ? MIC_CFI_CIE : MIC_CFI_FDE;
    e.cie = id_at - (size_t)id; /* checked when it is read: a wrapped offset is out of bounds */
  }
  return e;
}

/* The letters after 'z', with their data.  Unknown letters are refused: what follows them, maybe
 * the encoding of addresses, cannot be found. */
static bool read_augmentation(struct mic_cursor *c, const char *letters, struct mic_cfi_cie *out) {
  for (const char *l = letters; *l; l++) {
    uint64_t ignored;
    switch (*l) {
    case 'R': out->encoding = mic_cursor_u8(c); break;
    case 'L': mic_cursor_u8(c); break;
    case 'P': { /* the personality: it may be indirect; only its size matters */
      uint8_t encoding = mic_cursor_u8(c);
      if (encoding != PE_OMIT && !read_format(c, encoding, &ignored)) return false;
      break;
    }
    case 'S': out->signal = true; break;
    case 'B': break; /* AArch64's; no data */
    default: return false;
    }
  }
  return !c->bad;
}

static bool read_cie(const struct mic_cfi *cfi, size_t offset, struct mic_cfi_cie *out) {
  struct mic_cfi_entry e = mic_cfi_entry_at(cfi, offset);
  if (e.kind != MIC_CFI_CIE) return false;
  *out = (struct mic_cfi_cie){0};
  struct mic_cursor c = mic_cursor(cfi->bytes, e.next);
  mic_cursor_seek(&c, e.body);
  uint8_t version = mic_cursor_u8(&c);
  if (version != 1 && version != 3 && version != 4) return false;
  const char *letters = mic_cursor_string(&c);
  if (!letters || strnlen(letters, AUGMENTATION_MAX + 1) > AUGMENTATION_MAX) return false;
  if (version == 4 && mic_cursor_u8(&c) != 8) return false; /* address size */
  if (version == 4 && mic_cursor_u8(&c) != 0) return false; /* segment selector size */
  if (letters[0] == 'e' && letters[1] == 'h') {             /* GCC 2's: a pointer follows */
    mic_cursor_u64(&c);
    letters += 2;
  }
  out->code_align = mic_cursor_uleb(&c);
  out->data_align = mic_cursor_sleb(&c);
  uint64_t return_register = version == 1 ? mic_cursor_u8(&c) : mic_cursor_uleb(&c);
  if (c.bad || return_register != 16) return false; /* rip's column */
  out->augmented = letters[0] == 'z';
  if (out->augmented) {
    uint64_t size = mic_cursor_uleb(&c);
    const uint8_t *after = c.at;
    if (c.bad || size > mic_cursor_left(&c)) return false;
    if (!read_augmentation(&c, letters + 1, out)) return false;
    if (c.at > after + size) return false;
    c.at = after + size;
  } else if (letters[0]) {
    return false;
  }
  out->program = c.at;
  out->program_size = mic_cursor_left(&c);
  return !c.bad && out->program_size <= CIE_PROGRAM_MAX;
}

bool mic_cfi_read_fde(const struct mic_cfi *cfi, const struct mic_cfi_entry *entry,
                      struct mic_cfi_fde *out) {
  if (entry->kind != MIC_CFI_FDE || !read_cie(cfi, entry->cie, &out->cie)) return false;
  struct mic_cursor c = mic_cursor(cfi->bytes, entry->next);
  uint64_t size;
  mic_cursor_seek(&c, entry->body);
  if (!mic_cfi_read_pointer(&c, cfi, out->cie.encoding, &out->start)) return false;
  if (!read_format(&c, out->cie.encoding, &size)) return false;
  if (size > UINT64_MAX - out->start) return false;
  out->end = out->start + size;
  if (out->cie.augmented) { /* LSDA: never needed here */
    uint64_t skip = mic_cursor_uleb(&c);
    if (c.bad || skip > mic_cursor_left(&c)) return false;
    c.at += skip;
  }
  out->program = c.at;
  out->program_size = mic_cursor_left(&c);
  return !c.bad;
}
