/* parts.c - choose ranges of an ELF file. */
#include "image/parts.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More sections than any toolchain makes of one image: -ffunction-sections leaves its traces in
 * objects, not in images. */
enum { SECTIONS_MAX = 65536 };

static void add(mic_parts *parts, uint64_t offset, uint64_t size, uint64_t file_size) {
  if (offset >= file_size || size == 0) return;
  if (size > file_size - offset) size = file_size - offset;
  *mic_vec_push(parts) = (struct mic_part){offset, size};
}

static bool read_at(int fd, uint64_t offset, void *to, size_t size) {
  return offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool is_wanted(const Elf64_Shdr *section, const char *name, bool code) {
  static const char *const data[] = {".eh_frame",      ".eh_frame_hdr",  ".debug_frame",
                                     ".gnu_debugdata", ".gnu_debuglink", ".got.plt",
                                     ".zdebug_frame"};
  if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL) return false;
  if (section->sh_flags & SHF_EXECINSTR) return code || strncmp(name, ".plt", 4) == 0;
  switch (section->sh_type) {
  case SHT_NOTE:
  case SHT_SYMTAB:
  case SHT_DYNSYM:
  case SHT_RELA:
  case SHT_DYNAMIC: return true;
  /* Of the string tables not the debugger's own: .debug_str is SHT_PROGBITS. */
  case SHT_STRTAB: return true;
  default: break;
  }
  for (size_t i = 0; i < sizeof data / sizeof *data; i++)
    if (strcmp(name, data[i]) == 0) return true;
  return false;
}

/* False when the section headers cannot be used. */
static bool add_sections(int fd, const Elf64_Ehdr *header, uint64_t file_size, bool code,
                         mic_parts *parts) {
  size_t count = header->e_shnum;
  if (!header->e_shoff || !count || header->e_shentsize != sizeof(Elf64_Shdr) ||
      header->e_shstrndx >= count || count > SECTIONS_MAX)
    return false;
  Elf64_Shdr *sections = mic_alloc(count * sizeof *sections);
  bool ok = read_at(fd, header->e_shoff, sections, count * sizeof *sections);
  const Elf64_Shdr *names = &sections[header->e_shstrndx];
  char *text = NULL;
  if (ok && names->sh_size < file_size) {
    text = mic_alloc(names->sh_size + 1);
    ok = read_at(fd, names->sh_offset, text, names->sh_size);
  }
  for (size_t i = 0; ok && text && i < count; i++) {
    const char *name = sections[i].sh_name < names->sh_size ? text + sections[i].sh_name : "";
    if (is_wanted(&sections[i], name, code))
      add(parts, sections[i].sh_offset, sections[i].sh_size, file_size);
  }
  if (ok) add(parts, header->e_shoff, count * sizeof *sections, file_size);
  ok = ok && text;
  free(text);
  free(sections);
  return ok;
}

static void add_segments(int fd, const Elf64_Ehdr *header, uint64_t file_size, bool code,
                         mic_parts *parts) {
  for (size_t i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    if (!read_at(fd, header->e_phoff + i * sizeof segment, &segment, sizeof segment)) return;
    if (segment.p_type == PT_LOAD && (code || !(segment.p_flags & PF_X)))
      add(parts, segment.p_offset, segment.p_filesz, file_size);
  }
}

static int by_offset(const void *a, const void *b) {
  const struct mic_part *x = a, *y = b;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void join(mic_parts *parts) {
  qsort(parts->at, parts->count, sizeof *parts->at, by_offset);
  size_t kept = 0;
  for (size_t i = 1; i < parts->count; i++) {
    struct mic_part *last = &parts->at[kept], *next = &parts->at[i];
    uint64_t last_end = last->offset + last->size, next_end = next->offset + next->size;
    if (next->offset > last_end)
      parts->at[++kept] = *next;
    else if (next_end > last_end)
      last->size = next_end - last->offset;
  }
  if (parts->count) parts->count = kept + 1;
}

int mic_image_parts(int fd, bool code, mic_parts *out, struct mic_error *err) {
  memset(out, 0, sizeof *out);
  struct stat st;
  Elf64_Ehdr header;
  if (fstat(fd, &st) != 0) return mic_fail_sys(err, "cannot look at an image");
  uint64_t file_size = (uint64_t)st.st_size;
  if (!read_at(fd, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return mic_fail_at(err, 0, "not an x86-64 ELF image");
  add(out, 0, sizeof header, file_size);
  add(out, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), file_size);
  if (!add_sections(fd, &header, file_size, code, out))
    add_segments(fd, &header, file_size, code, out);
  join(out);
  return MIC_OK;
}

/* Whether a section lies in one of the parts, which are in order and apart. */
static bool is_covered(const Elf64_Shdr *section, const mic_parts *parts) {
  size_t low = 0, high = parts->count; /* the last that begins at or before it is at low - 1 */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (parts->at[middle].offset <= section->sh_offset)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return false;
  const struct mic_part *part = &parts->at[low - 1];
  uint64_t inside = section->sh_offset - part->offset;
  return inside <= part->size && section->sh_size <= part->size - inside;
}

void mic_image_blank(int fd, const mic_parts *parts) {
  Elf64_Ehdr header;
  if (!read_at(fd, 0, &header, sizeof header) || header.e_shentsize != sizeof(Elf64_Shdr)) return;
  for (size_t i = 0; i < header.e_shnum; i++) {
    uint64_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    if (at < header.e_shoff || !read_at(fd, at, &section, sizeof section)) return;
    if (section.sh_type == SHT_NOBITS || is_covered(&section, parts)) continue;
    section.sh_type = SHT_NOBITS;
    if (pwrite(fd, &section, sizeof section, (off_t)at) != (ssize_t)sizeof section) return;
  }
}
