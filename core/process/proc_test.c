/*
 * proc_test.c - facts of /proc, against what the tested processes know of themselves.
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
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/memory.h"
#include "process/proc.h"

static pid_t child_of(void (*body)(void)) {
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    for (;;) pause();
  }
  return pid;
}
static void wait_stopped(pid_t pid) {
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
}
static void end_child(pid_t pid) {
  int status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}
static void skip_unless_root(void) {
  if (geteuid() == 0) return;
  print_message("skipped: root is needed to make namespaces\n");
  skip();
}

static const char *odd_name;
static void take_odd_name(void) {
  prctl(PR_SET_NAME, odd_name);
  raise(SIGSTOP);
}
static void reads_any_name(void **state) {
  (void)state;
  const char *names[] = {"a b",        ") R 1 (", "))) S 2 3", "new\nline",
                         "\t\"quote'", "",        "\xff\xfe",  "fifteen bytes!!"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    odd_name = names[i];
    pid_t pid = child_of(take_odd_name);
    wait_stopped(pid);
    struct mic_task task;
    assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), 0);
    assert_string_equal(task.comm, names[i]);
    assert_int_equal(task.comm_size, strlen(names[i]));
    assert_int_equal(task.state, 'T');
    assert_int_equal(task.ppid, getpid());
    assert_int_equal(task.pid, pid);
    assert_int_equal(task.tid, pid);
    assert_true(task.start_ticks > 0);
    assert_true(mic_process_alive((uint32_t)pid, task.start_ticks));
    assert_false(mic_process_alive((uint32_t)pid, task.start_ticks + 1));
    kill(pid, SIGKILL);
    /* A zombie is no longer alive. */
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    assert_false(mic_process_alive((uint32_t)pid, task.start_ticks));
    end_child(pid);
    assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), MIC_EGONE);
  }
}

enum { THREADS = 500 };
static void *wait_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}
static void make_threads(void) {
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_ever, NULL)) _exit(1);
  }
  raise(SIGSTOP);
}
static void make_threads_without_main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL)) _exit(1);
  syscall(SYS_exit, 0);
}
static void lists_threads(void **state) {
  (void)state;
  pid_t pid = child_of(make_threads);
  wait_stopped(pid);
  struct mic_pids tids = {0};
  bool stable;
  uint32_t of;
  struct mic_process_status status;
  assert_int_equal(mic_process_threads((uint32_t)pid, &tids, &stable, NULL), 0);
  assert_true(stable);
  assert_int_equal(tids.count, THREADS + 1);
  assert_true(mic_pids_have(&tids, (uint32_t)pid));
  assert_false(mic_pids_have(&tids, 1));
  assert_int_equal(mic_process_status((uint32_t)pid, &status, NULL), 0);
  assert_int_equal(status.threads, THREADS + 1);
  for (size_t i = 0; i < tids.count; i++) {
    assert_int_equal(mic_task_process(tids.at[i], &of, NULL), 0);
    assert_int_equal(of, pid);
  }
  end_child(pid);
  assert_int_equal(mic_process_threads((uint32_t)pid, &tids, &stable, NULL), MIC_EGONE);

  pid = child_of(make_threads_without_main);
  struct mic_task task;
  do assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), 0);
  while (task.state != 'Z');
  assert_int_equal(mic_process_threads((uint32_t)pid, &tids, &stable, NULL), 0);
  assert_int_equal(tids.count, 1);
  assert_true(tids.at[0] != (uint32_t)pid);
  assert_int_equal(mic_process_live_tid((uint32_t)pid, &of, NULL), 0);
  assert_int_equal(of, tids.at[0]);
  assert_true(mic_process_alive((uint32_t)pid, task.start_ticks));
  end_child(pid);
  assert_int_equal(mic_process_live_tid((uint32_t)pid, &of, NULL), MIC_EGONE);
  mic_pids_free(&tids);
}

