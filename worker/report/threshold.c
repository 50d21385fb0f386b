#include "worker/report/threshold.h"

#include "worker/stats/percentile.h"

static const struct stats_entry *find_entry(const struct plan_threshold *t, const struct stats *s,
                                            const struct stats_entry *total)
{
    if (!t->name.ptr)
        return total;
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        const struct stats_entry *e = stats_entry_at(s, i);
        if (str_eq(e->method, t->method) && str_eq(e->name, t->name))
            return e;
    }
    return NULL;
}

static struct measure percentile(const struct stats_entry *e, double percent)
{
    uint64_t us;
    return histogram_percentile(&e->response_times, percent / 100.0, &us)
               ? measure_of((double)us / 1000.0)
               : MEASURE_UNKNOWN;
}

/* Counts are known to be zero where there was nothing; times and ratios are not known then. */
static struct measure measure(const struct plan_threshold *t, const struct stats_entry *e,
                              const struct stats_entry *total)
{
    bool any = e && stats_entry_used(e);
    switch (t->metric) {
    case THRESHOLD_PERCENTILE:
        return any ? percentile(e, t->percent) : MEASURE_UNKNOWN;
    case THRESHOLD_AVERAGE:
        return any ? measure_of(stats_entry_average_ms(e)) : MEASURE_UNKNOWN;
    case THRESHOLD_MIN:
        return any ? measure_of((double)e->min_response_time_us / 1000.0) : MEASURE_UNKNOWN;
    case THRESHOLD_MAX:
        return any ? measure_of((double)e->max_response_time_us / 1000.0) : MEASURE_UNKNOWN;
    case THRESHOLD_FAILURE_RATIO:
        return any ? measure_of(stats_entry_fail_ratio(e)) : MEASURE_UNKNOWN;
    case THRESHOLD_RPS:
        return measure_of(any ? stats_entry_total_rps(e, total) : 0);
    case THRESHOLD_FAILURES:
        return measure_of(any ? (double)e->num_failures : 0);
    case THRESHOLD_REQUESTS:
        return measure_of(any ? (double)e->num_requests : 0);
    }
    return MEASURE_UNKNOWN;
}

static bool keeps(enum threshold_order order, double value, double limit)
{
    switch (order) {
    case THRESHOLD_BELOW:
        return value < limit;
    case THRESHOLD_AT_MOST:
        return value <= limit;
    case THRESHOLD_ABOVE:
        return value > limit;
    case THRESHOLD_AT_LEAST:
        return value >= limit;
    }
    return false;
}

struct threshold_outcome threshold_check(const struct plan_threshold *t, const struct stats *s,
                                         const struct stats_entry *total)
{
    struct measure measured = measure(t, find_entry(t, s, total), total);
    return (struct threshold_outcome){
        .measured = measured,
        .met = measured.known && keeps(t->order, measured.value, t->limit),
    };
}

const char *threshold_unit(const struct plan_threshold *t)
{
    switch (t->metric) {
    case THRESHOLD_PERCENTILE:
    case THRESHOLD_AVERAGE:
    case THRESHOLD_MIN:
    case THRESHOLD_MAX:
        return " ms";
    case THRESHOLD_RPS:
        return " /s";
    case THRESHOLD_FAILURE_RATIO:
    case THRESHOLD_FAILURES:
    case THRESHOLD_REQUESTS:
        return NULL;
    }
    return NULL;
}
