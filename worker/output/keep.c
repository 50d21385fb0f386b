#include "worker/output/keep.h"

#include "worker/output/gzip.h"

#include <stdlib.h>

/* Writing. Reading is in keep_read.c. Every list of numbers is flat: a step and its count are two
 * numbers in a row, which JSON carries with the fewest bytes. */

#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(17)) /* every double comes back the same */

/* Each takes its value; NULL is out of memory. */
static int set(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value) < 0 ? -ENOMEM : 0;
}

static json_t *text_of(struct str s)
{
    return json_stringn(s.len ? s.ptr : "", s.len);
}

static json_t *text_or_null(const char *c_string)
{
    /* what is not UTF-8 is left out: it cannot be said in JSON */
    json_t *text = c_string ? json_string(c_string) : NULL;
    return text ? text : json_null();
}

static json_t *measure(struct measure m)
{
    return m.known ? json_real(m.value) : json_null();
}

static json_t *count(uint64_t n)
{
    return json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX);
}

static int append_pair(json_t *list, uint64_t a, uint64_t b)
{
    int rc = json_array_append_new(list, count(a));
    return rc < 0 || json_array_append_new(list, count(b)) < 0 ? -ENOMEM : 0;
}

/* The list, or NULL when something of it is missing. */
static json_t *finished(json_t *list, int rc)
{
    if (rc == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *histogram(const struct histogram *h)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    uint32_t at = 0;
    uint64_t low, n;
    while (rc == 0 && histogram_next(h, &at, &low, &n))
        rc = append_pair(list, low, n);
    return finished(list, rc);
}

static json_t *buckets(const struct stats_entry *e)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    uint32_t at = 0;
    uint64_t ms, n;
    while (rc == 0 && stats_entry_next_bucket(e, &at, &ms, &n))
        rc = append_pair(list, ms, n);
    return finished(list, rc);
}

static json_t *seconds(const struct stats_seconds *s)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < s->count; i++)
        rc = append_pair(list, s->at[i].second, s->at[i].count);
    return finished(list, rc);
}

static int set_details(json_t *o, const struct stats_details *d)
{
    if (!d)
        return 0;
    json_t *phases = json_object();
    int rc = set(o, "service_times_us", histogram(&d->service_times));
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        rc |= set(phases, stats_phase_name((enum stats_phase)i), histogram(&d->phases[i]));
    return rc | set(o, "phases_us", phases);
}

static json_t *entry(const struct stats_entry *e)
{
    bool timed = e->min_response_time_us != UINT64_MAX;
    json_t *o = json_object();
    int rc = set(o, "method", text_of(e->method));
    rc |= set(o, "name", text_of(e->name));
    rc |= set(o, "num_requests", count(e->num_requests));
    rc |= set(o, "num_none_requests", count(e->num_none_requests));
    rc |= set(o, "num_failures", count(e->num_failures));
    rc |= set(o, "total_response_time_us", count(e->total_response_time_us));
    rc |= set(o, "min_response_time_us", timed ? count(e->min_response_time_us) : json_null());
    rc |= set(o, "max_response_time_us", timed ? count(e->max_response_time_us) : json_null());
    rc |= set(o, "total_content_length", count(e->total_content_length_bytes));
    rc |= set(o, "start_time_s", json_real(e->start_time_s));
    rc |= set(o, "last_request_s", json_real(e->last_request_s));
    rc |= set(o, "num_reqs_per_sec", seconds(&e->num_reqs_per_sec));
    rc |= set(o, "num_fail_per_sec", seconds(&e->num_fail_per_sec));
    rc |= set(o, "buckets_ms", buckets(e));
    rc |= set(o, "response_times_us", histogram(&e->response_times));
    rc |= set_details(o, e->details);
    return finished(o, rc);
}

static json_t *entries(const struct stats *s)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < stats_entry_count(s); i++) {
        if (stats_entry_used(stats_entry_at(s, i)))
            rc = json_array_append_new(list, entry(stats_entry_at(s, i)));
    }
    return finished(list, rc);
}

static json_t *error(const struct stats_error *e)
{
    json_t *o = json_object();
    int rc = set(o, "method", text_of(e->method));
    rc |= set(o, "name", text_of(e->name));
    rc |= set(o, "error", text_of(e->error));
    rc |= set(o, "occurrences", count(e->occurrences));
    rc |= set(o, "first_seen_s", json_real(e->first_seen_s));
    rc |= set(o, "last_seen_s", json_real(e->last_seen_s));
    return finished(o, rc);
}

static json_t *errors(const struct stats *s)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < stats_error_count(s); i++)
        rc = json_array_append_new(list, error(stats_error_at(s, i)));
    return finished(list, rc);
}

