/* target.c - processes and threads over time, and the samples taken of them. */
#include "target/target.h"

#include <elf.h>
#include <string.h>

#include "image/elf.h"
#include "target/tracker.h"

static void ask_name(void *data, uint32_t location, const struct mic_frame *frame) {
  struct mic_target *target = data;
  if (frame->module == MIC_NONE || frame->module >= target->images.all.count) return;
  struct mic_image *image = target->images.all.at[frame->module];
  image->locations++;
  bool has_names = image->elf || image->kernel || image->made || image->function;
  uint64_t vaddr = frame->offset;
  if (!has_names || !target->names) return;
  /* A place in the file, where its mapping was not understood. */
  if (frame->kind == MIC_LOCATION_FILE &&
      (!image->elf || !mic_elf_vaddr_of_offset(image->elf, vaddr, PF_X, &vaddr)))
    return;
  mic_names_ask(target->names, location, image, vaddr);
}

struct mic_target *mic_target_new(const struct mic_target_options *options) {
  struct mic_target *target = mic_alloc(sizeof *target);
  target->options = *options;
  target->writer = options->writer;
  target->images.options = &target->options;
  target->stacks.writer = options->writer;
  target->stacks.on_location = ask_name;
  target->stacks.data = target;
  if (!options->names_later) target->names = mic_names_new();
  target->unwinder = mic_unwinder_new();
  return target;
}

void mic_target_free(struct mic_target *target) {
  if (!target) return;
  mic_names_free(target->names);
  mic_unwinder_free(target->unwinder);
  for (size_t i = 0; i < target->processes.count; i++) {
    mic_code_space_clear(&target->processes.at[i]->maps);
    free(target->processes.at[i]);
  }
  mic_vec_free(&target->processes);
  for (size_t i = 0; i < target->threads.count; i++) {
    mic_stack_memory_free(&target->threads.at[i]->memory);
    free(target->threads.at[i]);
  }
  mic_vec_free(&target->threads);
  for (size_t i = 0; i < target->reads.count; i++) mic_pending_read_free(&target->reads.at[i]);
  mic_vec_free(&target->reads);
  mic_id_map_free(&target->by_pid);
  mic_id_map_free(&target->by_tid);
  mic_map_free(&target->problems);
  mic_map_free(&target->loaded);
  mic_vec_free(&target->problem_rows);
  mic_vec_free(&target->ended);
  mic_code_space_clear(&target->kernel_maps);
  mic_vec_free(&target->chain);
  mic_stacks_free(&target->stacks);
  mic_images_free(&target->images);
  free(target);
}

uint64_t mic_target_relative(const struct mic_target *target, uint64_t time_ns) {
  return time_ns > target->options.start_ns ? time_ns - target->options.start_ns : 0;
}

void mic_target_start(struct mic_target *target, uint64_t start_ns) {
  target->options.start_ns = start_ns;
}

void mic_target_problem(struct mic_target *target, const char *text, uint64_t count) {
  uint32_t id = mic_writer_text(target->writer, text);
  bool added;
  uint32_t at =
    mic_map_intern(&target->problems, id, 0, (uint32_t)target->problem_rows.count, &added);
  if (added) *mic_vec_push(&target->problem_rows) = (struct mic_problems_row){.text = id};
  target->problem_rows.at[at].count += count;
}

static struct mic_process *add_process(struct mic_target *target, uint64_t time_ns, uint32_t pid) {
  struct mic_process *process = mic_alloc(sizeof *process);
  process->id = (uint32_t)target->processes.count;
  process->pid = pid;
  process->parent = MIC_NONE;
  process->name = process->cgroup = mic_writer_text(target->writer, "");
  process->start_ns = mic_target_relative(target, time_ns);
  process->end_ns = UINT64_MAX;
  process->maps.generation = ++target->generation;
  *mic_vec_push(&target->processes) = process;
  mic_id_map_put(&target->by_pid, pid, process->id);
  return process;
}

static struct mic_thread *add_thread(struct mic_target *target, uint64_t time_ns,
                                     struct mic_process *process, uint32_t tid) {
  struct mic_thread *thread = mic_alloc(sizeof *thread);
  thread->id = (uint32_t)target->threads.count;
  thread->tid = tid;
  thread->process = process->id;
  thread->name = mic_writer_text(target->writer, "");
  thread->start_ns = mic_target_relative(target, time_ns);
  thread->end_ns = UINT64_MAX;
  *mic_vec_push(&target->threads) = thread;
  mic_id_map_put(&target->by_tid, tid, thread->id);
  thread->link = &process->live;
  thread->next = process->live;
  if (thread->next) thread->next->link = &thread->next;
  process->live = thread;
  return thread;
}

static struct mic_process *find_process(const struct mic_target *target, uint32_t pid) {
  uint32_t id = mic_id_map_get(&target->by_pid, pid);
  return id == MIC_NONE ? NULL : target->processes.at[id];
}

/* A process that no record announced, as after a loss, begins when it is first seen; its mappings
 * are read, as their records may be lost too. */
