#include "worker/output/keep.h"

#include "base/utf8.h"
#include "worker/output/gzip.h"
#include "worker/stats/seconds.h"

#include <stdlib.h>

/* Reading what keep.c writes. Every number is checked before it is used; a fault names the place.
 * A reader carries on after a fault and gives zeros: the first fault is what counts. */

struct reader {
    struct err *err; /* the first fault; never NULL */
    const char *where;
    size_t index; /* of the entry, the error, … in it */
};

static int fault(struct reader *r, const char *key, const char *what)
{
    return err_set(r->err, -EPROTO, "%s[%zu].%s: %s", r->where, r->index, key, what);
}

static int no_memory(struct reader *r)
{
    return err_set(r->err, -ENOMEM, "out of memory");
}

static bool sound(const struct reader *r)
{
    return r->err->code == 0;
}

/* --- values --------------------------------------------------------------------------------- */

static uint64_t count_in(struct reader *r, const json_t *value, const char *key)
{
    json_int_t n = json_integer_value(value);
    if (json_is_integer(value) && n >= 0 && n <= KEEP_MAX_COUNT)
        return (uint64_t)n;
    (void)fault(r, key, "is not a count");
    return 0;
}

static uint64_t count(struct reader *r, const json_t *o, const char *key)
{
    return count_in(r, json_object_get(o, key), key);
}

static double number_in(struct reader *r, const json_t *value, const char *key)
{
    double n = json_number_value(value);
    if (json_is_number(value) && isfinite(n) && fabs(n) < (double)KEEP_MAX_COUNT)
        return n;
    (void)fault(r, key, "is not a number");
    return 0;
}

static double number(struct reader *r, const json_t *o, const char *key)
{
    return number_in(r, json_object_get(o, key), key);
}

static struct measure measure_in(struct reader *r, const json_t *value, const char *key)
{
    return json_is_null(value) ? MEASURE_UNKNOWN : measure_of(number_in(r, value, key));
}

static struct measure measure(struct reader *r, const json_t *o, const char *key)
{
    return measure_in(r, json_object_get(o, key), key);
}

static struct str text(struct reader *r, const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_string(value)) {
        (void)fault(r, key, "is not a text");
        return (struct str){"", 0};
    }
    return (struct str){json_string_value(value), json_string_length(value)};
}

/* A text of ours: NULL, or one without a NUL inside. */
static const char *name_or_null(struct reader *r, const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    if (json_is_null(value))
        return NULL;
    struct str s = text(r, o, key);
    if (s.len != strlen(s.ptr))
        (void)fault(r, key, "has a NUL inside");
    return s.ptr;
}

static const json_t *list(struct reader *r, const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_array(value))
        (void)fault(r, key, "is not a list");
    return value;
}

/* A list of pairs, their first numbers ascending. */
static bool pair(struct reader *r, const json_t *pairs, const char *key, size_t i, uint64_t *a,
                 uint64_t *b)
{
    size_t size = json_array_size(pairs);
    if (!sound(r) || i >= size)
        return false;
    if (size % 2 != 0) {
        (void)fault(r, key, "is not a list of pairs");
        return false;
    }
    uint64_t first = count_in(r, json_array_get(pairs, i), key);
    if (i > 0 && first <= *a)
        (void)fault(r, key, "does not ascend");
    *a = first;
    *b = count_in(r, json_array_get(pairs, i + 1), key);
    return sound(r);
}

static void histogram(struct reader *r, const json_t *o, const char *key, struct histogram *h)
{
    const json_t *pairs = list(r, o, key);
    uint64_t low = 0, n;
    for (size_t i = 0; pair(r, pairs, key, i, &low, &n); i += 2) {
        if (h->count + n > (uint64_t)KEEP_MAX_COUNT)
            (void)fault(r, key, "counts too many");
        else if (histogram_add(h, low, n) < 0)
            (void)no_memory(r);
    }
}

static uint64_t seconds(struct reader *r, const json_t *o, const char *key, struct stats_seconds *s)
{
    const json_t *pairs = list(r, o, key);
    uint64_t second = 0, n, sum = 0;
    for (size_t i = 0; pair(r, pairs, key, i, &second, &n); i += 2) {
        sum += n;
        if (sum > (uint64_t)KEEP_MAX_COUNT)
            (void)fault(r, key, "counts too many");
        else if (stats_seconds_reserve(s, 1) < 0 || stats_seconds_add(s, second, n) < 0)
            (void)no_memory(r);
    }
    return sum;
}

