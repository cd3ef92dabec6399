/*
 * vmlinux.c - the kernel's own image: where it may be, and where it was put.
 *
 * A vmlinux is linked at one address and runs at another (arch/x86/boot/compressed/kaslr.c): all of
 * it is moved by one distance, which one symbol's two addresses tell.  Without both nothing is
 * named.
 */
#include <elf.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image/build_id.h"
#include "image/debugfile.h"
#include "symbolize/hunt.h"

enum { PATH_BYTES = 4096 }; /* PATH_MAX, linux/limits.h */

/* Where distributions and builds put it: what stands before and after the release. */
static const char *const PLACES[][2] = {
  {"/usr/lib/debug/boot/vmlinux-", ""},
  {"/usr/lib/debug/lib/modules/", "/vmlinux"},
  {"/lib/modules/", "/build/vmlinux"},
  {"/lib/modules/", "/vmlinux"},
  {"/boot/vmlinux-", ""},
};

/* The one address of a symbol; false when the file does not tell. */
static bool symbol_address(struct mic_elf *elf, const char *name, uint64_t *address) {
  struct mic_elf_section symbols, text;
  size_t size = strlen(name) + 1, found = 0;
  if (!mic_elf_section(elf, ".symtab", &symbols, NULL) ||
      !mic_elf_section(elf, ".strtab", &text, NULL))
    return false;
  for (size_t i = 1; i < symbols.size / sizeof(Elf64_Sym); i++) {
    Elf64_Sym sym;
    memcpy(&sym, symbols.bytes + i * sizeof sym, sizeof sym);
    if (sym.st_shndx == SHN_UNDEF || ELF64_ST_BIND(sym.st_info) != STB_GLOBAL) continue;
    if (sym.st_name >= text.size || size > text.size - sym.st_name) continue;
    if (memcmp(text.bytes + sym.st_name, name, size) != 0) continue;
    *address = sym.st_value;
    found++;
  }
  return found == 1;
}

/* Whether a file is the kernel and tells where it was put. */
static bool is_kernel(struct mic_hunt *hunt, struct mic_elf *elf, const char *path,
                      uint64_t *linked) {
  struct mic_finder *f = hunt->finder;
  if (!mic_build_id_is(elf, hunt->wanted->build_id, hunt->wanted->build_id_size)) {
    if (!hunt->quiet) mic_problem_add(f->problem, "%s has another build ID", path);
    return false;
  }
  if (symbol_address(elf, f->kernel_symbol, linked)) return true;
  mic_problem_add(f->problem, "%s has no symbol %s, which tells where the kernel was put", path,
                  f->kernel_symbol);
  return false;
}

/* Takes a file when it is better than what is there; true when none can be better. */
static bool try_file(struct mic_hunt *hunt, const char *path) {
  int fd = mic_debugfile_open_fd("", path);
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  uint64_t linked;
  if (fd < 0) return false;
  if (mic_elf_open(fd, path, &elf, &err) != MIC_OK && !hunt->quiet)
    mic_problem_add(hunt->finder->problem, "%s", err.msg);
  bool lines = elf && mic_hunt_has_lines(elf);
  bool takes = elf && (hunt->best.fd < 0 || lines) && is_kernel(hunt, elf, path, &linked);
  mic_elf_close(elf);
  if (!takes) {
    close(fd);
    return false;
  }
  mic_hunt_take(hunt, fd, path);
  hunt->best.slide = hunt->finder->kernel_address - linked;
  return lines;
}

/* At the places of the recorded release, below a folder. */
static bool try_release(struct mic_hunt *hunt, const char *folder) {
  const char *release = hunt->finder->kernel_release;
  char path[PATH_BYTES];
  if (!*release || strchr(release, '/')) return false;
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    int size = snprintf(path, sizeof path, "%s%s%s%s", folder, PLACES[i][0], release, PLACES[i][1]);
    if (size > 0 && (size_t)size < sizeof path && try_file(hunt, path)) return true;
  }
  return false;
}

/* At the places of any release, as a kernel that was built here may be under another name. */
static bool try_any_release(struct mic_hunt *hunt) {
  bool found = false;
  hunt->quiet = true;
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES && !found; i++) {
    glob_t files;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s*%s", PLACES[i][0], PLACES[i][1]);
    if (glob(pattern, 0, NULL, &files) == 0)
      for (size_t k = 0; k < files.gl_pathc && !found; k++)
        found = try_file(hunt, files.gl_pathv[k]);
    globfree(&files);
  }
  hunt->quiet = false;
  return found;
}

static bool try_installed(struct mic_hunt *hunt) {
  return try_release(hunt, "") || try_any_release(hunt);
}

/* The names of the kernel that runs here, when it is the one, at the same addresses. */
static bool try_running(struct mic_finder *f, const struct mic_wanted *wanted,
                        struct mic_found *out) {
  const char *problem;
  struct mic_kernel_text text = {
    wanted->build_id, wanted->build_id_size, f->kernel_symbol, f->kernel_address, "",
  };
  struct mic_kernel_names *names = mic_kernel_names_open(&text, &problem);
  if (names) *out = (struct mic_found){.fd = -1, .kernel = names, .label = "/proc/kallsyms"};
  return names != NULL;
}

bool mic_finder_kernel(struct mic_finder *f, const struct mic_wanted *wanted,
                       struct mic_found *out) {
  struct mic_hunt hunt = {.finder = f,
                          .wanted = wanted,
                          .try_file = try_file,
                          .try_folder = try_release,
                          .try_installed = try_installed};
  if (wanted->build_id_size == 0) {
    mic_problem_add(f->problem, "the recording does not tell the kernel's build ID");
    return false;
  }
  if (!*f->kernel_symbol) {
    mic_problem_add(f->problem, "the recording does not tell where the kernel was");
    return false;
  }
  if (mic_hunt_find(&hunt, out) || try_running(f, wanted, out)) return true;
  mic_problem_add(f->problem, "no vmlinux with its build ID was found");
  return false;
}
