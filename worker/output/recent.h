/* What --csv-full-history shows as "current" percentiles: those of about the last ten seconds. For
 * each entry the buckets as they were at the ends of the last twenty seconds are kept, and what
 * came since is the difference. Which seconds are kept, and which of them is taken, is Locust's
 * rule to the letter. Pure; the runner's thread. Source: locust/stats.py _cache_response_times,
 * get_current_response_time_percentile, 2.47. */
#ifndef CICADA_WORKER_OUTPUT_RECENT_H
#define CICADA_WORKER_OUTPUT_RECENT_H

#include "worker/stats/entry.h"

#define RECENT_S    10
#define RECENT_KEPT 20

struct recent_bucket {
    uint64_t ms;
    uint64_t count;
};

/* An entry at the end of a second. */
struct recent_moment {
    uint64_t second;
    uint64_t requests;
    struct recent_bucket *buckets;
    size_t count;
};

/* Of one entry. Zeroed at first. */
struct recent {
    struct recent_moment kept[RECENT_KEPT]; /* ascending by second */
    unsigned kept_count;
    struct recent_moment next; /* as it was at the last note: kept if requests followed */
    bool has_next;
};

/* How the entry stands in this second; once in each second, as soon as it has begun.
 * 0, -ENOMEM (this second is missing then). */
MUST_USE int recent_note(struct recent *w, const struct stats_entry *e, uint64_t second);

/* An entry with the requests of about the last ten seconds before this one; empty when Locust finds
 * none of its moments. The caller frees it: stats_entry_free. 0, -ENOMEM. */
MUST_USE int recent_entry(const struct recent *w, const struct stats_entry *e, uint64_t second,
                          struct stats_entry **ret);

void recent_done(struct recent *w);

#endif
