/*
 * elf_section.c - sections of an image by name, decompressed once.
 *
 * zlib and zstd by SHF_COMPRESSED (gABI), zlib by the older .zdebug_ names.  What a compressed
 * section says it holds is bounded before anything is allocated.
 */
#include <inttypes.h>
#include <libdeflate.h>
#include <zstd.h>

#include "image/elf_internal.h"

/* The largest unpacked section accepted.  Only call-frame information is read by this path;
 * the largest .debug_frame of a whole browser is near 100 MB. */
enum { UNPACKED_MAX_BYTES = 256 << 20 };
/* deflate cannot do better than 1032:1 (zlib's technical notes): more is a lie. */
enum { DEFLATE_MAX_RATIO = 1040 };

bool mic_elf_section_header(const struct mic_elf *elf, uint64_t index, Elf64_Shdr *out) {
  const Elf64_Ehdr *h = &elf->header;
  if (h->e_shoff == 0 || h->e_shentsize != sizeof *out) return false;
  if (index > elf->size / sizeof *out) return false;
  uint64_t in = index * sizeof *out;
  if (h->e_shoff > elf->size - in) return false;
  const uint8_t *at = mic_elf_bytes(elf, h->e_shoff + in, sizeof *out);
  if (!at) return false;
  memcpy(out, at, sizeof *out);
  return true;
}

void mic_elf_count_sections(struct mic_elf *elf) {
  Elf64_Shdr first, last;
  if (!mic_elf_section_header(elf, 0, &first)) return;
  uint64_t count = elf->header.e_shnum ? elf->header.e_shnum : first.sh_size;
  uint64_t names = elf->header.e_shstrndx == SHN_XINDEX ? first.sh_link : elf->header.e_shstrndx;
  if (count == 0 || names >= count || !mic_elf_section_header(elf, count - 1, &last)) return;
  elf->section_count = count;
  elf->section_names = names;
}

/* The section's name when it ends inside the string table, else NULL. */
static const char *section_name(const struct mic_elf *elf, const Elf64_Shdr *strings,
                                const Elf64_Shdr *s) {
  const uint8_t *bytes = mic_elf_bytes(elf, strings->sh_offset, strings->sh_size);
  if (!bytes || s->sh_name >= strings->sh_size) return NULL;
  const uint8_t *name = bytes + s->sh_name;
  return memchr(name, 0, strings->sh_size - s->sh_name) ? (const char *)name : NULL;
}

/* ".zdebug_x" is the old compressed form of ".debug_x". */
static bool is_named(const char *have, const char *want, bool *old_form) {
  *old_form = strncmp(have, ".zdebug_", 8) == 0 && strncmp(want, ".debug_", 7) == 0;
  return strcmp(have, want) == 0 || (*old_form && strcmp(have + 8, want + 7) == 0);
}

static int find_section(const struct mic_elf *elf, const char *name, uint64_t *index,
                        Elf64_Shdr *out, bool *old_form) {
  Elf64_Shdr strings;
  if (!elf->section_count || !mic_elf_section_header(elf, elf->section_names, &strings)) return 0;
  for (uint64_t i = 1; i < elf->section_count; i++) {
    if (!mic_elf_section_header(elf, i, out)) return 0;
    const char *have = section_name(elf, &strings, out);
    if (!have || !is_named(have, name, old_form)) continue;
    *index = i;
    return 1;
  }
  return 0;
}

static bool inflate_all(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size) {
  struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
  if (!decompressor) return false;
  /* Without a place for the actual size anything but exactly to_size is an error. */
  enum libdeflate_result result =
    libdeflate_zlib_decompress(decompressor, from, from_size, to, to_size, NULL);
  libdeflate_free_decompressor(decompressor);
  return result == LIBDEFLATE_SUCCESS;
}

