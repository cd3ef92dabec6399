/* kernel.c - /sys/kernel/notes and /proc/kallsyms. */
#include "target/kernel.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/map.h"

struct function {
  uint64_t address;
  uint32_t name;
};

struct mic_kernel_names {
  struct mic_interner names;
  MIC_VEC(struct function) functions; /* by address */
  uint64_t end;                       /* of the kernel's code: _etext */
};

/* The notes are few; a build ID's is among them (kernel/ksysfs.c, notes_read). */
enum { NOTES_MAX = 64 * 1024 };

static size_t aligned(size_t size) { return (size + 3) & ~(size_t)3; }

static bool same_build_id(const uint8_t *build_id, size_t size) {
  uint8_t *bytes = mic_alloc(NOTES_MAX);
  FILE *file = fopen("/sys/kernel/notes", "re");
  size_t got = file ? fread(bytes, 1, NOTES_MAX, file) : 0;
  if (file) fclose(file);
  struct mic_cursor c = mic_cursor(bytes, got);
  bool same = false;
  while (!same && !c.bad && mic_cursor_left(&c)) {
    uint32_t name_size = mic_cursor_u32(&c), id_size = mic_cursor_u32(&c);
    uint32_t type = mic_cursor_u32(&c);
    const char *name = mic_cursor_take(&c, aligned(name_size));
    const void *id = mic_cursor_take(&c, aligned(id_size));
    same = name && id && type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(name, "GNU", 4) == 0 &&
           id_size == size && memcmp(id, build_id, size) == 0;
  }
  free(bytes);
  return same;
}

/* One line, "ffffffff81000000 T _text", of functions and what bounds them; modules' names have a
 * fourth word in brackets. */
static bool parse_line(char *line, uint64_t *address, const char **name) {
  char *at;
  *address = strtoull(line, &at, 16);
  if (at == line || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ') return false;
  size_t size = strcspn(at + 3, "\t\n");
  bool whole = at[3 + size] == '\n';
  at[3 + size] = '\0';
  *name = at + 3;
  return size && whole;
}

static int by_address(const void *a, const void *b) {
  const struct function *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  return x->name < y->name ? -1 : x->name > y->name;
}

static uint64_t read_names(struct mic_kernel_names *names) {
  char line[1024]; /* KSYM_NAME_LEN is 512 */
  const char *name;
  uint64_t address, text = 0;
  FILE *file = fopen("/proc/kallsyms", "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    if (!parse_line(line, &address, &name)) continue;
    if (strcmp(name, "_text") == 0) text = address;
    if (strcmp(name, "_etext") == 0) names->end = address;
    *mic_vec_push(&names->functions) =
      (struct function){address, mic_intern(&names->names, name, strlen(name))};
  }
  fclose(file);
  if (names->functions.count)
    qsort(names->functions.at, names->functions.count, sizeof *names->functions.at, by_address);
  return text;
}

struct mic_kernel_names *mic_kernel_names_open(const uint8_t *build_id, size_t size,
                                               uint64_t text_address, const char **problem) {
  *problem = "its build ID is not in the recording, so no names are proven";
  if (!size) return NULL;
  *problem = "it is not the kernel that runs here, whose names alone are known";
  if (!same_build_id(build_id, size)) return NULL;
  struct mic_kernel_names *names = mic_alloc(sizeof *names);
  uint64_t text = read_names(names);
  if (text && text == text_address) {
    *problem = NULL;
    return names;
  }
  *problem = text ? "the same kernel runs here, but at other addresses"
                  : "the kernel does not tell its addresses (kernel.kptr_restrict)";
  mic_kernel_names_free(names);
  return NULL;
}

void mic_kernel_names_free(struct mic_kernel_names *names) {
  if (!names) return;
  mic_interner_free(&names->names);
  mic_vec_free(&names->functions);
  free(names);
}

const char *mic_kernel_names_find(const struct mic_kernel_names *names, uint64_t address) {
  size_t low = 0, high = names->functions.count;
  if (address >= names->end) return NULL;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (names->functions.at[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  /* Of several names of one address the first in the kernel's list. */
  while (low > 1 && names->functions.at[low - 2].address == names->functions.at[low - 1].address)
    low--;
  return mic_interner_at(&names->names, names->functions.at[low - 1].name).bytes;
}
