/*
 * proc.c - threads, children, names and namespaces from /proc.
 */
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/text.h"

enum { LIST_ROUNDS = 100 }; /* a process that makes threads all the time never agrees */

/* ---- lists ---- */

void mic_pids_free(struct mic_pids *pids) { mic_vec_free(pids); }

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void sort_unique(struct mic_pids *pids) {
  if (pids->count == 0) return;
  qsort(pids->at, pids->count, sizeof *pids->at, by_number);
  size_t kept = 1;
  for (size_t i = 1; i < pids->count; i++)
    if (pids->at[i] != pids->at[kept - 1]) pids->at[kept++] = pids->at[i];
  pids->count = kept;
}

bool mic_pids_have(const struct mic_pids *pids, uint32_t pid) {
  return pids->count && bsearch(&pid, pids->at, pids->count, sizeof *pids->at, by_number);
}

static bool same_pids(const struct mic_pids *a, const struct mic_pids *b) {
  return a->count == b->count && (!a->count || !memcmp(a->at, b->at, a->count * sizeof *a->at));
}

/* Every entry of a folder whose name is a number. */
static int list_numbers(const char *path, struct mic_pids *out, struct mic_error *err) {
  out->count = 0;
  DIR *folder = opendir(path);
  if (!folder) {
    if (errno == ENOENT) errno = ESRCH;
    return mic_fail_sys(err, "%s", path);
  }
  struct dirent *entry;
  errno = 0;
  while ((entry = readdir(folder))) {
    const char *at = entry->d_name;
    uint64_t number;
    if (mic_text_number(&at, &number) && *at == '\0' && number <= UINT32_MAX)
      *mic_vec_push(out) = (uint32_t)number;
    errno = 0;
  }
  int code = 0;
  if (errno) {
    if (errno == ENOENT) errno = ESRCH;
    code = mic_fail_sys(err, "listing %s", path);
  }
  closedir(folder);
  sort_unique(out);
  return code;
}

/* ---- one task ---- */

/* "pid (comm) S ppid ...": the name may hold anything, so it ends at the last ')'.  *open and
 * *close are the parentheses. */
static bool find_name(const char *text, size_t size, const char **open, const char **close) {
  *open = strchr(text, '(');
  *close = NULL;
  for (const char *at = text + size; at > text && !*close; at--)
    if (at[-1] == ')') *close = at - 1;
  return *open && *close && *close > *open && (*close)[1] == ' ' && (*close)[2];
}

/* The fields from the 4th on up to the last, by man 5 proc's count; each but the last is for take.
 */
static bool read_fields(const char *at, int last, uint64_t *ppid, uint64_t *value) {
  for (int field = 4; field <= last; field++) {
    while (*at == ' ') at++;
    if (*at == '-') at++; /* tty and process group may be -1; what is taken is not */
    if (!mic_text_number(&at, value)) return false;
    if (field == 4) *ppid = *value;
  }
  return true;
}

enum { FIELD_START_TIME = 22, FIELD_START_STACK = 28 };

static bool read_stat(const char *text, size_t size, struct mic_task *out) {
  const char *open, *close;
  if (!find_name(text, size, &open, &close)) return false;
  out->comm_size = (uint32_t)(close - open - 1);
  if (out->comm_size >= MIC_COMM_BYTES) return false;
  memcpy(out->comm, open + 1, out->comm_size);
  out->state = close[2];
  uint64_t ppid = 0;
  if (!read_fields(close + 3, FIELD_START_TIME, &ppid, &out->start_ticks)) return false;
  out->ppid = (uint32_t)ppid;
  return true;
}

uint64_t mic_process_stack_start(uint32_t pid) {
  char path[64], *text;
  size_t size;
  const char *open, *close;
  uint64_t ppid, value = 0;
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (mic_text_read(path, &text, &size, NULL) != MIC_OK) return 0;
  bool reads = find_name(text, size, &open, &close) &&
               read_fields(close + 3, FIELD_START_STACK, &ppid, &value);
  free(text);
  return reads ? value : 0;
}

int mic_task_read(uint32_t pid, uint32_t tid, struct mic_task *out, struct mic_error *err) {
  char path[64], *text;
  size_t size;
  memset(out, 0, sizeof *out);
  out->pid = pid;
  out->tid = tid ? tid : pid;
  snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, out->tid);
  int code = mic_text_read(path, &text, &size, err);
  if (code) return code;
  if (size == 0)
    code = mic_fail(err, MIC_EGONE, "thread %u is gone", out->tid);
  else if (!read_stat(text, size, out))
    code = mic_fail(err, MIC_EFORMAT, "%s is not what the kernel writes", path);
  free(text);
  return code;
}

static bool has_ended(char state) { return state == 'Z' || state == 'X' || state == 'x'; }

