/*
 * image_file_test.c - the mapped file is found, or the reason why not, whatever became of its name.
 *
 * The program that maps is a copy of this test, so that it can be deleted and replaced.
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
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/image_file.h"
#include "process/maps.h"
#include "process/proc.h"

enum { NOBODY = 65534 };
static char folder[64];

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
  char command[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  if (system(command) != 0) fail_msg("%s", command);
}
static void skip_unless_root(void) {
  if (geteuid() == 0) return;
  print_message("skipped: root is needed (map_files, namespaces)\n");
  skip();
}
/* In a chroot whose root folder is no mount point mounts cannot be made private: what a test mounts
 * would show outside. */
static void skip_unless_mounts_can_be_private(void) {
  fflush(NULL);
  pid_t pid = fork();
  int status = 0;
  if (pid == 0)
    _exit(unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? errno : 0);
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  print_message("skipped: mounts of its own are needed (%s)\n", strerror(WEXITSTATUS(status)));
  skip();
}
/* Without capabilities, as an unprivileged recorder is: in a child that exits with the result. */
static void as_nobody(int (*body)(void)) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) _exit(100);
    _exit(body());
  }
  int status;
  waitpid(pid, &status, 0);
  assert_int_equal(status, 0);
}

/* A child that maps `name` of the folder (its own view of it) and stops. */
struct mapper {
  const char *name;
  void (*before)(void);
  bool nobody;
  int fd; /* mapped instead of the name, when not 0 */
};
static pid_t start_mapper(const struct mapper *mapper) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mapper->before) mapper->before();
    if (mapper->nobody) {
      if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) _exit(2);
      prctl(PR_SET_DUMPABLE, 1);
    }
    int fd = mapper->fd ? mapper->fd : open(mapper->name, O_RDONLY);
    if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
      _exit(3);
    close(fd);
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
  assert_true(WIFSTOPPED(status));
  return pid;
}
static void end_child(pid_t pid) {
  int status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}

