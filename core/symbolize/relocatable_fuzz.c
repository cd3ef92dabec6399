/*
 * relocatable_fuzz.c - any bytes as a kernel module's file: an error, or an image that opens and
 * gives names within its code.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/symbols.h"
#include "symbolize/relocatable.h"

static void look_up(const struct mic_relocated *image) {
  static const char *const nowhere[] = {NULL};
  struct mic_symbols_source source = {
    .fd = image->fd, .path = "module", .root = "", .debug_dirs = nowhere};
  struct mic_symbols *symbols;
  struct mic_error err = {0};
  const struct mic_symbol *found;
  if (mic_symbols_open(&source, &symbols, &err) != 0) return;
  for (uint64_t at = 0; at < image->size && at < 4096; at += 5)
    mic_symbols_lookup(symbols, image->address + at, &found);
  mic_symbols_close(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct mic_relocated image;
  struct mic_error err = {0};
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || (size && write(fd, bytes, size) != (ssize_t)size)) abort();
  int unpacked = mic_relocatable_unpack(fd, "module", &err);
  int code = mic_relocatable_image(unpacked >= 0 ? unpacked : fd, "module", &image, &err);
  if ((code == 0) != (image.fd >= 0) || (code != 0 && !err.msg[0])) abort();
  if (code == 0) {
    look_up(&image);
    close(image.fd);
  }
  if (unpacked >= 0) close(unpacked);
  close(fd);
  return 0;
}
