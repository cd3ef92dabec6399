/* fetch.c - libdebuginfod, opened when it is needed. */
#include "symbolize/fetch.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "image/build_id.h"

/* How long servers may take without a byte coming, unless DEBUGINFOD_TIMEOUT says otherwise: far
 * beyond what a server needs that looks into its archives, and less than people wait for nothing.
 */
enum { STALL_S = 30 };

/* How large a fetched file may be, unless DEBUGINFOD_MAXSIZE says otherwise (libdebuginfod compares
 * that with what servers announce only): the debug files of browsers have some GiB, and a server
 * that never ends fills the disk. */
#define SIZE_MAX_BYTES (16ULL << 30)

struct mic_fetch {
  debuginfod_client *client;
  const atomic_bool *cancel;
  struct mic_fetch_progress *progress;
  uint64_t stall_ns;
  long last;         /* what the last call told of progress */
  uint64_t moved_ns; /* when that last changed */
  bool stalled;      /* servers did not answer: none is asked again */
  uint64_t size_max;
  bool too_large; /* what came now was more than that */
  debuginfod_client *(*begin)(void);
  void (*end)(debuginfod_client *);
  void (*set_progress)(debuginfod_client *, debuginfod_progressfn_t);
  int (*find_debug)(debuginfod_client *, const unsigned char *, int, char **);
  int (*find_image)(debuginfod_client *, const unsigned char *, int, char **);
};

/* The address of a function, by the way POSIX gives for it. */
static bool take(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

static int open_library(struct mic_fetch *f, struct mic_error *err) {
  void *library = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return mic_fail(err, MIC_EUNSUPPORTED,
                    "--debuginfod needs %s, which is not installed (Debian: libdebuginfod1)",
                    DEBUGINFOD_SONAME);
  if (take(library, "debuginfod_begin", &f->begin) && take(library, "debuginfod_end", &f->end) &&
      take(library, "debuginfod_set_progressfn", &f->set_progress) &&
      take(library, "debuginfod_find_debuginfo", &f->find_debug) &&
      take(library, "debuginfod_find_executable", &f->find_image))
    return MIC_OK;
  return mic_fail(err, MIC_EUNSUPPORTED, "%s has not the functions that it should have",
                  DEBUGINFOD_SONAME);
}

/* The one at work: the library gives its progress function the client only. */
static _Thread_local struct mic_fetch *working;

/* Before a server is chosen `a` counts calls; after that it is bytes, of `b` when that is known. */
static int on_progress(debuginfod_client *client, long a, long b) {
  (void)client;
  struct mic_fetch *f = working;
  if (atomic_load(f->cancel)) return 1;
  uint64_t now_ns = mic_clock_ns();
  bool moved = b > 0 ? a != f->last : a < f->last || a > f->last + 1;
  f->last = a;
  if (moved) {
    f->moved_ns = now_ns;
    atomic_store(&f->progress->bytes, a > 0 ? (uint64_t)a : 0);
    atomic_store(&f->progress->total, b > 0 ? (uint64_t)b : 0);
  }
  f->stalled = now_ns - f->moved_ns > f->stall_ns;
  f->too_large = a > 0 && (uint64_t)a > f->size_max;
  return f->stalled || f->too_large;
}

int mic_fetch_new(const atomic_bool *cancel, struct mic_fetch_progress *progress,
                  struct mic_fetch **out, struct mic_error *err) {
  *out = NULL;
  const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR), *timeout = getenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
  if (!urls || !urls[strspn(urls, " ")])
    return mic_fail(err, MIC_EARG,
                    "--debuginfod asks the servers of DEBUGINFOD_URLS, which names none: set it, as"
                    " DEBUGINFOD_URLS=https://debuginfod.elfutils.org");
  struct mic_fetch *f = mic_alloc(sizeof *f);
  int code = open_library(f, err);
  if (code == MIC_OK && !(f->client = f->begin()))
    code = mic_fail(err, MIC_ESYS, "libdebuginfod could not be started");
  if (code != MIC_OK) {
    free(f);
    return code;
  }
  long seconds = timeout ? strtol(timeout, NULL, 10) : 0;
  f->stall_ns = (uint64_t)(seconds > 0 && seconds < 86400 ? seconds : STALL_S) * 1000000000u;
  const char *most = getenv(DEBUGINFOD_MAXSIZE_ENV_VAR);
  long bytes = most ? strtol(most, NULL, 10) : 0;
  f->size_max = bytes > 0 ? (uint64_t)bytes : SIZE_MAX_BYTES;
  f->cancel = cancel;
  f->progress = progress;
  f->set_progress(f->client, on_progress);
  *out = f;
  return MIC_OK;
}

