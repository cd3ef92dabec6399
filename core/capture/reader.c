/*
 * reader.c - open a capture and give access to what was loaded.
 */
#include "capture/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "capture/inside.h"

static uint64_t default_limit(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 * 3 : UINT64_MAX;
}

static int check_version(const struct mic_format_header *h, struct mic_error *err) {
  if (h->major > MIC_FORMAT_MAJOR)
    return mic_fail(
      err, MIC_EVERSION,
      "the capture has format version %u.%u, this microscope reads %u: use a newer one", h->major,
      h->minor, MIC_FORMAT_MAJOR);
  if (h->features)
    return mic_fail(
      err, MIC_EVERSION,
      "the capture needs features 0x%llx that this microscope has not: use a newer one",
      (unsigned long long)h->features);
  if (h->major < MIC_FORMAT_MAJOR || h->header_size != sizeof *h)
    return mic_fail_at(err, 8, "header: version %u.%u of %u bytes is none" MIC_MEND, h->major,
                       h->minor, h->header_size);
  return 0;
}

static int check_header(const struct mic_format_header *h, uint64_t size, struct mic_error *err) {
  size_t summed = offsetof(struct mic_format_header, header_checksum);
  if (memcmp(h->magic, MIC_FORMAT_MAGIC, sizeof h->magic) != 0)
    return mic_fail_at(err, 0, "not a capture: it does not begin as one");
  if (mic_hash(h, summed) != h->header_checksum)
    return mic_fail_at(err, summed, "header: its checksum is wrong" MIC_MEND);
  int code = check_version(h, err);
  if (code) return code;
  if (h->file_size != size)
    return mic_fail_at(err, size < h->file_size ? size : h->file_size,
                       "the file has %llu bytes where %llu were written" MIC_MEND,
                       (unsigned long long)size, (unsigned long long)h->file_size);
  if (h->directory_offset < sizeof *h || h->directory_offset % MIC_FORMAT_ALIGN ||
      h->directory_offset > size || h->directory_size != size - h->directory_offset)
    return mic_fail_at(err, offsetof(struct mic_format_header, directory_offset),
                       "header: the directory is not at the file's end" MIC_MEND);
  return 0;
}

static int read_directory(struct mic_capture *cap, const struct mic_capture_source *source,
                          const struct mic_format_header *h, struct mic_error *err) {
  uint8_t *room = source->fd < 0 ? NULL : mic_try_alloc(1, h->directory_size);
  if (source->fd >= 0 && !room) return mic_fail(err, MIC_ELIMIT, "no memory for the directory");
  int code = MIC_EFORMAT;
  const uint8_t *bytes =
    mic_capture_read(source, h->directory_offset, h->directory_size, room, err);
  if (!bytes)
    code = err ? err->code : MIC_ESYS;
  else if (mic_hash(bytes, h->directory_size) != h->directory_checksum)
    mic_fail_at(err, h->directory_offset, "directory: its checksum is wrong" MIC_MEND);
  else
    code = mic_capture_directory(cap, bytes, h->directory_size, h->directory_offset, err);
  free(room);
  return code;
}

/* What the rows take in memory is known from the directory: a small file may not claim a large
 * machine's worth. */
static int check_memory(struct mic_capture *cap, uint64_t limit, struct mic_error *err) {
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    const struct mic_schema_column *s = &mic_schema_columns[c];
    if (cap->columns[c].present) cap->memory += cap->tables[s->table].rows * s->width;
  }
  if (cap->memory <= limit) return 0;
  return mic_fail(err, MIC_ELIMIT,
                  "its rows need %llu MiB of memory, more than the %llu MiB that it may take here",
                  (unsigned long long)(cap->memory >> 20), (unsigned long long)(limit >> 20));
}

