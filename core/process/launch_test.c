/*
 * launch_test.c - programs held at the gate, started, refused, orphaned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/launch.h"
#include "process/proc.h"

static struct mic_launch_options options_of(void) {
  return (struct mic_launch_options){.size = sizeof(struct mic_launch_options)};
}
static struct mic_launch *start(char *const *argv, const struct mic_launch_options *options) {
  struct mic_launch *launch;
  struct mic_error err = {0};
  if (mic_launch_new(argv, options, &launch, &err)) fail_msg("%s", err.msg);
  return launch;
}
static struct mic_exit finish(struct mic_launch *launch) {
  struct mic_exit end;
  struct mic_error err = {0};
  if (mic_launch_wait(launch, 60000, &end, &err)) fail_msg("%s", err.msg);
  assert_true(end.exited);
  return end;
}
static struct mic_exit run(const char *script, const struct mic_launch_options *options) {
  char *argv[] = {"sh", "-c", (char *)script, NULL};
  struct mic_launch *launch = start(argv, options);
  struct mic_error err = {0};
  if (mic_launch_release(launch, &err)) fail_msg("%s", err.msg);
  struct mic_exit end = finish(launch);
  mic_launch_free(launch);
  return end;
}

static void waits_at_the_gate(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  char *argv[] = {"true", NULL};
  struct mic_launch *launch = start(argv, &options);
  uint32_t pid = mic_launch_pid(launch);
  struct mic_exit end;
  struct mic_error err;
  char *ours, *theirs;
  assert_int_equal(mic_process_exe((uint32_t)getpid(), &ours, &err), 0);
  assert_int_equal(mic_process_exe(pid, &theirs, &err), 0);
  assert_string_equal(ours, theirs);
  assert_int_equal(mic_launch_wait(launch, 20, &end, &err), 0);
  assert_false(end.exited);
  assert_int_equal(mic_launch_release(launch, &err), 0);
  assert_int_equal(mic_launch_release(launch, &err), MIC_ESTATE);
  end = finish(launch);
  assert_int_equal(end.code, 0);
  assert_int_equal(end.signal, 0);
  assert_int_equal(mic_launch_wait(launch, 0, &end, &err), 0);
  assert_true(end.exited);
  free(ours);
  free(theirs);
  mic_launch_free(launch);
}

static void gives_code_or_signal(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  assert_int_equal(run("exit 42", &options).code, 42);
  struct mic_exit end = run("kill -9 $$", &options);
  assert_int_equal(end.signal, SIGKILL);
  end = run("kill -TERM $$", &options);
  assert_int_equal(end.signal, SIGTERM);
  assert_false(end.core_dumped);
}

static void names_what_cannot_start(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  struct {
    char *program;
    int code;
    const char *text;
  } cases[] = {{"no-such-program-here", MIC_ENOENT, "no-such-program-here"},
               {"/etc/passwd", MIC_EPERM, "/etc/passwd"},
               {"/etc/passwd/x", MIC_ENOENT, "/etc/passwd/x"},
               {"/tmp", MIC_EPERM, "/tmp"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *argv[] = {cases[i].program, NULL};
    struct mic_error err = {0};
    struct mic_launch *launch = start(argv, &options);
    assert_int_equal(mic_launch_release(launch, &err), cases[i].code);
    assert_non_null(strstr(err.msg, cases[i].text));
    assert_int_equal(finish(launch).code, 127);
    mic_launch_free(launch);
  }
  char *none[] = {NULL};
  struct mic_launch *launch;
  struct mic_error err;
  assert_int_equal(mic_launch_new(none, &options, &launch, &err), MIC_EARG);
  options.directory = "/no/such/folder";
  char *argv[] = {"true", NULL};
  launch = start(argv, &options);
  assert_int_equal(mic_launch_release(launch, &err), MIC_ESYS);
  assert_non_null(strstr(err.msg, "directory"));
  mic_launch_free(launch);
}

/* A file without #! is a script for the shell, as execvp has it. */
static void runs_plain_scripts(void **state) {
  (void)state;
  char path[] = "/tmp/mic-script-XXXXXX";
  int fd = mkstemp(path);
  assert_int_equal(write(fd, "exit 7\n", 7), 7);
  fchmod(fd, 0755);
  close(fd);
  struct mic_launch_options options = options_of();
  char *argv[] = {path, NULL};
  struct mic_error err = {0};
  struct mic_launch *launch = start(argv, &options);
  if (mic_launch_release(launch, &err)) fail_msg("%s", err.msg);
  assert_int_equal(finish(launch).code, 7);
  mic_launch_free(launch);
  unlink(path);
}

static void restores_what_it_had(void **state) {
  (void)state;
  struct rlimit before, half;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  half = (struct rlimit){123, before.rlim_max};
  struct mic_launch_options options = options_of();
  options.files_soft = half.rlim_cur;
  assert_int_equal(run("test $(ulimit -Sn) = 123", &options).code, 0);
  options.directory = "/usr";
  assert_int_equal(run("test \"$(pwd)\" = /usr", &options).code, 0);
  char *environment[] = {"PATH=/bin:/usr/bin", "MIC_X=1 2", NULL};
  options.environment = environment;
  assert_int_equal(run("test \"$MIC_X\" = '1 2' && test -z \"$HOME\"", &options).code, 0);
}

