/*
 * maps_test.c - rows of maps, against hand-written lines and against what real processes show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/maps.h"
#include "process/proc.h"

static struct mic_maps parse(const char *text, size_t piece) {
  struct mic_maps maps = {0};
  size_t size = strlen(text);
  for (size_t at = 0; at < size; at += piece)
    mic_maps_feed(&maps, text + at, size - at < piece ? size - at : piece);
  mic_maps_end(&maps);
  return maps;
}

static const char some[] =
  "55d0c0000000-55d0c0001000 r--p 00001000 fd:12 1234567                    /opt/a b/x\\012y\n"
  "7f0000000000-7f0000001000 rwxs 00000000 00:01 99                         /memfd:code (deleted)\n"
  "7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n"
  "7f0000002000-7f0000003000 rw-p 00000000 00:00 0                          [anon:arena [1]]\n"
  "7f0000003000-7f0000004000 r-xp 00000000 00:00 0                          [vdso]\n"
  "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void reads_lines_in_any_pieces(void **state) {
  (void)state;
  for (size_t piece = 1; piece < sizeof some; piece++) {
    struct mic_maps maps = parse(some, piece);
    const struct mic_map_row *r = maps.rows.at;
    assert_int_equal(maps.rows.count, 7);
    assert_int_equal(maps.lines, 7);
    assert_int_equal(maps.bad_lines, 0);
    assert_true(r[0].start == 0x55d0c0000000 && r[0].end == 0x55d0c0001000);
    assert_int_equal(r[0].offset, 0x1000);
    assert_int_equal(r[0].maj, 0xfd);
    assert_int_equal(r[0].min, 0x12);
    assert_int_equal(r[0].inode, 1234567);
    assert_int_equal(r[0].prot, PROT_READ);
    assert_false(r[0].shared);
    assert_string_equal(r[0].name, "/opt/a b/x\ny");
    assert_int_equal(r[0].kind, MIC_MAP_FILE);
    assert_int_equal(r[1].prot, PROT_READ | PROT_WRITE | PROT_EXEC);
    assert_true(r[1].shared && r[1].deleted_mark);
    assert_string_equal(r[1].name, "/memfd:code (deleted)");
    assert_int_equal(r[1].path_size, strlen("/memfd:code"));
    assert_int_equal(r[2].kind, MIC_MAP_ANON);
    assert_string_equal(r[2].name, "");
    assert_int_equal(r[3].kind, MIC_MAP_NAMED);
    assert_int_equal(r[4].kind, MIC_MAP_VDSO);
    assert_int_equal(r[5].kind, MIC_MAP_STACK);
    assert_int_equal(r[6].kind, MIC_MAP_VSYSCALL);
    assert_true(r[6].end == 0xffffffffff601000);
    mic_maps_free(&maps);
  }
}

static void counts_bad_lines(void **state) {
  (void)state;
  const char *bad[] = {
    "",
    "55d0c0000000-55d0c0001000",
    "55d0c0001000-55d0c0000000 r--p 00000000 00:00 0 ", /* ends before it starts */
    "55d0c0000000-55d0c0000000 r--p 00000000 00:00 0 ",
    "55D0-55D1 r--p 00000000 00:00 0 ",
    "1000-2000 r--q 00000000 00:00 0 ",
    "1000-2000 w--p 00000000 00:00 0 ",
    "1000-2000 r--p 00000000 00-00 0 ",
    "1000-2000 r--p 00000000 00:00 ",
    "1000-2000 r--p 00000000 100000000:00 0 ",
    "11112222333344445-2000 r--p 00000000 00:00 0 ",
    "1000-2000 r--p 00000000 00:00 99999999999999999999 ",
    "1000-2000 r--p 00000000 00:00 0x",
    "-2000 r--p 00000000 00:00 0 ",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[2 * sizeof some + 128];
    snprintf(text, sizeof text, "%s%s\n%s", some, bad[i], some);
    struct mic_maps maps = parse(text, 13);
    assert_int_equal(maps.rows.count, 14);
    assert_int_equal(maps.bad_lines, 1);
    assert_int_equal(maps.first_bad_line, 8);
    mic_maps_free(&maps);
  }
}

