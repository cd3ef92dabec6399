/* meanings.c - files, functions and lines as rows. */
#include "target/meanings.h"

#include <stdlib.h>
#include <string.h>

static uint32_t intern_text(struct mic_meanings *m, const char *text) {
  return mic_intern(&m->strings, text, strlen(text));
}

static uint32_t intern_file(struct mic_meanings *m, const char *path) {
  if (!path) return MIC_NONE;
  uint32_t text = intern_text(m, path);
  bool added;
  uint32_t id = mic_map_intern(&m->files, text, 0, (uint32_t)m->file_paths.count, &added);
  if (added) *mic_vec_push(&m->file_paths) = text;
  return id;
}

static uint32_t intern_function(struct mic_meanings *m, uint32_t module,
                                const struct mic_symbol *symbol) {
  struct mic_meanings_function function = {
    .name = intern_text(m, symbol->name),
    .linkage_name = intern_text(m, symbol->linkage_name),
    .module = module,
    .file = intern_file(m, symbol->decl_file),
    .line = symbol->decl_line,
  };
  uint32_t id = mic_intern(&m->function_keys, (const char *)&function, sizeof function);
  if (id < m->function_rows.count) return m->function_rows.at[id];
  uint32_t row = (uint32_t)m->functions.count;
  *mic_vec_push(&m->function_rows) = row;
  *mic_vec_push(&m->functions) = function;
  return row;
}

static uint32_t intern_of(struct mic_meanings *m, const struct mic_capture *capture, uint32_t id) {
  uint64_t size;
  const char *bytes = mic_capture_string(capture, id, &size);
  return mic_intern(&m->strings, bytes ? bytes : "", size);
}

static void seed_files(struct mic_meanings *m, const struct mic_capture *capture) {
  uint64_t rows;
  const uint32_t *path = mic_capture_array(capture, "files", "path", &rows);
  for (uint32_t i = 0; i < rows; i++) {
    uint32_t text = intern_of(m, capture, path[i]);
    mic_map_intern(&m->files, text, 0, i, NULL);
    *mic_vec_push(&m->file_paths) = text;
  }
  m->known_files = rows;
}

void mic_meanings_seed(struct mic_meanings *m, const struct mic_capture *capture) {
  uint64_t rows;
  const uint32_t *name = mic_capture_array(capture, "functions", "name", &rows),
                 *linkage = mic_capture_array(capture, "functions", "linkage_name", NULL),
                 *module = mic_capture_array(capture, "functions", "module", NULL),
                 *file = mic_capture_array(capture, "functions", "file", NULL),
                 *line = mic_capture_array(capture, "functions", "line", NULL);
  seed_files(m, capture);
  for (uint32_t i = 0; i < rows; i++) {
    struct mic_meanings_function function = {
      .name = intern_of(m, capture, name[i]),
      .linkage_name = intern_of(m, capture, linkage[i]),
      .module = module[i],
      .file = file[i],
      .line = line[i],
    };
    size_t known = m->function_rows.count;
    if (mic_intern(&m->function_keys, (const char *)&function, sizeof function) == known)
      *mic_vec_push(&m->function_rows) = i;
    *mic_vec_push(&m->functions) = function;
  }
  m->known_functions = rows;
}

void mic_meanings_keep(struct mic_meanings *m, const struct mic_meanings_line *line) {
  *mic_vec_push(&m->lines) = *line;
}

void mic_meanings_add(struct mic_meanings *m, uint32_t location, uint32_t module,
                      const struct mic_symbol *frames, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct mic_meanings_line line = {
      .location = location,
      .function = intern_function(m, module, &frames[i]),
      .file = intern_file(m, frames[i].file),
      .line = frames[i].line,
      .depth = (uint32_t)i,
    };
    *mic_vec_push(&m->lines) = line;
  }
}

static int by_location(const void *a, const void *b) {
  const struct mic_meanings_line *x = a, *y = b;
  if (x->location != y->location) return x->location < y->location ? -1 : 1;
  return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static uint32_t write_text(const struct mic_meanings *m, struct mic_writer *writer, uint32_t text) {
  struct mic_string string = mic_interner_at(&m->strings, text);
  return mic_writer_string(writer, string.bytes, string.size);
}

void mic_meanings_write(struct mic_meanings *m, struct mic_writer *writer) {
  for (size_t i = m->known_files; i < m->file_paths.count; i++) {
    struct mic_files_row row = {.path = write_text(m, writer, m->file_paths.at[i])};
    mic_writer_files(writer, &row);
  }
  for (size_t i = m->known_functions; i < m->functions.count; i++) {
    const struct mic_meanings_function *f = &m->functions.at[i];
    struct mic_functions_row row = {
      .name = write_text(m, writer, f->name),
      .linkage_name = write_text(m, writer, f->linkage_name),
      .module = f->module,
      .file = f->file,
      .line = f->line,
    };
    mic_writer_functions(writer, &row);
  }
  if (m->lines.count) qsort(m->lines.at, m->lines.count, sizeof *m->lines.at, by_location);
  for (size_t i = 0; i < m->lines.count; i++) {
    const struct mic_meanings_line *l = &m->lines.at[i];
    struct mic_lines_row row = {.location = l->location,
                                .function = l->function,
                                .file = l->file,
                                .line = l->line,
                                .depth = l->depth};
    mic_writer_lines(writer, &row);
  }
}

void mic_meanings_free(struct mic_meanings *m) {
  mic_interner_free(&m->strings);
  mic_map_free(&m->files);
  mic_vec_free(&m->file_paths);
  mic_interner_free(&m->function_keys);
  mic_vec_free(&m->function_rows);
  mic_vec_free(&m->functions);
  mic_vec_free(&m->lines);
}
