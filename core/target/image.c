/* image.c - open, prove and keep the images behind mappings. */
#include "target/image.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/build_id.h"
#include "process/image_file.h"
#include "process/memory.h"
#include "target/made.h"

enum { PAGE = 4096 };

/* One page at this address in every process (arch/x86/entry/vsyscall). */
#define VSYSCALL_ADDRESS 0xffffffffff600000ULL

static struct mic_image *add_image(struct mic_images *images, uint8_t kind, const char *path) {
  struct mic_image *image = mic_alloc(sizeof *image);
  image->module = (uint32_t)images->all.count;
  image->kind = kind;
  image->fd = -1;
  image->path = mic_strndup(path, strlen(path));
  image->next = MIC_NONE;
  *mic_vec_push(&images->all) = image;
  return image;
}

static void free_image(struct mic_image *image) {
  mic_table_free(image->table);
  mic_elf_close(image->elf);
  if (image->fd >= 0) close(image->fd);
  mic_made_code_free(image->made);
  free(image->path);
  free(image->root);
  free(image->names_problem);
  free(image->names_debug);
  free(image);
}

void mic_images_free(struct mic_images *images) {
  for (size_t i = 0; i < images->all.count; i++) free_image(images->all.at[i]);
  mic_vec_free(&images->all);
  mic_map_free(&images->by_inode);
}

static void make_table(struct mic_image *image) {
  struct mic_error err = {0};
  if (mic_table_new(image->elf, &image->table, &err) == 0) return;
  image->table = NULL;
  image->problem = "its unwind information could not be read";
}

static void read_own_vdso(struct mic_image *image, struct mic_error *err) {
  image->memory = mic_elf_own_vdso(&image->memory_size);
  if (image->memory)
    mic_elf_open_memory(image->memory, image->memory_size, image->path, &image->elf, err);
}

static void state_build_id(struct mic_image *image, const struct mic_target_map *map) {
  if (!map->build_id || map->build_id_size > sizeof image->build_id) return;
  memcpy(image->build_id, map->build_id, map->build_id_size);
  image->build_id_size = map->build_id_size;
}

static struct mic_image *vdso_image(struct mic_images *images, const struct mic_target_map *map) {
  if (images->vdso) return images->vdso;
  const struct mic_target_options *options = images->options;
  struct mic_image *image = images->vdso = add_image(images, MIC_MODULE_VDSO, "[vdso]");
  struct mic_error err = {0};
  state_build_id(image, map);
  if (options->open_image)
    image->fd = options->open_image(options->open_data, map, &image->problem);
  if (image->fd >= 0)
    mic_elf_open(image->fd, image->path, &image->elf, &err);
  else if (!image->problem)
    read_own_vdso(image, &err);
  if (image->elf)
    make_table(image);
  else if (!image->problem)
    image->problem = "the vDSO could not be read";
  return image;
}

/* Whether the mapping's first page is what the file holds there: what shows that a file with the
 * right inode number on a device that cannot be compared is the mapped one. */
static bool same_text(int fd, const struct mic_target_map *map) {
  uint8_t ours[PAGE], theirs[PAGE];
  size_t want = map->size < PAGE ? map->size : PAGE, got = 0;
  ssize_t have = pread(fd, ours, want, (off_t)map->file_offset);
  if (have <= 0) return false;
  if (mic_memory_read(map->pid, map->address, theirs, (size_t)have, &got, NULL) != 0) return false;
  return got == (size_t)have && memcmp(ours, theirs, got) == 0;
}

int mic_target_open_mapped(const struct mic_target_map *map, const char **problem) {
  struct mic_mapped mapped = {
    .pid = map->pid,
    .start = map->address,
    .end = map->address + map->size,
    .maj = map->maj,
    .min = map->min,
    .inode = map->inode,
    .generation = map->generation,
    .path = map->path,
  };
  struct mic_image_file file;
  if (!mic_image_file_open(&mapped, &file)) {
    *problem = mic_no_file_text(file.reason);
    return -1;
  }
  if (file.proof != MIC_PROOF_INODE || same_text(file.fd, map)) return file.fd;
  *problem = "the file at its path could not be proven to be the mapped one";
  mic_image_file_close(&file);
  return -1;
}

static uint64_t device_of(const struct mic_target_map *map) {
  return (uint64_t)map->maj << 32 | map->min;
}

/* Held descriptors keep inode numbers from being used again; a rewrite in place shows here. */
bool mic_image_unchanged(const struct mic_image *image) {
  struct stat now;
  return image->fd >= 0 && fstat(image->fd, &now) == 0 && now.st_size == image->size &&
         now.st_mtim.tv_sec == image->changed.tv_sec &&
         now.st_mtim.tv_nsec == image->changed.tv_nsec;
}

