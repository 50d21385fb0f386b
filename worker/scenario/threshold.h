/* A threshold: what a run must keep to, as text: "p95 < 300", "GET /items: failure_ratio < 1 %",
 * "avg <= 0.2s steady", "failure_ratio < 0.5 abort after 30s". Its reading only; whether a run kept
 * to it is worker/report's to tell. Pure, any thread. */
#ifndef CICADA_WORKER_SCENARIO_THRESHOLD_H
#define CICADA_WORKER_SCENARIO_THRESHOLD_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define THRESHOLD_MAX_COUNT   1000
#define THRESHOLD_GRACE_S     10 /* before an abort, when no other time is given */
#define THRESHOLD_MAX_PERCENT 100.0

enum threshold_metric {
    THRESHOLD_PERCENTILE, /* ms, as the next three */
    THRESHOLD_AVERAGE,
    THRESHOLD_MIN,
    THRESHOLD_MAX,
    THRESHOLD_RPS,
    THRESHOLD_FAILURE_RATIO, /* 0 to 1 */
    THRESHOLD_FAILURES,
    THRESHOLD_REQUESTS,
};

enum threshold_order {
    THRESHOLD_BELOW,
    THRESHOLD_AT_MOST,
    THRESHOLD_ABOVE,
    THRESHOLD_AT_LEAST,
};

struct plan_threshold {
    struct str text; /* as written */
    struct str method;
    struct str name; /* ptr NULL: all entries together */
    enum threshold_metric metric;
    double percent; /* of a percentile: 99.9 */
    enum threshold_order order;
    double limit;      /* in the metric's unit */
    bool steady;       /* over the steady state only */
    bool abort;        /* a run that breaks it ends … */
    uint64_t grace_us; /* … when it is older than this */
};

/* Views into text. -EINVAL: err tells what is wrong, to be put behind the text's place. */
MUST_USE int threshold_parse(struct str text, struct plan_threshold *ret, struct err *err);

#endif
