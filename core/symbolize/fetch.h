/*
 * fetch.h - files by build ID from debuginfod servers, through libdebuginfod.
 *
 * The library is opened at the first mic_fetch_new, so that nothing else pays for it and for the
 * network libraries behind it.  It keeps what it fetched in its own cache.  What a server gives is
 * not proven here.
 *
 * Fails:   MIC_EUNSUPPORTED without the library, MIC_EARG without DEBUGINFOD_URLS.
 * Threads: one user at a time; progress and cancel may be used by any.
 */
#ifndef MIC_SYMBOLIZE_FETCH_H
#define MIC_SYMBOLIZE_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/symbols_problem.h"

struct mic_fetch;

struct mic_fetch_progress {
  atomic_bool active;
  _Atomic uint64_t bytes, total; /* total 0: not known */
};

enum mic_fetch_kind { MIC_FETCH_DEBUG, MIC_FETCH_IMAGE };

/* cancel ends a fetch within a second when it is set. */
int mic_fetch_new(const atomic_bool *cancel, struct mic_fetch_progress *progress,
                  struct mic_fetch **out, struct mic_error *err);
void mic_fetch_free(struct mic_fetch *fetch); /* NULL is fine */
/* The path of a file that a server gave for a build ID, or NULL and a problem; the caller frees it.
 * Once servers have not answered for as long as they may take, none is asked any more. */
char *mic_fetch_file(struct mic_fetch *fetch, enum mic_fetch_kind kind, const uint8_t *build_id,
                     size_t size, struct mic_problem *problem);

#endif
