/*
 * elf.c - open an ELF image: header, segments, build ID, addresses.
 *
 * The header and the program headers are copied and checked at open, so that later answers do
 * not change with the file.  A segment may claim more than the file has (separate debug files
 * do): what is not in the file is not handed out.
 */
#include "image/elf.h"

#include <sys/auxv.h>
#include <sys/stat.h>

#include "image/elf_internal.h"

enum { PAGE_MASK = 4095 }; /* segments are mapped by pages of 4 KiB on x86-64 */

static const char *machine_name(uint16_t machine) {
  switch (machine) {
  case EM_386: return "32-bit x86";
  case EM_AARCH64: return "AArch64";
  case EM_ARM: return "ARM";
  case EM_RISCV: return "RISC-V";
  case EM_PPC64: return "PowerPC";
  case EM_S390: return "S/390";
  case EM_BPF: return "BPF";
  default: return "another machine's";
  }
}

static int check_header(struct mic_elf *elf, struct mic_error *err) {
  const uint8_t *at = mic_elf_bytes(elf, 0, sizeof elf->header);
  if (elf->size < SELFMAG || memcmp(elf->bytes, ELFMAG, SELFMAG) != 0)
    return mic_fail_at(err, 0, "%s: not an ELF image", elf->name);
  if (elf->size > EI_CLASS && elf->bytes[EI_CLASS] == ELFCLASS32)
    return mic_fail(err, MIC_EUNSUPPORTED, "%s: a 32-bit ELF image", elf->name);
  if (!at) return mic_fail_at(err, elf->size, "%s: the ELF header is cut short", elf->name);
  memcpy(&elf->header, at, sizeof elf->header);
  const Elf64_Ehdr *h = &elf->header;
  if (h->e_ident[EI_CLASS] != ELFCLASS64)
    return mic_fail_at(err, EI_CLASS, "%s: unknown ELF class %u", elf->name, h->e_ident[EI_CLASS]);
  if (h->e_ident[EI_DATA] != ELFDATA2LSB)
    return mic_fail(err, MIC_EUNSUPPORTED, "%s: not a little-endian ELF image", elf->name);
  if (h->e_machine != EM_X86_64)
    return mic_fail(err, MIC_EUNSUPPORTED, "%s: %s code (ELF machine %u), not x86-64", elf->name,
                    machine_name(h->e_machine), h->e_machine);
  if (h->e_type != ET_EXEC && h->e_type != ET_DYN && !(elf->any_type && h->e_type == ET_REL))
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "%s: neither a program nor a shared library (ELF type %u)", elf->name,
                    h->e_type);
  return MIC_OK;
}

void mic_elf_find_build_id(struct mic_elf *elf, const uint8_t *notes, uint64_t size,
                           uint64_t align) {
  if (align != 8) align = 4; /* p_align 0 and 1 mean 4 as well (gABI, note sections) */
  uint64_t at = 0;
  while (size - at >= sizeof(Elf64_Nhdr) && !elf->build_id_size) {
    Elf64_Nhdr note;
    memcpy(&note, notes + at, sizeof note);
    uint64_t name = at + sizeof note;
    uint64_t desc = name + (((uint64_t)note.n_namesz + align - 1) & ~(align - 1));
    uint64_t next = desc + (((uint64_t)note.n_descsz + align - 1) & ~(align - 1));
    if (desc > size || note.n_descsz > size - desc) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= MIC_BUILD_ID_MAX) {
      memcpy(elf->build_id, notes + desc, note.n_descsz);
      elf->build_id_size = note.n_descsz;
    }
    if (next > size) return;
    at = next;
  }
}

static void take_program_header(struct mic_elf *elf, const Elf64_Phdr *p) {
  if (p->p_type == PT_LOAD) {
    *mic_vec_push(&elf->segments) = (struct mic_elf_segment){
      .vaddr = p->p_vaddr,
      .memory_size = p->p_memsz,
      .offset = p->p_offset,
      .file_size = p->p_filesz,
      .flags = p->p_flags,
    };
  } else if (p->p_type == PT_GNU_EH_FRAME) {
    elf->eh_frame_vaddr = p->p_vaddr;
    elf->eh_frame_size = p->p_memsz;
  } else if (p->p_type == PT_DYNAMIC) {
    elf->dynamic_offset = p->p_offset;
    elf->dynamic_size = p->p_filesz;
  } else if (p->p_type == PT_NOTE && !elf->build_id_size) {
    const uint8_t *notes = mic_elf_bytes(elf, p->p_offset, p->p_filesz);
    if (notes) mic_elf_find_build_id(elf, notes, p->p_filesz, p->p_align);
  }
}

