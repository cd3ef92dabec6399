/*
 * launch.c - fork a child that waits for one byte, then calls exec.
 *
 * Two channels: the gate, a socket pair whose end of the recorder, when closed, tells the child
 * that the recorder is no more; and a pipe that exec closes, through which the child says why it
 * could not.  Between fork and exec the child only makes system calls, as the recorder has threads.
 */
#include "process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "process/proc.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* Linux 5.4 */
#endif

struct mic_launch {
  char *program; /* argv[0], for messages */
  pid_t pid;
  int pidfd;
  int gate;   /* -1 once released */
  int status; /* read end; -1 once released */
  bool released;
  bool reaped;
  struct mic_exit end;
};

/* What the child says before it gives up. */
enum stage { STAGE_EXEC = 1, STAGE_DIRECTORY = 2, STAGE_LIMIT = 3 };
struct failure {
  int32_t stage, sys;
};

struct child {
  char *const *argv;
  const struct mic_launch_options *options;
  sigset_t mask, ignored;
  int gate, status;
};

static void give_up(const struct child *child, enum stage stage) {
  struct failure failure = {(int32_t)stage, errno};
  ssize_t written = write(child->status, &failure, sizeof failure);
  (void)written; /* with no one to read it there is no one to tell */
  _exit(127);    /* as a shell does for a program it cannot start */
}

static void restore_signals(const struct child *child) {
  for (int number = 1; number <= SIGRTMAX; number++) {
    struct sigaction action = {0};
    action.sa_handler = sigismember(&child->ignored, number) == 1 ? SIG_IGN : SIG_DFL;
    sigaction(number, &action, NULL); /* KILL, STOP and glibc's own two refuse: as they should */
  }
  sigprocmask(SIG_SETMASK, &child->mask, NULL);
}

static void restore_limit(const struct child *child) {
  struct rlimit limit;
  if (!child->options->files_soft) return;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) give_up(child, STAGE_LIMIT);
  limit.rlim_cur = child->options->files_soft;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) give_up(child, STAGE_LIMIT);
}

static _Noreturn void run_child(const struct child *child) {
  char byte;
  ssize_t got;
  restore_signals(child);
  do got = read(child->gate, &byte, 1);
  while (got < 0 && errno == EINTR);
  if (got != 1) _exit(127); /* the recorder ended or gave it up */
  if (child->options->directory && chdir(child->options->directory) != 0)
    give_up(child, STAGE_DIRECTORY);
  restore_limit(child);
  if (child->options->environment)
    execvpe(child->argv[0], child->argv, child->options->environment);
  else
    execvp(child->argv[0], child->argv);
  give_up(child, STAGE_EXEC);
  abort();
}

static void read_ignored(sigset_t *ignored) {
  sigemptyset(ignored);
  for (int number = 1; number <= SIGRTMAX; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
        action.sa_handler == SIG_IGN)
      sigaddset(ignored, number);
  }
}

/* A recorder that was started with SIGCHLD ignored would have its child reaped by the kernel, and
 * its end would be unknown. */
static void keep_zombies(void) {
  struct sigaction action;
  if (sigaction(SIGCHLD, NULL, &action) != 0) return;
  bool ignored = !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN;
  if (!ignored && !(action.sa_flags & SA_NOCLDWAIT)) return;
  if (ignored) action.sa_handler = SIG_DFL;
  action.sa_flags &= ~SA_NOCLDWAIT;
  sigaction(SIGCHLD, &action, NULL);
}

struct channels {
  int gate[2];   /* [0] ours */
  int status[2]; /* [1] the child's */
};

static void close_both(const int *pair) {
  close(pair[0]);
  close(pair[1]);
}

static int make_channels(struct channels *c, struct mic_error *err) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->gate) != 0)
    return mic_fail_sys(err, "making a program's gate");
  if (pipe2(c->status, O_CLOEXEC) == 0) return 0;
  int code = mic_fail_sys(err, "making a program's gate");
  close_both(c->gate);
  return code;
}

/* All signals are blocked over the fork: none of the recorder's handlers runs in the child. */
static pid_t fork_child(struct child *child, const struct channels *channels) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  child->mask = child->options->mask ? *child->options->mask : before;
  child->gate = channels->gate[1];
  child->status = channels->status[1];
  pid_t pid = fork();
  if (pid == 0) {
    close(channels->gate[0]);
    close(channels->status[0]);
    run_child(child);
  }
  int sys = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = sys;
  return pid;
}

static void end_child(struct mic_launch *launch) {
  siginfo_t info;
  kill(launch->pid, SIGKILL); /* not reaped yet, so the pid is still its */
  while (waitid(P_PID, (id_t)launch->pid, &info, WEXITED) != 0 && errno == EINTR) {
  }
  launch->reaped = true;
}

