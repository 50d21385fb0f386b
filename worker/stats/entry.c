#include "worker/stats/entry.h"

#include "base/num.h"
#include "worker/stats/seconds.h"

#include <stdlib.h>
#include <string.h>

/* Below 10 s Locust has 281 buckets: 0 to 100 by 1, to 1000 by 10, to 10000 by 100 ms. They are an
 * array, so that counting is an index away. Above there is one a second without an end; such times
 * are rare by nature (a user makes at most one of them in ten seconds) and go to a sorted list. */
#define BUCKET_1MS_LAST   100
#define BUCKET_10MS_LAST  190
#define BUCKET_100MS_LAST 280
#define BUCKET_COUNT      (BUCKET_100MS_LAST + 1)

struct stats_buckets {
    uint64_t fast[BUCKET_COUNT];
    struct stats_seconds slow; /* "second" is the response time, rounded */
};

/* The array's index of a response time, or BUCKET_COUNT - 10 + its rounded seconds: a number that
 * counts the buckets from 0 upwards in either case. All divisors are constants, which compilers
 * turn into a multiplication. */
static inline uint64_t bucket_number(uint64_t us)
{
    if (us < 100000)
        return num_div_half_even(us, 1000);
    if (us < 1000000)
        return num_div_half_even(us, 10000) + BUCKET_1MS_LAST - 10;
    if (us < 10000000)
        return num_div_half_even(us, 100000) + BUCKET_10MS_LAST - 10;
    return num_div_half_even(us, 1000000) + BUCKET_100MS_LAST - 10;
}

static uint64_t bucket_ms(uint64_t number)
{
    if (number <= BUCKET_1MS_LAST)
        return number;
    if (number <= BUCKET_10MS_LAST)
        return (number - (BUCKET_1MS_LAST - 10)) * 10;
    if (number <= BUCKET_100MS_LAST)
        return (number - (BUCKET_10MS_LAST - 10)) * 100;
    return (number - (BUCKET_100MS_LAST - 10)) * 1000;
}

uint64_t stats_bucket_ms(uint64_t response_time_us)
{
    return bucket_ms(bucket_number(response_time_us));
}

int stats_entry_new(struct str method, struct str name, double start_time_s,
                    struct stats_entry **ret)
{
    size_t bytes;
    if (__builtin_add_overflow(sizeof(struct stats_entry), method.len, &bytes) ||
        __builtin_add_overflow(bytes, name.len, &bytes))
        return -ENOMEM;
    struct stats_entry *e = malloc(bytes);
    if (!e)
        return -ENOMEM;
    char *text = (char *)(e + 1);
    if (method.len)
        memcpy(text, method.ptr, method.len);
    if (name.len)
        memcpy(text + method.len, name.ptr, name.len);
    *e = (struct stats_entry){
        .method = {text, method.len},
        .name = {text + method.len, name.len},
        .min_response_time_us = UINT64_MAX,
        .start_time_s = start_time_s,
    };
    *ret = e;
    return 0;
}

void stats_entry_free(struct stats_entry *e)
{
    if (!e)
        return;
    stats_details_free(e->details);
    histogram_done(&e->response_times);
    if (e->buckets)
        stats_seconds_done(&e->buckets->slow);
    free(e->buckets);
    stats_seconds_done(&e->num_fail_per_sec);
    stats_seconds_done(&e->num_reqs_per_sec);
    free(e);
}

static int reserve_buckets(struct stats_entry *e)
{
    if (!e->buckets)
        e->buckets = calloc(1, sizeof *e->buckets);
    return e->buckets ? 0 : -ENOMEM;
}

static inline int add_to_bucket(struct stats_entry *e, uint64_t response_time_us)
{
    int rc = __builtin_expect(e->buckets != NULL, 1) ? 0 : reserve_buckets(e);
    if (rc < 0)
        return rc;
    uint64_t number = bucket_number(response_time_us);
    if (__builtin_expect(number < BUCKET_COUNT, 1)) {
        e->buckets->fast[number]++;
        return 0;
    }
    return stats_seconds_add(&e->buckets->slow, bucket_ms(number) / 1000, 1);
}

/* int(): the second that a wall clock's time lies in. The signed detour is one instruction. */
static inline uint64_t second_of(double wall_s)
{
    return wall_s > 0 ? (uint64_t)(int64_t)wall_s : 0;
}

bool stats_entry_record(struct stats_entry *e, const struct stats_sample *sample)
{
    uint64_t us = sample->response_time_us;
    e->num_requests++;
    e->total_response_time_us += us;
    e->total_content_length_bytes += sample->content_length_bytes;
    if (us < e->min_response_time_us)
        e->min_response_time_us = us;
    if (us > e->max_response_time_us)
        e->max_response_time_us = us;
    /* Locust takes the last one written; the latest does not depend on the order of merging */
    if (sample->wall_s > e->last_request_s)
        e->last_request_s = sample->wall_s;
    int lost = stats_seconds_add(&e->num_reqs_per_sec, second_of(sample->wall_s), 1);
    lost |= add_to_bucket(e, us);
    lost |= histogram_add(&e->response_times, us, 1);
    return lost == 0;
}