struct mic_process *mic_target_process(struct mic_target *target, uint64_t time_ns, uint32_t pid) {
  struct mic_process *process = find_process(target, pid);
  if (process) return process;
  process = add_process(target, time_ns, pid);
  if (target->lost) mic_target_read_later(target, process);
  return process;
}

static void end_thread(struct mic_target *target, uint64_t time_ns, struct mic_thread *thread) {
  thread->end_ns = mic_target_relative(target, time_ns);
  *thread->link = thread->next;
  if (thread->next) thread->next->link = thread->link;
  mic_stack_memory_free(&thread->memory);
  if (mic_id_map_get(&target->by_tid, thread->tid) == thread->id)
    mic_id_map_remove(&target->by_tid, thread->tid);
}

static void end_process(struct mic_target *target, uint64_t time_ns, struct mic_process *process) {
  while (process->live) end_thread(target, time_ns, process->live);
  process->end_ns = mic_target_relative(target, time_ns);
  mic_target_write_space(target, process, process->end_ns);
  mic_code_space_clear(&process->maps);
  if (mic_id_map_get(&target->by_pid, process->pid) == process->id)
    mic_id_map_remove(&target->by_pid, process->pid);
}

struct mic_thread *mic_target_thread(struct mic_target *target, uint64_t time_ns, uint32_t pid,
                                     uint32_t tid) {
  uint32_t id = mic_id_map_get(&target->by_tid, tid);
  struct mic_process *process = mic_target_process(target, time_ns, pid);
  if (id != MIC_NONE) {
    struct mic_thread *known = target->threads.at[id];
    if (known->process == process->id) return known;
    /* Its exit was lost, its id is used again; with its last thread a process is over too. */
    end_thread(target, time_ns, known);
    struct mic_process *old = target->processes.at[known->process];
    if (!old->live) end_process(target, time_ns, old);
  }
  return add_thread(target, time_ns, process, tid);
}

void mic_target_rename(struct mic_target *target, struct mic_thread *thread, uint64_t time_ns,
                       const char *name) {
  uint32_t text = mic_writer_text(target->writer, name);
  if (thread->name == text) return;
  thread->name = text;
  struct mic_process *process = target->processes.at[thread->process];
  if (thread->tid == process->pid) process->name = text;
  struct mic_thread_names_row row = {
    .thread = thread->id,
    .name = text,
    .time_ns = mic_target_relative(target, time_ns),
  };
  mic_writer_thread_names(target->writer, &row);
}

/* A thread and a process begin with the name of who made them. */
static void inherit_name(struct mic_target *target, struct mic_thread *thread, uint64_t time_ns,
                         uint32_t parent_tid) {
  uint32_t id = mic_id_map_get(&target->by_tid, parent_tid);
  if (id == MIC_NONE) return;
  thread->name = target->threads.at[id]->name;
  struct mic_process *process = target->processes.at[thread->process];
  if (thread->tid == process->pid) process->name = thread->name;
  struct mic_thread_names_row row = {
    .thread = thread->id,
    .name = thread->name,
    .time_ns = mic_target_relative(target, time_ns),
  };
  mic_writer_thread_names(target->writer, &row);
}

void mic_target_fork(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid,
                     uint32_t parent_pid, uint32_t parent_tid) {
  struct mic_process *process;
  if (pid == parent_pid) {
    process = mic_target_process(target, time_ns, pid);
    /* A read of /proc can have seen the thread before its record came. */
    uint32_t known = mic_id_map_get(&target->by_tid, tid);
    if (known != MIC_NONE && target->threads.at[known]->process == process->id) return;
  } else {
    struct mic_process *parent = mic_target_process(target, time_ns, parent_pid);
    struct mic_process *old = find_process(target, pid);
    if (old) end_process(target, time_ns, old); /* its exit was lost, its id reused */
    process = add_process(target, time_ns, pid);
    process->parent = parent->id;
    process->began = true;
    process->program_ns = process->start_ns;
    process->cgroup = parent->cgroup;
    process->ns_pid = parent->ns_pid == parent->pid ? pid : 0;
    /* The same code at the same addresses: what was found for the parent holds. */
    mic_code_space_copy(&process->maps, &parent->maps, process->start_ns);
    process->maps.generation = parent->maps.generation;
  }
  struct mic_thread *thread = mic_target_thread(target, time_ns, pid, tid);
  inherit_name(target, thread, time_ns, parent_tid);
}

/* exec leaves one thread, under the process's id, and none of the mappings. */
static void exec(struct mic_target *target, uint64_t time_ns, struct mic_process *process) {
  uint64_t at = mic_target_relative(target, time_ns);
  process->began = true;
  process->program_ns = at;
  mic_target_write_space(target, process, at);
  mic_code_space_clear(&process->maps);
  process->maps.generation = ++target->generation;
  for (struct mic_thread *thread = process->live, *next; thread; thread = next) {
    next = thread->next;
    if (thread->tid != process->pid) end_thread(target, time_ns, thread);
  }
  if (process->exec_ns) mic_target_write_exec(target, process, process->exec_ns, NULL);
  process->exec_ns = time_ns;
}