void mic_fetch_free(struct mic_fetch *f) {
  if (!f) return;
  f->end(f->client);
  free(f);
}

/* libdebuginfod's cache, by the rules of debuginfod_find_debuginfo(3). */
static void cache_folder(char *out, size_t room) {
  const char *own = getenv(DEBUGINFOD_CACHE_PATH_ENV_VAR), *xdg = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  if (!home) home = "/";
  if (own && *own) {
    snprintf(out, room, "%s", own);
    return;
  }
  snprintf(out, room, "%s/.debuginfod_client_cache", home);
  if (access(out, F_OK) == 0) return;
  if (xdg && *xdg)
    snprintf(out, room, "%s/debuginfod_client", xdg);
  else
    snprintf(out, room, "%s/.cache/debuginfod_client", home);
}

/* libdebuginfod 0.188 keeps a fetch that its progress function ended as one that no server could
 * answer: an empty file that would stand for the next ten minutes.  What was there before is older
 * than the fetch. */
static void forget_miss(enum mic_fetch_kind kind, const uint8_t *build_id, size_t size,
                        time_t began) {
  char folder[4096], hex[MIC_BUILD_ID_TEXT], path[sizeof folder + sizeof hex + 32];
  struct stat st;
  cache_folder(folder, sizeof folder);
  mic_build_id_text(build_id, size, hex);
  snprintf(path, sizeof path, "%s/%s/%s", folder, hex,
           kind == MIC_FETCH_DEBUG ? "debuginfo" : "executable");
  if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 && st.st_mtime >= began)
    unlink(path);
}

static void add_problem(struct mic_fetch *f, int code, struct mic_problem *problem) {
  char text[128];
  if (f->stalled)
    mic_problem_add(problem, "debuginfod: no answer within %llu s",
                    (unsigned long long)(f->stall_ns / 1000000000u));
  else if (f->too_large)
    mic_problem_add(problem, "debuginfod: a server sent more than %llu bytes",
                    (unsigned long long)f->size_max);
  else if (code == -ENOENT)
    mic_problem_add(problem, "debuginfod: no server has its build ID");
  else
    mic_problem_add(problem, "debuginfod: %s", strerror_r(-code, text, sizeof text));
}

char *mic_fetch_file(struct mic_fetch *f, enum mic_fetch_kind kind, const uint8_t *build_id,
                     size_t size, struct mic_problem *problem) {
  if (f->stalled) {
    mic_problem_add(problem, "debuginfod: not asked, as the servers gave no answer before");
    return NULL;
  }
  if (atomic_load(f->cancel)) return NULL;
  char *path = NULL;
  time_t began = time(NULL);
  f->last = 0;
  f->too_large = false;
  f->moved_ns = mic_clock_ns();
  working = f;
  atomic_store(&f->progress->bytes, 0);
  atomic_store(&f->progress->total, 0);
  atomic_store(&f->progress->active, true);
  int fd = kind == MIC_FETCH_DEBUG ? f->find_debug(f->client, build_id, (int)size, &path)
                                   : f->find_image(f->client, build_id, (int)size, &path);
  atomic_store(&f->progress->active, false);
  working = NULL;
  if (fd >= 0) {
    close(fd);
    return path;
  }
  free(path);
  if (f->stalled || f->too_large || atomic_load(f->cancel))
    forget_miss(kind, build_id, size, began);
  if (!atomic_load(f->cancel)) add_problem(f, fd, problem);
  return NULL;
}
