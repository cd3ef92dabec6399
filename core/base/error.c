/* error.c - fill a caller's error. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

MIC_EXPORT const char *mic_code_name(int32_t code) {
  switch (code) {
#define MIC_ERROR(name, number, text) \
  case number:                        \
    return #name;
#include "base/errors.def"
#undef MIC_ERROR
  default: return "?";
  }
}

/* Control characters of names that come from outside would break the one-line promise. */
static void fill(struct mic_error *err, int code, const char *fmt, va_list args) {
  memset(err, 0, sizeof *err);
  err->code = code;
  vsnprintf(err->msg, sizeof err->msg, fmt, args);
  for (char *c = err->msg; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

int mic_fail(struct mic_error *err, int code, const char *fmt, ...) {
  if (!err) return code;
  va_list args;
  va_start(args, fmt);
  fill(err, code, fmt, args);
  va_end(args);
  return code;
}

int mic_fail_at(struct mic_error *err, uint64_t offset, const char *fmt, ...) {
  if (!err) return MIC_EFORMAT;
  va_list args;
  va_start(args, fmt);
  fill(err, MIC_EFORMAT, fmt, args);
  va_end(args);
  err->offset = offset;
  return MIC_EFORMAT;
}

int mic_fail_sys(struct mic_error *err, const char *fmt, ...) {
  int sys = errno;
  int code = sys == EPERM || sys == EACCES ? MIC_EPERM : sys == ESRCH ? MIC_EGONE : MIC_ESYS;
  if (!err) return code;
  va_list args;
  va_start(args, fmt);
  fill(err, code, fmt, args);
  va_end(args);
  err->sys = sys;
  size_t used = strlen(err->msg);
  snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror(sys));
  return code;
}