static void ends_an_endless_line(void **state) {
  (void)state;
  size_t size = 3 << 20;
  char *text = malloc(size + 1);
  memset(text, 'a', size);
  memcpy(text, "1000-2000 r--p 00000000 00:00 0 /", 33);
  text[size - 1] = '\n';
  text[size] = '\0';
  struct mic_maps maps = parse(text, 4096);
  assert_int_equal(maps.rows.count, 0);
  assert_int_equal(maps.bad_lines, 1);
  assert_true(maps.pending.room < size);
  mic_maps_free(&maps);
  free(text);
}

/* Written back, the rows give the text they were read from. */
static void write_row(FILE *to, const struct mic_map_row *r) {
  int used = fprintf(to, "%08llx-%08llx %c%c%c%c %08llx %02x:%02x %llu ",
                     (unsigned long long)r->start, (unsigned long long)r->end,
                     r->prot & PROT_READ ? 'r' : '-', r->prot & PROT_WRITE ? 'w' : '-',
                     r->prot & PROT_EXEC ? 'x' : '-', r->shared ? 's' : 'p',
                     (unsigned long long)r->offset, r->maj, r->min, (unsigned long long)r->inode);
  /* seq_pad: names start at column 25 + 6 * sizeof(void *), or after one blank. */
  if (r->name_size)
    for (; used < 25 + 6 * 8; used++) fputc(' ', to);
  for (uint32_t i = 0; i < r->name_size; i++)
    if (r->name[i] == '\n')
      fputs("\\012", to);
    else
      fputc(r->name[i], to);
  fputc('\n', to);
}
static char *read_file(const char *path) {
  size_t room = 16 << 20, used = 0, got;
  char *text = malloc(room);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while ((got = fread(text + used, 1, room - used - 1, file)) > 0) used += got;
  fclose(file);
  text[used] = '\0';
  return text;
}
static void same_as_the_text(uint32_t pid) {
  char path[64], *written;
  size_t size;
  struct mic_maps maps = {0};
  struct mic_error err = {0};
  if (mic_maps_read(&maps, pid, 0, &err)) fail_msg("%s", err.msg);
  FILE *to = open_memstream(&written, &size);
  for (size_t i = 0; i < maps.rows.count; i++) write_row(to, &maps.rows.at[i]);
  fclose(to);
  snprintf(path, sizeof path, "/proc/%u/maps", pid);
  char *text = read_file(path);
  assert_string_equal(written, text);
  for (size_t i = 0; i < maps.rows.count; i++) {
    assert_ptr_equal(mic_maps_find(&maps, maps.rows.at[i].start), &maps.rows.at[i]);
    assert_ptr_equal(mic_maps_find(&maps, maps.rows.at[i].end - 1), &maps.rows.at[i]);
  }
  assert_null(mic_maps_find(&maps, 0));
  free(text);
  free(written);
  mic_maps_free(&maps);
}

static char folder[] = "/tmp/mic maps XXXXXX";
static void map_file(const char *name, bool unlink_it) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ftruncate(fd, 8192)) _exit(1);
  if (mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) _exit(1);
  if (unlink_it) unlink(path);
  close(fd);
}
static pid_t child_of(void (*body)(void)) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
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