bool mic_process_alive(uint32_t pid, uint64_t start_ticks) {
  struct mic_task task;
  if (mic_task_read(pid, 0, &task, NULL) != 0 || task.start_ticks != start_ticks) return false;
  uint32_t tid;
  return !has_ended(task.state) || mic_process_live_tid(pid, &tid, NULL) == 0;
}

int mic_task_process(uint32_t tid, uint32_t *pid, struct mic_error *err) {
  char path[64], *text;
  size_t size;
  uint64_t value;
  snprintf(path, sizeof path, "/proc/%u/status", tid);
  int code = mic_text_read(path, &text, &size, err);
  if (code) return code;
  const char *at = mic_text_line(text, "Tgid:");
  if (!at || !mic_text_number(&at, &value))
    code = mic_fail(err, MIC_EFORMAT, "%s has no Tgid", path);
  else
    *pid = (uint32_t)value;
  free(text);
  return code;
}

/* ---- threads and children ---- */

int mic_process_threads(uint32_t pid, struct mic_pids *out, bool *stable, struct mic_error *err) {
  char path[64];
  struct mic_pids again = {0};
  struct mic_task leader;
  snprintf(path, sizeof path, "/proc/%u/task", pid);
  int code = list_numbers(path, out, err);
  bool agreed = false;
  for (int round = 0; round < LIST_ROUNDS && !code && !agreed; round++) {
    code = list_numbers(path, &again, err);
    agreed = same_pids(out, &again);
    struct mic_pids swap = *out;
    *out = again;
    again = swap;
  }
  mic_pids_free(&again);
  if (stable) *stable = agreed;
  if (code) return code;
  if (out->count == 0) return mic_fail(err, MIC_EGONE, "process %u is gone", pid);
  /* The leader is the lowest only until tids wrap. */
  if (out->count > 1 && mic_task_read(pid, 0, &leader, NULL) == 0 && has_ended(leader.state)) {
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
      if (out->at[i] != pid) out->at[kept++] = out->at[i];
    out->count = kept;
  }
  return 0;
}

int mic_process_live_tid(uint32_t pid, uint32_t *tid, struct mic_error *err) {
  struct mic_task task;
  struct mic_pids tids = {0};
  int code = mic_task_read(pid, 0, &task, err);
  if (code) return code;
  *tid = pid;
  if (!has_ended(task.state)) return 0;
  code = mic_process_threads(pid, &tids, NULL, err);
  bool found = false;
  for (size_t i = 0; i < tids.count && !code && !found; i++) {
    found = mic_task_read(pid, tids.at[i], &task, NULL) == 0 && !has_ended(task.state);
    if (found) *tid = tids.at[i];
  }
  mic_pids_free(&tids);
  if (!code && !found) code = mic_fail(err, MIC_EGONE, "process %u has ended", pid);
  return code;
}

/* /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN) may miss some while others exit (man 5 proc),
 * so every process's parent is read instead. */
struct kin {
  uint32_t pid, ppid;
};
struct kins {
  struct kin *at;
  size_t count, room;
};

static int list_kin(struct kins *out, struct mic_error *err) {
  struct mic_pids all = {0};
  int code = list_numbers("/proc", &all, err);
  out->count = 0;
  for (size_t i = 0; i < all.count && !code; i++) {
    struct mic_task task;
    if (mic_task_read(all.at[i], 0, &task, NULL) == 0)
      *mic_vec_push(out) = (struct kin){all.at[i], task.ppid};
  }
  mic_pids_free(&all);
  return code;
}

static void add_children(const struct kins *kins, uint32_t of, struct mic_pids *out) {
  for (size_t i = 0; i < kins->count; i++)
    if (kins->at[i].ppid == of && kins->at[i].pid != of) *mic_vec_push(out) = kins->at[i].pid;
}

int mic_process_children(uint32_t pid, struct mic_pids *out, struct mic_error *err) {
  struct kins kins = {0};
  out->count = 0;
  int code = list_kin(&kins, err);
  if (!code) add_children(&kins, pid, out);
  mic_vec_free(&kins);
  sort_unique(out);
  return code;
}

static int list_descendants(uint32_t pid, struct mic_pids *out, struct mic_error *err) {
  struct kins kins = {0};
  out->count = 0;
  int code = list_kin(&kins, err);
  if (!code) add_children(&kins, pid, out);
  /* A process is nobody's child twice, so the list ends. */
  for (size_t i = 0; i < out->count && !code; i++) add_children(&kins, out->at[i], out);
  mic_vec_free(&kins);
  sort_unique(out);
  return code;
}

int mic_process_descendants(uint32_t pid, struct mic_pids *out, struct mic_error *err) {
  struct mic_pids again = {0};
  int code = list_descendants(pid, out, err);
  bool agreed = false;
  for (int round = 0; round < LIST_ROUNDS && !code && !agreed; round++) {
    code = list_descendants(pid, &again, err);
    agreed = same_pids(out, &again);
    struct mic_pids swap = *out;
    *out = again;
    again = swap;
  }
  mic_pids_free(&again);
  return code;
}

