/* sort.c - quicksort by Hoare's partition until parts are small. */
#include "base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"

/* Parts of so many are left to qsort(3), which copies them: 2 MiB at most. */
enum { PART = 32768 };

struct sorting {
  size_t size;
  mic_sort_order *order;
  uint64_t random;
};

static void swap(char *a, char *b, size_t size) {
  char room[MIC_SORT_SIZE_MAX];
  memcpy(room, a, size);
  memcpy(a, b, size);
  memcpy(b, room, size);
}

/* Where the second part begins: nothing in it stands before anything in the first, and neither is
 * empty, as the pivot is not the last. */
static size_t split(const struct sorting *s, char *at, size_t count, size_t pivot_at) {
  char pivot[MIC_SORT_SIZE_MAX];
  size_t low = 0, high = count - 1, size = s->size;
  memcpy(pivot, at + pivot_at * size, size);
  for (;; low++, high--) {
    while (s->order(at + low * size, pivot) < 0) low++;
    while (s->order(at + high * size, pivot) > 0) high--;
    if (low >= high) return high + 1;
    swap(at + low * size, at + high * size, size);
  }
}

static void sort_parts(struct sorting *s, char *at, size_t count) {
  while (count > PART) {
    s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX */
    size_t first = split(s, at, count, (s->random >> 32) % (count - 1)), rest = count - first;
    char *second = at + first * s->size;
    bool small = first < rest; /* the smaller one first: calls are at most log2 count deep */
    sort_parts(s, small ? at : second, small ? first : rest);
    at = small ? second : at;
    count = small ? rest : first;
  }
  if (count > 1) qsort(at, count, s->size, s->order);
}

void mic_sort(void *at, size_t count, size_t size, mic_sort_order *order) {
  struct sorting s = {size, order, mic_index_secret[0]};
  if (size > MIC_SORT_SIZE_MAX) abort(); /* a fault of the caller, not of a file */
  for (size_t i = 1; i < count; i++) {
    if (order((char *)at + (i - 1) * size, (char *)at + i * size) <= 0) continue;
    sort_parts(&s, at, count);
    return;
  }
}