static struct mic_maps maps;
static struct mic_mapped mapping_of(pid_t pid, const char *end) {
  struct mic_error err = {0};
  mic_maps_free(&maps);
  if (mic_maps_read(&maps, (uint32_t)pid, 0, &err)) fail_msg("%s", err.msg);
  for (size_t i = 0; i < maps.rows.count; i++) {
    const struct mic_map_row *row = &maps.rows.at[i];
    size_t size = strlen(end);
    if (row->name_size >= size && !strcmp(row->name + row->name_size - size, end))
      return (struct mic_mapped){(uint32_t)pid, row->start, row->end, row->maj,
                                 row->min,      row->inode, 0,        row->name};
  }
  fail_msg("no mapping of %s", end);
  return (struct mic_mapped){0};
}
static void holds(const struct mic_image_file *file, const char *text) {
  char bytes[64] = "";
  assert_true(file->fd >= 0);
  assert_int_equal(pread(file->fd, bytes, sizeof bytes - 1, 0), strlen(text));
  assert_string_equal(bytes, text);
  assert_int_equal(file->size, strlen(text));
  assert_true(fcntl(file->fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal(file->reason, MIC_FILE_OPEN);
}

static char path_of_file[128];
static const char *make(const char *name, const char *text) {
  snprintf(path_of_file, sizeof path_of_file, "%s/%s", folder, name);
  FILE *file = fopen(path_of_file, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  chmod(path_of_file, 0644);
  return path_of_file;
}

static void opens_what_is_there(void **state) {
  (void)state;
  pid_t pid = start_mapper(&(struct mapper){.name = make("plain", "one")});
  struct mic_mapped mapped = mapping_of(pid, "/plain");
  struct mic_image_file file;
  assert_true(mic_image_file_open(&mapped, &file));
  holds(&file, "one");
  assert_true(file.proof == MIC_PROOF_MAPPING || file.proof == MIC_PROOF_DEVICE);
  mic_image_file_close(&file);
  /* A range that is no mapping's is found by name. */
  mapped.start = 0x1000;
  mapped.end = 0x2000;
  assert_true(mic_image_file_open(&mapped, &file));
  holds(&file, "one");
  assert_int_equal(file.proof, MIC_PROOF_DEVICE);
  mic_image_file_close(&file);
  /* The device of an overlay: only the inode agrees. */
  mapped.min += 7;
  assert_true(mic_image_file_open(&mapped, &file));
  assert_int_equal(file.proof, MIC_PROOF_INODE);
  mic_image_file_close(&file);
  mapped.inode++;
  assert_false(mic_image_file_open(&mapped, &file));
  assert_int_equal(file.reason, MIC_FILE_REPLACED);
  assert_int_equal(file.fd, -1);
  end_child(pid);
  mapped.inode--;
  assert_true(mic_image_file_open(&mapped, &file)); /* gone, but its file is not */
  mic_image_file_close(&file);
  unlink(path_of_file);
  assert_false(mic_image_file_open(&mapped, &file));
  assert_int_equal(file.reason, MIC_FILE_GONE);
}

static void opens_what_was_deleted_or_replaced(void **state) {
  (void)state;
  skip_unless_root();
  const char *names[] = {"victim", "victim (deleted)", "vic\ntim"};
  for (size_t i = 0; i < 3; i++)
    for (int replaced = 0; replaced < 2; replaced++) {
      struct mic_image_file file;
      char end[64];
      pid_t pid = start_mapper(&(struct mapper){.name = make(names[i], "old bytes")});
      unlink(path_of_file);
      if (replaced) make(names[i], "new");
      snprintf(end, sizeof end, "/%s (deleted)", names[i]);
      struct mic_mapped mapped = mapping_of(pid, end);
      assert_true(mic_image_file_open(&mapped, &file));
      assert_int_equal(file.proof, MIC_PROOF_MAPPING);
      holds(&file, "old bytes");
      mic_image_file_close(&file);
      end_child(pid);
      unlink(path_of_file);
    }
}

static struct mic_mapped passed;
static int deleted_is_said(void) {
  struct mic_image_file file;
  if (mic_image_file_open(&passed, &file)) return 1;
  return file.reason == MIC_FILE_DELETED ? 0 : 10 + file.reason;
}
static int device_is_proof(void) {
  struct mic_image_file file;
  if (!mic_image_file_open(&passed, &file)) return 10 + file.reason;
  return file.proof == MIC_PROOF_DEVICE && file.size == 3 ? 0 : 1;
}
static int replaced_is_said(void) {
  struct mic_image_file file;
  if (mic_image_file_open(&passed, &file)) return 1;
  return file.reason == MIC_FILE_REPLACED ? 0 : 10 + file.reason;
}
static void says_why_without_privilege(void **state) {
  (void)state;
  skip_unless_root();
  struct mapper mapper = {.name = make("own", "own"), .nobody = true};
  pid_t pid = start_mapper(&mapper);
  passed = mapping_of(pid, "/own");
  as_nobody(device_is_proof);
  unlink(path_of_file);
  passed = mapping_of(pid, "/own (deleted)");
  as_nobody(deleted_is_said);
  make("own", "another"); /* under the old name */
  as_nobody(deleted_is_said);
  /* A mapping record was made when the name had no mark. */
  passed.path = path_of_file;
  as_nobody(replaced_is_said);
  end_child(pid);
  unlink(path_of_file);
}

static int exe_is_proof(void) {
  struct mic_image_file file;
  if (!mic_image_file_open(&passed, &file)) return 10 + file.reason;
  return file.proof == MIC_PROOF_DEVICE ? 0 : 1;
}
static void opens_a_deleted_program(void **state) {
  (void)state;
  skip_unless_root();
  char program[128];
  snprintf(program, sizeof program, "%s/program", folder);
  run("cp /bin/sleep %s && chmod 755 %s", program, program);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) _exit(1);
    execl(program, "program", "1000", (char *)NULL);
    _exit(1);
  }
  struct mic_task task;
  do assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), 0);
  while (strcmp(task.comm, "program") != 0);
  /* exec names the process before it maps the program's parts. */
  char *exe;
  do assert_int_equal(mic_process_exe((uint32_t)pid, &exe, NULL), 0);
  while (strcmp(exe, program) != 0 && (free(exe), true));
  free(exe);
  unlink(program);
  passed = mapping_of(pid, "/program (deleted)");
  as_nobody(exe_is_proof);
  struct mic_image_file file;
  assert_true(mic_image_file_open(&passed, &file));
  assert_int_equal(file.proof, MIC_PROOF_MAPPING);
  mic_image_file_close(&file);
  end_child(pid);
}

