/* symbolize.c - the job: a thread that names module by module, then writes. */
#include "symbolize/symbolize.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/ending.h"
#include "capture/names.h"
#include "capture/rewrite.h"
#include "symbolize/find.h"
#include "symbolize/renaming.h"

/* How long free waits for the thread: a fetch looks once a second whether it is to end. */
enum { GRACE_MS = 1500 };

struct place { /* a location to be named */
  uint32_t location, module;
  uint64_t offset;
  uint8_t kind; /* mic_location: what the offset is */
};

typedef MIC_VEC(struct mic_naming_row) naming_rows;

struct mic_symbolize {
  char *input, *output;
  char **folders;    /* the folders given, absolute; NULL-terminated */
  char **debug_dirs; /* NULL-terminated */
  int fd;
  struct mic_capture *capture;
  struct mic_finder finder;
  struct mic_fetch_progress fetching;
  struct mic_renaming renaming;
  MIC_VEC(struct place) places; /* in order of module */
  MIC_VEC(char *) names;        /* of modules: paths as C strings */
  naming_rows naming;           /* the problem is an index into problems */
  MIC_VEC(char *) problems, labels, debugs;
  pthread_t thread;
  struct mic_ending ending;
  int done;
  bool started, told;
  atomic_bool cancel, failed, writing;
  _Atomic uint32_t modules, module_count, current; /* current: of names, +1 */
  _Atomic uint64_t located;
  struct mic_error error; /* written before `done` is signalled */
};

static char *copy(const char *text) {
  return mic_strndup(text ? text : "", text ? strlen(text) : 0);
}

/* --- what is to be named -------------------------------------------------------------------- */

static char *text_of(const struct mic_symbolize *s, const char *column, uint32_t module) {
  const uint32_t *ids = mic_capture_array(s->capture, "modules", column, NULL);
  uint64_t size;
  const char *bytes = mic_capture_string(s->capture, ids[module], &size);
  return mic_strndup(bytes, size);
}

static int by_module(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->module != y->module) return x->module < y->module ? -1 : 1;
  /* Near addresses share what is read of the debug information. */
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->location < y->location ? -1 : x->location > y->location;
}

/* Whether a location's offset is one in its module. */
static bool is_placed(uint8_t kind) {
  return kind == MIC_LOCATION_SIGNAL || mic_location_in_module(kind);
}

static void list_places(struct mic_symbolize *s) {
  uint64_t rows;
  const uint32_t *module = mic_capture_array(s->capture, "locations", "module", &rows);
  const uint64_t *offset = mic_capture_array(s->capture, "locations", "offset", NULL);
  const uint8_t *kind = mic_capture_array(s->capture, "locations", "kind", NULL);
  for (uint32_t i = 0; i < rows; i++) {
    if (is_placed(kind[i]) && module[i] != MIC_NONE)
      *mic_vec_push(&s->places) = (struct place){i, module[i], offset[i], kind[i]};
  }
  if (s->places.count) qsort(s->places.at, s->places.count, sizeof *s->places.at, by_module);
  uint32_t count = 0;
  for (size_t i = 0; i < s->places.count; i++)
    count += i == 0 || s->places.at[i].module != s->places.at[i - 1].module;
  atomic_store(&s->module_count, count);
  uint64_t modules = mic_capture_rows(s->capture, "modules");
  for (uint32_t i = 0; i < modules; i++) *mic_vec_push(&s->names) = text_of(s, "path", i);
}

/* --- one module ----------------------------------------------------------------------------- */

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A build ID of other characters or sizes proves nothing. */
static void parse_build_id(const char *hex, struct mic_wanted *wanted) {
  size_t size = strlen(hex);
  if (size < 4 || size % 2 || size / 2 > MIC_BUILD_ID_MAX) return;
  for (size_t i = 0; i < size; i += 2) {
    int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return;
    wanted->build_id[i / 2] = (uint8_t)(high << 4 | low);
  }
  wanted->build_id_size = size / 2;
}

static struct mic_symbols *open_symbols(struct mic_symbolize *s, const struct mic_wanted *wanted,
                                        struct mic_found *found, struct mic_problem *problem) {
  static const char *const no_folders[] = {NULL};
  struct mic_symbols_source source = {
    .fd = found->fd,
    .memory = found->memory,
    .memory_size = found->memory_size,
    .path = found->path ? found->path : wanted->path,
    .root = "",
    .name = wanted->name,
    .debug_dirs = found->alone ? no_folders : (const char *const *)s->debug_dirs,
    .find_file = found->alone ? NULL : mic_finder_file,
    .find_data = &s->finder,
  };
  struct mic_symbols *symbols = NULL;
  struct mic_error err = {0};
  if (mic_symbols_open(&source, &symbols, &err) != MIC_OK) mic_problem_add(problem, "%s", err.msg);
  return symbols;
}