int mic_launch_new(char *const *argv, const struct mic_launch_options *options,
                   struct mic_launch **out, struct mic_error *err) {
  struct channels channels;
  struct child child = {.argv = argv, .options = options};
  *out = NULL;
  if (!argv[0] || !argv[0][0]) return mic_fail(err, MIC_EARG, "no program to start");
  if (options->size < sizeof *options)
    return mic_fail(err, MIC_EARG, "launch options of %u bytes: an older layout", options->size);
  int code = make_channels(&channels, err);
  if (code) return code;
  if (options->ignored)
    child.ignored = *options->ignored;
  else
    read_ignored(&child.ignored);
  keep_zombies();
  pid_t pid = fork_child(&child, &channels);
  if (pid < 0) code = mic_fail_sys(err, "starting %s", argv[0]);
  close(channels.gate[1]);
  close(channels.status[1]);
  if (code) {
    close(channels.gate[0]);
    close(channels.status[0]);
    return code;
  }
  struct mic_launch *launch = mic_alloc(sizeof *launch);
  *launch = (struct mic_launch){.program = mic_strndup(argv[0], strlen(argv[0])),
                                .pid = pid,
                                .pidfd = -1,
                                .gate = channels.gate[0],
                                .status = channels.status[0]};
  code = mic_process_fd((uint32_t)pid, 0, &launch->pidfd, err);
  if (code)
    mic_launch_free(launch);
  else
    *out = launch;
  return code;
}

uint32_t mic_launch_pid(const struct mic_launch *launch) { return (uint32_t)launch->pid; }
int mic_launch_pidfd(const struct mic_launch *launch) { return launch->pidfd; }

/* What a missing file means: the program itself, or the interpreter that a script or an ELF file
 * asks for.  A bare name is looked for in $PATH only, even beside a file of that name. */
static int explain_missing(const char *program, struct mic_error *err) {
  bool here = access(program, F_OK) == 0;
  if (!here) return mic_fail(err, MIC_ENOENT, "no such program: %s", program);
  if (strchr(program, '/'))
    return mic_fail(err, MIC_ENOENT, "starting %s: the interpreter it names is missing", program);
  return mic_fail(err, MIC_ENOENT, "no such program: %s (to run the one here: ./%s)", program,
                  program);
}

static int explain(const struct mic_launch *launch, const struct failure *failure,
                   struct mic_error *err) {
  int code;
  errno = failure->sys;
  if (failure->stage == STAGE_DIRECTORY)
    return mic_fail_sys(err, "the working directory of %s", launch->program);
  if (failure->stage == STAGE_LIMIT)
    return mic_fail_sys(err, "restoring the file limit of %s", launch->program);
  if (failure->sys == ENOENT || failure->sys == ENOTDIR)
    code = explain_missing(launch->program, err);
  else
    code = mic_fail_sys(err, "starting %s", launch->program);
  if (err) err->sys = failure->sys;
  return code;
}

int mic_launch_release(struct mic_launch *launch, struct mic_error *err) {
  struct failure failure;
  ssize_t got;
  if (launch->released) return mic_fail(err, MIC_ESTATE, "%s was started already", launch->program);
  launch->released = true;
  ssize_t sent = send(launch->gate, "", 1, MSG_NOSIGNAL);
  int sys = errno;
  close(launch->gate);
  launch->gate = -1;
  if (sent != 1) {
    errno = sys;
    return mic_fail_sys(err, "%s ended before it was started", launch->program);
  }
  do got = read(launch->status, &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  close(launch->status);
  launch->status = -1;
  /* Nothing and the end: exec closed the pipe.  A signal that ended the child before looks the
   * same, and mic_launch_wait tells of it. */
  return got == (ssize_t)sizeof failure ? explain(launch, &failure, err) : 0;
}

static void fill_exit(struct mic_exit *end, const siginfo_t *info) {
  end->exited = true;
  if (info->si_code == CLD_EXITED) {
    end->code = info->si_status;
    return;
  }
  end->signal = info->si_status;
  end->core_dumped = info->si_code == CLD_DUMPED;
}

/* poll until it ended, over signals; false on timeout. */
static bool poll_end(int pidfd, int timeout_ms) {
  uint64_t until = mic_clock_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000u;
  for (;;) {
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    int ready = poll(&wait, 1, timeout_ms);
    if (ready >= 0 || errno != EINTR) return ready > 0;
    if (timeout_ms < 0) continue;
    uint64_t now = mic_clock_ns();
    timeout_ms = now >= until ? 0 : (int)((until - now) / 1000000u);
  }
}

int mic_launch_wait(struct mic_launch *launch, int timeout_ms, struct mic_exit *out,
                    struct mic_error *err) {
  siginfo_t info = {0};
  *out = launch->end;
  if (launch->reaped || !poll_end(launch->pidfd, timeout_ms)) return 0;
  int code;
  do code = waitid((idtype_t)P_PIDFD, (id_t)launch->pidfd, &info, WEXITED | WNOHANG);
  while (code != 0 && errno == EINTR);
  if (code != 0) return mic_fail_sys(err, "waiting for %s", launch->program);
  if (info.si_pid == 0) return 0;
  launch->reaped = true;
  fill_exit(&launch->end, &info);
  *out = launch->end;
  return 0;
}

void mic_launch_free(struct mic_launch *launch) {
  if (!launch) return;
  if (!launch->released && !launch->reaped) end_child(launch);
  if (launch->gate >= 0) close(launch->gate);
  if (launch->status >= 0) close(launch->status);
  if (launch->pidfd >= 0) close(launch->pidfd);
  free(launch->program);
  free(launch);
}
