/* One stats entry: everything Locust keeps for a method and name, and the exact histogram. Owned by
 * its struct stats; read by whoever owns that.
 *
 * Locust's bucket of a response time: Python's round() (half to even) to 1 ms below 100 ms, to 10
 * ms below 1 s, to 100 ms below 10 s, to 1 s above. Times inside are whole microseconds, so sums
 * are exact and merging in any order gives the same result. */
#ifndef CICADA_WORKER_STATS_ENTRY_H
#define CICADA_WORKER_STATS_ENTRY_H

#include "base/err.h"
#include "base/str.h"
#include "worker/stats/details.h"
#include "worker/stats/histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* One finished request. */
struct stats_sample {
    uint64_t response_time_us;     /* since its (scheduled) start, to the last body byte */
    uint64_t content_length_bytes; /* body bytes as received */
    double wall_s;                 /* when it ended, Unix time */
};

struct stats_second {
    uint64_t second; /* Unix time */
    uint64_t count;
};

struct stats_seconds {
    struct stats_second *at; /* ascending by second */
    uint32_t count;
    uint32_t cap;
};

/* Counts by Locust's rounded milliseconds; NULL in an entry without requests. */
struct stats_buckets;

struct stats_entry {
    struct str method; /* valid UTF-8, owned by the entry */
    struct str name;
    uint64_t num_requests;
    uint64_t num_none_requests;
    uint64_t num_failures;
    uint64_t total_response_time_us;
    uint64_t min_response_time_us; /* UINT64_MAX: none yet */
    uint64_t max_response_time_us;
    uint64_t total_content_length_bytes;
    double start_time_s;
    double last_request_s; /* the latest; 0: none yet */
    struct stats_seconds num_reqs_per_sec;
    struct stats_seconds num_fail_per_sec;
    struct stats_buckets *buckets;
    struct histogram response_times; /* microseconds, 3 digits */
    struct stats_details *details;   /* NULL: none measured */
};

struct stats_error {
    struct str method;
    struct str name;
    struct str error; /* valid UTF-8, "object at 0x…" folded as Locust's parse_error does */
    uint64_t occurrences;
    double first_seen_s;
    double last_seen_s;
};

/* Names are copied as they are. 0, -ENOMEM. */
MUST_USE int stats_entry_new(struct str method, struct str name, double start_time_s,
                             struct stats_entry **ret);
void stats_entry_free(struct stats_entry *e);

/* Has it counted anything since it was made or cleared? */
static inline bool stats_entry_used(const struct stats_entry *e)
{
    return e->num_requests > 0 || e->num_failures > 0;
}

/* Count a finished request. False when memory for its second, its bucket or its step in the
 * histogram could not be had: it is counted in the rest. */
bool stats_entry_record(struct stats_entry *e, const struct stats_sample *sample);

/* Count a failure. False as above, for its second. */
bool stats_entry_record_failure(struct stats_entry *e, double wall_s);

/* Add from to into, as locust/stats.py StatsEntry.extend. 0; -ENOMEM: nothing was added. */
MUST_USE int stats_entry_merge(struct stats_entry *into, const struct stats_entry *from);
/* Get the memory that stats_entry_merge of the same two needs: it cannot fail after that. */
MUST_USE int stats_entry_reserve(struct stats_entry *into, const struct stats_entry *from);

/* Forget the samples, keep the names and the memory. */
void stats_entry_clear(struct stats_entry *e, double start_time_s);

/* Walk the Locust buckets in ascending order: start with *position 0; false at the end. */
bool stats_entry_next_bucket(const struct stats_entry *e, uint32_t *position, uint64_t *ret_ms,
                             uint64_t *ret_count);

/* Count so many in a bucket alone: for an entry that is put together from what was kept of another.
 * 0; -EINVAL: no bucket of Locust's has this name; -ENOMEM. */
MUST_USE int stats_entry_add_bucket(struct stats_entry *e, uint64_t ms, uint64_t count);

/* The bucket, in ms, of a response time. Source: locust/stats.py bucket_response_time. */
uint64_t stats_bucket_ms(uint64_t response_time_us);

#endif