void mic_target_name(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid,
                     const char *name, bool is_exec) {
  struct mic_thread *thread = mic_target_thread(target, time_ns, pid, tid);
  if (is_exec) exec(target, time_ns, target->processes.at[thread->process]);
  mic_target_rename(target, thread, time_ns, name);
}

/* A program that runs with other rights than its caller's, or that its caller may not read, takes
 * the events off as it starts (fs/exec.c, begin_new_exec: perf_event_exit_task): records end after
 * the exec's name, before the first mapping. */
static void note_withdrawn(struct mic_target *target, struct mic_process *process) {
  if (!process->exec_ns || target->lost) return;
  mic_target_problem(target,
                     "the records of a process end at its exec: the kernel shows set-user-ID, "
                     "set-group-ID and unreadable programs to no one without privilege",
                     1);
}

void mic_target_exit(struct mic_target *target, uint64_t time_ns, uint32_t pid, uint32_t tid) {
  uint32_t id = mic_id_map_get(&target->by_tid, tid);
  if (id == MIC_NONE) return;
  struct mic_thread *thread = target->threads.at[id];
  struct mic_process *process = target->processes.at[thread->process];
  if (process->pid != pid) return;
  end_thread(target, time_ns, thread);
  if (process->live) return;
  note_withdrawn(target, process);
  end_process(target, time_ns, process);
}

void mic_target_map_into(struct mic_target *target, struct mic_process *process,
                         const struct mic_target_map *map) {
  struct mic_image *image = mic_images_find(&target->images, map);
  struct mic_mapping mapping = {
    .image = image,
    .file_offset = map->file_offset,
    .start_ns = mic_target_relative(target, map->time_ns),
  };
  mic_image_code(image, map, &mapping.code);
  target->ended.count = 0;
  if (!mic_code_space_insert(&process->maps, &mapping, &target->ended)) return;
  process->maps.generation = ++target->generation;
  mic_target_write_mappings(target, process, &target->ended, mapping.start_ns);
}

void mic_target_map(struct mic_target *target, const struct mic_target_map *map) {
  struct mic_process *process = mic_target_process(target, map->time_ns, map->pid);
  /* The first file that exec maps is the program (fs/binfmt_elf.c, load_elf_binary). */
  if (process->exec_ns && map->inode) {
    mic_target_write_exec(target, process, process->exec_ns, map->path);
    process->exec_ns = 0;
  }
  mic_target_map_into(target, process, map);
}

void mic_target_foresee(struct mic_target *target, const struct mic_target_map *map) {
  mic_images_find(&target->images, map);
}

static const struct mic_code *find_code(void *data, uint64_t address) {
  const struct mic_mapping *mapping = mic_code_space_find(data, address);
  return mapping ? &mapping->code : NULL;
}

void mic_target_sample(struct mic_target *target, const struct mic_target_sample *sample) {
  struct mic_thread *thread = mic_target_thread(target, sample->time_ns, sample->pid, sample->tid);
  struct mic_process *process = target->processes.at[thread->process];
  const struct mic_frame *frames = NULL;
  size_t count = 0;
  enum mic_end end = sample->fault;
  struct mic_space space = {find_code, &process->maps, process->maps.generation};
  if (end == MIC_END_NONE)
    end =
      mic_unwind_sample(target->unwinder, &space, &sample->regs, &sample->stack, &frames, &count);
  if (target->options.on_stack) {
    const struct mic_space *used = sample->fault == MIC_END_NONE ? &space : NULL;
    struct mic_target_stack stack = {sample, used, frames, count, end};
    target->options.on_stack(target->options.stack_data, &stack);
  }
  if (sample->chain)
    end = mic_target_chain_frames(target, process, sample->chain, end, &frames, &count);
  struct mic_samples_row row = {
    .time_ns = mic_target_relative(target, sample->time_ns),
    .thread = thread->id,
    .stack = mic_stacks_intern(&target->stacks, &thread->memory, frames, count, end),
    .weight = sample->weight,
    .cpu = sample->cpu,
    .source = sample->source,
  };
  mic_writer_samples(target->writer, &row);
  target->samples++;
  target->frames += count;
  target->stack_bytes += sample->stack.size;
}

size_t mic_target_reach(const struct mic_target *target) {
  return mic_unwinder_reach(target->unwinder);
}

void mic_target_count(const struct mic_target *target, struct mic_target_counts *out) {
  *out = (struct mic_target_counts){
    .frames = target->frames,
    .stack_bytes = target->stack_bytes,
    .samples = target->samples,
    .stacks = target->stacks.nodes.count,
    .locations = target->stacks.places.count,
    .processes = target->processes.count,
    .threads = target->threads.count,
    .modules = target->images.all.count,
    .memory_bytes = mic_images_memory(&target->images) + mic_stacks_memory(&target->stacks),
  };
}