static void handler(int number) { (void)number; }
/* SigBlk and SigIgn of /proc/PID/status, as the program itself sees them. */
static void restores_signals(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);
  signal(SIGTERM, handler);
  signal(SIGUSR2, SIG_IGN);
  sigprocmask(SIG_BLOCK, &set, &before);
  options.mask = &before;
  char script[512];
  snprintf(script, sizeof script, "exec grep -q 'SigBlk:.0000000000000000' /proc/self/status");
  assert_int_equal(run(script, &options).code, 0);
  options.mask = NULL;
  assert_int_equal(run("exec grep -q 'SigBlk:.0000000000000202' /proc/self/status", &options).code,
                   0);
  /* SIGUSR2 is bit 11. */
  assert_int_equal(run("exec grep -q 'SigIgn:.0000000000000800' /proc/self/status", &options).code,
                   0);
  sigset_t none;
  sigemptyset(&none);
  options.ignored = &none;
  assert_int_equal(run("exec grep -q 'SigIgn:.0000000000000000' /proc/self/status", &options).code,
                   0);
  sigprocmask(SIG_SETMASK, &before, NULL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGUSR2, SIG_DFL);
}

/* Only 0, 1 and 2, though another launch holds its channels. */
static void leaks_no_descriptor(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  char *argv[] = {"sleep", "1000", NULL};
  for (int fd = 3; fd < 1024; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC); /* what the test was given */
  struct mic_launch *other = start(argv, &options), *launch = start(argv, &options);
  assert_int_equal(mic_launch_release(launch, NULL), 0);
  for (unsigned fd = 3; fd < 64; fd++) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u/fd/%u", mic_launch_pid(launch), fd);
    assert_int_equal(lstat(path, &st), -1);
  }
  kill((pid_t)mic_launch_pid(launch), SIGKILL);
  assert_int_equal(finish(launch).signal, SIGKILL);
  mic_launch_free(launch);
  mic_launch_free(other);
}

static void sees_its_end_although_children_are_ignored(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  struct mic_error err = {0};
  signal(SIGCHLD, SIG_IGN);
  /* The program still has it ignored, bit 16; a shell would change that. */
  char *argv[] = {"grep", "-q", "SigIgn:.0000000000010000", "/proc/self/status", NULL};
  struct mic_launch *launch = start(argv, &options);
  if (mic_launch_release(launch, &err)) fail_msg("%s", err.msg);
  assert_int_equal(finish(launch).code, 0);
  mic_launch_free(launch);
  signal(SIGCHLD, SIG_DFL);
}

static void reaps_no_other_child(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  pid_t other = fork();
  if (other == 0) _exit(33);
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0);
  assert_int_equal(run("exit 1", &options).code, 1);
  int status;
  assert_int_equal(waitpid(other, &status, 0), other);
  assert_int_equal(WEXITSTATUS(status), 33);
}

static bool wait_gone(uint32_t pid, uint64_t start_ticks) {
  for (int i = 0; i < 60000; i++) {
    if (!mic_process_alive(pid, start_ticks)) return true;
    usleep(1000);
  }
  return false;
}

static void child_ends_with_the_recorder_before(void **state) {
  (void)state;
  int tell[2];
  assert_int_equal(pipe(tell), 0);
  for (int released = 0; released < 2; released++) {
    pid_t recorder = fork();
    if (recorder == 0) {
      struct mic_launch_options options = options_of();
      char *argv[] = {"sleep", "1000", NULL};
      struct mic_launch *launch;
      if (mic_launch_new(argv, &options, &launch, NULL)) _exit(1);
      if (released && mic_launch_release(launch, NULL)) _exit(2);
      uint32_t pid = mic_launch_pid(launch);
      if (write(tell[1], &pid, sizeof pid) != sizeof pid) _exit(3);
      for (;;) pause();
    }
    uint32_t pid;
    struct mic_task task;
    assert_int_equal(read(tell[0], &pid, sizeof pid), sizeof pid);
    assert_int_equal(mic_task_read(pid, 0, &task, NULL), 0);
    kill(recorder, SIGKILL);
    int status;
    waitpid(recorder, &status, 0);
    if (released) {
      /* Unharmed: it is init's (or a subreaper's) child now and runs on. */
      /* The release returns when exec has closed the channel, just before it sets the name. */
      do assert_int_equal(mic_task_read(pid, 0, &task, NULL), 0);
      while (strcmp(task.comm, "sleep") != 0 && mic_process_alive(pid, task.start_ticks));
      assert_true(mic_process_alive(pid, task.start_ticks));
      kill((pid_t)pid, SIGKILL);
    }
    assert_true(wait_gone(pid, task.start_ticks));
  }
  close(tell[0]);
  close(tell[1]);
}

static void gives_up_before_the_release(void **state) {
  (void)state;
  struct mic_launch_options options = options_of();
  char *argv[] = {"sleep", "1000", NULL};
  struct mic_launch *launch = start(argv, &options);
  uint32_t pid = mic_launch_pid(launch);
  mic_launch_free(launch);
  struct mic_task task;
  assert_int_equal(mic_task_read(pid, 0, &task, NULL), MIC_EGONE);
  mic_launch_free(NULL);

  launch = start(argv, &options);
  kill((pid_t)mic_launch_pid(launch), SIGKILL);
  assert_int_equal(finish(launch).signal, SIGKILL);
  struct mic_error err = {0};
  assert_int_equal(mic_launch_release(launch, &err), MIC_ESYS);
  assert_non_null(strstr(err.msg, "sleep ended before"));
  mic_launch_free(launch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(waits_at_the_gate),
    cmocka_unit_test(gives_code_or_signal),
    cmocka_unit_test(names_what_cannot_start),
    cmocka_unit_test(runs_plain_scripts),
    cmocka_unit_test(restores_what_it_had),
    cmocka_unit_test(restores_signals),
    cmocka_unit_test(leaks_no_descriptor),
    cmocka_unit_test(sees_its_end_although_children_are_ignored),
    cmocka_unit_test(reaps_no_other_child),
    cmocka_unit_test(child_ends_with_the_recorder_before),
    cmocka_unit_test(gives_up_before_the_release),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