/* The image that tells which address an imported place has.  A debug file has the addresses of the
 * image's segments, not their places in the file. */
static struct mic_elf *open_layout(const struct mic_found *found) {
  struct mic_elf *elf = NULL;
  struct mic_error err = {0};
  if (found->fd >= 0)
    mic_elf_open(found->fd, "image", &elf, &err);
  else
    mic_elf_open_memory(found->memory, found->memory_size, "image", &elf, &err);
  return elf;
}

/* The address that a place's offset is by the image's segments; false when they do not tell. */
static bool address_of(const struct mic_elf *layout, const struct place *place, uint64_t *vaddr) {
  size_t count = 0;
  if (!layout) return false;
  if (place->kind == MIC_LOCATION_FILE)
    return mic_elf_vaddr_of_offset(layout, place->offset, PF_X, vaddr);
  const struct mic_elf_segment *first = mic_elf_segments(layout, &count);
  return count && !__builtin_add_overflow(place->offset, first->vaddr & ~0xfffULL, vaddr);
}

/* What tells of the places of a module. */
struct teller {
  const struct mic_found *found;
  struct mic_symbols *symbols; /* NULL: nothing does, but for the kernel's own names */
  struct mic_elf *layout;
  struct mic_symbol named; /* by those */
};

static size_t look_up(struct teller *teller, const struct place *place,
                      const struct mic_symbol **frames) {
  uint64_t vaddr = place->offset, code_size = teller->found->code_size;
  if (teller->found->kernel) {
    const char *name = mic_kernel_names_find(teller->found->kernel, vaddr);
    teller->named = (struct mic_symbol){.name = name, .linkage_name = name};
    *frames = &teller->named;
    return name ? 1 : 0;
  }
  if (!teller->symbols || (code_size && vaddr >= code_size)) return 0;
  bool imported = place->kind == MIC_LOCATION_FILE || place->kind == MIC_LOCATION_RELATIVE;
  if (imported && !address_of(teller->layout, place, &vaddr)) return 0;
  return mic_symbols_lookup(teller->symbols, vaddr - teller->found->slide, frames);
}

static void name_places(struct mic_symbolize *s, struct teller *teller, size_t from, size_t past,
                        struct mic_naming_row *row) {
  for (size_t i = from; i < past && !atomic_load(&s->cancel); i++) {
    const struct place *place = &s->places.at[i];
    const struct mic_symbol *frames = NULL;
    size_t count = look_up(teller, place, &frames);
    bool named = mic_renaming_add(&s->renaming, place->location, place->module, frames, count);
    row->named += named;
    row->unnamed += !named;
    atomic_fetch_add(&s->located, 1);
  }
}

static void note(struct mic_symbolize *s, struct mic_naming_row *row, const char *label,
                 const char *debug, const char *problem) {
  *mic_vec_push(&s->labels) = copy(label);
  *mic_vec_push(&s->debugs) = copy(debug);
  *mic_vec_push(&s->problems) = copy(problem);
  *mic_vec_push(&s->naming) = *row;
}

static bool find_module(struct mic_symbolize *s, const struct mic_wanted *wanted,
                        struct mic_found *found) {
  if (wanted->kind == MIC_MODULE_KERNEL) return mic_finder_kernel(&s->finder, wanted, found);
  if (wanted->kind == MIC_MODULE_LOADED) return mic_finder_loaded(&s->finder, wanted, found);
  bool is_image = wanted->kind == MIC_MODULE_ELF || wanted->kind == MIC_MODULE_VDSO;
  if (!is_image && wanted->build_id_size == 0) {
    mic_problem_add(s->finder.problem, "it is no ELF image, or was not proven to be one");
    return false;
  }
  return mic_finder_image(&s->finder, wanted, found);
}

/* Names that only the recording could give: of code that a process made, of BPF programs. */
static bool is_told_once(const struct mic_wanted *wanted) {
  if (wanted->kind == MIC_MODULE_LOADED) return wanted->build_id_size == 0;
  return wanted->kind == MIC_MODULE_MADE;
}

