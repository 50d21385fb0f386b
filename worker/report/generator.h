/* The worker judges itself: was it the bottleneck? Pure: figures of each second in, a verdict out.
 * A run is saturated when over any five seconds in a row of the steady state the busiest thread
 * used more than 90 % of its core or the loop's lag was above 10 ms, or when ports, descriptors or
 * memory ran out at any time, or when over 1 % of the arrivals never began. */
#ifndef CICADA_WORKER_REPORT_GENERATOR_H
#define CICADA_WORKER_REPORT_GENERATOR_H

#include "base/measure.h"
#include "worker/engine/engine.h"

#include <stdbool.h>
#include <stdint.h>

#define GENERATOR_CPU_PCT      90.0
#define GENERATOR_LAG_MS       10.0
#define GENERATOR_SECONDS      5
#define GENERATOR_MISSED_PCT   1.0
#define GENERATOR_REASON_BYTES 256

struct generator_verdict {
    struct measure cpu_p50, cpu_p90, cpu_max; /* percent of one core, busiest thread, per second */
    struct measure loop_lag_p99_ms;
    uint64_t missed_starts_1ms; /* scheduled task starts that came later, or never */
    uint64_t missed_starts_10ms;
    uint64_t connect_errors;
    uint64_t retries; /* sent anew, because a kept-alive connection turned out to be closed */
    uint64_t sockets_peak;
    bool saturated;
    bool too_short; /* for a verdict on CPU and lag: no such stretch was steady */
    char reasons[GENERATOR_REASON_BYTES]; /* one line, "; " between them; "" when not saturated */
};

struct generator_second {
    double cpu_pct;
    double loop_lag_ms;
    bool steady; /* at least 90 % of the users asked for were running */
};

/* Seconds of a run, in order. Zeroed at first. */
struct generator {
    struct generator_second *seconds;
    size_t count;
    size_t cap;
};

/* 0, -ENOMEM (the second is missing). */
MUST_USE int generator_add(struct generator *g, const struct generator_second *second);
void generator_done(struct generator *g);

/* The verdict over all seconds so far and the engine's counters at the end. 0, -ENOMEM. */
MUST_USE int generator_judge(const struct generator *g, const struct engine_status *end,
                             struct generator_verdict *ret);

#endif
