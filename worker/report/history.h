/* The run over time: a point a second with the users, the rates and the percentiles of the last
 * second, for the charts, the history file and the steady state. The runner's thread only. */
#ifndef CICADA_WORKER_REPORT_HISTORY_H
#define CICADA_WORKER_REPORT_HISTORY_H

#include "base/err.h"
#include "base/measure.h"

#include <stddef.h>
#include <stdint.h>

#define HISTORY_MAX_POINTS 1000000 /* eleven days; when full every second point is dropped */

struct history_point {
    double wall_s;
    uint32_t user_count; /* running now */
    uint32_t target;     /* wished for now; 0: unknown */
    uint64_t requests;   /* so far */
    uint64_t failures;   /* so far */
    struct measure rps;  /* of the last complete second, as the next ones */
    struct measure fail_per_s;
    struct measure p50_ms;
    struct measure p95_ms;
    struct measure p99_ms;
    struct measure average_ms;
    double cpu_pct;     /* busiest shard */
    double loop_lag_ms; /* worst shard */
};

struct history {
    struct history_point *points; /* ascending in time */
    size_t count;
    size_t cap;
};

/* Append one. 0, -ENOMEM (it is missing then, the rest stays). */
MUST_USE int history_add(struct history *h, const struct history_point *point);
void history_clear(struct history *h);
void history_done(struct history *h);

#endif