static struct mic_image *known_file(const struct mic_images *images,
                                    const struct mic_target_map *map) {
  uint32_t id = mic_map_get(&images->by_inode, device_of(map), map->inode);
  for (; id != MIC_NONE; id = images->all.at[id]->next)
    if (mic_image_unchanged(images->all.at[id])) return images->all.at[id];
  return NULL;
}

/* One that could not be opened, so that a second attempt that fails too adds no second row. */
static struct mic_image *known_missing(const struct mic_images *images,
                                       const struct mic_target_map *map) {
  uint32_t id = mic_map_get(&images->by_inode, device_of(map), map->inode);
  for (; id != MIC_NONE; id = images->all.at[id]->next)
    if (images->all.at[id]->fd < 0 && strcmp(images->all.at[id]->path, map->path) == 0)
      return images->all.at[id];
  return NULL;
}

/* The kernel marks the path of a file that has no name left; the mark is not part of the path. */
static void strip_deleted(struct mic_image *image) {
  static const char mark[] = " (deleted)";
  size_t size = strlen(image->path), mark_size = sizeof mark - 1;
  if (size > mark_size && strcmp(image->path + size - mark_size, mark) == 0)
    image->path[size - mark_size] = '\0';
}

static void note_file(struct mic_image *image) {
  struct stat st;
  if (fstat(image->fd, &st) != 0) return;
  image->inode = st.st_ino;
  image->size = st.st_size;
  image->changed = st.st_mtim;
  if (st.st_nlink == 0) strip_deleted(image);
}

static struct mic_image *file_image(struct mic_images *images, const struct mic_target_map *map) {
  struct mic_image *image = known_file(images, map);
  if (image) return image;
  const char *problem = NULL;
  const struct mic_target_options *options = images->options;
  int fd = options->open_image ? options->open_image(options->open_data, map, &problem)
                               : mic_target_open_mapped(map, &problem);
  if (fd < 0 && (image = known_missing(images, map))) return image;
  image = add_image(images, MIC_MODULE_OTHER, map->path);
  image->next = mic_map_get(&images->by_inode, device_of(map), map->inode);
  mic_map_put(&images->by_inode, device_of(map), map->inode, image->module);
  image->fd = fd;
  image->problem = problem;
  image->inode = map->made_inode ? 0 : map->inode;
  state_build_id(image, map);
  if (fd < 0) return image;
  char root[64] = "";
  if (!options->elsewhere) snprintf(root, sizeof root, "/proc/%u/root", map->pid);
  image->root = mic_strndup(root, strlen(root));
  struct mic_error err = {0};
  note_file(image);
  if (mic_elf_open(fd, image->path, &image->elf, &err) != 0) {
    image->problem = "not an x86-64 ELF image";
    return image;
  }
  image->kind = MIC_MODULE_ELF;
  make_table(image);
  return image;
}

static bool is_anonymous(const struct mic_target_map *map) {
  /* Shared anonymous memory has an inode of the kernel's own (mm/shmem.c, shmem_zero_setup). */
  return map->inode == 0 || strncmp(map->path, "/dev/zero", 9) == 0 ||
         strncmp(map->path, "/anon_hugepage", 14) == 0 || strncmp(map->path, "/SYSV", 5) == 0 ||
         strncmp(map->path, "anon_inode:", 11) == 0;
}

struct mic_image *mic_images_find(struct mic_images *images, const struct mic_target_map *map) {
  if (strcmp(map->path, "[vdso]") == 0) return vdso_image(images, map);
  if (strcmp(map->path, "[vsyscall]") == 0 || map->address == VSYSCALL_ADDRESS) {
    if (!images->vsyscall) images->vsyscall = add_image(images, MIC_MODULE_VSYSCALL, "[vsyscall]");
    return images->vsyscall;
  }
  return is_anonymous(map) ? NULL : file_image(images, map);
}

struct mic_image *mic_images_plain(struct mic_images *images, uint8_t kind,
                                   const struct mic_target_map *map) {
  struct mic_image *image = add_image(images, kind, map->path);
  state_build_id(image, map);
  return image;
}

/* The segment that a mapping shows: of those whose pages hold the file offset an executable one,
 * and of several of these (small ones share a page of the file) the one the address fits. */
