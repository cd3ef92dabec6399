/*
 * maps.c - parse /proc/PID/maps.
 *
 * The line is that of show_vma_header_prefix and show_map_vma (fs/proc/task_mmu.c):
 *   start-end perms offset major:minor inode [spaces] name
 * with all numbers but the inode in hexadecimal.
 */
#include "process/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A path is at most PATH_MAX (4096), each byte written as at most 4, plus the fixed part; a line
 * longer than this is no line of maps. */
enum { LINE_MOST = 64 * 1024, READ_BYTES = 64 * 1024 };

static const char deleted_mark[] = " (deleted)";
enum { MARK_SIZE = sizeof deleted_mark - 1 };

struct text {
  const char *at, *end;
  bool bad;
};

static uint64_t read_hex(struct text *t, uint64_t most) {
  uint64_t value = 0;
  const char *from = t->at;
  for (; t->at < t->end; t->at++) {
    char c = *t->at;
    unsigned digit;
    if (c >= '0' && c <= '9')
      digit = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = (unsigned)(c - 'a') + 10;
    else
      break;
    if (value > (most >> 4)) t->bad = true;
    value = value << 4 | digit;
  }
  if (t->at == from || value > most) t->bad = true;
  return value;
}

static uint64_t read_decimal(struct text *t) {
  uint64_t value = 0;
  const char *from = t->at;
  for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*t->at - '0'), &value))
      t->bad = true;
  if (t->at == from) t->bad = true;
  return value;
}

static void expect(struct text *t, char c) {
  if (t->at < t->end && *t->at == c)
    t->at++;
  else
    t->bad = true;
}

static void read_perms(struct text *t, struct mic_map_row *row) {
  static const char letters[3] = {'r', 'w', 'x'};
  static const uint32_t bits[3] = {PROT_READ, PROT_WRITE, PROT_EXEC};
  if (t->end - t->at < 4) {
    t->bad = true;
    return;
  }
  for (int i = 0; i < 3; i++) {
    if (t->at[i] == letters[i])
      row->prot |= bits[i];
    else if (t->at[i] != '-')
      t->bad = true;
  }
  if (t->at[3] != 's' && t->at[3] != 'p') t->bad = true;
  row->shared = t->at[3] == 's';
  t->at += 4;
}

/* seq_file_path escapes newlines only, as \012; a backslash of the name itself is written as it is,
 * so a name that holds the four characters \012 reads as a newline: image_file.h compares inodes.
 */
static const char *unescape(struct mic_arena *arena, const char *from, size_t size,
                            uint32_t *out_size) {
  char *to = mic_arena_alloc(arena, size + 1);
  size_t used = 0;
  for (size_t i = 0; i < size; i++) {
    if (from[i] == '\\' && size - i >= 4 && memcmp(from + i, "\\012", 4) == 0) {
      to[used++] = '\n';
      i += 3;
    } else {
      to[used++] = from[i];
    }
  }
  to[used] = '\0';
  *out_size = (uint32_t)used;
  return to;
}

static bool starts(const struct mic_map_row *row, const char *with) {
  return strncmp(row->name, with, strlen(with)) == 0;
}

static uint8_t kind_of(const struct mic_map_row *row) {
  if (row->name_size == 0) return MIC_MAP_ANON;
  if (row->name[0] == '/') return MIC_MAP_FILE;
  if (strcmp(row->name, "[vdso]") == 0) return MIC_MAP_VDSO;
  if (strcmp(row->name, "[vvar]") == 0 || strcmp(row->name, "[vvar_vclock]") == 0)
    return MIC_MAP_VVAR;
  if (strcmp(row->name, "[vsyscall]") == 0) return MIC_MAP_VSYSCALL;
  if (strcmp(row->name, "[stack]") == 0) return MIC_MAP_STACK;
  if (strcmp(row->name, "[heap]") == 0) return MIC_MAP_HEAP;
  if (starts(row, "[anon:") || starts(row, "[anon_shmem:")) return MIC_MAP_NAMED;
  return MIC_MAP_OTHER;
}

static void read_name(struct mic_maps *maps, struct text *t, struct mic_map_row *row) {
  if (t->at < t->end) expect(t, ' ');
  while (t->at < t->end && *t->at == ' ') t->at++;
  if (t->bad) return;
  row->name = unescape(&maps->names, t->at, (size_t)(t->end - t->at), &row->name_size);
  row->kind = kind_of(row);
  row->path_size = row->name_size;
  if (row->kind == MIC_MAP_FILE && row->name_size > MARK_SIZE &&
      memcmp(row->name + row->name_size - MARK_SIZE, deleted_mark, MARK_SIZE) == 0) {
    row->deleted_mark = true;
    row->path_size = row->name_size - MARK_SIZE;
  }
}

