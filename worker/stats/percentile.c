#include "worker/stats/percentile.h"

#include "worker/stats/seconds.h"

#include <assert.h>

const double stats_percentiles[STATS_PERCENTILE_COUNT] = {
    0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99, 0.999, 0.9999, 1.0,
};
const char *const stats_percentile_names[STATS_PERCENTILE_COUNT] = {
    "50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "99.9%", "99.99%", "100%",
};

/* Locust walks the buckets downwards until the requests below the one it stands at are no more
 * than int(requests * percent). Upwards that is the last bucket with so few below it. */
uint64_t stats_entry_percentile_ms(const struct stats_entry *e, double percent)
{
    assert(percent >= 0 && percent <= 1);
    uint64_t timed = e->num_requests - e->num_none_requests;
    uint64_t wanted = (uint64_t)((double)timed * percent);
    uint64_t ms, count, below = 0, answer = 0;
    for (uint32_t at = 0; below <= wanted && stats_entry_next_bucket(e, &at, &ms, &count);) {
        answer = ms;
        below += count;
    }
    return answer;
}

double stats_entry_median_ms(const struct stats_entry *e)
{
    if (e->min_response_time_us == UINT64_MAX)
        return 0;
    double median = (double)stats_entry_percentile_ms(e, 0.5);
    double min = (double)e->min_response_time_us / 1000.0;
    double max = (double)e->max_response_time_us / 1000.0;
    if (median > max)
        return max;
    return median < min ? min : median;
}

double stats_entry_average_ms(const struct stats_entry *e)
{
    uint64_t timed = e->num_requests - e->num_none_requests;
    return timed ? (double)e->total_response_time_us / 1000.0 / (double)timed : 0;
}

double stats_entry_average_content_bytes(const struct stats_entry *e)
{
    return e->num_requests ? (double)e->total_content_length_bytes / (double)e->num_requests : 0;
}

double stats_entry_fail_ratio(const struct stats_entry *e)
{
    if (e->num_requests == 0)
        return e->num_failures > 0 ? 1 : 0;
    return (double)e->num_failures / (double)e->num_requests;
}

static double per_second(uint64_t count, const struct stats_entry *total)
{
    double seconds = total->last_request_s - total->start_time_s;
    if (total->last_request_s == 0 || total->start_time_s == 0 || seconds == 0)
        return 0;
    return (double)count / seconds;
}

double stats_entry_total_rps(const struct stats_entry *e, const struct stats_entry *total)
{
    return per_second(e->num_requests, total);
}

double stats_entry_total_fail_per_sec(const struct stats_entry *e, const struct stats_entry *total)
{
    return per_second(e->num_failures, total);
}

static double current_of(const struct stats_seconds *seconds, const struct stats_entry *total)
{
    if (total->last_request_s == 0)
        return 0;
    int64_t last = (int64_t)total->last_request_s, start = (int64_t)total->start_time_s;
    int64_t begin = last - 12 > start ? last - 12 : start, end = last - 2;
    if (begin >= end)
        return 0;
    uint64_t sum = 0;
    for (int64_t second = begin; second < end; second++)
        sum += second >= 0 ? stats_seconds_get(seconds, (uint64_t)second) : 0;
    return (double)sum / (double)(end - begin);
}

double stats_entry_current_rps(const struct stats_entry *e, const struct stats_entry *total)
{
    return current_of(&e->num_reqs_per_sec, total);
}

double stats_entry_current_fail_per_sec(const struct stats_entry *e,
                                        const struct stats_entry *total)
{
    return current_of(&e->num_fail_per_sec, total);
}
