/* publish_test.c - files that appear whole or not at all, also when a signal ends the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/leftover.h"
#include "base/publish.h"

static char folder[64];
static char path[96];

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/microscope-publish-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/out", folder);
  return 0;
}

static int drop_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder); /* fails when a test left anything else */
}

static int files(void) {
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  int count = 0;
  for (const struct dirent *e; (e = readdir(dir));) count += e->d_name[0] != '.';
  closedir(dir);
  return count;
}

/* What a child does in which a signal comes while two files are written and one is published. */
static _Noreturn void be_ended(int number, void (*disposition)(int)) {
  struct mic_publish done, first, second;
  struct mic_error err;
  char other[112];
  snprintf(other, sizeof other, "%s/other", folder);
  signal(number, disposition);
  if (mic_publish_open(&done, path, 0600, &err) || mic_publish_finish(&done, false, &err)) _exit(1);
  mic_publish_close(&done);
  if (mic_publish_open(&first, path, 0600, &err) || mic_publish_open(&second, other, 0600, &err))
    _exit(2);
  if (files() != 3) _exit(3);
  raise(number);
  if (files() != 3) _exit(4); /* a signal that ends nothing removes nothing */
  mic_publish_close(&first);
  mic_publish_close(&second);
  _exit(files() == 1 ? 0 : 5);
}

static int ended(int number, void (*disposition)(int)) {
  int status;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) be_ended(number, disposition);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(files(), 1);
  return status;
}

static void signals_leave_no_temporary_file(void **state) {
  (void)state;
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int status = ended(numbers[i], SIG_DFL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), numbers[i]);
  }
}

static void ignored_signals_stay_ignored(void **state) {
  (void)state;
  int status = ended(SIGHUP, SIG_IGN);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* A child that a signal ends before it becomes another program has the parent's handlers. */
static void children_remove_nothing(void **state) {
  (void)state;
  struct mic_publish file;
  struct mic_error err;
  int status;
  assert_int_equal(mic_publish_open(&file, path, 0600, &err), 0);
  assert_int_equal(files(), 2);
  pid_t child = fork();
  if (child == 0) {
    raise(SIGTERM);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(files(), 2);
  mic_publish_close(&file);
  assert_int_equal(files(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(signals_leave_no_temporary_file),
    cmocka_unit_test(ignored_signals_stay_ignored),
    cmocka_unit_test(children_remove_nothing),
  };
  return cmocka_run_group_tests_name("publish", tests, make_folder, drop_folder);
}
