/*
 * error.h - errors as values.
 *
 * A function that can fail returns 0 or a MIC_E* code and, when its last argument is not
 * NULL, fills a caller-owned struct mic_error: the code, errno where a system call failed,
 * a file offset where the input was malformed, and one line that names the thing, the place
 * and the mend.  Nothing here throws, prints or ends the process.
 */
#ifndef MIC_BASE_ERROR_H
#define MIC_BASE_ERROR_H

#include <stdarg.h>
#include <stdint.h>

/* What Lua may call is exported; everything else in the library is hidden. */
#define MIC_EXPORT __attribute__((visibility("default")))

enum mic_error_code {
#define MIC_ERROR(name, number, text) MIC_##name = number,
#include "base/errors.def"
#undef MIC_ERROR
};

/* ffi:begin */
struct mic_error {
  int32_t code;    /* enum mic_error_code */
  int32_t sys;     /* errno when code is MIC_ESYS, MIC_EPERM or MIC_EGONE, else 0 */
  uint64_t offset; /* file offset of the fault when code is MIC_EFORMAT */
  char msg[240];   /* one line, no newline, always NUL-terminated */
};

/* The name of a code ("EFORMAT"), or "?" for a number that is none.  Static storage. */
const char *mic_code_name(int32_t code);
/* ffi:end */

_Static_assert(sizeof(struct mic_error) == 256, "mic_error is part of the ABI");

/* Fill err (may be NULL) and return code. */
int mic_fail(struct mic_error *err, int code, const char *fmt, ...)
  __attribute__((format(printf, 3, 4)));
/* As mic_fail for malformed input at a file offset; the code is MIC_EFORMAT. */
int mic_fail_at(struct mic_error *err, uint64_t offset, const char *fmt, ...)
  __attribute__((format(printf, 3, 4)));
/* As mic_fail with errno: appends ": strerror(errno)"; MIC_EPERM for EPERM and EACCES,
 * MIC_EGONE for ESRCH, else MIC_ESYS. */
int mic_fail_sys(struct mic_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
