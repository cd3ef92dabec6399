/*
 * image.h - the images behind mappings: opened when the mapping is seen, kept as the proof of
 * what ran.
 *
 * An image is one version of one file.  While its descriptor is held its inode cannot be given to
 * another file; a file that was rewritten in place (other size or modification time) is another
 * image.
 *
 * Owns:    images own their images, descriptors, ELF mappings and tables.
 * Threads: opened by the target's thread; the naming thread reads fd, memory, path and root, which
 *          never change, and alone writes names_problem.
 */
#ifndef MIC_TARGET_IMAGE_H
#define MIC_TARGET_IMAGE_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/map.h"
#include "target/target.h"
#include "unwind/table.h"

struct mic_image {
  uint32_t module;    /* its row in `modules` */
  uint8_t kind;       /* enum mic_module_kind */
  int fd;             /* -1 for the vDSO and for what could not be opened */
  const void *memory; /* the vDSO */
  size_t memory_size;
  struct mic_elf *elf;     /* NULL when it is no ELF image or could not be opened */
  struct mic_table *table; /* NULL without elf */
  char *path;              /* in the target's own view */
  char *root;              /* "/proc/PID/root" of the process that first mapped it */
  const char *problem;     /* why it has no table or was not proven; NULL: none */
  uint8_t build_id[20];    /* as others state it, where there is no elf to ask */
  uint32_t build_id_size;  /* 0: nobody does */
  /* Names instead of elf's: of the kernel's code, borrowed; of code that a process made, owned; of
   * a BPF program, which is one function, its path.  NULL: there are none. */
  struct mic_kernel_names *kernel;
  struct mic_made_code *made;
  const char *function;
  const char *names_from;    /* what such names are from; static, or the path; NULL: none */
  uint32_t locations, named; /* in it; named by the naming thread */
  char *names_problem;       /* why names are missing; the naming thread's */
  char *names_debug;         /* the separate debug file that names came from; the naming thread's */
  uint64_t inode;            /* as the mapping has it; 0: not known */
  int64_t size;              /* of fd, when opened */
  struct timespec changed;
  uint32_t next; /* another image of the same device and inode, or MIC_NONE */
};

struct mic_images {
  MIC_VEC(struct mic_image *) all; /* index: module */
  struct mic_map by_inode;         /* (device, inode) -> newest image */
  struct mic_image *vdso, *vsyscall;
  const struct mic_target_options *options; /* borrowed */
};

void mic_images_free(struct mic_images *images);
/* The image of a file mapping or of a special one; NULL for anonymous memory. */
struct mic_image *mic_images_find(struct mic_images *images, const struct mic_target_map *map);
/* One of which no file is opened: the kernel (MIC_MODULE_KERNEL), what it loaded, or what a process
 * made.  Its names are for the caller to set. */
struct mic_image *mic_images_plain(struct mic_images *images, uint8_t kind,
                                   const struct mic_target_map *map);
/* What the unwinder needs to know of the mapping: kind, table and bias. */
/* No byte of its file was written since it was opened. */
bool mic_image_unchanged(const struct mic_image *image);
void mic_image_code(const struct mic_image *image, const struct mic_target_map *map,
                    struct mic_code *code);
void mic_images_write(const struct mic_images *images, struct mic_writer *writer);
/* What naming gave for the images that have locations, or that it was left for later. */
void mic_images_write_naming(const struct mic_images *images, struct mic_writer *writer,
                             bool later);
/* Keep the parts of images that names and unwinding need in the capture: of all that have
 * locations, or of the vDSO alone, which no file holds.  Each build ID is kept once. */
void mic_images_keep(const struct mic_images *images, struct mic_writer *writer, bool all);
size_t mic_images_memory(const struct mic_images *images);

#endif
