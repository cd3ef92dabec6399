/* kernel.c - /sys/kernel/notes, /proc/kallsyms, and what is loaded beside the kernel. */
#include "target/kernel.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/map.h"

struct function {
  uint64_t address;
  const char *name; /* of the kernel's names */
  uint32_t module;  /* likewise; MIC_NONE: the kernel itself */
  uint8_t binding;  /* 0 global, 1 weak, 2 local */
};

struct mic_kernel_names {
  char *root;
  struct mic_interner names;
  MIC_VEC(struct function) functions; /* by address */
  MIC_VEC(struct function) loaded;    /* of modules, in the kernel's order */
  uint64_t end;                       /* of its code */
  /* Code that ran when the kernel started; the first task's callers are in it for ever. */
  uint64_t init_start, init_end;
  MIC_VEC(struct mic_kernel_names *) modules;
};

enum {
  NOTES_MAX = 64 * 1024, /* a build ID's is among a few (kernel/ksysfs.c, notes_read) */
  PATH_BYTES = 512,
  NAME_BYTES = 64 - 8 /* MODULE_NAME_LEN (include/linux/module.h) */
};

static size_t aligned(size_t size) { return (size + 3) & ~(size_t)3; }

static bool has_build_id(const char *root, const char *path, const uint8_t *build_id, size_t size) {
  char full[PATH_BYTES];
  uint8_t *bytes = mic_alloc(NOTES_MAX);
  snprintf(full, sizeof full, "%s%s", root, path);
  FILE *file = fopen(full, "re");
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
static bool parse_line(char *line, struct function *function, const char **module) {
  char *at;
  function->address = strtoull(line, &at, 16);
  if (at == line || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ') return false;
  function->binding = at[1] == 'T' ? 0 : at[1] == 't' ? 2 : 1;
  function->name = at + 3;
  at += 3 + strcspn(at + 3, "\t\n");
  *module = NULL;
  if (at == function->name || !*at) return false;
  if (*at == '\t') {
    *at++ = '\0';
    size_t size = strcspn(at, "]\n");
    if (*at != '[' || at[size] != ']') return false;
    *module = at + 1;
    at += size;
  }
  *at = '\0';
  return true;
}

/* Of several names of one address first the one that a vmlinux would give (symbols_table.c): a name
 * stays the same when lines come to it. */
static int by_address(const void *a, const void *b) {
  const struct function *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  if (x->binding != y->binding) return x->binding < y->binding ? -1 : 1;
  size_t xu = strspn(x->name, "_"), yu = strspn(y->name, "_");
  if (xu != yu) return xu < yu ? -1 : 1;
  size_t xs = strlen(x->name), ys = strlen(y->name);
  return xs != ys ? (xs < ys ? -1 : 1) : strcmp(x->name, y->name);
}

static void sort(struct mic_kernel_names *names) {
  if (names->functions.count)
    qsort(names->functions.at, names->functions.count, sizeof *names->functions.at, by_address);
}

/* The address of the symbol that tells where the kernel is, 0 when it does not tell. */
static uint64_t read_names(struct mic_kernel_names *names, const char *symbol) {
  char line[1024]; /* KSYM_NAME_LEN is 512 */
  const char *module;
  uint64_t found = 0;
  snprintf(line, sizeof line, "%s/proc/kallsyms", names->root);
  FILE *file = fopen(line, "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    struct function function = {.module = MIC_NONE};
    if (!parse_line(line, &function, &module)) continue;
    uint32_t name = mic_intern(&names->names, function.name, strlen(function.name));
    function.name = mic_interner_at(&names->names, name).bytes;
    if (module) {
      function.module = mic_intern(&names->names, module, strlen(module));
      *mic_vec_push(&names->loaded) = function;
      continue;
    }
    if (strcmp(function.name, symbol) == 0) found = function.address;
    if (strcmp(function.name, "_etext") == 0) names->end = function.address;
    if (strcmp(function.name, "_sinittext") == 0) names->init_start = function.address;
    if (strcmp(function.name, "_einittext") == 0) names->init_end = function.address;
    *mic_vec_push(&names->functions) = function;
  }
  fclose(file);
  sort(names);
  return found;
}

static struct mic_kernel_names *new_names(const char *root) {
  struct mic_kernel_names *names = mic_alloc(sizeof *names);
  names->root = mic_strndup(root, strlen(root));
  return names;
}

struct mic_kernel_names *mic_kernel_names_open(const struct mic_kernel_text *text,
                                               const char **problem) {
  *problem = "its build ID is not in the recording, so no names are proven";
  if (!text->build_id_size) return NULL;
  *problem = "it is not the kernel that runs here; microscope symbolize names it from a vmlinux";
  if (!has_build_id(text->root, "/sys/kernel/notes", text->build_id, text->build_id_size))
    return NULL;
  struct mic_kernel_names *names = new_names(text->root);
  uint64_t address = read_names(names, text->symbol);
  if (address && address == text->address) {
    *problem = NULL;
    return names;
  }
  *problem = address ? "the same kernel runs here, but at other addresses"
                     : "the kernel does not tell its addresses (kernel.kptr_restrict)";
  mic_kernel_names_free(names);
  return NULL;
}

void mic_kernel_names_free(struct mic_kernel_names *names) {
  if (!names) return;
  for (size_t i = 0; i < names->modules.count; i++) mic_kernel_names_free(names->modules.at[i]);
  mic_vec_free(&names->modules);
  mic_interner_free(&names->names);
  mic_vec_free(&names->functions);
  mic_vec_free(&names->loaded);
  free(names->root);
  free(names);
}

/* ---- modules ---- */

/* "[ext4]" and "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz" are "ext4"; dashes in file names are
 * underscores in modules (scripts/Makefile.lib, name-fix). */
static bool module_name(const char *path, char out[NAME_BYTES]) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t size;
  if (name[0] == '[') {
    const char *end = strchr(++name, ']');
    size = end && !end[1] ? (size_t)(end - name) : 0;
  } else {
    const char *end = strstr(name, ".ko");
    size = end && (!end[3] || end[3] == '.') ? (size_t)(end - name) : 0;
  }
  if (size == 0 || size >= NAME_BYTES) return false;
  for (size_t i = 0; i < size; i++) out[i] = name[i] == '-' ? '_' : name[i];
  out[size] = '\0';
  return strcmp(out, ".") != 0 && strcmp(out, "..") != 0;
}

/* Where a module's code begins: "ext4 999424 1 - Live 0xffffffffc0000000"; 0: it is not told. */
static uint64_t loaded_at(const char *root, const char *name) {
  char path[PATH_BYTES], line[4096]; /* a line has the names of all that use the module */
  uint64_t found = 0;
  size_t size = strlen(name);
  snprintf(path, sizeof path, "%s/proc/modules", root);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  while (!found && fgets(line, sizeof line, file)) {
    const char *address = strstr(line, " 0x");
    if (strncmp(line, name, size) == 0 && line[size] == ' ' && address)
      found = strtoull(address + 1, NULL, 16);
  }
  fclose(file);
  return found;
}

struct mic_kernel_names *mic_kernel_names_module(struct mic_kernel_names *kernel,
                                                 const struct mic_kernel_module *module,
                                                 const char **problem) {
  char name[NAME_BYTES], notes[NAME_BYTES + 64];
  *problem = "its build ID is not in the recording, so no names are proven";
  if (!module->build_id_size) return NULL;
  *problem = "it is no module's name";
  if (!module_name(module->path, name)) return NULL;
  snprintf(notes, sizeof notes, "/sys/module/%s/notes/.note.gnu.build-id", name);
  *problem = "no module with its build ID is loaded here";
  if (!has_build_id(kernel->root, notes, module->build_id, module->build_id_size)) return NULL;
  *problem = "the same module is loaded here, but at another address";
  if (loaded_at(kernel->root, name) != module->address) return NULL;
  struct mic_kernel_names *names = new_names(kernel->root);
  uint32_t id = mic_interner_find(&kernel->names, name, strlen(name));
  names->end = module->size;
  for (size_t i = 0; i < kernel->loaded.count; i++) {
    struct function function = kernel->loaded.at[i];
    if (function.module != id || function.address - module->address >= module->size) continue;
    function.address -= module->address;
    *mic_vec_push(&names->functions) = function;
  }
  sort(names);
  *mic_vec_push(&kernel->modules) = names;
  *problem = NULL;
  return names;
}

/* ---- look up ---- */

const char *mic_kernel_names_find(const struct mic_kernel_names *names, uint64_t address) {
  size_t low = 0, high = names->functions.count;
  bool starts = address >= names->init_start && address < names->init_end;
  if (address >= names->end && !starts) return NULL;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (names->functions.at[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  /* Of several names of one address the first. */
  while (low > 1 && names->functions.at[low - 2].address == names->functions.at[low - 1].address)
    low--;
  return names->functions.at[low - 1].name;
}