static json_t *exceptions(const struct report *r)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < r->exception_count; i++) {
        const struct stats_csv_exception *e = &r->exceptions[i];
        json_t *o = json_object(), *nodes = json_array();
        rc = nodes ? 0 : -ENOMEM;
        for (size_t n = 0; n < e->node_count; n++)
            rc |= json_array_append_new(nodes, text_of(e->nodes[n]));
        rc |= set(o, "count", count(e->count));
        rc |= set(o, "message", text_of(e->message));
        rc |= set(o, "traceback", text_of(e->traceback));
        rc |= set(o, "nodes", nodes);
        rc |= json_array_append_new(list, o);
    }
    return finished(list, rc);
}

/* A point a list; the order is that of the reader. */
static json_t *point(const struct history_point *p)
{
    return json_pack("[f,I,I,I,I,o,o,o,o,o,o,f,f]", p->wall_s, (json_int_t)p->user_count,
                     (json_int_t)p->target, (json_int_t)p->requests, (json_int_t)p->failures,
                     measure(p->rps), measure(p->fail_per_s), measure(p->p50_ms),
                     measure(p->p95_ms), measure(p->p99_ms), measure(p->average_ms), p->cpu_pct,
                     p->loop_lag_ms);
}

static json_t *history(const struct history *h)
{
    json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (size_t i = 0; h && rc == 0 && i < h->count; i++)
        rc = json_array_append_new(list, point(&h->points[i]));
    return finished(list, rc);
}

static json_t *requests(const struct report_requests *n)
{
    json_t *o = json_object();
    int rc = set(o, "started", count(n->started));
    rc |= set(o, "succeeded", count(n->succeeded));
    rc |= set(o, "failed", count(n->failed));
    rc |= set(o, "interrupted", count(n->interrupted));
    rc |= set(o, "interrupted_oldest_us", count(n->interrupted_oldest_us));
    return finished(o, rc);
}

static json_t *generator(const struct generator_verdict *g)
{
    json_t *o = json_object();
    int rc = set(o, "cpu_p50", measure(g->cpu_p50));
    rc |= set(o, "cpu_p90", measure(g->cpu_p90));
    rc |= set(o, "cpu_max", measure(g->cpu_max));
    rc |= set(o, "loop_lag_p99_ms", measure(g->loop_lag_p99_ms));
    rc |= set(o, "missed_starts_1ms", count(g->missed_starts_1ms));
    rc |= set(o, "missed_starts_10ms", count(g->missed_starts_10ms));
    rc |= set(o, "connect_errors", count(g->connect_errors));
    rc |= set(o, "retries", count(g->retries));
    rc |= set(o, "sockets_peak", count(g->sockets_peak));
    rc |= set(o, "saturated", json_boolean(g->saturated));
    rc |= set(o, "too_short", json_boolean(g->too_short));
    rc |= set(o, "reasons", json_string(g->reasons));
    return finished(o, rc);
}

/* The start of a set is that of its total. */
static json_t *stats_start(const struct stats *s)
{
    struct stats_entry *total;
    if (stats_total(s, &total) < 0)
        return NULL;
    json_t *start = json_real(total->start_time_s);
    stats_entry_free(total);
    return start;
}

static json_t *document(const struct report *r)
{
    json_t *o = json_object();
    int rc = set(o, "format", json_string("cicada-histograms"));
    rc |= set(o, "version", json_integer(KEEP_VERSION));
    rc |= set(o, "test_name", text_or_null(r->test_name));
    rc |= set(o, "tag", text_or_null(r->tag));
    rc |= set(o, "host", text_or_null(r->host));
    rc |= set(o, "start_s", json_real(r->start_s));
    rc |= set(o, "end_s", json_real(r->end_s));
    rc |= set(o, "stats_start_s", stats_start(r->stats));
    rc |= set(o, "exit_code", json_integer(r->exit_code));
    rc |= set(o, "requests", requests(&r->requests));
    rc |= set(o, "generator", generator(&r->generator));
    rc |= set(o, "entries", entries(r->stats));
    rc |= set(o, "errors", errors(r->stats));
    rc |= set(o, "exceptions", exceptions(r));
    rc |= set(o, "history", history(r->history));
    return finished(o, rc);
}

int keep_encode(struct buf *b, const struct report *r)
{
    json_t *root = document(r);
    char *text = root ? json_dumps(root, DUMP_FLAGS) : NULL;
    json_decref(root);
    int rc = text ? gzip_pack(b, str_of(text)) : -ENOMEM;
    free(text);
    return rc;
}
