#include "worker/stats/histogram.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Octave 0 holds 0..1023 and octave 1 holds 1024..2047, both one microsecond a step; from there
 * each octave spans twice the one before with steps twice as wide. So octave and step are read off
 * the value's leading bits, without a search or a division. */

#define OCTAVE_BYTES (HISTOGRAM_STEPS * sizeof(uint64_t))
#define STEP_BITS    10
#define MAX_VALUE_US ((UINT64_C(2048) << 31) - 1)

_Static_assert(HISTOGRAM_STEPS == 1 << STEP_BITS, "steps are read off the leading bits");

static unsigned octave_of(uint64_t value_us)
{
    unsigned top_bit = 63 - (unsigned)__builtin_clzll(value_us | (HISTOGRAM_STEPS - 1));
    return top_bit - (STEP_BITS - 1);
}

/* log2 of the width of the octave's steps */
static unsigned shift_of(unsigned octave)
{
    return octave - (octave > 0);
}

static uint64_t low_of(unsigned octave, unsigned step)
{
    uint64_t base = octave ? HISTOGRAM_STEPS : 0;
    return (base + step) << shift_of(octave);
}

static int reserve(struct histogram *h, unsigned octave)
{
    if (!h->octaves[octave])
        h->octaves[octave] = calloc(HISTOGRAM_STEPS, sizeof(uint64_t));
    return h->octaves[octave] ? 0 : -ENOMEM;
}

int histogram_add(struct histogram *h, uint64_t value_us, uint64_t count)
{
    if (value_us > MAX_VALUE_US)
        value_us = MAX_VALUE_US;
    unsigned octave = octave_of(value_us);
    if (__builtin_expect(!h->octaves[octave], 0)) {
        int rc = reserve(h, octave);
        if (rc < 0)
            return rc;
    }
    h->octaves[octave][(value_us >> shift_of(octave)) & (HISTOGRAM_STEPS - 1)] += count;
    h->count += count;
    return 0;
}

int histogram_reserve(struct histogram *into, const struct histogram *from)
{
    for (unsigned o = 0; o <= HISTOGRAM_OCTAVES; o++) {
        int rc = from->octaves[o] ? reserve(into, o) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int histogram_merge(struct histogram *into, const struct histogram *from)
{
    int rc = histogram_reserve(into, from);
    if (rc < 0)
        return rc;
    for (unsigned o = 0; o <= HISTOGRAM_OCTAVES; o++) {
        for (unsigned i = 0; from->octaves[o] && i < HISTOGRAM_STEPS; i++)
            into->octaves[o][i] += from->octaves[o][i];
    }
    into->count += from->count;
    return 0;
}

void histogram_clear(struct histogram *h)
{
    for (unsigned o = 0; o <= HISTOGRAM_OCTAVES; o++) {
        if (h->octaves[o])
            memset(h->octaves[o], 0, OCTAVE_BYTES);
    }
    h->count = 0;
}

void histogram_done(struct histogram *h)
{
    for (unsigned o = 0; o <= HISTOGRAM_OCTAVES; o++)
        free(h->octaves[o]);
    *h = (struct histogram){0};
}

bool histogram_percentile(const struct histogram *h, double q, uint64_t *ret_us)
{
    assert(q >= 0 && q <= 1);
    if (h->count == 0)
        return false;
    uint64_t rank = (uint64_t)((double)h->count * q);
    if (rank >= h->count)
        rank = h->count - 1;
    uint64_t low = 0, count = 0, seen = 0;
    for (uint32_t position = 0; seen <= rank && histogram_next(h, &position, &low, &count);)
        seen += count;
    *ret_us = low + (UINT64_C(1) << shift_of(octave_of(low))) / 2;
    return true;
}

bool histogram_next(const struct histogram *h, uint32_t *position, uint64_t *ret_low_us,
                    uint64_t *ret_count)
{
    for (uint32_t at = *position; at < (HISTOGRAM_OCTAVES + 1) * HISTOGRAM_STEPS; at++) {
        unsigned octave = at / HISTOGRAM_STEPS, step = at % HISTOGRAM_STEPS;
        const uint64_t *steps = h->octaves[octave];
        if (!steps) {
            at |= HISTOGRAM_STEPS - 1; /* on to the next octave */
            continue;
        }
        if (steps[step] == 0)
            continue;
        *position = at + 1;
        *ret_low_us = low_of(octave, step);
        *ret_count = steps[step];
        return true;
    }
    *position = (HISTOGRAM_OCTAVES + 1) * HISTOGRAM_STEPS;
    return false;
}
