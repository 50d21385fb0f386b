/* An exact histogram in the manner of HDR: whole microseconds from 0 up to about 50 days, three
 * significant digits (no value is off by more than 0.1 %), memory only for the octaves that hold
 * something. Not shared between threads.
 * Source: the layout idea is Gil Tene's HdrHistogram. */
#ifndef CICADA_WORKER_STATS_HISTOGRAM_H
#define CICADA_WORKER_STATS_HISTOGRAM_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_STEPS   1024 /* counters an octave: below 0.1 % wide */
#define HISTOGRAM_OCTAVES 32   /* 2048 << 31 µs; larger values count in the last step */

struct histogram {
    uint64_t count;
    uint64_t *octaves[HISTOGRAM_OCTAVES + 1]; /* NULL: nothing there */
};

/* 0; -ENOMEM: not counted, h unchanged. Allocates only when value falls into a new octave. */
int histogram_add(struct histogram *h, uint64_t value_us, uint64_t count);
/* 0; -ENOMEM: nothing was added. */
MUST_USE int histogram_merge(struct histogram *into, const struct histogram *from);
/* Get the memory that histogram_merge of the same two needs: it cannot fail after that. */
MUST_USE int histogram_reserve(struct histogram *into, const struct histogram *from);
void histogram_clear(struct histogram *h); /* keeps the memory */
void histogram_done(struct histogram *h);

/* The nearest-rank percentile v[min(int(n*q), n-1)] of the sorted values, as the middle of its step
 * (exact below 2048 µs), 0 <= q <= 1. False when the histogram is empty. */
bool histogram_percentile(const struct histogram *h, double q, uint64_t *ret_us);

/* Walk the non-empty steps in ascending order, lowest value and count of each: start with
 * *position 0; false at the end. */
bool histogram_next(const struct histogram *h, uint32_t *position, uint64_t *ret_low_us,
                    uint64_t *ret_count);

#endif