static const struct mic_elf_segment *segment_of(const struct mic_elf *elf,
                                                const struct mic_target_map *map) {
  size_t count;
  const struct mic_elf_segment *all = mic_elf_segments(elf, &count), *best = NULL;
  int best_score = -1;
  for (size_t i = 0; i < count; i++) {
    uint64_t from = all[i].offset & ~(uint64_t)(PAGE - 1);
    if (map->file_offset < from || map->file_offset >= all[i].offset + all[i].file_size) continue;
    uint64_t vaddr = (all[i].vaddr & ~(uint64_t)(PAGE - 1)) + (map->file_offset - from);
    bool in_place = mic_elf_type(elf) == ET_EXEC && vaddr == map->address;
    int score = (all[i].flags & PF_X ? 2 : 0) + (in_place ? 1 : 0);
    if (score <= best_score) continue;
    best = &all[i];
    best_score = score;
  }
  return best;
}

void mic_image_code(const struct mic_image *image, const struct mic_target_map *map,
                    struct mic_code *code) {
  *code = (struct mic_code){
    .start = map->address,
    .end = map->address + map->size < map->address ? UINT64_MAX : map->address + map->size,
    .module = image ? image->module : MIC_NONE,
    .kind = image ? MIC_CODE_NO_IMAGE : MIC_CODE_ANON,
  };
  if (!image) return;
  if (image->kind == MIC_MODULE_VSYSCALL) code->kind = MIC_CODE_VSYSCALL;
  if (!image->elf || !image->table) return;
  const struct mic_elf_segment *segment = segment_of(image->elf, map);
  uint64_t vaddr;
  size_t count;
  mic_elf_segments(image->elf, &count);
  if (segment)
    vaddr = segment->vaddr - segment->offset + map->file_offset;
  else if (count || !mic_elf_vaddr_of_offset(image->elf, map->file_offset, PF_X, &vaddr))
    return;
  code->kind = MIC_CODE_IMAGE;
  code->table = image->table;
  code->bias = map->address - vaddr;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

static uint32_t write_build_id(struct mic_writer *writer, const struct mic_image *image) {
  const uint8_t *bytes = image->build_id;
  size_t size = image->elf ? mic_elf_build_id(image->elf, &bytes) : image->build_id_size;
  char hex[MIC_BUILD_ID_TEXT];
  mic_build_id_text(bytes, size, hex);
  return mic_writer_text(writer, hex);
}

void mic_images_write(const struct mic_images *images, struct mic_writer *writer) {
  for (size_t i = 0; i < images->all.count; i++) {
    const struct mic_image *image = images->all.at[i];
    const char *problem = image->problem ? image->problem : image->names_problem;
    /* Of files that were only mapped, on another day, nothing is missing. */
    if (images->options->elsewhere && !image->locations) problem = NULL;
    struct mic_modules_row row = {
      .kind = image->kind,
      .path = mic_writer_text(writer, image->path),
      .name = mic_writer_text(writer, last_part(image->path)),
      .build_id = write_build_id(writer, image),
      .problem = mic_writer_text(writer, problem),
      .inode = image->inode,
      .size = image->fd >= 0 ? (uint64_t)image->size : image->memory_size,
    };
    mic_writer_modules(writer, &row);
  }
}

/* A build ID proves a file later, and what was kept needs no proof. */
static bool stays_nameless(const struct mic_images *images, const struct mic_image *image) {
  const struct mic_target_options *options = images->options;
  if (options->elsewhere || options->keep_images || !image->elf) return false;
  const uint8_t *bytes;
  return image->kind != MIC_MODULE_VDSO && mic_elf_build_id(image->elf, &bytes) == 0;
}

void mic_images_write_naming(const struct mic_images *images, struct mic_writer *writer,
                             bool later) {
  for (size_t i = 0; i < images->all.count; i++) {
    const struct mic_image *image = images->all.at[i];
    if (image->locations == 0) continue;
    const char *problem = image->names_problem;
    if (later && stays_nameless(images, image))
      problem = "it has no build ID: only record --keep-images lets symbolize name it";
    struct mic_naming_row row = {
      .module = image->module,
      .state = later ? MIC_NAMING_LATER : MIC_NAMING_DONE,
      .image = mic_writer_text(writer, later        ? ""
                                       : image->elf ? image->path
                                                    : image->names_from),
      .debug = mic_writer_text(writer, image->names_debug),
      .named = image->named,
      .unnamed = image->locations - image->named,
      .problem = mic_writer_text(writer, problem),
    };
    mic_writer_naming(writer, &row);
  }
}

size_t mic_images_memory(const struct mic_images *images) {
  size_t total = 0;
  for (size_t i = 0; i < images->all.count; i++)
    if (images->all.at[i]->table) total += mic_table_memory(images->all.at[i]->table);
  return total;
}
