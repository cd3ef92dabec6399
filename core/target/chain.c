/* chain.c - frames of stacks that the kernel walked: each address in the mapping it was in. */
#include "target/made.h"
#include "target/tracker.h"
#include "unwind/code.h"

/* An address without an image, as the unwinder makes them. */
static struct mic_frame plain_frame(uint64_t address, const struct mic_mapping *mapping) {
  return (struct mic_frame){
    .address = address,
    .offset = address,
    .module = MIC_NONE,
    .kind = mapping ? MIC_LOCATION_ANON : MIC_LOCATION_UNMAPPED,
  };
}

/* Where no ELF header tells where the file's bytes belong, the place in the file is what is known.
 */
static struct mic_frame by_file(struct mic_frame frame, const struct mic_mapping *mapping) {
  frame.kind = MIC_LOCATION_FILE;
  frame.offset = frame.address - mapping->code.start + mapping->file_offset;
  return frame;
}

/* A caller's address is a return address: one below it is inside the call. */
static void push_kernel(struct mic_target *target, const uint64_t *addresses, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t address = i ? addresses[i] - 1 : addresses[i];
    const struct mic_mapping *mapping = mic_code_space_find(&target->kernel_maps, address);
    struct mic_frame frame = plain_frame(address, NULL);
    if (mapping && mapping->image) {
      frame.kind = MIC_LOCATION_NATIVE;
      frame.module = mapping->image->module;
      frame.offset = address - mapping->code.bias; /* 0 but for what is loaded */
    }
    *mic_vec_push(&target->chain) = frame;
  }
}

static struct mic_image *made_image(struct mic_target *target, struct mic_process *process) {
  const struct mic_target_options *options = &target->options;
  if (process->made_asked || !options->open_made) return process->made;
  process->made_asked = true;
  struct mic_made_process asked = {process->pid, process->began, process->program_ns};
  char *path = NULL;
  struct mic_made_code *code = options->open_made(options->made_data, &asked, &path);
  if (code) {
    struct mic_target_map map = {.path = path};
    process->made = mic_images_plain(&target->images, MIC_MODULE_MADE, &map);
    process->made->made = code;
    process->made->names_from = process->made->path;
  }
  free(path);
  return process->made;
}

/* A frame in anonymous memory, in the code that the process said it made there. */
static struct mic_frame made_frame(struct mic_target *target, struct mic_process *process,
                                   struct mic_frame frame) {
  struct mic_image *image = made_image(target, process);
  const char *name;
  enum mic_made made =
    image ? mic_made_code_find(image->made, frame.address, &name) : MIC_MADE_NONE;
  if (made == MIC_MADE_NONE) return frame;
  if (made == MIC_MADE_AMBIGUOUS)
    image->problem = "the perf map has several names for an address, and not which one it had when";
  frame.kind = MIC_LOCATION_NATIVE;
  frame.module = image->module;
  return frame;
}

static struct mic_frame user_frame(struct mic_target *target, struct mic_process *process,
                                   uint64_t address, bool is_return) {
  /* The kernel gives the address that a signal's handler returns to as any other: the trampoline,
   * which is entered and not called. */
  const struct mic_mapping *mapping = mic_code_space_find(&process->maps, address);
  if (is_return && mapping && mapping->image && mapping->image->elf &&
      mic_code_is_sigreturn(mapping->image->elf, address - mapping->code.bias, false)) {
    struct mic_frame frame = plain_frame(address, mapping);
    frame.kind = MIC_LOCATION_SIGNAL;
    frame.offset = address - mapping->code.bias;
    frame.module = mapping->image->module;
    return frame;
  }
  if (is_return) mapping = mic_code_space_find(&process->maps, --address);
  struct mic_frame frame = plain_frame(address, mapping);
  if (mapping && !mapping->image) return made_frame(target, process, frame);
  if (!mapping) return frame;
  frame.module = mapping->image->module;
  if (mapping->code.kind != MIC_CODE_IMAGE) return by_file(frame, mapping);
  frame.kind = MIC_LOCATION_NATIVE;
  frame.offset = address - mapping->code.bias;
  return frame;
}

/* The code at the outermost address may prove that nothing called it. */
static enum mic_end end_of(const struct mic_process *process, uint64_t address, enum mic_end end) {
  const struct mic_mapping *mapping = mic_code_space_find(&process->maps, address);
  if (mapping && mapping->image && mapping->image->elf &&
      mic_code_is_entry(mapping->image->elf, address - mapping->code.bias))
    return MIC_END_ENTRY;
  return end;
}

/* A frame as the unwinder has it: in a file that could not be opened, by its place in the file; in
 * code that the process made, by that. */
static struct mic_frame unwound_frame(struct mic_target *target, struct mic_process *process,
                                      struct mic_frame frame) {
  if (frame.kind == MIC_LOCATION_ANON) return made_frame(target, process, frame);
  if (frame.kind != MIC_LOCATION_NATIVE) return frame;
  const struct mic_mapping *mapping = mic_code_space_find(&process->maps, frame.address);
  if (!mapping || mapping->code.kind != MIC_CODE_NO_IMAGE) return frame;
  return by_file(frame, mapping);
}

enum mic_end mic_target_chain_frames(struct mic_target *target, struct mic_process *process,
                                     const struct mic_target_chain *chain, enum mic_end end,
                                     const struct mic_frame **frames, size_t *count) {
  target->chain.count = 0;
  push_kernel(target, chain->kernel, chain->kernel_count);
  if (chain->unwind) {
    for (size_t i = 0; i < *count; i++)
      *mic_vec_push(&target->chain) = unwound_frame(target, process, (*frames)[i]);
  } else {
    for (uint32_t i = 0; i < chain->user_count; i++) {
      struct mic_frame frame = user_frame(target, process, chain->user[i], i > 0);
      frame.evidence = i == 0             ? MIC_EVIDENCE_CFI
                       : chain->processor ? MIC_EVIDENCE_PROCESSOR
                                          : MIC_EVIDENCE_FRAME_POINTER;
      *mic_vec_push(&target->chain) = frame;
    }
    end = chain->end;
    if (chain->user_count) end = end_of(process, chain->user[chain->user_count - 1], end);
  }
  *frames = target->chain.at;
  *count = target->chain.count;
  return end;
}
