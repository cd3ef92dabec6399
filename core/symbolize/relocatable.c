/* relocatable.c - do for a module's file what a linker would: place, relocate, write. */
#include "symbolize/relocatable.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/alloc.h"
#include "image/elf.h"
#include "image/symbols_mini.h"

enum {
  SECTIONS_MAX = 0xff00, /* SHN_LORESERVE: modules built with -ffunction-sections have some 1,000 */
  TEXT_ADDRESS = 0x1000000, /* low addresses stand for discarded code in DWARF */
  BYTES_MAX = 1 << 30,      /* the largest, with debug information, have some 400 MiB */
  UNPACKED_MAX = 256 << 20, /* compressed ones have none */
  ALIGN_MAX = 1 << 21       /* a module's sections are aligned to pages at most */
};

struct work {
  uint8_t *bytes; /* a copy of the file, with what is appended */
  size_t count, room;
  Elf64_Ehdr header;
  MIC_VEC(Elf64_Shdr) sections;
  const char *name;
  const char *names; /* of sections */
  size_t names_size;
  size_t text; /* the section's number; 0: none */
};

static int malformed(const struct work *w, const char *what, struct mic_error *err) {
  return mic_fail(err, MIC_EFORMAT, "%.160s: %s", w->name, what);
}

static bool inside(const struct work *w, uint64_t offset, uint64_t size) {
  return offset <= w->count && size <= w->count - offset;
}

static const char *section_name(const struct work *w, const Elf64_Shdr *s) {
  if (s->sh_name >= w->names_size) return "";
  const char *name = w->names + s->sh_name;
  return memchr(name, 0, w->names_size - s->sh_name) ? name : "";
}

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static size_t append(struct work *w, const void *bytes, size_t size) {
  size_t at = (w->count + 15) & ~(size_t)15;
  if (at + size > w->room) {
    w->room = at + size + (at + size) / 4;
    w->bytes = mic_realloc(w->bytes, w->room);
  }
  memset(w->bytes + w->count, 0, at - w->count);
  memcpy(w->bytes + at, bytes, size);
  w->count = at + size;
  return at;
}

/* ---- read ---- */