static int read_program_headers(struct mic_elf *elf, struct mic_error *err) {
  const Elf64_Ehdr *h = &elf->header;
  uint64_t count = h->e_phnum;
  Elf64_Shdr first;
  /* More than 0xfffe program headers are counted in section 0 (gABI, chapter 2). */
  if (count == PN_XNUM && mic_elf_section_header(elf, 0, &first)) count = first.sh_info;
  if (count == 0) return MIC_OK;
  if (h->e_phentsize != sizeof(Elf64_Phdr))
    return mic_fail_at(err, offsetof(Elf64_Ehdr, e_phentsize),
                       "%s: program headers of %u bytes, not %zu", elf->name, h->e_phentsize,
                       sizeof(Elf64_Phdr));
  const uint8_t *at = mic_elf_bytes(elf, h->e_phoff, count * sizeof(Elf64_Phdr));
  if (!at)
    return mic_fail_at(err, h->e_phoff, "%s: the program headers are not in the file", elf->name);
  for (uint64_t i = 0; i < count; i++) {
    Elf64_Phdr p;
    memcpy(&p, at + i * sizeof p, sizeof p);
    take_program_header(elf, &p);
  }
  return MIC_OK;
}

/* Images without a PT_NOTE keep the build ID in a section alone (separate debug files may). */
static void find_build_id_section(struct mic_elf *elf) {
  for (uint64_t i = 1; i < elf->section_count && !elf->build_id_size; i++) {
    Elf64_Shdr s;
    if (!mic_elf_section_header(elf, i, &s) || s.sh_type != SHT_NOTE) continue;
    const uint8_t *notes = mic_elf_bytes(elf, s.sh_offset, s.sh_size);
    if (notes) mic_elf_find_build_id(elf, notes, s.sh_size, s.sh_addralign);
  }
}

static int open_image(struct mic_elf *elf, struct mic_elf **out, struct mic_error *err) {
  int code = check_header(elf, err);
  if (code == MIC_OK) {
    mic_elf_count_sections(elf);
    code = read_program_headers(elf, err);
  }
  if (code == MIC_OK) find_build_id_section(elf);
  if (code == MIC_OK && mic_elf_damaged(elf))
    code = mic_fail_at(err, elf->size, "%s: the file shrank while it was read", elf->name);
  if (code != MIC_OK) {
    mic_elf_close(elf);
    return code;
  }
  *out = elf;
  return MIC_OK;
}

static struct mic_elf *new_image(const void *bytes, size_t size, const char *name) {
  struct mic_elf *elf = mic_alloc(sizeof *elf);
  elf->bytes = bytes;
  elf->size = size;
  elf->name = mic_strndup(name, strlen(name));
  pthread_mutex_init(&elf->lock, NULL);
  return elf;
}

static int open_file(int fd, const char *name, bool any_type, struct mic_elf **out,
                     struct mic_error *err) {
  *out = NULL;
  struct stat st;
  if (fstat(fd, &st) != 0) return mic_fail_sys(err, "%s", name);
  if (!S_ISREG(st.st_mode)) return mic_fail(err, MIC_EUNSUPPORTED, "%s: not a regular file", name);
  if (st.st_size == 0) return mic_fail_at(err, 0, "%s: the file is empty", name);
  struct mic_guard *guard;
  int code = mic_guard_map(fd, (size_t)st.st_size, name, &guard, err);
  if (code != MIC_OK) return code;
  struct mic_elf *elf = new_image(mic_guard_bytes(guard), (size_t)st.st_size, name);
  elf->guard = guard;
  elf->any_type = any_type;
  return open_image(elf, out, err);
}

int mic_elf_open(int fd, const char *name, struct mic_elf **out, struct mic_error *err) {
  return open_file(fd, name, false, out, err);
}

int mic_elf_open_debug(int fd, const char *name, struct mic_elf **out, struct mic_error *err) {
  return open_file(fd, name, true, out, err);
}

int mic_elf_open_memory(const void *bytes, size_t size, const char *name, struct mic_elf **out,
                        struct mic_error *err) {
  *out = NULL;
  return open_image(new_image(bytes, size, name), out, err);
}

void mic_elf_close(struct mic_elf *elf) {
  if (!elf) return;
  for (size_t i = 0; i < elf->unpacked.count; i++) free(elf->unpacked.at[i].bytes);
  mic_vec_free(&elf->unpacked);
  mic_vec_free(&elf->segments);
  mic_guard_unmap(elf->guard);
  pthread_mutex_destroy(&elf->lock);
  free(elf->name);
  free(elf);
}