static uint64_t buckets(struct reader *r, const json_t *o, struct stats_entry *e)
{
    const json_t *pairs = list(r, o, "buckets_ms");
    uint64_t ms = 0, n, sum = 0;
    for (size_t i = 0; pair(r, pairs, "buckets_ms", i, &ms, &n); i += 2) {
        sum += n;
        int rc = sum > (uint64_t)KEEP_MAX_COUNT ? -EINVAL : stats_entry_add_bucket(e, ms, n);
        if (rc == -EINVAL)
            (void)fault(r, "buckets_ms", "is not made of Locust's buckets");
        else if (rc < 0)
            (void)no_memory(r);
    }
    return sum;
}

/* --- entries -------------------------------------------------------------------------------- */

static void details(struct reader *r, const json_t *o, struct stats_entry *e)
{
    const json_t *phases = json_object_get(o, "phases_us");
    if (!phases || !sound(r))
        return;
    e->details = calloc(1, sizeof *e->details);
    if (!e->details) {
        (void)no_memory(r);
        return;
    }
    histogram(r, o, "service_times_us", &e->details->service_times);
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        histogram(r, phases, stats_phase_name((enum stats_phase)i), &e->details->phases[i]);
}

static void times(struct reader *r, const json_t *o, struct stats_entry *e)
{
    bool timed = !json_is_null(json_object_get(o, "min_response_time_us"));
    e->total_response_time_us = count(r, o, "total_response_time_us");
    if (timed) {
        e->min_response_time_us = count(r, o, "min_response_time_us");
        e->max_response_time_us = count(r, o, "max_response_time_us");
    }
    if (timed != (e->num_requests > e->num_none_requests) ||
        (timed && e->min_response_time_us > e->max_response_time_us))
        (void)fault(r, "min_response_time_us", "contradicts the rest");
}

static void entry_values(struct reader *r, const json_t *o, struct stats_entry *e)
{
    e->num_requests = count(r, o, "num_requests");
    e->num_none_requests = count(r, o, "num_none_requests");
    e->num_failures = count(r, o, "num_failures");
    times(r, o, e);
    e->total_content_length_bytes = count(r, o, "total_content_length");
    e->last_request_s = number(r, o, "last_request_s");
    /* a sample that found no memory is in the counts and not in the lists: they may hold less */
    if (seconds(r, o, "num_reqs_per_sec", &e->num_reqs_per_sec) > e->num_requests)
        (void)fault(r, "num_reqs_per_sec", "counts more than there were");
    if (seconds(r, o, "num_fail_per_sec", &e->num_fail_per_sec) > e->num_failures)
        (void)fault(r, "num_fail_per_sec", "counts more than there were");
    if (buckets(r, o, e) > e->num_requests)
        (void)fault(r, "buckets_ms", "counts more than there were");
    histogram(r, o, "response_times_us", &e->response_times);
    if (e->response_times.count > e->num_requests)
        (void)fault(r, "response_times_us", "counts more than there were");
    details(r, o, e);
}

static void read_entry(struct reader *r, const json_t *o, struct stats *s)
{
    struct stats_entry *e;
    struct str method = text(r, o, "method"), name = text(r, o, "name");
    if (stats_entry_new(method, name, number(r, o, "start_time_s"), &e) < 0) {
        (void)no_memory(r);
        return;
    }
    entry_values(r, o, e);
    if (sound(r) && stats_add_entry(s, e) < 0)
        (void)no_memory(r);
    stats_entry_free(e);
}

static void read_error(struct reader *r, const json_t *o, struct stats *s)
{
    struct stats_error e = {
        .method = text(r, o, "method"),
        .name = text(r, o, "name"),
        .error = text(r, o, "error"),
        .occurrences = count(r, o, "occurrences"),
        .first_seen_s = number(r, o, "first_seen_s"),
        .last_seen_s = number(r, o, "last_seen_s"),
    };
    if (sound(r) && stats_add_error(s, &e) < 0)
        (void)no_memory(r);
}