static void make_children(void) {
  for (int i = 0; i < 3; i++)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (i == 0 && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
      }
      for (;;) pause();
    }
}
static void lists_children(void **state) {
  (void)state;
  pid_t pid = child_of(make_children);
  struct mic_pids pids = {0};
  do assert_int_equal(mic_process_descendants((uint32_t)pid, &pids, NULL), 0);
  while (pids.count < 4);
  assert_int_equal(pids.count, 4);
  assert_int_equal(mic_process_children((uint32_t)pid, &pids, NULL), 0);
  assert_int_equal(pids.count, 3);
  for (size_t i = 0; i < pids.count; i++) {
    struct mic_task task;
    assert_int_equal(mic_task_read(pids.at[i], 0, &task, NULL), 0);
    assert_int_equal(task.ppid, pid);
  }
  assert_int_equal(mic_process_children((uint32_t)getpid(), &pids, NULL), 0);
  assert_true(mic_pids_have(&pids, (uint32_t)pid));
  end_child(pid);
  mic_pids_free(&pids);
}

static void become_nobody(void) {
  if (setgid(65533) || setuid(65534)) _exit(1);
  raise(SIGSTOP);
}
static void reads_status_and_strings(void **state) {
  (void)state;
  struct mic_process_status status;
  char *text, expected[4096];
  size_t size;
  uint32_t self = (uint32_t)getpid();
  assert_int_equal(mic_process_status(self, &status, NULL), 0);
  assert_int_equal(status.uid, getuid());
  assert_int_equal(status.euid, geteuid());
  assert_true(status.rss_bytes > 100000);
  assert_int_equal(mic_process_own_pid(&status), getpid());
  assert_int_equal(mic_process_exe(self, &text, NULL), 0);
  ssize_t got = readlink("/proc/self/exe", expected, sizeof expected - 1);
  assert_true(got > 0);
  expected[got] = '\0';
  assert_string_equal(text, expected);
  free(text);
  assert_int_equal(mic_process_command(self, &text, &size, NULL), 0);
  assert_true(size > 0 && text[size - 1] == '\0');
  free(text);
  assert_int_equal(mic_process_cgroup(self, &text, NULL), 0);
  assert_int_equal(text[0], '/');
  free(text);
  if (geteuid() != 0) return;
  pid_t pid = child_of(become_nobody);
  wait_stopped(pid);
  assert_int_equal(mic_process_status((uint32_t)pid, &status, NULL), 0);
  assert_int_equal(status.uid, 65534);
  assert_int_equal(status.gid, 65533);
  end_child(pid);
}

static void enter_namespaces(void) {
  if (unshare(CLONE_NEWPID | CLONE_NEWNS)) _exit(1);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
}
static void enter_chroot(void) {
  if (chroot("/usr")) _exit(1);
  raise(SIGSTOP);
}
static void knows_namespaces(void **state) {
  (void)state;
  skip_unless_root();
  pid_t pid = child_of(enter_namespaces);
  struct mic_pids pids = {0};
  struct mic_process_status status;
  bool same;
  do assert_int_equal(mic_process_children((uint32_t)pid, &pids, NULL), 0);
  while (pids.count < 1);
  assert_int_equal(mic_process_status(pids.at[0], &status, NULL), 0);
  assert_int_equal(status.nspid_count, 2);
  assert_int_equal(status.nspids[0], pids.at[0]);
  assert_int_equal(mic_process_own_pid(&status), 1);
  assert_int_equal(mic_process_same_ns(pids.at[0], MIC_NS_PID, &same, NULL), 0);
  assert_false(same);
  assert_int_equal(mic_process_same_ns(pids.at[0], MIC_NS_MNT, &same, NULL), 0);
  assert_false(same);
  assert_int_equal(mic_process_same_ns(pids.at[0], MIC_NS_NET, &same, NULL), 0);
  assert_true(same);
  assert_int_equal(mic_process_same_root(pids.at[0], &same, NULL), 0);
  assert_false(same);
  assert_int_equal(mic_process_same_root((uint32_t)getpid(), &same, NULL), 0);
  assert_true(same);
  end_child(pid);
  pid = child_of(enter_chroot);
  wait_stopped(pid);
  assert_int_equal(mic_process_same_root((uint32_t)pid, &same, NULL), 0);
  assert_false(same);
  end_child(pid);
  assert_int_equal(mic_process_same_ns((uint32_t)pid, MIC_NS_PID, &same, NULL), MIC_EGONE);
  mic_pids_free(&pids);
}