/* The places [from, past), all of one module. */
static void name_module(struct mic_symbolize *s, size_t from, size_t past) {
  struct mic_problem problem = {.size = 0};
  uint32_t module = s->places.at[from].module;
  const uint8_t *kind = mic_capture_array(s->capture, "modules", "kind", NULL);
  char *name = text_of(s, "name", module), *build_id = text_of(s, "build_id", module);
  struct mic_wanted wanted = {
    .module = module, .kind = kind[module], .path = s->names.at[module], .name = name};
  struct mic_naming_row row = {.module = module, .state = MIC_NAMING_DONE};
  struct mic_found found = {.fd = -1};
  struct teller teller = {.found = &found};
  parse_build_id(build_id, &wanted);
  atomic_store(&s->current, module + 1);
  s->finder.problem = &problem;
  bool asks = !is_told_once(&wanted);
  if (asks && find_module(s, &wanted, &found) && !found.kernel)
    teller.symbols = open_symbols(s, &wanted, &found, &problem);
  if (teller.symbols) teller.layout = open_layout(&found);
  name_places(s, &teller, from, past, &row);
  mic_elf_close(teller.layout);
  const char *missing = teller.symbols ? mic_symbols_problem(teller.symbols) : NULL;
  if (missing) mic_problem_add(&problem, "%s", missing);
  const char *debug = teller.symbols ? mic_symbols_debug_file(teller.symbols) : NULL;
  if (asks) note(s, &row, found.label, debug, problem.text);
  mic_symbols_close(teller.symbols);
  mic_found_release(&found);
  free(name);
  free(build_id);
}

/* --- the output ----------------------------------------------------------------------------- */

/* The first attempt of each module stays, as `modules` may repeat its words. */
static void write_first_naming(struct mic_symbolize *s, struct mic_writer *writer) {
  uint64_t rows;
  const uint32_t *module = mic_capture_array(s->capture, "naming", "module", &rows);
  const uint8_t *state = mic_capture_array(s->capture, "naming", "state", NULL);
  const uint32_t *image = mic_capture_array(s->capture, "naming", "image", NULL),
                 *debug = mic_capture_array(s->capture, "naming", "debug", NULL),
                 *problem = mic_capture_array(s->capture, "naming", "problem", NULL);
  const uint64_t *named = mic_capture_array(s->capture, "naming", "named", NULL),
                 *unnamed = mic_capture_array(s->capture, "naming", "unnamed", NULL);
  struct mic_map seen = {0};
  for (uint32_t i = 0; i < rows; i++) {
    bool added;
    mic_map_intern(&seen, module[i], 0, 0, &added);
    struct mic_naming_row row = {module[i], state[i],   image[i],  debug[i],
                                 named[i],  unnamed[i], problem[i]};
    if (added) mic_writer_naming(writer, &row);
  }
  mic_map_free(&seen);
}

static void write_naming(struct mic_symbolize *s, struct mic_writer *writer) {
  write_first_naming(s, writer);
  for (size_t i = 0; i < s->naming.count; i++) {
    struct mic_naming_row row = s->naming.at[i];
    row.image = mic_writer_text(writer, s->labels.at[i]);
    row.debug = mic_writer_text(writer, s->debugs.at[i]);
    row.problem = mic_writer_text(writer, s->problems.at[i]);
    mic_writer_naming(writer, &row);
  }
}

/* Lines of locations that are in no module: of formats of others. */
static void keep_other_lines(struct mic_symbolize *s) {
  uint64_t rows;
  const uint32_t *module = mic_capture_array(s->capture, "locations", "module", &rows);
  const uint8_t *kind = mic_capture_array(s->capture, "locations", "kind", NULL);
  for (uint32_t i = 0; i < rows; i++) {
    if (!is_placed(kind[i]) || module[i] == MIC_NONE)
      mic_renaming_add(&s->renaming, i, MIC_NONE, NULL, 0);
  }
}

static int write_output(struct mic_symbolize *s, struct mic_error *err) {
  static const enum mic_table_id replaced[] = {MIC_TABLE_lines, MIC_TABLE_naming};
  struct mic_rewrite rewrite = {.fd = s->fd,
                                .capture = s->capture,
                                .replaced = replaced,
                                .replaced_count = 2,
                                .cancel = &s->cancel};
  struct mic_writer *writer;
  atomic_store(&s->writing, true);
  keep_other_lines(s);
  int code = mic_rewrite_open(&rewrite, s->output, &writer, err);
  if (code != MIC_OK) return code;
  mic_meanings_write(&s->renaming.meanings, writer);
  write_naming(s, writer);
  if (!atomic_load(&s->cancel)) return mic_writer_finish(writer, false, err);
  mic_writer_discard(writer);
  return mic_fail(err, MIC_ESTATE, "interrupted");
}

