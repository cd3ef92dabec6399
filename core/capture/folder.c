/*
 * folder.c - open the captures of a folder as one: which there are, in which order, how far apart.
 *
 * Segments are opened once to learn their clocks and stay open while that takes little memory;
 * others are opened again when it is their turn, and may be gone by then.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/merge_inside.h"

/* Open segments may take this much beside the merged rows. */
#define HELD_BYTES (1ULL << 30)

struct segment {
  char *path;
  struct mic_capture *cap; /* NULL: opened again when it is its turn */
  char boot[64];
  uint64_t monotonic_ns, realtime_ns, duration_ns, shift_ns;
  bool skipped;
};
struct folder {
  MIC_VEC(struct segment) segments;
  struct mic_merge *merge;
  uint64_t held;
};

static bool is_segment(const char *name) {
  static const char ending[] = ".usprof";
  size_t size = strlen(name), tail = sizeof ending - 1;
  return size > tail && name[0] != '.' && strcmp(name + size - tail, ending) == 0;
}

static int by_path(const void *left, const void *right) {
  const struct segment *a = left, *b = right;
  return strcmp(a->path, b->path);
}

static int list_segments(struct folder *f, const char *path, struct mic_error *err) {
  DIR *dir = opendir(path);
  if (!dir) return mic_fail_sys(err, "opening %.180s", path);
  const struct dirent *entry;
  while (errno = 0, (entry = readdir(dir))) {
    if (!is_segment(entry->d_name)) continue;
    size_t size = strlen(path) + strlen(entry->d_name) + 2;
    char *file = mic_alloc(size);
    snprintf(file, size, "%s/%s", path, entry->d_name);
    *mic_vec_push(&f->segments) = (struct segment){.path = file};
  }
  int code = errno ? mic_fail_sys(err, "reading %.180s", path) : 0;
  closedir(dir);
  if (f->segments.count) qsort(f->segments.at, f->segments.count, sizeof *f->segments.at, by_path);
  return code;
}

static void skip(struct folder *f, struct segment *s, const char *why) {
  const char *name = strrchr(s->path, '/') + 1;
  char text[512];
  snprintf(text, sizeof text, "segment %s is left out: %s", name, why);
  mic_merge_problem(f->merge, text);
  s->skipped = true;
}

static void read_clocks(struct segment *s) {
  const struct mic_capture *cap = s->cap;
  uint64_t rows, size = 0;
  const uint32_t *boot = mic_capture_array(cap, "clocks", "boot_id", &rows);
  if (!rows) return;
  const char *text = mic_capture_string(cap, boot[0], &size);
  snprintf(s->boot, sizeof s->boot, "%.*s", (int)(size < 63 ? size : 63), text);
  s->monotonic_ns = *(const uint64_t *)mic_capture_array(cap, "clocks", "monotonic_ns", NULL);
  s->realtime_ns = *(const uint64_t *)mic_capture_array(cap, "clocks", "realtime_ns", NULL);
  s->duration_ns = *(const uint64_t *)mic_capture_array(cap, "clocks", "duration_ns", NULL);
}

/* Open a segment that is not; false when it is left out. */
static bool open_segment(struct folder *f, struct segment *s) {
  struct mic_error err = {0};
  if (s->cap || s->skipped) return !s->skipped;
  if (mic_capture_open(s->path, &s->cap, &err) == 0) return true;
  skip(f, s, err.msg);
  return false;
}

static void close_segment(struct segment *s) {
  mic_capture_close(s->cap);
  s->cap = NULL;
}

static void learn(struct folder *f) {
  for (size_t i = 0; i < f->segments.count; i++) {
    struct segment *s = &f->segments.at[i];
    if (!open_segment(f, s)) continue;
    read_clocks(s);
    f->held += s->cap->memory;
    if (f->held <= HELD_BYTES) continue;
    f->held -= s->cap->memory;
    close_segment(s);
  }
}

/* A capture that names no boot, as an imported one, may be of any machine. */
static bool is_boot_of(const struct segment *s, const char *boot) {
  return *boot && strcmp(s->boot, boot) == 0;
}

static const struct segment *first_of_boot(const struct folder *f, const struct segment *s) {
  const struct segment *first = s;
  for (size_t i = 0; i < f->segments.count; i++) {
    const struct segment *other = &f->segments.at[i];
    if (!other->skipped && is_boot_of(other, s->boot) && other->monotonic_ns < first->monotonic_ns)
      first = other;
  }
  return first;
}

/* Where a segment begins on the wall clock, reckoned from the first of its boot. */
static uint64_t begins(const struct folder *f, const struct segment *s) {
  const struct segment *first = first_of_boot(f, s);
  return first->realtime_ns + (s->monotonic_ns - first->monotonic_ns);
}

static int by_start(const void *left, const void *right) {
  const struct segment *a = left, *b = right;
  if (a->skipped != b->skipped) return a->skipped ? 1 : -1;
  if (a->shift_ns != b->shift_ns) return a->shift_ns < b->shift_ns ? -1 : 1;
  return strcmp(a->path, b->path);
}

/* In order of time; shifts from the first.  Gives how many there are. */
static size_t order(struct folder *f) {
  size_t count = 0;
  for (size_t i = 0; i < f->segments.count; i++) {
    struct segment *s = &f->segments.at[i];
    if (s->skipped) continue;
    s->shift_ns = begins(f, s);
    count++;
  }
  if (f->segments.count) qsort(f->segments.at, f->segments.count, sizeof *f->segments.at, by_start);
  uint64_t zero = count ? f->segments.at[0].shift_ns : 0;
  for (size_t i = 0; i < count; i++) f->segments.at[i].shift_ns -= zero;
  return count;
}

static uint32_t add_all(struct folder *f, size_t count) {
  uint64_t end = 0;
  uint32_t added = 0;
  const char *boot = NULL;
  for (size_t i = 0; i < count; i++) {
    struct segment *s = &f->segments.at[i];
    if (!open_segment(f, s)) continue;
    uint64_t gap = s->shift_ns > end ? s->shift_ns - end : 0;
    if (boot && !is_boot_of(s, boot)) gap = MIC_MERGE_OTHER_BOOT;
    mic_merge_add(f->merge, s->cap, s->shift_ns, gap);
    if (s->shift_ns + s->duration_ns > end) end = s->shift_ns + s->duration_ns;
    boot = s->boot;
    added++;
    close_segment(s);
  }
  return added;
}

static void free_folder(struct folder *f) {
  for (size_t i = 0; i < f->segments.count; i++) {
    close_segment(&f->segments.at[i]);
    free(f->segments.at[i].path);
  }
  mic_vec_free(&f->segments);
  mic_merge_free(f->merge);
}

MIC_EXPORT int mic_capture_open_folder(const char *path, struct mic_capture **out,
                                       struct mic_error *err) {
  *out = NULL;
  struct folder f = {.merge = mic_merge_new()};
  int code = list_segments(&f, path, err);
  if (!code && f.segments.count == 0)
    code = mic_fail(err, MIC_ENOENT, "there is no capture (NAME.usprof) in %.180s", path);
  if (!code) {
    learn(&f);
    uint32_t added = add_all(&f, order(&f));
    if (added == 0)
      code = mic_fail(err, MIC_EFORMAT, "none of the %zu captures in %.150s can be read",
                      f.segments.count, path);
  }
  if (!code) {
    code = mic_merge_finish(f.merge, out, err);
    f.merge = NULL;
  }
  free_folder(&f);
  return code;
}