static void read_stats(struct reader *r, const json_t *root, struct kept *k)
{
    const struct stats_limits limits = {KEEP_MAX_NAMES, KEEP_MAX_NAMES};
    double start_s = number(r, root, "stats_start_s");
    const json_t *entries = list(r, root, "entries"), *errors = list(r, root, "errors");
    if (!sound(r))
        return;
    if (stats_new(limits, start_s, &k->stats) < 0) {
        (void)no_memory(r);
        return;
    }
    r->where = "entries";
    for (r->index = 0; sound(r) && r->index < json_array_size(entries); r->index++)
        read_entry(r, json_array_get(entries, r->index), k->stats);
    r->where = "errors";
    for (r->index = 0; sound(r) && r->index < json_array_size(errors); r->index++)
        read_error(r, json_array_get(errors, r->index), k->stats);
}

/* --- the rest ------------------------------------------------------------------------------- */

/* nodes has room for all of them. */
static void read_exception(struct reader *r, const json_t *o, struct stats_csv_exception *e,
                           struct str *nodes)
{
    const json_t *all = list(r, o, "nodes");
    e->count = count(r, o, "count");
    e->message = text(r, o, "message");
    e->traceback = text(r, o, "traceback");
    e->nodes = nodes;
    e->node_count = json_array_size(all);
    for (size_t i = 0; i < e->node_count; i++) {
        const json_t *name = json_array_get(all, i);
        if (!json_is_string(name))
            (void)fault(r, "nodes", "is not a list of names");
        nodes[i] = (struct str){json_string_value(name), json_string_length(name)};
    }
}

static void read_exceptions(struct reader *r, const json_t *root, struct kept *k)
{
    const json_t *all = list(r, root, "exceptions");
    size_t node_count = 0;
    for (size_t i = 0; i < json_array_size(all); i++)
        node_count += json_array_size(json_object_get(json_array_get(all, i), "nodes"));
    k->exceptions = calloc(json_array_size(all) + 1, sizeof *k->exceptions);
    k->nodes = calloc(node_count + 1, sizeof *k->nodes);
    if (!k->exceptions || !k->nodes) {
        (void)no_memory(r);
        return;
    }
    struct str *nodes = k->nodes;
    r->where = "exceptions";
    for (r->index = 0; sound(r) && r->index < json_array_size(all); r->index++) {
        struct stats_csv_exception *e = &k->exceptions[k->report.exception_count++];
        read_exception(r, json_array_get(all, r->index), e, nodes);
        nodes += e->node_count;
    }
}

static void read_point(struct reader *r, const json_t *at, struct history_point *p)
{
    size_t i = 0;
    p->wall_s = number_in(r, json_array_get(at, i++), "time");
    p->user_count = (uint32_t)(count_in(r, json_array_get(at, i++), "users") & UINT32_MAX);
    p->target = (uint32_t)(count_in(r, json_array_get(at, i++), "target") & UINT32_MAX);
    p->requests = count_in(r, json_array_get(at, i++), "requests");
    p->failures = count_in(r, json_array_get(at, i++), "failures");
    struct measure *const measures[] = {&p->rps,    &p->fail_per_s, &p->p50_ms,
                                        &p->p95_ms, &p->p99_ms,     &p->average_ms};
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
        *measures[m] = measure_in(r, json_array_get(at, i++), "value");
    p->cpu_pct = number_in(r, json_array_get(at, i++), "cpu");
    p->loop_lag_ms = number_in(r, json_array_get(at, i++), "lag");
}

static void read_history(struct reader *r, const json_t *root, struct kept *k)
{
    const json_t *points = list(r, root, "history");
    size_t count_of_points = json_array_size(points);
    k->history.points = calloc(count_of_points + 1, sizeof *k->history.points);
    if (!k->history.points) {
        (void)no_memory(r);
        return;
    }
    k->history.cap = count_of_points + 1;
    r->where = "history";
    for (r->index = 0; sound(r) && r->index < count_of_points; r->index++) {
        struct history_point *p = &k->history.points[r->index];
        read_point(r, json_array_get(points, r->index), p);
        if (r->index > 0 && p->wall_s < p[-1].wall_s)
            (void)fault(r, "time", "steps back");
        k->history.count++;
    }
}