static int work(struct mic_symbolize *s, struct mic_error *err) {
  for (size_t from = 0, past; from < s->places.count && !atomic_load(&s->cancel); from = past) {
    past = from + 1;
    while (past < s->places.count && s->places.at[past].module == s->places.at[from].module) past++;
    name_module(s, from, past);
    atomic_fetch_add(&s->modules, 1);
  }
  return atomic_load(&s->cancel) ? mic_fail(err, MIC_ESTATE, "interrupted") : write_output(s, err);
}

static void *run(void *data) {
  struct mic_symbolize *s = data;
  struct mic_error err = {0};
  if (work(s, &err) != MIC_OK) {
    s->error = err;
    atomic_store(&s->failed, true);
  }
  uint64_t one = 1;
  ssize_t ignored = write(s->done, &one, sizeof one);
  (void)ignored;
  return NULL;
}

/* --- the caller's side ---------------------------------------------------------------------- */

/* Folders as they are now, whatever the current one is later; and where debug files lie in them. */
static int take_folders(struct mic_symbolize *s, const char *const *given, struct mic_error *err) {
  size_t count = 0, at = 0;
  while (given && given[count]) count++;
  s->folders = mic_alloc((count + 1) * sizeof *s->folders);
  s->debug_dirs = mic_alloc((2 * count + 2) * sizeof *s->debug_dirs);
  for (size_t i = 0; i < count; i++) {
    struct stat st;
    char *folder = s->folders[i] = realpath(given[i], NULL);
    if (!folder || stat(folder, &st) != 0)
      return mic_fail_sys(err, "the debug folder %.150s", given[i]);
    if (!S_ISDIR(st.st_mode)) return mic_fail(err, MIC_EARG, "%.150s is no folder", given[i]);
    size_t size = strlen(folder) + sizeof "/usr/lib/debug";
    s->debug_dirs[at++] = copy(folder);
    s->debug_dirs[at] = mic_alloc(size);
    snprintf(s->debug_dirs[at++], size, "%s/usr/lib/debug", folder);
  }
  s->debug_dirs[at] = copy("/usr/lib/debug");
  return MIC_OK;
}

/* The one value of a fact: of captures made of several, only what all agree on. */
static char *fact(const struct mic_symbolize *s, const char *name) {
  uint64_t rows;
  const uint32_t *key = mic_capture_array(s->capture, "meta", "key", &rows);
  const uint32_t *value = mic_capture_array(s->capture, "meta", "value", NULL);
  char *found = NULL;
  for (uint32_t i = 0; i < rows; i++) {
    uint64_t size;
    const char *bytes = mic_capture_string(s->capture, key[i], &size);
    if (size != strlen(name) || memcmp(bytes, name, size) != 0) continue;
    bytes = mic_capture_string(s->capture, value[i], &size);
    char *text = mic_strndup(bytes, size);
    bool other = found && strcmp(found, text) != 0;
    free(found);
    found = text;
    if (!other) continue;
    found[0] = '\0';
    break;
  }
  return found ? found : copy("");
}

static void take_kernel(struct mic_symbolize *s) {
  char *address = fact(s, "kernel_text"), *end;
  s->finder.kernel_release = fact(s, "kernel");
  s->finder.kernel_symbol = fact(s, "kernel_text_symbol");
  s->finder.kernel_address = strtoull(address, &end, 16);
  if (end == address || *end) s->finder.kernel_symbol[0] = '\0';
  free(address);
}

static int take_signals(struct mic_symbolize *s, struct mic_error *err) {
  s->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->done < 0) return mic_fail_sys(err, "no descriptor for the end");
  return mic_ending_take(&s->ending, err);
}