static void stay(void) {}
static void pidfd_is_of_one_process(void **state) {
  (void)state;
  pid_t pid = child_of(stay);
  struct mic_task task;
  struct mic_error err;
  int fd;
  assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), 0);
  assert_int_equal(mic_process_fd((uint32_t)pid, task.start_ticks + 1, &fd, &err), MIC_EGONE);
  assert_int_equal(fd, -1);
  assert_int_equal(mic_process_fd((uint32_t)pid, task.start_ticks, &fd, &err), 0);
  struct pollfd wait = {fd, POLLIN, 0};
  assert_int_equal(poll(&wait, 1, 0), 0);
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  kill(pid, SIGKILL);
  assert_int_equal(poll(&wait, 1, 60000), 1);
  close(fd);
  end_child(pid);
  assert_int_equal(mic_process_fd((uint32_t)pid, 0, &fd, &err), MIC_EGONE);
}

/* Three pages with the last one gone: what comes before is read to the byte. */
static uint8_t *pages;
static void stop(void) { raise(SIGSTOP); }
static void reads_memory_up_to_a_hole(void **state) {
  (void)state;
  const size_t size = 300 * 4096;
  pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED);
  for (size_t i = 0; i < size; i++) pages[i] = (uint8_t)(i * 31 >> 3);
  munmap(pages + size - 4096, 4096);
  pid_t pid = child_of(stop);
  wait_stopped(pid);
  uint8_t *copy = malloc(size);
  size_t got;
  struct mic_error err;
  for (size_t from = 0; from < 9000; from += 1234) {
    assert_int_equal(
      mic_memory_read((uint32_t)pid, (uintptr_t)pages + from, copy, size - from, &got, &err), 0);
    assert_int_equal(got, size - 4096 - from);
    assert_memory_equal(copy, pages + from, got);
  }
  assert_int_equal(mic_memory_read((uint32_t)pid, (uintptr_t)pages + 5, copy, 17, &got, &err), 0);
  assert_int_equal(got, 17);
  assert_int_equal(
    mic_memory_read((uint32_t)pid, (uintptr_t)pages + size - 4096, copy, 8, &got, &err),
    MIC_EFORMAT);
  assert_int_equal(mic_memory_read((uint32_t)pid, 0, copy, 8, &got, &err), MIC_EFORMAT);
  assert_int_equal(mic_memory_read((uint32_t)pid, UINT64_MAX - 3, copy, 8, &got, &err), MIC_EARG);
  assert_int_equal(mic_memory_read((uint32_t)pid, 1ull << 63, copy, 8, &got, &err), MIC_EFORMAT);
  end_child(pid);
  assert_int_equal(mic_memory_read((uint32_t)pid, (uintptr_t)pages, copy, 8, &got, &err),
                   MIC_EGONE);
  munmap(pages, size - 4096);
  free(copy);
}

/* Between a local of main's and the program's arguments, which it points to. */
static void knows_where_the_stack_began(void **state) {
  (void)state;
  int here;
  char **arguments = NULL;
  uint64_t start = mic_process_stack_start((uint32_t)getpid());
  assert_true(start > (uintptr_t)&here);
  memcpy(&arguments, &environ, sizeof arguments); /* the array lies above argc and argv */
  assert_true(start < (uintptr_t)arguments);
  assert_int_equal(*(const uint64_t *)(uintptr_t)start, 1); /* argc */
  assert_int_equal(mic_process_stack_start(UINT32_MAX), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(knows_where_the_stack_began),
    cmocka_unit_test(reads_any_name),
    cmocka_unit_test(lists_threads),
    cmocka_unit_test(lists_children),
    cmocka_unit_test(reads_status_and_strings),
    cmocka_unit_test(knows_namespaces),
    cmocka_unit_test(pidfd_is_of_one_process),
    cmocka_unit_test(reads_memory_up_to_a_hole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