static int load_source(struct mic_capture *cap, const struct mic_capture_source *source,
                       uint64_t limit, struct mic_error *err) {
  struct mic_format_header header;
  if (source->size < sizeof header)
    return mic_fail_at(err, 0, "not a capture: %llu bytes are less than a header",
                       (unsigned long long)source->size);
  const uint8_t *bytes = mic_capture_read(source, 0, sizeof header, &header, err);
  if (!bytes) return err ? err->code : MIC_ESYS;
  memmove(&header, bytes, sizeof header);
  int code = check_header(&header, source->size, err);
  if (code) return code;
  cap->major = header.major;
  cap->minor = header.minor;
  cap->file_size = source->size;
  code = read_directory(cap, source, &header, err);
  if (!code) code = check_memory(cap, limit, err);
  if (!code) code = mic_capture_load(cap, source, err);
  if (!code) code = mic_capture_validate(cap, err);
  return code;
}

static int open_source(const struct mic_capture_source *source, uint64_t limit,
                       struct mic_capture **out, struct mic_error *err) {
  struct mic_error unseen; /* the files below read the code back from the error */
  struct mic_capture *cap = mic_alloc(sizeof *cap);
  int code = load_source(cap, source, limit ? limit : default_limit(), err ? err : &unseen);
  if (code) {
    mic_capture_close(cap);
    cap = NULL;
  }
  *out = cap;
  return code;
}

static int open_fd(int fd, const char *name, struct mic_capture **out, struct mic_error *err) {
  struct mic_capture_source source = {.fd = fd};
  struct stat st;
  *out = NULL;
  if (fstat(fd, &st) != 0) return mic_fail_sys(err, "opening %.180s", name);
  if (!S_ISREG(st.st_mode)) return mic_fail(err, MIC_EARG, "%.180s is not a regular file", name);
  source.size = (uint64_t)st.st_size;
  return open_source(&source, 0, out, err);
}

MIC_EXPORT int mic_capture_open_fd(int32_t fd, struct mic_capture **out, struct mic_error *err) {
  return open_fd(fd, "the capture", out, err);
}

