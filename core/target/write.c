/* write.c - the rows a target writes: mappings as they end, the rest at the finish. */
#include "target/tracker.h"

void mic_target_write_mappings(struct mic_target *target, const struct mic_process *process,
                               const mic_mappings *mappings, uint64_t end_ns) {
  for (size_t i = 0; i < mappings->count; i++) {
    const struct mic_mapping *mapping = &mappings->at[i];
    struct mic_mappings_row row = {
      .process = process->id,
      .module = mapping->image ? mapping->image->module : MIC_NONE,
      .address = mapping->code.start,
      .size = mapping->code.end - mapping->code.start,
      .file_offset = mapping->file_offset,
      .start_ns = mapping->start_ns,
      /* Records of different CPUs can be a little out of order. */
      .end_ns = end_ns < mapping->start_ns ? mapping->start_ns : end_ns,
    };
    mic_writer_mappings(target->writer, &row);
  }
}

void mic_target_write_space(struct mic_target *target, const struct mic_process *process,
                            uint64_t end_ns) {
  for (size_t i = 0; i < process->maps.parts.count; i++)
    mic_target_write_mappings(target, process, &process->maps.parts.at[i], end_ns);
}

void mic_target_write_exec(struct mic_target *target, const struct mic_process *process,
                           uint64_t time_ns, const char *path) {
  struct mic_process_execs_row row = {
    .process = process->id,
    .path = mic_writer_text(target->writer, path),
    .time_ns = mic_target_relative(target, time_ns),
  };
  mic_writer_process_execs(target->writer, &row);
}

static void write_processes(struct mic_target *target) {
  for (size_t i = 0; i < target->processes.count; i++) {
    const struct mic_process *process = target->processes.at[i];
    if (process->exec_ns) mic_target_write_exec(target, process, process->exec_ns, NULL);
    if (process->end_ns == UINT64_MAX) mic_target_write_space(target, process, UINT64_MAX);
    struct mic_processes_row row = {
      .pid = process->pid,
      .ns_pid = process->ns_pid,
      .parent = process->parent,
      .name = process->name,
      .cgroup = process->cgroup,
      .start_ns = process->start_ns,
      .end_ns = process->end_ns < process->start_ns ? process->start_ns : process->end_ns,
    };
    mic_writer_processes(target->writer, &row);
  }
}

static void write_threads(struct mic_target *target) {
  for (size_t i = 0; i < target->threads.count; i++) {
    const struct mic_thread *thread = target->threads.at[i];
    struct mic_threads_row row = {
      .process = thread->process,
      .tid = thread->tid,
      .name = thread->name,
      .start_ns = thread->start_ns,
      .end_ns = thread->end_ns < thread->start_ns ? thread->start_ns : thread->end_ns,
    };
    mic_writer_threads(target->writer, &row);
  }
}

void mic_target_finish(struct mic_target *target) {
  mic_target_time(target, UINT64_MAX);
  write_processes(target);
  write_threads(target);
  /* First the names: they may say why an image has none. */
  if (target->names) mic_names_finish(target->names, target->writer);
  mic_images_write(&target->images, target->writer);
  mic_images_write_naming(&target->images, target->writer, target->options.names_later);
  if (target->options.keep_images || target->options.names_later)
    mic_images_keep(&target->images, target->writer, target->options.keep_images);
  for (size_t i = 0; i < target->problem_rows.count; i++)
    mic_writer_problems(target->writer, &target->problem_rows.at[i]);
}
