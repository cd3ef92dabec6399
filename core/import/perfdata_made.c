/*
 * perfdata_made.c - the perf map of a recorded process: found, and how far it may be believed.
 *
 * A perf map is known by nothing but the process id in its name.  It is used when it is a regular
 * file of root's or of the user who reads it (as perf asks, tools/perf/util/symbol.c), when the
 * recording is of this host, and when nothing shows that another process wrote it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "image/debugfile.h"
#include "import/perfdata_inside.h"
#include "process/proc.h"
#include "target/made.h"

/* Files have the time of the last timer tick (fs/inode.c, current_time): 10 ms at most, HZ=100. */
enum { TICK_NS = 10000000 };

struct place { /* of a map */
  char root[64];
  char path[64];
  uint32_t uid; /* of the process, where it still runs; else root's */
};

static uint64_t ns_of(time_t seconds, long nanoseconds) {
  return (uint64_t)seconds * 1000000000u + (uint64_t)nanoseconds;
}

static bool same_host(const struct mic_perfdata *p) {
  struct utsname here;
  return !p->host[0] || (uname(&here) == 0 && strcmp(here.nodename, p->host) == 0);
}

/* When a process that runs here now began, by the wall clock. */
static uint64_t began_ns(const struct mic_task *task) {
  struct timespec wall, boot;
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  uint64_t since_ns = task->start_ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
  return ns_of(wall.tv_sec, wall.tv_nsec) - ns_of(boot.tv_sec, boot.tv_nsec) + since_ns;
}

/* A process that lives in other namespaces writes its map into its own /tmp, under its own id. */
static void find_place(const struct mic_perfdata *p, uint32_t pid, struct place *out) {
  struct mic_process_status status;
  struct mic_task task;
  bool same = true;
  *out = (struct place){.root = ""};
  snprintf(out->path, sizeof out->path, "/tmp/perf-%u.map", pid);
  if (mic_task_read(pid, 0, &task, NULL) != 0 || mic_process_status(pid, &status, NULL) != 0)
    return;
  /* Another one by the same id. */
  if (p->ended_wall_ns && began_ns(&task) > p->ended_wall_ns) return;
  if (mic_process_same_root(pid, &same, NULL) != 0) return;
  out->uid = status.euid;
  snprintf(out->path, sizeof out->path, "/tmp/perf-%u.map", mic_process_own_pid(&status));
  if (!same) snprintf(out->root, sizeof out->root, "/proc/%u/root", pid);
}

static int open_map(const struct place *place) {
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  return place->root[0] ? mic_debugfile_open_fd(place->root, place->path)
                        : open(place->path, flags);
}

/* Why a map is not believed, or NULL. */
static const char *doubt(const struct mic_perfdata *p, int fd, uint32_t uid,
                         const struct mic_made_process *process) {
  struct statx st;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0 ||
      !S_ISREG(st.stx_mode))
    return "it is no regular file";
  if (st.stx_uid != 0 && st.stx_uid != geteuid() && st.stx_uid != uid)
    return "it is neither root's nor yours";
  uint64_t written_ns = ns_of(st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec);
  uint64_t made_ns = written_ns;
  if (st.stx_mask & STATX_BTIME) made_ns = ns_of(st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
  if (made_ns > written_ns) made_ns = written_ns; /* copied with its times */
  if (p->ended_wall_ns && made_ns > p->ended_wall_ns) return "it was made after the recording";
  uint64_t wall_ns = p->realtime_ns ? p->realtime_ns + (p->start_ns - p->realtime_at_ns) : 0;
  if (wall_ns && process->began && written_ns + TICK_NS < wall_ns + process->start_ns)
    return "an earlier process with its id wrote it";
  return NULL;
}

static void say(struct mic_perfdata *p, const char *path, const char *what) {
  char text[512];
  snprintf(text, sizeof text, "%s is not used: %s", path, what);
  mic_target_problem(p->target, text, 1);
}

static struct mic_made_code *read_map(struct mic_perfdata *p, int fd, const struct place *place,
                                      const struct mic_made_process *process) {
  struct mic_made_code *code = NULL;
  struct mic_error err = {0};
  const char *why =
    same_host(p) ? doubt(p, fd, place->uid, process) : "the recording is of another host";
  if (why)
    say(p, place->path, why);
  else if (mic_made_code_read(fd, place->path, &code, &err) != 0)
    say(p, place->path, err.msg);
  else if (mic_made_code_odd_lines(code))
    mic_target_problem(p->target, "lines of perf maps are not START SIZE NAME",
                       mic_made_code_odd_lines(code));
  return code;
}

struct mic_made_code *mic_perfdata_open_made(void *data, const struct mic_made_process *process,
                                             char **path) {
  struct mic_perfdata *p = data;
  struct place place;
  if (!p->files) return NULL;
  find_place(p, process->pid, &place);
  int fd = open_map(&place);
  if (fd < 0) return NULL;
  struct mic_made_code *code = read_map(p, fd, &place, process);
  close(fd);
  *path = mic_strndup(place.path, strlen(place.path));
  return code;
}