MIC_EXPORT int mic_capture_open(const char *path, struct mic_capture **out, struct mic_error *err) {
  *out = NULL;
  /* Without O_NONBLOCK the open of a fifo would wait for its writer. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return mic_fail_sys(err, "opening %.180s", path);
  int code = open_fd(fd, path, out, err);
  close(fd);
  return code;
}

MIC_EXPORT int mic_capture_open_memory(const void *bytes, uint64_t size, uint64_t memory_limit,
                                       struct mic_capture **out, struct mic_error *err) {
  struct mic_capture_source source = {.fd = -1, .bytes = bytes, .size = size};
  return open_source(&source, memory_limit, out, err);
}

MIC_EXPORT void mic_capture_close(struct mic_capture *cap) {
  if (!cap) return;
  for (uint32_t c = 0; c < MIC_COLUMN_COUNT; c++) {
    free(cap->columns[c].data);
    free(cap->columns[c].entries);
  }
  for (uint32_t t = 0; t < MIC_TABLE_COUNT; t++) free(cap->tables[t].starts);
  free(cap);
}

MIC_EXPORT void mic_capture_info(const struct mic_capture *cap, struct mic_capture_info *out) {
  *out = (struct mic_capture_info){cap->major,  cap->minor,      cap->file_size,
                                   cap->memory, MIC_TABLE_COUNT, cap->skipped};
}

static uint32_t find_table(const char *name) {
  uint32_t t = 0;
  while (t < MIC_TABLE_COUNT && strcmp(mic_schema_tables[t].name, name) != 0) t++;
  return t;
}

MIC_EXPORT const char *mic_capture_table(uint32_t index) {
  return index < MIC_TABLE_COUNT ? mic_schema_tables[index].name : NULL;
}

MIC_EXPORT const char *mic_capture_table_doc(const char *table) {
  uint32_t t = find_table(table);
  return t < MIC_TABLE_COUNT ? mic_schema_tables[t].doc : NULL;
}

MIC_EXPORT uint64_t mic_capture_rows(const struct mic_capture *cap, const char *table) {
  uint32_t t = find_table(table);
  return t < MIC_TABLE_COUNT ? cap->tables[t].rows : 0;
}

/* Absent: in a table that is there, a column of a later version than the file's. */
static bool is_absent(const struct mic_capture *cap, uint32_t c) {
  return cap->tables[mic_schema_columns[c].table].present && !cap->columns[c].present;
}

static const uint64_t nothing[1] = {0};

static void describe_column(uint32_t c, struct mic_column *out) {
  const struct mic_schema_column *s = &mic_schema_columns[c];
  *out = (struct mic_column){
    .table = mic_schema_tables[s->table].name,
    .name = s->name,
    .ref = s->ref,
    .doc = s->doc,
    .width = s->width,
    .unit = s->unit,
    .optional = (s->flags & MIC_COL_OPTIONAL) != 0,
    .starts = nothing,
  };
}

static void fill_column(const struct mic_capture *cap, uint32_t c, struct mic_column *out) {
  const struct mic_capture_table *table = &cap->tables[mic_schema_columns[c].table];
  describe_column(c, out);
  out->blocks = table->blocks;
  out->rows = table->rows;
  out->data = cap->columns[c].data;
  if (table->starts) out->starts = table->starts;
}

static int no_table(const char *table, struct mic_error *err) {
  return mic_fail(err, MIC_ENOENT, "there is no table %.60s", table);
}

MIC_EXPORT int mic_schema_column(const char *table, uint32_t index, struct mic_column *out,
                                 struct mic_error *err) {
  uint32_t t = find_table(table);
  if (t == MIC_TABLE_COUNT) return no_table(table, err);
  if (index >= mic_schema_tables[t].past - mic_schema_tables[t].first)
    return mic_fail(err, MIC_ENOENT, "table %s has no more columns", mic_schema_tables[t].name);
  describe_column(mic_schema_tables[t].first + index, out);
  return 0;
}

MIC_EXPORT int mic_capture_column_at(const struct mic_capture *cap, const char *table,
                                     uint32_t index, struct mic_column *out,
                                     struct mic_error *err) {
  uint32_t t = find_table(table);
  if (t == MIC_TABLE_COUNT) return no_table(table, err);
  for (uint32_t c = mic_schema_tables[t].first; c < mic_schema_tables[t].past; c++) {
    if (is_absent(cap, c) || index--) continue;
    fill_column(cap, c, out);
    return 0;
  }
  return mic_fail(err, MIC_ENOENT, "table %s has no more columns", mic_schema_tables[t].name);
}

MIC_EXPORT int mic_capture_column(const struct mic_capture *cap, const char *table,
                                  const char *name, struct mic_column *out, struct mic_error *err) {
  uint32_t t = find_table(table);
  if (t == MIC_TABLE_COUNT) return no_table(table, err);
  for (uint32_t c = mic_schema_tables[t].first; c < mic_schema_tables[t].past; c++) {
    if (strcmp(mic_schema_columns[c].name, name) != 0) continue;
    if (is_absent(cap, c))
      return mic_fail(err, MIC_ENOENT, "the capture is older than its column %s.%s", table, name);
    fill_column(cap, c, out);
    return 0;
  }
  return mic_fail(err, MIC_ENOENT, "table %.60s has no column %.60s", table, name);
}

MIC_EXPORT int mic_capture_block(const struct mic_column *column, uint32_t index,
                                 struct mic_block *out) {
  if (index >= column->blocks) return MIC_ENOENT;
  uint64_t row = column->starts[index];
  *out = (struct mic_block){(const uint8_t *)column->data + row * column->width,
                            column->starts[index + 1] - row, row};
  return 0;
}

MIC_EXPORT const void *mic_capture_array(const struct mic_capture *cap, const char *table,
                                         const char *name, uint64_t *rows) {
  struct mic_column column = {.rows = 0};
  mic_capture_column(cap, table, name, &column, NULL);
  if (rows) *rows = column.rows;
  return column.data;
}

MIC_EXPORT const char *mic_capture_string(const struct mic_capture *cap, uint32_t id,
                                          uint64_t *size) {
  const uint64_t *end = cap->columns[MIC_COLUMN_strings_end].data;
  const char *bytes = cap->columns[MIC_COLUMN_string_bytes_byte].data;
  if (id >= cap->tables[MIC_TABLE_strings].rows) {
    *size = 0;
    return NULL;
  }
  uint64_t start = id ? end[id - 1] : 0;
  *size = end[id] - start;
  return bytes ? bytes + start : "";
}