static bool read_line(struct mic_maps *maps, const char *line, size_t size,
                      struct mic_map_row *row) {
  struct text t = {line, line + size, false};
  memset(row, 0, sizeof *row);
  if (size > LINE_MOST || memchr(line, '\0', size)) return false;
  row->start = read_hex(&t, UINT64_MAX);
  expect(&t, '-');
  row->end = read_hex(&t, UINT64_MAX);
  expect(&t, ' ');
  read_perms(&t, row);
  expect(&t, ' ');
  row->offset = read_hex(&t, UINT64_MAX);
  expect(&t, ' ');
  row->maj = (uint32_t)read_hex(&t, UINT32_MAX);
  expect(&t, ':');
  row->min = (uint32_t)read_hex(&t, UINT32_MAX);
  expect(&t, ' ');
  row->inode = read_decimal(&t);
  if (t.bad) return false;
  read_name(maps, &t, row);
  return !t.bad && row->start < row->end;
}

static void take_line(struct mic_maps *maps, const char *line, size_t size) {
  struct mic_map_row row;
  maps->lines++;
  if (read_line(maps, line, size, &row)) {
    *mic_vec_push(&maps->rows) = row;
    return;
  }
  maps->bad_lines++;
  if (!maps->first_bad_line) maps->first_bad_line = maps->lines;
}

static void hold(struct mic_maps *maps, const char *text, size_t size) {
  /* Beyond LINE_MOST the line is bad already: one byte more says so, the rest is not kept. */
  size_t room = LINE_MOST + 1 - maps->pending.count;
  if (size > room) size = room;
  if (size == 0) return;
  mic_vec_reserve(&maps->pending, maps->pending.count + size);
  memcpy(maps->pending.at + maps->pending.count, text, size);
  maps->pending.count += size;
}

void mic_maps_feed(struct mic_maps *maps, const char *text, size_t size) {
  while (size > 0) {
    const char *newline = memchr(text, '\n', size);
    size_t part = newline ? (size_t)(newline - text) : size;
    if (!newline) {
      hold(maps, text, part);
      return;
    }
    if (maps->pending.count) {
      hold(maps, text, part);
      take_line(maps, maps->pending.at, maps->pending.count);
      maps->pending.count = 0;
    } else {
      take_line(maps, text, part);
    }
    text += part + 1;
    size -= part + 1;
  }
}

void mic_maps_end(struct mic_maps *maps) {
  if (maps->pending.count) take_line(maps, maps->pending.at, maps->pending.count);
  maps->pending.count = 0;
}

static int read_all(struct mic_maps *maps, int fd, uint32_t pid, struct mic_error *err) {
  char *buffer = mic_alloc(READ_BYTES);
  ssize_t got;
  int code = 0;
  do {
    got = read(fd, buffer, READ_BYTES);
    if (got > 0) mic_maps_feed(maps, buffer, (size_t)got);
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0) code = mic_fail_sys(err, "reading the mappings of process %u", pid);
  mic_maps_end(maps);
  free(buffer);
  return code;
}

int mic_maps_read(struct mic_maps *maps, uint32_t pid, uint32_t tid, struct mic_error *err) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/task/%u/maps", pid, tid ? tid : pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) errno = ESRCH;
    return mic_fail_sys(err, "the mappings of process %u (thread %u)", pid, tid ? tid : pid);
  }
  int code = read_all(maps, fd, pid, err);
  close(fd);
  if (!code && maps->bad_lines)
    code =
      mic_fail(err, MIC_EFORMAT, "%s: %llu lines are no mappings, the first is line %llu", path,
               (unsigned long long)maps->bad_lines, (unsigned long long)maps->first_bad_line);
  return code;
}

void mic_maps_free(struct mic_maps *maps) {
  mic_vec_free(&maps->rows);
  mic_vec_free(&maps->pending);
  mic_arena_free(&maps->names);
  memset(maps, 0, sizeof *maps);
}

const struct mic_map_row *mic_maps_find(const struct mic_maps *maps, uint64_t address) {
  size_t low = 0, high = maps->rows.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (maps->rows.at[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == maps->rows.count || maps->rows.at[low].start > address) return NULL;
  return &maps->rows.at[low];
}