bool stats_entry_record_failure(struct stats_entry *e, double wall_s)
{
    e->num_failures++;
    return stats_seconds_add(&e->num_fail_per_sec, second_of(wall_s), 1) == 0;
}

int stats_entry_reserve(struct stats_entry *into, const struct stats_entry *from)
{
    int rc = stats_seconds_reserve(&into->num_reqs_per_sec, from->num_reqs_per_sec.count);
    if (rc == 0)
        rc = stats_seconds_reserve(&into->num_fail_per_sec, from->num_fail_per_sec.count);
    if (rc == 0 && from->buckets) {
        rc = reserve_buckets(into);
        if (rc == 0)
            rc = stats_seconds_reserve(&into->buckets->slow, from->buckets->slow.count);
    }
    if (rc == 0)
        rc = stats_details_reserve(&into->details, from->details);
    return rc < 0 ? rc : histogram_reserve(&into->response_times, &from->response_times);
}

/* There is room for all of from: see stats_entry_reserve. */
static void add_seconds(struct stats_seconds *into, const struct stats_seconds *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        (void)stats_seconds_add(into, from->at[i].second, from->at[i].count);
}

int stats_entry_merge(struct stats_entry *into, const struct stats_entry *from)
{
    int rc = stats_entry_reserve(into, from);
    if (rc == 0)
        rc = histogram_merge(&into->response_times, &from->response_times);
    if (rc == 0)
        rc = stats_details_merge(&into->details, from->details);
    if (rc < 0)
        return rc;
    into->num_requests += from->num_requests;
    into->num_none_requests += from->num_none_requests;
    into->num_failures += from->num_failures;
    into->total_response_time_us += from->total_response_time_us;
    into->total_content_length_bytes += from->total_content_length_bytes;
    if (from->min_response_time_us < into->min_response_time_us)
        into->min_response_time_us = from->min_response_time_us;
    if (from->max_response_time_us > into->max_response_time_us)
        into->max_response_time_us = from->max_response_time_us;
    if (from->start_time_s < into->start_time_s)
        into->start_time_s = from->start_time_s;
    if (from->last_request_s > into->last_request_s)
        into->last_request_s = from->last_request_s;
    add_seconds(&into->num_reqs_per_sec, &from->num_reqs_per_sec);
    add_seconds(&into->num_fail_per_sec, &from->num_fail_per_sec);
    if (from->buckets) {
        for (unsigned i = 0; i < BUCKET_COUNT; i++)
            into->buckets->fast[i] += from->buckets->fast[i];
        add_seconds(&into->buckets->slow, &from->buckets->slow);
    }
    return 0;
}

void stats_entry_clear(struct stats_entry *e, double start_time_s)
{
    e->start_time_s = start_time_s;
    if (!stats_entry_used(e))
        return; /* the tables are empty: most entries of a large set, most of the time */
    e->num_requests = 0;
    e->num_none_requests = 0;
    e->num_failures = 0;
    e->total_response_time_us = 0;
    e->min_response_time_us = UINT64_MAX;
    e->max_response_time_us = 0;
    e->total_content_length_bytes = 0;
    e->last_request_s = 0;
    stats_seconds_clear(&e->num_reqs_per_sec);
    stats_seconds_clear(&e->num_fail_per_sec);
    if (e->buckets) {
        memset(e->buckets->fast, 0, sizeof e->buckets->fast);
        stats_seconds_clear(&e->buckets->slow);
    }
    histogram_clear(&e->response_times);
    stats_details_clear(e->details);
}

int stats_entry_add_bucket(struct stats_entry *e, uint64_t ms, uint64_t count)
{
    uint64_t us;
    if (__builtin_mul_overflow(ms, (uint64_t)1000, &us) || stats_bucket_ms(us) != ms)
        return -EINVAL;
    int rc = reserve_buckets(e);
    if (rc < 0)
        return rc;
    uint64_t number = bucket_number(us);
    if (number >= BUCKET_COUNT)
        return stats_seconds_add(&e->buckets->slow, ms / 1000, count);
    e->buckets->fast[number] += count;
    return 0;
}

bool stats_entry_next_bucket(const struct stats_entry *e, uint32_t *position, uint64_t *ret_ms,
                             uint64_t *ret_count)
{
    if (!e->buckets)
        return false;
    for (uint32_t at = *position; at < BUCKET_COUNT; at++) {
        if (e->buckets->fast[at] == 0)
            continue;
        *position = at + 1;
        *ret_ms = bucket_ms(at);
        *ret_count = e->buckets->fast[at];
        return true;
    }
    uint32_t slow = *position > BUCKET_COUNT ? *position - BUCKET_COUNT : 0;
    if (slow >= e->buckets->slow.count)
        return false;
    *position = BUCKET_COUNT + slow + 1;
    *ret_ms = e->buckets->slow.at[slow].second * 1000;
    *ret_count = e->buckets->slow.at[slow].count;
    return true;
}
