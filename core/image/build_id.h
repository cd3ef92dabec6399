/*
 * build_id.h - build IDs as proofs and as text.
 *
 * Threads: any.
 */
#ifndef MIC_IMAGE_BUILD_ID_H
#define MIC_IMAGE_BUILD_ID_H

#include "image/elf.h"

enum { MIC_BUILD_ID_TEXT = 2 * MIC_BUILD_ID_MAX + 1 };

/* Whether the image has this build ID; one of no bytes proves nothing. */
bool mic_build_id_is(const struct mic_elf *elf, const uint8_t *build_id, size_t size);
/* Two digits a byte, in lower case, as paths and captures have it; "" for none. */
void mic_build_id_text(const uint8_t *build_id, size_t size, char out[MIC_BUILD_ID_TEXT]);
/* FOLDER/.build-id/ab/cdef and an ending, as files by build ID are laid out.  False when there is
 * no build ID, or no room. */
bool mic_build_id_path(const char *folder, const uint8_t *build_id, size_t size, const char *ending,
                       char *out, size_t room);
/* Endings of images so laid out, NULL-terminated: links to them, and folders as perf makes them
 * (tools/perf/util/build-id.c). */
extern const char *const mic_build_id_images[];
/* Where `perf record` keeps the images that it saw: PERF_BUILDID_DIR, else ~/.debug.  False when
 * there is no home, or no room. */
bool mic_build_id_perf_folder(char *out, size_t room);

#endif