static void hide_behind_tmpfs(void) {
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("tmpfs", folder, "tmpfs", 0, NULL))
    _exit(1);
  make("lib", "inner");
}
static void enter_chroot(void) {
  if (chroot(folder) || chdir("/")) _exit(1);
}
static void opens_in_other_views(void **state) {
  (void)state;
  skip_unless_root();
  skip_unless_mounts_can_be_private();
  struct mic_image_file file;
  make("lib", "outer one");
  pid_t pid = start_mapper(&(struct mapper){.name = path_of_file, .before = hide_behind_tmpfs});
  struct mic_mapped mapped = mapping_of(pid, "/lib");
  for (int by_name = 0; by_name < 2; by_name++) {
    assert_true(mic_image_file_open(&mapped, &file));
    holds(&file, "inner");
    assert_int_equal(file.proof, by_name ? MIC_PROOF_DEVICE : MIC_PROOF_MAPPING);
    mic_image_file_close(&file);
    mapped.start = 0x1000; /* not in map_files */
    mapped.end = 0x2000;
  }
  end_child(pid);
  assert_false(mic_image_file_open(&mapped, &file)); /* ours is another file */
  assert_int_equal(file.fd, -1);

  pid = start_mapper(&(struct mapper){.name = "/lib", .before = enter_chroot});
  mapped = mapping_of(pid, "/lib");
  mapped.path = "/lib"; /* as its own mapping records name it */
  for (int by_name = 0; by_name < 2; by_name++) {
    assert_true(mic_image_file_open(&mapped, &file));
    holds(&file, "outer one");
    mic_image_file_close(&file);
    mapped.start = 0x1000;
    mapped.end = 0x2000;
  }
  /* A link of theirs leads inside their root, not out of it. */
  char link[128];
  snprintf(link, sizeof link, "%s/link", folder);
  assert_int_equal(symlink("/etc/passwd", link), 0);
  struct stat st;
  assert_int_equal(stat("/etc/passwd", &st), 0);
  mapped.path = "/link";
  mapped.inode = st.st_ino;
  mapped.maj = major(st.st_dev);
  mapped.min = minor(st.st_dev);
  assert_false(mic_image_file_open(&mapped, &file));
  end_child(pid);
  unlink(link);
  unlink(path_of_file);
}

static void opens_memfd_not_devices(void **state) {
  (void)state;
  skip_unless_root();
  struct mic_image_file file;
  int fd = memfd_create("code", 0);
  assert_int_equal(write(fd, "in memory", 9), 9);
  pid_t pid = start_mapper(&(struct mapper){.fd = fd});
  close(fd);
  struct mic_mapped mapped = mapping_of(pid, "/memfd:code (deleted)");
  assert_true(mic_image_file_open(&mapped, &file));
  assert_int_equal(file.proof, MIC_PROOF_MAPPING);
  holds(&file, "in memory");
  mic_image_file_close(&file);
  end_child(pid);

  char fifo[128];
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  struct stat st;
  assert_int_equal(stat(fifo, &st), 0);
  mapped = (struct mic_mapped){(uint32_t)getpid(), 0x1000,    0x2000, major(st.st_dev),
                               minor(st.st_dev),   st.st_ino, 0,      fifo};
  assert_false(mic_image_file_open(&mapped, &file)); /* and does not wait for a writer */
  assert_int_equal(file.reason, MIC_FILE_NOT_REGULAR);
  mapped.path = "[heap]";
  assert_false(mic_image_file_open(&mapped, &file));
  assert_int_equal(file.reason, MIC_FILE_ANON);
  unlink(fifo);
}

/* overlayfs: maps shows the inode of the layer or of the overlay, by kernel version. */
static void enter_overlay(void) {
  char data[512], where[128];
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("tmpfs", folder, "tmpfs", 0, NULL))
    _exit(1);
  char shell[1024];
  snprintf(shell, sizeof shell, "cd %s && mkdir low up work on && printf layered > low/lib",
           folder);
  if (system(shell)) _exit(1);
  snprintf(data, sizeof data, "lowerdir=%s/low,upperdir=%s/up,workdir=%s/work", folder, folder,
           folder);
  snprintf(where, sizeof where, "%s/on", folder);
  if (mount("overlay", where, "overlay", 0, data)) _exit(77);
  if (chdir(where)) _exit(1);
}
static bool overlay_works(void) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    enter_overlay();
    _exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  return status == 0;
}
static void opens_through_an_overlay(void **state) {
  (void)state;
  skip_unless_root();
  skip_unless_mounts_can_be_private();
  if (!overlay_works()) {
    print_message("skipped: this kernel mounts no overlay on tmpfs\n");
    skip();
  }
  struct mic_image_file file;
  pid_t pid = start_mapper(&(struct mapper){.name = "lib", .before = enter_overlay});
  struct mic_mapped mapped = mapping_of(pid, "/lib");
  for (int by_name = 0; by_name < 2; by_name++) {
    assert_true(mic_image_file_open(&mapped, &file));
    holds(&file, "layered");
    mic_image_file_close(&file);
    mapped.start = 0x1000;
    mapped.end = 0x2000;
  }
  end_child(pid);
}

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/mic-image-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  return chmod(folder, 0755);
}
static int teardown(void **state) {
  (void)state;
  mic_maps_free(&maps);
  run("rm -rf %s", folder);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(opens_what_is_there),
    cmocka_unit_test(opens_what_was_deleted_or_replaced),
    cmocka_unit_test(says_why_without_privilege),
    cmocka_unit_test(opens_a_deleted_program),
    cmocka_unit_test(opens_in_other_views),
    cmocka_unit_test(opens_memfd_not_devices),
    cmocka_unit_test(opens_through_an_overlay),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