static int read_sections(struct work *w, struct mic_error *err) {
  if (w->count < sizeof w->header) return malformed(w, "the ELF header is cut short", err);
  memcpy(&w->header, w->bytes, sizeof w->header);
  const Elf64_Ehdr *h = &w->header;
  if (h->e_type != ET_REL) return malformed(w, "it is no relocatable object", err);
  if (h->e_shnum == 0 || h->e_shnum >= SECTIONS_MAX || h->e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(w, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
      h->e_shstrndx >= h->e_shnum)
    return malformed(w, "its sections are not in the file", err);
  mic_vec_reserve(&w->sections, h->e_shnum);
  w->sections.count = h->e_shnum;
  memcpy(w->sections.at, w->bytes + h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
  uint64_t walked = 0;
  for (size_t i = 0; i < w->sections.count; i++) {
    Elf64_Shdr *s = &w->sections.at[i];
    /* No section, whatever else its header says (ELF specification, "Sections"). */
    if (s->sh_type == SHT_NULL) *s = (Elf64_Shdr){.sh_type = SHT_NULL};
    if (s->sh_type != SHT_NOBITS && !inside(w, s->sh_offset, s->sh_size))
      return malformed(w, "a section is not in the file", err);
    if (s->sh_type == SHT_RELA || s->sh_type == SHT_SYMTAB) walked += s->sh_size;
    /* Each is walked: a great many that are the same bytes would take for ever. */
    if (walked > w->count) return malformed(w, "its tables overlap", err);
  }
  return MIC_OK;
}

/* Only what is executable when the module runs counts: code of initialisation has its own place. */
static bool is_kept_code(const struct work *w, const Elf64_Shdr *s) {
  return s->sh_flags & SHF_ALLOC && s->sh_flags & SHF_EXECINSTR && s->sh_size > 0 &&
         !starts(section_name(w, s), ".init");
}

/* Every section that is loaded gets an address of its own, .text a known one. */
static int place(struct work *w, struct mic_error *err) {
  size_t first = 0;
  for (size_t i = 1; i < w->sections.count; i++) {
    const Elf64_Shdr *s = &w->sections.at[i];
    if (!is_kept_code(w, s)) continue;
    if (!first) first = i;
    if (strcmp(section_name(w, s), ".text") == 0) w->text = i;
  }
  if (!w->text) return malformed(w, "it has no .text", err);
  if (first != w->text)
    return malformed(w, "its .text is not the first of its code, so its place is not known", err);
  /* One without bytes in the file, of debug information alone, may say any size. */
  if (w->sections.at[w->text].sh_size > UINT32_MAX)
    return malformed(w, "a section cannot be placed", err);
  uint64_t at = TEXT_ADDRESS + w->sections.at[w->text].sh_size;
  for (size_t i = 1; i < w->sections.count; i++) {
    Elf64_Shdr *s = &w->sections.at[i];
    if (!(s->sh_flags & SHF_ALLOC) || i == w->text) continue;
    uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
    if (align & (align - 1) || align > ALIGN_MAX || s->sh_size > UINT32_MAX || at > UINT32_MAX)
      return malformed(w, "a section cannot be placed", err);
    s->sh_addr = at = (at + align - 1) & ~(align - 1);
    at += s->sh_size;
  }
  w->sections.at[w->text].sh_addr = TEXT_ADDRESS;
  return MIC_OK;
}

/* ---- relocate ---- */

/* Debug information may be compressed, and relocations are of what it is then. */
static int unpack(struct work *w, struct mic_elf *elf, struct mic_error *err) {
  for (size_t i = 1; i < w->sections.count; i++) {
    Elf64_Shdr *s = &w->sections.at[i];
    if (!(s->sh_flags & SHF_COMPRESSED)) continue;
    struct mic_elf_section section;
    if (!mic_elf_section(elf, section_name(w, s), &section, NULL))
      return malformed(w, "a compressed section could not be read", err);
    if (section.size > BYTES_MAX - (w->count < BYTES_MAX ? w->count : BYTES_MAX))
      return mic_fail(err, MIC_ELIMIT, "%.160s: more than %d bytes when unpacked", w->name,
                      BYTES_MAX);
    s->sh_offset = append(w, section.bytes, section.size);
    s->sh_size = section.size;
    s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
  }
  return MIC_OK;
}

static bool is_table(const struct work *w, size_t number, uint32_t type, size_t each) {
  if (number == 0 || number >= w->sections.count) return false;
  const Elf64_Shdr *s = &w->sections.at[number];
  return s->sh_type == type && s->sh_entsize == each && s->sh_size % each == 0;
}

/* Symbols that stand for places get addresses, as in an image. */
static void place_symbols(struct work *w) {
  for (size_t i = 1; i < w->sections.count; i++) {
    if (!is_table(w, i, SHT_SYMTAB, sizeof(Elf64_Sym))) continue;
    const Elf64_Shdr *s = &w->sections.at[i];
    for (uint64_t at = 0; at < s->sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym sym;
      memcpy(&sym, w->bytes + s->sh_offset + at, sizeof sym);
      if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= w->sections.count) continue;
      sym.st_value += w->sections.at[sym.st_shndx].sh_addr;
      memcpy(w->bytes + s->sh_offset + at, &sym, sizeof sym);
    }
  }
}

/* One relocation of data, as the psABI defines it: S + A, without P for what is not loaded. */
static int apply(struct work *w, const Elf64_Shdr *target, const Elf64_Shdr *symbols,
                 const Elf64_Rela *rela, struct mic_error *err) {
  uint64_t type = ELF64_R_TYPE(rela->r_info), number = ELF64_R_SYM(rela->r_info);
  size_t size = type == R_X86_64_64 ? 8 : 4;
  Elf64_Sym sym;
  if (type == R_X86_64_NONE) return MIC_OK;
  if (type != R_X86_64_64 && type != R_X86_64_32 && type != R_X86_64_32S)
    return malformed(w, "its debug information has relocations of an unknown kind", err);
  if (number >= symbols->sh_size / sizeof sym || rela->r_offset > target->sh_size ||
      size > target->sh_size - rela->r_offset)
    return malformed(w, "a relocation is out of its section", err);
  memcpy(&sym, w->bytes + symbols->sh_offset + number * sizeof sym, sizeof sym);
  uint64_t value = sym.st_value + (uint64_t)rela->r_addend;
  memcpy(w->bytes + target->sh_offset + rela->r_offset, &value, size); /* little-endian */
  return MIC_OK;
}

static int relocate(struct work *w, struct mic_error *err) {
  int code = MIC_OK;
  for (size_t i = 1; i < w->sections.count; i++) {
    const Elf64_Shdr *s = &w->sections.at[i];
    if (!is_table(w, i, SHT_RELA, sizeof(Elf64_Rela))) continue;
    if (s->sh_info == 0 || s->sh_info >= w->sections.count) continue;
    const Elf64_Shdr *target = &w->sections.at[s->sh_info];
    if (!starts(section_name(w, target), ".debug_") || target->sh_type == SHT_NOBITS) continue;
    if (!is_table(w, s->sh_link, SHT_SYMTAB, sizeof(Elf64_Sym)))
      return malformed(w, "relocations without a symbol table", err);
    for (uint64_t at = 0; at < s->sh_size && code == MIC_OK; at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      memcpy(&rela, w->bytes + s->sh_offset + at, sizeof rela);
      code = apply(w, target, &w->sections.at[s->sh_link], &rela, err);
    }
    if (code != MIC_OK) return code;
  }
  return MIC_OK;
}

/* ---- write ---- */

/* Links to other files, which are relocatable too, and all that other readers would take for an
 * image's own. */
static void drop_links(struct work *w) {
  for (size_t i = 1; i < w->sections.count; i++) {
    Elf64_Shdr *s = &w->sections.at[i];
    if (s->sh_type == SHT_NOTE || s->sh_type == SHT_RELA ||
        strcmp(section_name(w, s), ".gnu_debuglink") == 0)
      s->sh_type = SHT_NULL, s->sh_name = 0;
  }
}

static void put_headers(struct work *w) {
  const Elf64_Shdr *text = &w->sections.at[w->text];
  Elf64_Phdr load = {
    .p_type = PT_LOAD,
    .p_flags = PF_R | PF_X,
    .p_offset = text->sh_offset,
    .p_vaddr = text->sh_addr,
    .p_filesz = text->sh_type == SHT_NOBITS ? 0 : text->sh_size,
    .p_memsz = text->sh_size,
    .p_align = 1,
  };
  w->header.e_type = ET_DYN;
  w->header.e_phoff = append(w, &load, sizeof load);
  w->header.e_phnum = 1;
  w->header.e_phentsize = sizeof load;
  w->header.e_shoff = append(w, w->sections.at, w->sections.count * sizeof *w->sections.at);
  memcpy(w->bytes, &w->header, sizeof w->header);
}

/* A file in memory, or -1. */
static int memory_file(const uint8_t *bytes, size_t size) {
  int fd = memfd_create("module", MFD_CLOEXEC);
  size_t at = 0;
  while (fd >= 0 && at < size) {
    ssize_t done = write(fd, bytes + at, size - at);
    if (done <= 0) break;
    at += (size_t)done;
  }
  if (fd < 0 || at == size) return fd;
  close(fd);
  return -1;
}

static int make(struct work *w, struct mic_elf *elf, struct mic_relocated *out,
                struct mic_error *err) {
  int code = read_sections(w, err);
  if (code != MIC_OK) return code;
  const Elf64_Shdr *names = &w->sections.at[w->header.e_shstrndx];
  if (names->sh_type != SHT_STRTAB) return malformed(w, "its sections have no names", err);
  char *copy = mic_strndup((const char *)w->bytes + names->sh_offset, names->sh_size);
  w->names = copy;
  w->names_size = names->sh_size;
  code = place(w, err);
  if (code == MIC_OK) code = unpack(w, elf, err);
  if (code == MIC_OK) {
    place_symbols(w);
    code = relocate(w, err);
  }
  if (code == MIC_OK) {
    drop_links(w);
    put_headers(w);
    out->fd = memory_file(w->bytes, w->count);
    if (out->fd < 0) code = mic_fail_sys(err, "no memory for the image of %.160s", w->name);
  }
  out->address = TEXT_ADDRESS;
  out->size = w->sections.at[w->text].sh_size;
  free(copy);
  return code;
}

/* All of a file; NULL and *err when there is no room or it cannot be read. */
static uint8_t *read_file(int fd, const char *name, size_t *size, struct mic_error *err) {
  struct stat st;
  uint8_t *bytes = NULL;
  if (fstat(fd, &st) != 0)
    mic_fail_sys(err, "%.160s", name);
  else if (st.st_size <= 0 || st.st_size > BYTES_MAX)
    mic_fail(err, MIC_ELIMIT, "%.160s: %lld bytes are no module's", name, (long long)st.st_size);
  else if (!(bytes = mic_try_alloc((size_t)st.st_size, 1)))
    mic_fail(err, MIC_ELIMIT, "%.160s: no memory for it", name);
  if (!bytes) return NULL;
  *size = 0;
  while (*size < (size_t)st.st_size) {
    ssize_t got = pread(fd, bytes + *size, (size_t)st.st_size - *size, (off_t)*size);
    if (got <= 0) break;
    *size += (size_t)got;
  }
  if (*size == (size_t)st.st_size) return bytes;
  mic_fail(err, MIC_EFORMAT, "%.160s could not be read as a whole", name);
  free(bytes);
  return NULL;
}

int mic_relocatable_image(int fd, const char *name, struct mic_relocated *out,
                          struct mic_error *err) {
  *out = (struct mic_relocated){.fd = -1};
  struct mic_elf *elf = NULL;
  struct work w = {.name = name};
  int code = mic_elf_open_debug(fd, name, &elf, err);
  if (code != MIC_OK) return code;
  w.bytes = read_file(fd, name, &w.count, err);
  w.room = w.count;
  code = w.bytes ? make(&w, elf, out, err) : MIC_EFORMAT;
  mic_elf_close(elf);
  mic_vec_free(&w.sections);
  free(w.bytes);
  return code;
}

/* ---- compressed files ---- */

static bool begins(const uint8_t *bytes, size_t size, const char *magic, size_t magic_size) {
  return size >= magic_size && memcmp(bytes, magic, magic_size) == 0;
}

static uint8_t *unpack_zstd(const uint8_t *bytes, size_t size, size_t *out_size) {
  unsigned long long told = ZSTD_getFrameContentSize(bytes, size);
  ZSTD_DStream *zstd = ZSTD_createDStream();
  MIC_VEC(uint8_t) out = {0};
  ZSTD_inBuffer in = {bytes, size, 0};
  size_t left = zstd ? 1 : 0;
  bool sane = zstd && (told > UNPACKED_MAX ? told == ZSTD_CONTENTSIZE_UNKNOWN : true);
  while (sane && left) {
    mic_vec_reserve(&out, out.count + (1 << 20));
    ZSTD_outBuffer to = {out.at, out.room, out.count};
    size_t before = in.pos;
    left = ZSTD_decompressStream(zstd, &to, &in);
    sane = !ZSTD_isError(left) && to.pos <= UNPACKED_MAX && (to.pos > out.count || in.pos > before);
    out.count = to.pos;
  }
  ZSTD_freeDStream(zstd);
  *out_size = out.count;
  if (sane && out.count) return out.at;
  mic_vec_free(&out);
  return NULL;
}

/* The size of what was packed stands in the last four bytes (RFC 1952, ISIZE). */
static uint8_t *unpack_gzip(const uint8_t *bytes, size_t size, size_t *out_size) {
  uint32_t told = 0;
  if (size >= 18) memcpy(&told, bytes + size - 4, sizeof told);
  uint8_t *out = told && told <= UNPACKED_MAX ? mic_try_alloc(told, 1) : NULL;
  struct libdeflate_decompressor *deflate = libdeflate_alloc_decompressor();
  bool good =
    out && deflate &&
    libdeflate_gzip_decompress(deflate, bytes, size, out, told, out_size) == LIBDEFLATE_SUCCESS;
  libdeflate_free_decompressor(deflate);
  if (good) return out;
  free(out);
  return NULL;
}

int mic_relocatable_unpack(int fd, const char *name, struct mic_error *err) {
  size_t size, out_size = 0;
  char magic[6] = {0};
  if (pread(fd, magic, sizeof magic, 0) != sizeof magic) return -1;
  const uint8_t *head = (const uint8_t *)magic;
  bool xz = begins(head, 6,
                   "\xfd"
                   "7zXZ\0",
                   6),
       zstd = begins(head, 6, "\x28\xb5\x2f\xfd", 4), gzip = begins(head, 6, "\x1f\x8b", 2);
  if (!xz && !zstd && !gzip) return -1;
  uint8_t *bytes = read_file(fd, name, &size, err), *out = NULL;
  if (!bytes) return -1;
  if (xz)
    mic_mini_unpack(bytes, size, &out, &out_size, err);
  else
    out = zstd ? unpack_zstd(bytes, size, &out_size) : unpack_gzip(bytes, size, &out_size);
  free(bytes);
  int file = out ? memory_file(out, out_size) : -1;
  free(out);
  if (file < 0) mic_fail(err, MIC_EFORMAT, "%.160s could not be decompressed", name);
  return file;
}