static int open_input(struct mic_symbolize *s, struct mic_error *err) {
  s->fd = open(s->input, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (s->fd < 0) return mic_fail_sys(err, "opening %.180s", s->input);
  return mic_capture_open_fd(s->fd, &s->capture, err);
}

static int prepare(struct mic_symbolize *s, const struct mic_symbolize_options *options,
                   struct mic_error *err) {
  int code = take_folders(s, options->debug_dirs, err);
  if (code == MIC_OK && options->debuginfod)
    code = mic_fetch_new(&s->cancel, &s->fetching, &s->finder.fetch, err);
  if (code == MIC_OK) code = open_input(s, err);
  if (code == MIC_OK) code = take_signals(s, err);
  if (code != MIC_OK) return code;
  mic_kept_begin(&s->finder.kept, s->capture);
  s->finder.folders = s->finder.scan.folders = (const char *const *)s->folders;
  s->finder.debug_dirs = (const char *const *)s->debug_dirs;
  s->finder.scan.cancel = &s->cancel;
  take_kernel(s);
  list_places(s);
  mic_renaming_begin(&s->renaming, s->capture);
  int failed = pthread_create(&s->thread, NULL, run, s);
  s->started = !failed;
  errno = failed;
  return failed ? mic_fail_sys(err, "the naming thread could not be made") : MIC_OK;
}

MIC_EXPORT int mic_symbolize_new(const struct mic_symbolize_options *options,
                                 struct mic_symbolize **out, struct mic_error *err) {
  *out = NULL;
  if (options->size != sizeof *options || !options->input || !options->output)
    return mic_fail(err, MIC_EARG, "bad symbolize options");
  struct mic_symbolize *s = mic_alloc(sizeof *s);
  s->fd = s->ending.fd = s->done = -1;
  s->input = copy(options->input);
  s->output = copy(options->output);
  int code = prepare(s, options, err);
  if (code == MIC_OK)
    *out = s;
  else
    mic_symbolize_free(s);
  return code;
}

MIC_EXPORT uint32_t mic_symbolize_poll(struct mic_symbolize *s, int32_t timeout_ms,
                                       int32_t *signal) {
  struct pollfd fds[] = {{.fd = s->ending.fd, .events = POLLIN},
                         {.fd = s->told ? -1 : s->done, .events = POLLIN}};
  *signal = 0;
  poll(fds, 2, timeout_ms);
  uint64_t count;
  if (!s->told && read(s->done, &count, sizeof count) == (ssize_t)sizeof count) {
    s->told = true;
    return atomic_load(&s->failed) ? MIC_SYMBOLIZE_FAILED : MIC_SYMBOLIZE_DONE;
  }
  *signal = mic_ending_next(&s->ending);
  return *signal ? MIC_SYMBOLIZE_INTERRUPTED : MIC_SYMBOLIZE_TICK;
}

MIC_EXPORT void mic_symbolize_progress(struct mic_symbolize *s,
                                       struct mic_symbolize_progress *out) {
  uint32_t current = atomic_load(&s->current);
  *out = (struct mic_symbolize_progress){
    .modules = atomic_load(&s->module_count),
    .module = atomic_load(&s->modules),
    .locations = s->places.count,
    .located = atomic_load(&s->located),
    .fetched = atomic_load(&s->fetching.bytes),
    .fetch_bytes = atomic_load(&s->fetching.total),
    .fetching = atomic_load(&s->fetching.active),
    .writing = atomic_load(&s->writing),
    .name = current ? s->names.at[current - 1] : "",
  };
}

MIC_EXPORT void mic_symbolize_stop(struct mic_symbolize *s) { atomic_store(&s->cancel, true); }

MIC_EXPORT void mic_symbolize_error(const struct mic_symbolize *s, struct mic_error *out) {
  *out = s->error;
}

static void free_texts(char **texts) {
  for (char **text = texts; text && *text; text++) free(*text);
  free(texts);
}

static void release(struct mic_symbolize *s) {
  mic_finder_free(&s->finder);
  mic_renaming_free(&s->renaming);
  mic_capture_close(s->capture);
  if (s->fd >= 0) close(s->fd);
  if (s->done >= 0) close(s->done);
  for (size_t i = 0; i < s->names.count; i++) free(s->names.at[i]);
  for (size_t i = 0; i < s->naming.count; i++) {
    free(s->labels.at[i]);
    free(s->debugs.at[i]);
    free(s->problems.at[i]);
  }
  mic_vec_free(&s->names);
  mic_vec_free(&s->naming);
  mic_vec_free(&s->labels);
  mic_vec_free(&s->debugs);
  mic_vec_free(&s->problems);
  mic_vec_free(&s->places);
  free_texts(s->folders);
  free_texts(s->debug_dirs);
  free(s->input);
  free(s->output);
  free(s);
}

/* False when the thread did not end in time. */
static bool join(struct mic_symbolize *s) {
  struct timespec until;
  if (!s->started) return true;
  atomic_store(&s->cancel, true);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += GRACE_MS / 1000;
  until.tv_nsec += GRACE_MS % 1000 * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000L;
  }
  return pthread_timedjoin_np(s->thread, NULL, &until) == 0;
}

MIC_EXPORT void mic_symbolize_free(struct mic_symbolize *s) {
  if (!s) return;
  bool ended = join(s);
  mic_ending_release(&s->ending);
  if (ended) release(s);
}
