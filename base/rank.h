/* Nearest-rank percentiles as every output file of ours defines them. Pure functions, any thread.
 * The product is taken in double precision and cut, as int(n * q) is in Python. */
#ifndef CICADA_BASE_RANK_H
#define CICADA_BASE_RANK_H

#include <stddef.h>
#include <stdlib.h>

static inline int rank_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ascending, in place; no NaN among the values. */
static inline void rank_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, rank_order);
}

/* sorted[min(int(count * q), count - 1)]; count > 0, 0 <= q <= 1. */
static inline double rank_of(const double *sorted, size_t count, double q)
{
    size_t i = (size_t)((double)count * q);
    return sorted[i < count ? i : count - 1];
}

#endif
