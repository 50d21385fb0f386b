/* A number that may be unmeasured. A measured zero and an unmeasured value are different answers:
 * 0 and null in every output. Values are finite. */
#ifndef CICADA_BASE_MEASURE_H
#define CICADA_BASE_MEASURE_H

#include <math.h>
#include <stdbool.h>

struct measure {
    bool known;
    double value;
};

#define MEASURE_UNKNOWN ((struct measure){false, 0.0})

/* A measurement; NaN and infinities are unknown. */
static inline struct measure measure_of(double value)
{
    return isfinite(value) ? (struct measure){true, value} : MEASURE_UNKNOWN;
}

#endif
