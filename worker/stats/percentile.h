/* The figures that Locust derives from an entry: percentiles and median from its buckets, averages,
 * rates. Pure, any thread. They are Locust's own, to the last bit of a double where its sums of
 * floats allow it; exact percentiles are in histogram.h.
 * Source: locust/stats.py calculate_response_time_percentile, StatsEntry, 2.46.2 to 2.47. */
#ifndef CICADA_WORKER_STATS_PERCENTILE_H
#define CICADA_WORKER_STATS_PERCENTILE_H

#include "worker/stats/entry.h"

#include <stdint.h>

/* PERCENTILES_TO_REPORT, and their names as Locust writes them: "50%", "99.9%". */
#define STATS_PERCENTILE_COUNT 11
extern const double stats_percentiles[STATS_PERCENTILE_COUNT];
extern const char *const stats_percentile_names[STATS_PERCENTILE_COUNT];

/* The bucket, in ms, in which so large a part of the requests had ended, 0 <= percent <= 1; 0 when
 * there is none. Requests without a response time do not count. */
uint64_t stats_entry_percentile_ms(const struct stats_entry *e, double percent);

/* The 50 % bucket, kept within the exact minimum and maximum. */
double stats_entry_median_ms(const struct stats_entry *e);

double stats_entry_average_ms(const struct stats_entry *e);
double stats_entry_average_content_bytes(const struct stats_entry *e);

/* num_failures / num_requests; 1 when there are failures and no requests. */
double stats_entry_fail_ratio(const struct stats_entry *e);

/* Per second, over the time from the start to the last request of the total of e's set. */
double stats_entry_total_rps(const struct stats_entry *e, const struct stats_entry *total);
double stats_entry_total_fail_per_sec(const struct stats_entry *e, const struct stats_entry *total);

/* The same over the ten seconds that end two before the total's last request. */
double stats_entry_current_rps(const struct stats_entry *e, const struct stats_entry *total);
double stats_entry_current_fail_per_sec(const struct stats_entry *e,
                                        const struct stats_entry *total);

#endif
