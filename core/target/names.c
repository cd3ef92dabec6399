/* names.c - the naming thread: a queue of locations in, functions and lines out. */
#include "target/names.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "image/symbols.h"
#include "target/image.h"
#include "target/kernel.h"
#include "target/made.h"
#include "target/meanings.h"

struct request {
  uint32_t location;
  struct mic_image *image;
  uint64_t vaddr;
};

/* The symbols of an image: opened once, when a location of it is first named. */
struct known_symbols {
  struct mic_image *image;     /* NULL: nothing of it was asked */
  struct mic_symbols *symbols; /* NULL: could not be opened */
};

typedef MIC_VEC(struct request) requests_vec;

struct mic_names {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  requests_vec asked; /* under the lock */
  bool news;          /* of the asking thread: it was not woken since it was last asked */
  bool closing;       /* under the lock: end when nothing is asked */
  bool dropping;      /* under the lock: end now */
  bool joined;
  /* The thread's own until it is joined. */
  MIC_VEC(struct known_symbols) known; /* by module */
  struct mic_meanings meanings;
};

static void note_problem(struct mic_image *image, const char *problem) {
  if (problem && !image->names_problem)
    image->names_problem = mic_strndup(problem, strlen(problem));
}

static struct mic_symbols *symbols_of(struct mic_names *names, struct mic_image *image) {
  while (names->known.count <= image->module)
    *mic_vec_push(&names->known) = (struct known_symbols){0};
  struct known_symbols *known = &names->known.at[image->module];
  if (known->image) return known->symbols;
  known->image = image;
  struct mic_symbols_source source = {
    .fd = image->fd,
    .memory = image->memory,
    .memory_size = image->memory_size,
    .path = image->path,
    .root = image->root ? image->root : "",
  };
  struct mic_error err = {0};
  if (mic_symbols_open(&source, &known->symbols, &err) != 0) note_problem(image, err.msg);
  return known->symbols;
}

/* What is named by others than an ELF file. */
static void name_plainly(struct mic_names *names, const struct request *request) {
  const struct mic_image *image = request->image;
  const char *name = image->function;
  if (image->kernel) name = mic_kernel_names_find(image->kernel, request->vaddr);
  if (image->made) mic_made_code_find(image->made, request->vaddr, &name);
  if (!name) return;
  struct mic_symbol symbol = {.name = name, .linkage_name = name};
  request->image->named++;
  mic_meanings_add(&names->meanings, request->location, request->image->module, &symbol, 1);
}

static void name_location(struct mic_names *names, const struct request *request) {
  struct mic_image *image = request->image;
  if (!image->elf) {
    name_plainly(names, request);
    return;
  }
  struct mic_symbols *symbols = symbols_of(names, image);
  if (!symbols) return;
  const struct mic_symbol *found;
  size_t count = mic_symbols_lookup(symbols, request->vaddr, &found);
  if (count && found[count - 1].linkage_name[0]) image->named++;
  mic_meanings_add(&names->meanings, request->location, image->module, found, count);
}

/* Takes all that was asked at once; false when the thread is to end. */
static bool take(struct mic_names *names, requests_vec *batch) {
  pthread_mutex_lock(&names->lock);
  while (names->asked.count == 0 && !names->closing && !names->dropping)
    pthread_cond_wait(&names->wake, &names->lock);
  requests_vec empty = *batch;
  *batch = names->asked;
  names->asked = empty;
  names->asked.count = 0;
  bool more = batch->count > 0 && !names->dropping;
  pthread_mutex_unlock(&names->lock);
  return more;
}

static bool dropped(struct mic_names *names) {
  pthread_mutex_lock(&names->lock);
  bool is = names->dropping;
  pthread_mutex_unlock(&names->lock);
  return is;
}

/* What is missing of an image shows as its locations are named, so it is asked for last. */
static void close_symbols(struct mic_names *names) {
  for (size_t i = 0; i < names->known.count; i++) {
    struct known_symbols *known = &names->known.at[i];
    if (known->symbols) {
      note_problem(known->image, mic_symbols_problem(known->symbols));
      const char *debug = mic_symbols_debug_file(known->symbols);
      if (debug) known->image->names_debug = mic_strndup(debug, strlen(debug));
    }
    mic_symbols_close(known->symbols);
  }
  mic_vec_free(&names->known);
}

static void *run(void *data) {
  struct mic_names *names = data;
  requests_vec batch = {0};
  while (take(names, &batch))
    for (size_t i = 0; i < batch.count && !dropped(names); i++) name_location(names, &batch.at[i]);
  mic_vec_free(&batch);
  close_symbols(names);
  return NULL;
}

struct mic_names *mic_names_new(void) {
  struct mic_names *names = mic_alloc(sizeof *names);
  pthread_mutex_init(&names->lock, NULL);
  pthread_cond_init(&names->wake, NULL);
  names->joined = pthread_create(&names->thread, NULL, run, names) != 0;
  return names;
}

void mic_names_ask(struct mic_names *names, uint32_t location, struct mic_image *image,
                   uint64_t vaddr) {
  pthread_mutex_lock(&names->lock);
  *mic_vec_push(&names->asked) = (struct request){location, image, vaddr};
  pthread_mutex_unlock(&names->lock);
  names->news = true;
}

/* To wake it costs as much as to name some locations, so it is done for many at once. */
void mic_names_wake(struct mic_names *names) {
  if (!names->news) return;
  names->news = false;
  pthread_mutex_lock(&names->lock);
  pthread_cond_signal(&names->wake);
  pthread_mutex_unlock(&names->lock);
}

static void join(struct mic_names *names, bool drop) {
  pthread_mutex_lock(&names->lock);
  names->closing = true;
  names->dropping = drop;
  pthread_cond_signal(&names->wake);
  pthread_mutex_unlock(&names->lock);
  if (!names->joined)
    pthread_join(names->thread, NULL);
  else if (!drop)
    run(names); /* no thread could be made: name here */
  names->joined = true;
}

void mic_names_finish(struct mic_names *names, struct mic_writer *writer) {
  join(names, false);
  mic_meanings_write(&names->meanings, writer);
}

void mic_names_free(struct mic_names *names) {
  if (!names) return;
  if (!names->joined) join(names, true);
  pthread_mutex_destroy(&names->lock);
  pthread_cond_destroy(&names->wake);
  mic_vec_free(&names->asked);
  mic_meanings_free(&names->meanings);
  free(names);
}
