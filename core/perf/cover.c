/* cover.c - proof of inheritance from FORK and EXIT records. */
#include "perf/cover.h"

void mic_perf_cover_opened(struct mic_perf_cover *cover, uint32_t tid, uint64_t opening_ns,
                           uint64_t complete_ns) {
  uint32_t index = (uint32_t)cover->tasks.count;
  *mic_vec_push(&cover->tasks) = (struct mic_perf_cover_task){opening_ns, complete_ns, UINT64_MAX};
  mic_map_put(&cover->task_of, tid, 0, index);
}

/* A maker with inherited events beside its own tells of a fork twice, some hundred nanoseconds
 * apart: the earlier counts, or the second telling would prove the first. */
static bool is_same_fork(struct mic_perf_cover_fork *old, const struct mic_record *record) {
  if (record->time_ns > old->time_ns && (old->exit_ns != UINT64_MAX || old->maker != record->ptid))
    return false;
  if (old->maker == record->ptid && record->time_ns < old->time_ns) old->time_ns = record->time_ns;
  return true;
}

static void note_fork(struct mic_perf_cover *cover, const struct mic_record *record,
                      bool threads_only) {
  uint32_t task = mic_map_get(&cover->task_of, record->ptid, 0);
  if (task != MIC_NONE) {
    struct mic_perf_cover_task *maker = &cover->tasks.at[task];
    if (record->time_ns >= maker->complete_ns && record->time_ns < maker->proven_ns)
      maker->proven_ns = record->time_ns;
  }
  uint32_t old = mic_map_get(&cover->fork_of, record->tid, 0);
  if (old != MIC_NONE && is_same_fork(&cover->forks.at[old], record)) return;
  uint32_t index = old;
  if (old == MIC_NONE) {
    index = (uint32_t)cover->forks.count;
    mic_vec_push(&cover->forks);
    mic_map_put(&cover->fork_of, record->tid, 0, index);
  }
  uint64_t exit_ns = UINT64_MAX;
  cover->forks.at[index] =
    (struct mic_perf_cover_fork){record->tid, record->ptid, record->time_ns, exit_ns,
                                 !threads_only || record->pid == record->ppid};
}

/* Its FORK may be in a ring not yet read: then the fork is noted without its end, and a task that
 * is gone is said to be covered, which no one asks. */
static void note_exit(struct mic_perf_cover *cover, const struct mic_record *record) {
  uint32_t index = mic_map_get(&cover->fork_of, record->tid, 0);
  if (index != MIC_NONE && cover->forks.at[index].time_ns <= record->time_ns)
    cover->forks.at[index].exit_ns = record->time_ns;
}

void mic_perf_cover_note(struct mic_perf_cover *cover, const struct mic_record *record,
                         bool threads_only) {
  if (record->kind == MIC_RECORD_FORK) note_fork(cover, record, threads_only);
  if (record->kind == MIC_RECORD_EXIT) note_exit(cover, record);
}

bool mic_perf_cover_has(const struct mic_perf_cover *cover, uint32_t tid) {
  uint64_t before = UINT64_MAX; /* a maker is older than what it made */
  for (uint32_t asked = tid;;) {
    uint32_t index = mic_map_get(&cover->fork_of, tid, 0);
    const struct mic_perf_cover_fork *fork = index == MIC_NONE ? NULL : &cover->forks.at[index];
    uint32_t opened = mic_map_get(&cover->task_of, tid, 0);
    const struct mic_perf_cover_task *task = opened == MIC_NONE ? NULL : &cover->tasks.at[opened];
    bool reused = task && fork && fork->time_ns > task->complete_ns;
    if (task && !reused) return tid == asked || before > task->proven_ns;
    if (!fork || !fork->inherits || fork->time_ns >= before) return false;
    if (tid == asked && fork->exit_ns != UINT64_MAX) return false;
    before = fork->time_ns;
    tid = fork->maker;
  }
}

void mic_perf_cover_forget_forks(struct mic_perf_cover *cover) {
  mic_map_free(&cover->fork_of);
  cover->fork_of = (struct mic_map){0};
  cover->forks.count = 0;
}

void mic_perf_cover_free(struct mic_perf_cover *cover) {
  mic_map_free(&cover->task_of);
  mic_map_free(&cover->fork_of);
  mic_vec_free(&cover->tasks);
  mic_vec_free(&cover->forks);
}