static void read_generator(struct reader *r, const json_t *o, struct generator_verdict *g)
{
    g->cpu_p50 = measure(r, o, "cpu_p50");
    g->cpu_p90 = measure(r, o, "cpu_p90");
    g->cpu_max = measure(r, o, "cpu_max");
    g->loop_lag_p99_ms = measure(r, o, "loop_lag_p99_ms");
    g->missed_starts_1ms = count(r, o, "missed_starts_1ms");
    g->missed_starts_10ms = count(r, o, "missed_starts_10ms");
    g->connect_errors = count(r, o, "connect_errors");
    g->retries = count(r, o, "retries");
    g->sockets_peak = count(r, o, "sockets_peak");
    g->saturated = json_is_true(json_object_get(o, "saturated"));
    g->too_short = json_is_true(json_object_get(o, "too_short"));
    struct str reasons = utf8_cut(text(r, o, "reasons"), sizeof g->reasons - 1);
    if (reasons.len > 0)
        memcpy(g->reasons, reasons.ptr, reasons.len);
}

static void read_requests(struct reader *r, const json_t *o, struct report_requests *n)
{
    n->started = count(r, o, "started");
    n->succeeded = count(r, o, "succeeded");
    n->failed = count(r, o, "failed");
    n->interrupted = count(r, o, "interrupted");
    n->interrupted_oldest_us = count(r, o, "interrupted_oldest_us");
    if (n->started != n->succeeded + n->failed + n->interrupted)
        (void)fault(r, "started", "is not the sum of the others");
}

static void read_report(struct reader *r, const json_t *root, struct report *report)
{
    report->test_name = name_or_null(r, root, "test_name");
    report->tag = name_or_null(r, root, "tag");
    report->host = name_or_null(r, root, "host");
    report->start_s = number(r, root, "start_s");
    report->end_s = number(r, root, "end_s");
    report->exit_code = (int)(count(r, root, "exit_code") & 0xFF);
    report->phase = REPORT_DONE;
    read_requests(r, json_object_get(root, "requests"), &report->requests);
    read_generator(r, json_object_get(root, "generator"), &report->generator);
}

static int check_format(const json_t *root, struct err *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    if (!format || strcmp(format, "cicada-histograms") != 0)
        return err_set(err, -EPROTO, "not a file of histograms");
    if (version != KEEP_VERSION)
        return err_set(err, -EPROTO, "version %lld, of which this program knows nothing",
                       (long long)version);
    return 0;
}

int keep_decode_json(struct str json, struct kept *ret, struct err *err)
{
    struct err own = {0};
    json_error_t bad;
    *ret = (struct kept){0};
    ret->root = json_loadb(json.len ? json.ptr : "", json.len,
                           JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &bad);
    if (!ret->root) {
        bool memory = json_error_code(&bad) == json_error_out_of_memory;
        return err_set(err, memory ? -ENOMEM : -EPROTO, "line %d: %s", bad.line, bad.text);
    }
    struct reader r = {.err = &own, .where = "report"};
    int rc = check_format(ret->root, &own);
    if (rc == 0) {
        read_report(&r, ret->root, &ret->report);
        read_stats(&r, ret->root, ret);
    }
    if (sound(&r)) {
        r.where = "report";
        r.index = 0;
        read_exceptions(&r, ret->root, ret);
    }
    if (sound(&r)) {
        r.where = "report";
        r.index = 0;
        read_history(&r, ret->root, ret);
    }
    ret->report.stats = ret->stats;
    ret->report.history = &ret->history;
    ret->report.exceptions = ret->exceptions;
    return own.code < 0 ? err_set(err, own.code, "%s", own.text) : 0;
}

int keep_decode(struct str bytes, struct kept *ret, struct err *err)
{
    struct buf json;
    *ret = (struct kept){0};
    buf_init(&json, KEEP_MAX_BYTES);
    int rc = gzip_unpack(&json, bytes);
    if (rc < 0)
        (void)err_set(err, rc, "%s",
                      rc == -EPROTO   ? "not a gzip file, or a damaged one"
                      : rc == -ERANGE ? "too large"
                                      : "out of memory");
    else
        rc = keep_decode_json(buf_str(&json), ret, err);
    buf_done(&json);
    return rc;
}

void kept_done(struct kept *k)
{
    free(k->nodes);
    free(k->exceptions);
    free(k->history.points);
    stats_free(k->stats);
    json_decref(k->root);
    *k = (struct kept){0};
}
