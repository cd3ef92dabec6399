/* elf_fuzz.c - any bytes as an ELF image: open it, and read all that can be asked for. */
#include <stdint.h>

#include "image/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned touch(const uint8_t *bytes, size_t size) {
  unsigned sum = 0;
  for (size_t i = 0; i < size; i += 61) sum += bytes[i];
  return size ? sum + bytes[size - 1] : sum;
}

static unsigned read_sections(struct mic_elf *elf) {
  static const char *const names[] = {".eh_frame", ".debug_frame",   ".text",
                                      ".symtab",   ".gnu_debugdata", ""};
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct mic_elf_section s;
    struct mic_error err;
    if (mic_elf_section(elf, names[i], &s, &err)) sum += touch(s.bytes, s.size);
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mic_elf *elf;
  struct mic_error err;
  if (mic_elf_open_memory(data, size, "fuzz", &elf, &err) != MIC_OK) return 0;
  const uint8_t *id;
  size_t count, left, id_size = mic_elf_build_id(elf, &id);
  unsigned sum = touch(id, id_size) + read_sections(elf);
  const struct mic_elf_segment *s = mic_elf_segments(elf, &count);
  for (size_t i = 0; i < count; i++) {
    uint64_t vaddr = s[i].vaddr + s[i].file_size / 2;
    const uint8_t *at = mic_elf_at(elf, vaddr, &left);
    if (at) sum += touch(at, left);
    mic_elf_vaddr_of_offset(elf, s[i].offset, s[i].flags, &vaddr);
  }
  __asm__ volatile("" ::"r"(sum)); /* what was read is used */
  mic_elf_close(elf);
  return 0;
}
