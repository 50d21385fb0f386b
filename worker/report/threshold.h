/* Did a run keep to its thresholds? Pure: a threshold and the samples it speaks of in, the measured
 * value and yes or no out. */
#ifndef CICADA_WORKER_REPORT_THRESHOLD_H
#define CICADA_WORKER_REPORT_THRESHOLD_H

#include "base/measure.h"
#include "worker/scenario/threshold.h"
#include "worker/stats/stats.h"

#include <stdbool.h>

struct threshold_outcome {
    struct measure measured; /* unknown: nothing to measure, and so not met */
    bool met;
};

/* total is the stats_total of the set s. Percentiles are the exact ones. */
struct threshold_outcome threshold_check(const struct plan_threshold *t, const struct stats *s,
                                         const struct stats_entry *total);

/* Behind the measured value: " ms", " /s"; NULL: none. */
const char *threshold_unit(const struct plan_threshold *t);

#endif
