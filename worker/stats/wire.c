#include "worker/stats/wire.h"

#include "worker/stats/keyed_errors.h"

#include <stdlib.h>

/* All arrays of the message, sized before and filled in order; next_* tell how far. */
struct memory {
    struct stats_entry *total;
    struct wire_entry *entries;
    struct wire_bucket *buckets;
    struct wire_second *seconds;
    struct keyed_error *keyed;
    struct wire_error *errors;
    size_t next_bucket;
    size_t next_second;
};

struct sizes {
    size_t entries;
    size_t buckets;
    size_t seconds;
};

static void memory_free(struct memory *m)
{
    if (!m)
        return;
    free(m->errors);
    free(m->keyed);
    free(m->seconds);
    free(m->buckets);
    free(m->entries);
    stats_entry_free(m->total);
    free(m);
}

static void measure_entry(struct sizes *sizes, const struct stats_entry *e)
{
    uint64_t ms, count;
    for (uint32_t at = 0; stats_entry_next_bucket(e, &at, &ms, &count);)
        sizes->buckets++;
    sizes->seconds += (size_t)e->num_reqs_per_sec.count + e->num_fail_per_sec.count;
    sizes->entries++;
}

/* Never of size 0, so that NULL means that there is no memory. */
static void *array_of(size_t count, size_t size)
{
    return calloc(count + 1, size);
}

static int memory_new(const struct stats *s, struct memory **ret)
{
    struct memory *m = calloc(1, sizeof *m);
    int rc = m ? stats_total(s, &m->total) : -ENOMEM;
    if (rc < 0)
        goto out;
    struct sizes sizes = {0};
    measure_entry(&sizes, m->total);
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        if (stats_entry_used(stats_entry_at(s, i)))
            measure_entry(&sizes, stats_entry_at(s, i));
    }
    m->entries = array_of(sizes.entries, sizeof *m->entries);
    m->buckets = array_of(sizes.buckets, sizeof *m->buckets);
    m->seconds = array_of(sizes.seconds, sizeof *m->seconds);
    m->errors = array_of(stats_error_count(s), sizeof *m->errors);
    if (!m->entries || !m->buckets || !m->seconds || !m->errors)
        rc = -ENOMEM;
out:
    if (rc < 0) {
        memory_free(m);
        return rc;
    }
    *ret = m;
    return 0;
}

static const struct wire_second *put_seconds(struct memory *m, const struct stats_seconds *s)
{
    struct wire_second *first = &m->seconds[m->next_second];
    for (uint32_t i = 0; i < s->count; i++)
        first[i] = (struct wire_second){s->at[i].second, s->at[i].count};
    m->next_second += s->count;
    return first;
}

static double ms_of(uint64_t us)
{
    return (double)us / 1000.0;
}

static struct wire_entry put_entry(struct memory *m, const struct stats_entry *e)
{
    struct wire_bucket *buckets = &m->buckets[m->next_bucket];
    size_t bucket_count = 0;
    uint64_t ms, count;
    for (uint32_t at = 0; stats_entry_next_bucket(e, &at, &ms, &count);)
        buckets[bucket_count++] = (struct wire_bucket){(double)ms, count};
    m->next_bucket += bucket_count;
    return (struct wire_entry){
        .name = e->name,
        .method = e->method,
        .last_request_timestamp =
            e->last_request_s != 0 ? measure_of(e->last_request_s) : MEASURE_UNKNOWN,
        .start_time = e->start_time_s,
        .num_requests = e->num_requests,
        .num_none_requests = e->num_none_requests,
        .num_failures = e->num_failures,
        .total_response_time = ms_of(e->total_response_time_us),
        .max_response_time = ms_of(e->max_response_time_us),
        .min_response_time = e->min_response_time_us != UINT64_MAX
                                 ? measure_of(ms_of(e->min_response_time_us))
                                 : MEASURE_UNKNOWN,
        .total_content_length = e->total_content_length_bytes,
        .response_times = buckets,
        .response_time_count = bucket_count,
        .num_reqs_per_sec = put_seconds(m, &e->num_reqs_per_sec),
        .num_reqs_per_sec_count = e->num_reqs_per_sec.count,
        .num_fail_per_sec = put_seconds(m, &e->num_fail_per_sec),
        .num_fail_per_sec_count = e->num_fail_per_sec.count,
    };
}

static void put_errors(struct memory *m, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct stats_error *e = &m->keyed[i].shown;
        m->errors[i] = (struct wire_error){
            .key = {m->keyed[i].key, ERROR_KEY_BYTES - 1},
            .method = e->method,
            .name = e->name,
            .error = e->error,
            .occurrences = e->occurrences,
            .first_seen = e->first_seen_s,
            .last_seen = e->last_seen_s,
        };
    }
}

int stats_wire_build(const struct stats *s, struct stats_wire *ret)
{
    *ret = (struct stats_wire){0};
    struct memory *m;
    int rc = memory_new(s, &m);
    if (rc < 0)
        return rc;
    size_t entry_count = 0, error_count = 0;
    rc = keyed_errors_new(s, &m->keyed, &error_count);
    if (rc < 0) {
        memory_free(m);
        return rc;
    }
    put_errors(m, error_count);
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        if (stats_entry_used(stats_entry_at(s, i)))
            m->entries[entry_count++] = put_entry(m, stats_entry_at(s, i));
    }
    ret->message = (struct message_stats){
        .entries = m->entries,
        .entry_count = entry_count,
        .total = put_entry(m, m->total),
        .errors = m->errors,
        .error_count = error_count,
    };
    ret->memory = m;
    return 0;
}

void stats_wire_done(struct stats_wire *w)
{
    memory_free(w->memory);
    *w = (struct stats_wire){0};
}