const void *mic_elf_own_vdso(size_t *size) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
  /* The image ends with its section headers (arch/x86/entry/vdso); whole pages are mapped. */
  *size = header ? header->e_shoff + (size_t)header->e_shnum * header->e_shentsize : 0;
  return header;
}

size_t mic_elf_build_id(const struct mic_elf *elf, const uint8_t **bytes) {
  *bytes = elf->build_id;
  return elf->build_id_size;
}

bool mic_elf_damaged(const struct mic_elf *elf) {
  return elf->guard && mic_guard_damaged(elf->guard);
}

const char *mic_elf_name(const struct mic_elf *elf) { return elf->name; }

bool mic_elf_eh_frame_header(const struct mic_elf *elf, uint64_t *vaddr, uint64_t *size) {
  *vaddr = elf->eh_frame_vaddr;
  *size = elf->eh_frame_size;
  return elf->eh_frame_size > 0;
}

uint64_t mic_elf_entry(const struct mic_elf *elf) { return elf->header.e_entry; }

uint16_t mic_elf_type(const struct mic_elf *elf) { return elf->header.e_type; }

const struct mic_elf_segment *mic_elf_segments(const struct mic_elf *elf, size_t *count) {
  *count = elf->segments.count;
  return elf->segments.at;
}

const uint8_t *mic_elf_at(const struct mic_elf *elf, uint64_t vaddr, size_t *left) {
  *left = 0;
  for (size_t i = 0; i < elf->segments.count; i++) {
    const struct mic_elf_segment *s = &elf->segments.at[i];
    uint64_t in = vaddr - s->vaddr;
    if (vaddr < s->vaddr || in >= s->file_size || in >= s->memory_size) continue;
    if (s->offset >= elf->size || in >= elf->size - s->offset) continue;
    uint64_t size = s->file_size < elf->size - s->offset ? s->file_size : elf->size - s->offset;
    *left = (size_t)(size - in);
    return elf->bytes + s->offset + in;
  }
  return NULL;
}

/* How well a segment answers for a file offset; 0 is not at all. */
static int match_offset(const struct mic_elf_segment *s, uint64_t offset) {
  uint64_t first = s->offset & ~(uint64_t)PAGE_MASK;
  if (s->file_size == 0 || s->offset > UINT64_MAX - s->file_size - PAGE_MASK) return 0;
  if (first == offset) return 3; /* a mapping's start */
  if (offset >= s->offset && offset - s->offset < s->file_size) return 2;
  uint64_t end = (s->offset + s->file_size + PAGE_MASK) & ~(uint64_t)PAGE_MASK;
  return offset >= first && offset < end ? 1 : 0;
}

bool mic_elf_is_code(const struct mic_elf *elf, uint64_t vaddr, uint64_t size) {
  size_t count;
  const struct mic_elf_segment *s = mic_elf_segments(elf, &count);
  for (size_t i = 0; i < count; i++) {
    uint64_t at = vaddr - s[i].vaddr; /* wraps below it */
    if (s[i].flags & PF_X && at < s[i].memory_size && size <= s[i].memory_size - at) return true;
  }
  return false;
}

/* Images without program headers, as perf inject wrote them for jitdump before Linux 6.2, have
 * sections alone. */
static bool by_section(const struct mic_elf *elf, uint64_t offset, uint32_t flags,
                       uint64_t *vaddr) {
  for (uint64_t i = 1; i < elf->section_count; i++) {
    Elf64_Shdr s;
    if (!mic_elf_section_header(elf, i, &s) || s.sh_type != SHT_PROGBITS) continue;
    if (!(s.sh_flags & SHF_ALLOC) || (flags & PF_X && !(s.sh_flags & SHF_EXECINSTR))) continue;
    if (offset < s.sh_offset || offset - s.sh_offset >= s.sh_size) continue;
    *vaddr = s.sh_addr + (offset - s.sh_offset);
    return true;
  }
  return false;
}

bool mic_elf_vaddr_of_offset(const struct mic_elf *elf, uint64_t offset, uint32_t flags,
                             uint64_t *vaddr) {
  int best = 0;
  if (elf->segments.count == 0) return by_section(elf, offset, flags, vaddr);
  for (size_t i = 0; i < elf->segments.count; i++) {
    const struct mic_elf_segment *s = &elf->segments.at[i];
    if ((s->flags & flags) != flags) continue;
    int match = match_offset(s, offset);
    if (match <= best) continue;
    best = match;
    *vaddr = s->vaddr + (offset - s->offset);
  }
  return best > 0;
}