static int unpack(const struct mic_elf *elf, const char *name, uint32_t type, const uint8_t *from,
                  uint64_t from_size, uint64_t size, uint8_t **out, struct mic_error *err) {
  uint64_t at = (uint64_t)(from - elf->bytes);
  if (type != ELFCOMPRESS_ZLIB && type != 2 /* ELFCOMPRESS_ZSTD, newer than this elf.h */)
    return mic_fail_at(err, at, "%s: %s: unknown compression %" PRIu32, elf->name, name, type);
  if (size > UNPACKED_MAX_BYTES || from_size > UNPACKED_MAX_BYTES)
    return mic_fail_at(err, at, "%s: %s: over %d bytes unpacked", elf->name, name,
                       UNPACKED_MAX_BYTES);
  if (type == ELFCOMPRESS_ZLIB && size / DEFLATE_MAX_RATIO > from_size)
    return mic_fail_at(err, at, "%s: %s: claims more than its bytes can unpack to", elf->name,
                       name);
  uint8_t *to = mic_try_alloc(size ? size : 1, 1);
  if (!to) return mic_fail(err, MIC_ELIMIT, "%s: %s: no memory for it", elf->name, name);
  bool whole = type == ELFCOMPRESS_ZLIB ? inflate_all(from, from_size, to, size)
                                        : ZSTD_decompress(to, size, from, from_size) == size;
  if (!whole) {
    free(to);
    return mic_fail_at(err, at, "%s: %s: does not decompress", elf->name, name);
  }
  *out = to;
  return MIC_OK;
}

/* How the section at [bytes, bytes + size) says it is packed; moves past that header. */
static int packing(const struct mic_elf *elf, const char *name, bool old_form,
                   const uint8_t **bytes, uint64_t *size, uint32_t *type, uint64_t *unpacked,
                   struct mic_error *err) {
  Elf64_Chdr c;
  uint64_t header = old_form ? 12 : sizeof c; /* "ZLIB" and a big-endian u64, or Elf64_Chdr */
  if (*size < header || (old_form && memcmp(*bytes, "ZLIB", 4) != 0))
    return mic_fail_at(err, (uint64_t)(*bytes - elf->bytes), "%s: %s: bad compression header",
                       elf->name, name);
  if (old_form) {
    memcpy(unpacked, *bytes + 4, 8);
    *unpacked = __builtin_bswap64(*unpacked);
    *type = ELFCOMPRESS_ZLIB;
  } else {
    memcpy(&c, *bytes, sizeof c);
    *unpacked = c.ch_size;
    *type = c.ch_type;
  }
  *bytes += header;
  *size -= header;
  return MIC_OK;
}

static int unpack_once(struct mic_elf *elf, uint64_t index, const char *name, bool old_form,
                       const uint8_t *bytes, uint64_t size, struct mic_elf_section *out,
                       struct mic_error *err) {
  for (size_t i = 0; i < elf->unpacked.count; i++) {
    if (elf->unpacked.at[i].index != index) continue;
    out->bytes = elf->unpacked.at[i].bytes;
    out->size = elf->unpacked.at[i].size;
    return MIC_OK;
  }
  uint32_t type = 0;
  uint64_t unpacked = 0;
  uint8_t *to = NULL;
  int code = packing(elf, name, old_form, &bytes, &size, &type, &unpacked, err);
  if (code == MIC_OK) code = unpack(elf, name, type, bytes, size, unpacked, &to, err);
  if (code != MIC_OK) return code;
  *mic_vec_push(&elf->unpacked) = (struct elf_unpacked){index, to, unpacked};
  out->bytes = to;
  out->size = unpacked;
  return MIC_OK;
}

bool mic_elf_section(struct mic_elf *elf, const char *name, struct mic_elf_section *out,
                     struct mic_error *err) {
  if (err) err->code = MIC_OK;
  *out = (struct mic_elf_section){0};
  Elf64_Shdr s;
  uint64_t index;
  bool old_form;
  if (!elf->section_count) return mic_elf_dynamic_section(elf, name, out);
  if (!find_section(elf, name, &index, &s, &old_form) || s.sh_type == SHT_NOBITS) return false;
  const uint8_t *bytes = mic_elf_bytes(elf, s.sh_offset, s.sh_size);
  if (!bytes) {
    mic_fail_at(err, s.sh_offset, "%s: %s is not in the file", elf->name, name);
    return false;
  }
  out->vaddr = s.sh_addr;
  if (!old_form && !(s.sh_flags & SHF_COMPRESSED)) {
    out->bytes = bytes;
    out->size = s.sh_size;
    return true;
  }
  pthread_mutex_lock(&elf->lock);
  int code = unpack_once(elf, index, name, old_form, bytes, s.sh_size, out, err);
  pthread_mutex_unlock(&elf->lock);
  return code == MIC_OK;
}

bool mic_elf_has_section(struct mic_elf *elf, const char *name) {
  struct mic_elf_section unused = {0};
  Elf64_Shdr s;
  uint64_t index;
  bool old_form;
  if (!elf->section_count) return mic_elf_dynamic_section(elf, name, &unused);
  return find_section(elf, name, &index, &s, &old_form) && s.sh_type != SHT_NOBITS &&
         mic_elf_bytes(elf, s.sh_offset, s.sh_size);
}