static void map_odd_names(void) {
  map_file("new\nline", false);
  map_file("  blanks  ", false);
  map_file("real (deleted)", false);
  map_file("gone", true);
  map_file("gone (deleted)", true);
  map_file("\xff\xfe[vdso]", false);
  int fd = memfd_create("in memory", 0);
  if (ftruncate(fd, 4096)) _exit(1);
  if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) _exit(1);
}
static const struct mic_map_row *named(const struct mic_maps *maps, const char *end) {
  for (size_t i = 0; i < maps->rows.count; i++) {
    const struct mic_map_row *row = &maps->rows.at[i];
    size_t size = strlen(end);
    if (row->name_size >= size && !strcmp(row->name + row->name_size - size, end)) return row;
  }
  return NULL;
}
static void reads_odd_names(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  pid_t pid = child_of(map_odd_names);
  struct mic_maps maps = {0};
  assert_int_equal(mic_maps_read(&maps, (uint32_t)pid, 0, NULL), 0);
  const char *ends[] = {"/new\nline",
                        "/  blanks  ",
                        "/real (deleted)",
                        "/gone (deleted)",
                        "/gone (deleted) (deleted)",
                        "/\xff\xfe[vdso]",
                        "/memfd:in memory (deleted)"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const struct mic_map_row *row = named(&maps, ends[i]);
    assert_non_null(row);
    assert_int_equal(row->kind, MIC_MAP_FILE);
    assert_true(row->inode != 0);
    assert_int_equal(row->deleted_mark, strstr(ends[i], "(deleted)") != NULL);
  }
  mic_maps_free(&maps);
  same_as_the_text((uint32_t)pid);
  end_child(pid);
  char command[64];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void map_ten_thousand(void) {
  for (int i = 0; i < 10000; i++) {
    /* Alternating rights keep neighbours from being merged. */
    int prot = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) _exit(1);
  }
}
static void reads_ten_thousand(void **state) {
  (void)state;
  pid_t pid = child_of(map_ten_thousand);
  same_as_the_text((uint32_t)pid);
  struct mic_maps maps = {0};
  assert_int_equal(mic_maps_read(&maps, (uint32_t)pid, 0, NULL), 0);
  assert_true(maps.rows.count >= 10000);
  mic_maps_free(&maps);
  end_child(pid);
}

static void *stay(void *unused) {
  raise(SIGSTOP);
  return unused;
}
static void leave_main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, stay, NULL)) _exit(1);
  syscall(SYS_exit, 0);
}
static void reads_without_main_thread(void **state) {
  (void)state;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_main();
  }
  struct mic_task task;
  do assert_int_equal(mic_task_read((uint32_t)pid, 0, &task, NULL), 0);
  while (task.state != 'Z');
  struct mic_maps maps = {0};
  uint32_t tid;
  assert_int_equal(mic_maps_read(&maps, (uint32_t)pid, 0, NULL), 0);
  assert_int_equal(maps.rows.count, 0);
  assert_int_equal(mic_process_live_tid((uint32_t)pid, &tid, NULL), 0);
  assert_true(tid != (uint32_t)pid);
  assert_int_equal(mic_maps_read(&maps, (uint32_t)pid, tid, NULL), 0);
  assert_true(maps.rows.count > 5);
  assert_non_null(named(&maps, "[stack]"));
  mic_maps_free(&maps);
  end_child(pid);
}

static void reads_itself_and_init(void **state) {
  (void)state;
  struct mic_maps maps = {0};
  struct mic_error err;
  assert_int_equal(mic_maps_read(&maps, (uint32_t)getpid(), 0, &err), 0);
  assert_ptr_equal(mic_maps_find(&maps, (uintptr_t)reads_itself_and_init),
                   mic_maps_find(&maps, (uintptr_t)reads_itself_and_init + 1));
  assert_true(mic_maps_find(&maps, (uintptr_t)reads_itself_and_init)->prot & PROT_EXEC);
  mic_maps_free(&maps);
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  end_child(pid);
  assert_int_equal(mic_maps_read(&maps, (uint32_t)pid, 0, &err), MIC_EGONE);
  mic_maps_free(&maps);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_lines_in_any_pieces), cmocka_unit_test(counts_bad_lines),
    cmocka_unit_test(ends_an_endless_line),      cmocka_unit_test(reads_odd_names),
    cmocka_unit_test(reads_ten_thousand),        cmocka_unit_test(reads_without_main_thread),
    cmocka_unit_test(reads_itself_and_init),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
