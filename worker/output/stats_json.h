/* The statistics as Locust's --json prints them: Python's json.dumps(stats, indent=4), byte for
 * byte, with two differences: response_times ascend, where Locust's are in the order of the first
 * request of each bucket, and an entry's start_time is that of the run. Pure; whoever owns the set.
 * Source: locust/stats.py print_stats_json, StatsEntryDict, 2.47; the json module of Python 3.11.
 */
#ifndef CICADA_WORKER_OUTPUT_STATS_JSON_H
#define CICADA_WORKER_OUTPUT_STATS_JSON_H

#include "worker/output/pen.h"
#include "worker/stats/stats.h"

/* Without a newline at the end: print() adds one, a file has none. */
void stats_json(struct pen *p, const struct stats *s);

#endif
