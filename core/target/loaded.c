/* loaded.c - the kernel's code over time: itself, its modules, BPF programs. */
#include <string.h>

#include "target/tracker.h"

static void put(struct mic_target *target, const struct mic_target_map *map,
                struct mic_image *image) {
  struct mic_mapping mapping = {.image = image};
  mic_image_code(image, map, &mapping.code);
  /* What is loaded has offsets of its own, as it lies elsewhere each time. */
  if (image && image->kind == MIC_MODULE_LOADED) mapping.code.bias = map->address;
  target->ended.count = 0;
  mic_code_space_insert(&target->kernel_maps, &mapping, &target->ended);
}

void mic_target_kernel(struct mic_target *target, uint8_t kind, const struct mic_target_map *map,
                       struct mic_kernel_names *names, const char *problem) {
  struct mic_image *image = mic_images_plain(&target->images, kind, map);
  image->kernel = names;
  image->problem = problem;
  if (names) image->names_from = "/proc/kallsyms";
  put(target, map, image);
}

/* A program that is loaded again is the same one: its name has a tag of its instructions
 * (kernel/bpf/core.c, bpf_prog_calc_tag). */
void mic_target_loaded(struct mic_target *target, const struct mic_target_map *map) {
  uint32_t name = mic_writer_text(target->writer, map->path);
  uint32_t known = mic_map_get(&target->loaded, name, map->size);
  struct mic_image *image = known == MIC_NONE ? NULL : target->images.all.at[known];
  if (!image) {
    image = mic_images_plain(&target->images, MIC_MODULE_LOADED, map);
    image->function = image->path;
    image->names_from = "the recording";
    mic_map_put(&target->loaded, name, map->size, image->module);
  }
  put(target, map, image);
}

void mic_target_unloaded(struct mic_target *target, const struct mic_target_map *map) {
  put(target, map, NULL);
}
