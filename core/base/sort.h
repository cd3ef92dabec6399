/*
 * sort.h - qsort(3) in place: for arrays that are large beside all else, of which the C library
 * would make a copy.
 *
 * Threads: no state.
 */
#ifndef MIC_BASE_SORT_H
#define MIC_BASE_SORT_H

#include <stddef.h>

typedef int mic_sort_order(const void *a, const void *b);

enum { MIC_SORT_SIZE_MAX = 64 }; /* of an element */

/* order must tell any two elements apart that are not the same in all that matters: which of equal
 * ones comes first is another in each run.  What is in order already takes one look at each.  In
 * time n log n whatever the order: what splits the array nobody can foresee. */
void mic_sort(void *at, size_t count, size_t size, mic_sort_order *order);

#endif
