/* memory.c - process_vm_readv, page by page where it has to be. */
#include "process/memory.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* process_vm_readv stops inside one remote range at the page that is not mapped, but only whole
 * ranges are sure to be counted (man 2 process_vm_readv): one range a page makes the count exact.
 * IOV_MAX is 1024; 64 pages a call is past the point where the call itself matters. */
enum { PAGES_A_CALL = 64 };

static size_t fill_ranges(struct iovec *ranges, uint64_t address, size_t size, size_t page) {
  size_t count = 0;
  while (size > 0 && count < PAGES_A_CALL) {
    size_t part = page - (size_t)(address % page);
    if (part > size) part = size;
    ranges[count++] = (struct iovec){(void *)(uintptr_t)address, part};
    address += part;
    size -= part;
  }
  return count;
}

int mic_memory_read(uint32_t pid, uint64_t address, void *to, size_t size, size_t *got,
                    struct mic_error *err) {
  struct iovec ranges[PAGES_A_CALL];
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *got = 0;
  if (address + size < address)
    return mic_fail(err, MIC_EARG, "%zu bytes from 0x%llx run past the address space", size,
                    (unsigned long long)address);
  while (*got < size) {
    size_t count = fill_ranges(ranges, address + *got, size - *got, page);
    struct iovec local = {(uint8_t *)to + *got, size - *got};
    ssize_t part = process_vm_readv((pid_t)pid, &local, 1, ranges, count, 0);
    if (part > 0) *got += (size_t)part;
    if (part > 0) continue;
    if (part < 0 && errno == EINTR) continue;
    if (*got > 0) return 0;
    if (part == 0 || errno == EFAULT)
      return mic_fail(err, MIC_EFORMAT, "0x%llx of process %u is not readable memory",
                      (unsigned long long)address, pid);
    return mic_fail_sys(err, "reading memory of process %u", pid);
  }
  return 0;
}