/* ---- status ---- */

static bool first_number(const char *text, const char *key, uint64_t *out) {
  const char *at = mic_text_line(text, key);
  return at && mic_text_number(&at, out);
}

static bool read_status(const char *text, struct mic_process_status *out) {
  uint64_t value, effective;
  const char *at = mic_text_line(text, "Uid:");
  if (!at || !mic_text_number(&at, &value) || !mic_text_number(&at, &effective)) return false;
  out->uid = (uint32_t)value;
  out->euid = (uint32_t)effective;
  if (!first_number(text, "Gid:", &value)) return false;
  out->gid = (uint32_t)value;
  if (!first_number(text, "Threads:", &value)) return false;
  out->threads = (uint32_t)value;
  if (first_number(text, "VmRSS:", &value)) out->rss_bytes = value * 1024;
  at = mic_text_line(text, "NSpid:");
  while (at && out->nspid_count < MIC_NSPIDS && mic_text_number(&at, &value))
    out->nspids[out->nspid_count++] = (uint32_t)value;
  return out->nspid_count > 0;
}

int mic_process_status(uint32_t pid, struct mic_process_status *out, struct mic_error *err) {
  char path[64], *text;
  size_t size;
  memset(out, 0, sizeof *out);
  snprintf(path, sizeof path, "/proc/%u/status", pid);
  int code = mic_text_read(path, &text, &size, err);
  if (code) return code;
  if (!read_status(text, out))
    code = mic_fail(err, MIC_EFORMAT, "%s is not what the kernel writes", path);
  free(text);
  return code;
}

uint32_t mic_process_own_pid(const struct mic_process_status *status) {
  return status->nspid_count ? status->nspids[status->nspid_count - 1] : 0;
}

/* ---- namespaces ---- */

static int same_file(const char *theirs, const char *ours, bool *same, struct mic_error *err) {
  struct stat a, b;
  if (stat(theirs, &a) != 0) {
    if (errno == ENOENT) errno = ESRCH;
    return mic_fail_sys(err, "%s", theirs);
  }
  if (stat(ours, &b) != 0) return mic_fail_sys(err, "%s", ours);
  *same = a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  return 0;
}

int mic_process_same_ns(uint32_t pid, uint32_t ns, bool *same, struct mic_error *err) {
  static const char *const names[] = {"pid", "mnt", "user", "net"};
  char theirs[64], ours[64];
  if (ns > MIC_NS_NET) return mic_fail(err, MIC_EARG, "no namespace number %u", ns);
  snprintf(theirs, sizeof theirs, "/proc/%u/ns/%s", pid, names[ns]);
  snprintf(ours, sizeof ours, "/proc/self/ns/%s", names[ns]);
  return same_file(theirs, ours, same, err);
}

int mic_process_same_root(uint32_t pid, bool *same, struct mic_error *err) {
  char theirs[64];
  snprintf(theirs, sizeof theirs, "/proc/%u/root", pid);
  int code = mic_process_same_ns(pid, MIC_NS_MNT, same, err);
  if (code || !*same) return code;
  return same_file(theirs, "/", same, err);
}

/* ---- strings ---- */

/* "0::/path" is the unified hierarchy's line; else the first line's third field. */
int mic_process_cgroup(uint32_t pid, char **out, struct mic_error *err) {
  char path[64], *text;
  size_t size;
  *out = NULL;
  snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
  int code = mic_text_read(path, &text, &size, err);
  if (code) return code;
  const char *at = mic_text_line(text, "0::");
  if (!at && (at = strchr(text, ':')) && (at = strchr(at + 1, ':'))) at++;
  if (at)
    *out = mic_strndup(at, strcspn(at, "\n"));
  else
    code = mic_fail(err, MIC_ENOENT, "process %u is in no cgroup", pid);
  free(text);
  return code;
}

int mic_process_exe(uint32_t pid, char **out, struct mic_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/exe", pid);
  return mic_text_link(path, out, err);
}

int mic_process_command(uint32_t pid, char **out, size_t *size, struct mic_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  return mic_text_read(path, out, size, err);
}

/* ---- pidfd ---- */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* one number on every architecture */
#endif

int mic_process_fd(uint32_t pid, uint64_t start_ticks, int *fd, struct mic_error *err) {
  struct mic_task task;
  *fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0); /* close-on-exec by itself */
  if (*fd < 0) return mic_fail_sys(err, "process %u", pid);
  if (start_ticks == 0) return 0;
  /* The descriptor is held, so the pid cannot be used again between it and this look. */
  int code = mic_task_read(pid, 0, &task, err);
  if (!code && task.start_ticks != start_ticks)
    code = mic_fail(err, MIC_EGONE, "process %u is another one now", pid);
  if (code) {
    close(*fd);
    *fd = -1;
  }
  return code;
}
