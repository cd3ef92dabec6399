/* adopt.c - what /proc says of processes that ran before, and of all after a loss. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "process/maps.h"
#include "process/proc.h"
#include "target/tracker.h"

void mic_pending_read_free(struct mic_pending_read *read) {
  for (size_t i = 0; i < read->maps.count; i++) free((char *)read->maps.at[i].path);
  mic_vec_free(&read->maps);
}

static void add_row(struct mic_pending_read *read, uint32_t pid, const struct mic_map_row *row) {
  struct mic_target_map map = {
    .time_ns = read->time_ns,
    .pid = pid,
    .tid = pid,
    .address = row->start,
    .size = row->end - row->start,
    .file_offset = row->offset,
    .maj = row->maj,
    .min = row->min,
    .inode = row->inode,
    .path = mic_strndup(row->name, row->name_size),
  };
  *mic_vec_push(&read->maps) = map;
}

/* Read the executable mappings of a live process, stamped with the time of the read. */
static int read_maps(struct mic_target *target, struct mic_process *process,
                     struct mic_pending_read *read, struct mic_error *err) {
  struct mic_error ignored = {0};
  if (!err) err = &ignored;
  uint32_t tid = 0;
  int rc = mic_process_live_tid(process->pid, &tid, err);
  if (rc != 0) return rc;
  struct mic_maps maps = {0};
  rc = mic_maps_read(&maps, process->pid, tid, err);
  /* Stamped after the read: what the process mapped meanwhile is in a record stamped before. */
  read->time_ns = mic_clock_ns();
  read->process = process->id;
  if (rc == MIC_EFORMAT) mic_target_problem(target, "a line of a process's maps is malformed", 1);
  if (rc == 0 || rc == MIC_EFORMAT)
    for (size_t i = 0; i < maps.rows.count; i++)
      if (maps.rows.at[i].prot & PROT_EXEC) add_row(read, process->pid, &maps.rows.at[i]);
  mic_maps_free(&maps);
  return rc == MIC_EFORMAT ? 0 : rc;
}

static void adopt_threads(struct mic_target *target, uint64_t time_ns, uint32_t pid,
                          const struct mic_pids *tids) {
  for (size_t i = 0; i < tids->count; i++) {
    struct mic_task task;
    if (mic_task_read(pid, tids->at[i], &task, NULL) != 0) continue; /* ended meanwhile */
    struct mic_thread *thread = mic_target_thread(target, time_ns, pid, tids->at[i]);
    mic_target_rename(target, thread, time_ns, task.comm);
  }
}

static void read_namespace_and_cgroup(struct mic_target *target, struct mic_process *process) {
  struct mic_process_status status;
  if (mic_process_status(process->pid, &status, NULL) == 0)
    process->ns_pid = mic_process_own_pid(&status);
  char *text = NULL;
  if (mic_process_cgroup(process->pid, &text, NULL) == 0)
    process->cgroup = mic_writer_text(target->writer, text);
  free(text);
}

void mic_target_launch(struct mic_target *target, uint32_t pid) {
  struct mic_thread *thread = mic_target_thread(target, target->options.start_ns, pid, pid);
  if (!target->options.elsewhere)
    read_namespace_and_cgroup(target, target->processes.at[thread->process]);
}

static void adopt_facts(struct mic_target *target, uint64_t time_ns, struct mic_process *process) {
  read_namespace_and_cgroup(target, process);
  struct mic_task leader;
  if (mic_task_read(process->pid, 0, &leader, NULL) == 0)
    process->name = mic_writer_text(target->writer, leader.comm);
  char *text = NULL;
  if (mic_process_exe(process->pid, &text, NULL) == 0)
    mic_target_write_exec(target, process, time_ns, text);
  free(text);
}

int mic_target_adopt(struct mic_target *target, uint32_t pid, struct mic_error *err) {
  struct mic_pids tids = {0};
  bool stable;
  int rc = mic_process_threads(pid, &tids, &stable, err);
  if (rc != 0) return rc;
  uint64_t time_ns = target->options.start_ns;
  struct mic_process *process = mic_target_process(target, time_ns, pid);
  adopt_facts(target, time_ns, process);
  adopt_threads(target, time_ns, pid, &tids);
  mic_pids_free(&tids);
  struct mic_pending_read read = {0};
  rc = read_maps(target, process, &read, err);
  for (size_t i = 0; i < read.maps.count; i++) {
    read.maps.at[i].time_ns = time_ns;
    mic_target_map_into(target, process, &read.maps.at[i]);
  }
  mic_pending_read_free(&read);
  return rc;
}

void mic_target_read_later(struct mic_target *target, struct mic_process *process) {
  if (target->options.elsewhere) return;
  struct mic_pending_read read = {0};
  if (read_maps(target, process, &read, NULL) == 0)
    *mic_vec_push(&target->reads) = read;
  else
    mic_pending_read_free(&read);
}

void mic_target_lost(struct mic_target *target) {
  target->lost = true;
  /* The map holds those that live; all that ever were can be many more. */
  for (uint32_t i = 0; i < target->by_pid.room; i++) {
    uint32_t id = target->by_pid.slots[i].value;
    if (id != MIC_NONE) mic_target_read_later(target, target->processes.at[id]);
  }
}

/* What the read shows of files is mapped as its record would have been; what it no longer shows is
 * over. Anonymous code is not added: what ran there before is not known to be what is there now. */
static void apply(struct mic_target *target, const struct mic_pending_read *read) {
  struct mic_process *process = target->processes.at[read->process];
  uint64_t at = mic_target_relative(target, read->time_ns);
  if (process->end_ns != UINT64_MAX) return;
  mic_mappings shown = {0};
  for (size_t i = 0; i < read->maps.count; i++) {
    const struct mic_target_map *map = &read->maps.at[i];
    struct mic_mapping mapping = {.image = mic_images_find(&target->images, map)};
    mapping.code.start = map->address;
    mapping.code.end = map->address + map->size;
    *mic_vec_push(&shown) = mapping;
  }
  target->ended.count = 0;
  if (mic_code_space_keep(&process->maps, &shown, &target->ended)) {
    process->maps.generation = ++target->generation;
    mic_target_write_mappings(target, process, &target->ended, at);
  }
  for (size_t i = 0; i < read->maps.count; i++)
    if (shown.at[i].image) mic_target_map_into(target, process, &read->maps.at[i]);
  mic_vec_free(&shown);
}

void mic_target_time(struct mic_target *target, uint64_t time_ns) {
  size_t left = 0;
  for (size_t i = 0; i < target->reads.count; i++) {
    struct mic_pending_read *read = &target->reads.at[i];
    if (read->time_ns > time_ns) {
      target->reads.at[left++] = *read;
      continue;
    }
    apply(target, read);
    mic_pending_read_free(read);
  }
  target->reads.count = left;
  if (target->names) mic_names_wake(target->names);
}
