#include "worker/output/rows.h"

#include "base/num.h"
#include "base/utf8.h"
#include "facts/json.h"
#include "worker/output/pen.h"
#include "worker/output/sorted.h"

#include <inttypes.h>
#include <stdlib.h>

#define NAME_MAX_BYTES (4u << 20) /* of a metric: a method and a name, which the plan limits */
#define FIRST_NUMBER   2          /* columns of stats.csv before it are type and name */
#define FIRST_MEASURED 4          /* those before it are counts, where zero is measured */

/* --- values ---------------------------------------------------------------------------------- */

static json_t *text_of(struct str s)
{
    struct buf b;
    buf_init(&b, NAME_MAX_BYTES);
    json_t *value = utf8_add_repaired(&b, s) == 0 ? json_stringn(buf_c(&b), b.len) : NULL;
    buf_done(&b);
    return value;
}

static json_t *text_or_null(const char *c_string)
{
    return c_string ? text_of(str_of(c_string)) : json_null();
}

static json_t *count_text(uint64_t n)
{
    return json_sprintf("%" PRIu64, n);
}

/* A measure as text; whole ones, where they are counts, without a fraction. */
static json_t *measure_text(struct measure m, bool is_count)
{
    char digits[NUM_TEXT_BYTES];
    if (!m.known)
        return json_null();
    if (is_count && m.value >= 0 && m.value < 9e15 && m.value == floor(m.value))
        return count_text((uint64_t)m.value);
    num_format_repr(m.value, digits);
    return json_string(digits);
}

/* Any scalar of an object as its text in measurements. */
static json_t *flat_text(const json_t *value)
{
    if (json_is_integer(value))
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        return measure_text(measure_of(json_real_value(value)), false);
    if (json_is_string(value))
        return json_stringn(json_string_value(value), json_string_length(value));
    return json_null();
}

/* Takes the value, which may be NULL: out of memory. */
static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static int set_named(json_t *object, struct str key, json_t *value)
{
    return json_object_setn_new(object, key.ptr, key.len, value) < 0 ? -ENOMEM : 0;
}

/* Write one row: what every row carries, then the objects; all are taken, NULL is out of memory. */
static int add_row(struct buf *b, const struct report *r, json_t *metric, json_t *raw,
                   json_t *frontiers, json_t *measurements)
{
    struct buf time;
    buf_init(&time, NUM_TEXT_BYTES);
    struct pen pen = {&time, 0};
    pen_time(&pen, r->end_s);
    json_auto_t *row = json_object();
    int rc = row && pen.rc == 0 ? 0 : -ENOMEM;
    rc |= set(row, "timestamp", json_string(buf_c(&time)));
    rc |= set(row, "tag", text_or_null(r->tag));
    rc |= set(row, "test_name", text_or_null(r->test_name));
    rc |= set(row, "metric", metric);
    if (raw)
        rc |= set(row, "raw_configuration", raw);
    if (frontiers)
        rc |= set(row, "frontiers", frontiers);
    rc |= set(row, "measurements", measurements);
    buf_done(&time);
    char *line = rc == 0 ? json_dumps(row, FACTS_DUMP_FLAGS) : NULL;
    rc = line ? buf_add(b, str_of(line)) : -ENOMEM;
    free(line);
    return rc < 0 ? rc : buf_add_byte(b, '\n');
}

/* --- entries --------------------------------------------------------------------------------- */

/* "Requests/s" -> requests_per_s, "Average Content Size" -> average_content_size, "99.9%" ->
 * p99_9 */
static int column_key(struct buf *b, const char *column)
{
    buf_clear(b);
    bool percentile = column[0] >= '0' && column[0] <= '9', gap = false;
    int rc = percentile ? buf_add_byte(b, 'p') : 0;
    for (const char *c = column; rc == 0 && *c; c++) {
        bool upper = *c >= 'A' && *c <= 'Z';
        if (*c == '/') {
            rc = buf_add(b, STR("_per_"));
            gap = false;
        } else if (upper || (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')) {
            if (gap)
                rc = buf_add_byte(b, '_');
            if (rc == 0)
                rc = buf_add_byte(b, upper ? (char)(*c | 0x20) : *c);
            gap = false;
        } else {
            gap = true; /* and none at the end: "50%" */
        }
    }
    return rc;
}

static json_t *entry_measurements(const struct stats_entry *e, const struct stats_entry *total)
{
    json_t *o = json_object();
    struct buf key, value;
    buf_init(&key, NAME_MAX_BYTES);
    buf_init(&value, NAME_MAX_BYTES);
    int rc = o ? 0 : -ENOMEM;
    for (unsigned c = 0; rc == 0 && c < STATS_CSV_COLUMN_COUNT; c++) {
        bool rate = str_find(str_of(stats_csv_column(c)), '/') < strlen(stats_csv_column(c));
        bool measured = c < FIRST_MEASURED || rate || e->num_requests > 0;
        buf_clear(&value);
        rc = column_key(&key, stats_csv_column(c));
        if (rc == 0)
            rc = stats_csv_value(&value, c, e, total);
        if (rc == 0)
            rc = set(o, buf_c(&key),
                     measured ? json_stringn(buf_c(&value), value.len) : json_null());
    }
    buf_done(&value);
    buf_done(&key);
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

static int add_entry(struct buf *b, const struct report *r, const struct stats_entry *e,
                     const struct stats_entry *total)
{
    struct buf metric;
    buf_init(&metric, NAME_MAX_BYTES);
    struct pen pen = {&metric, 0};
    pen_str(&pen, e->method);
    pen_text(&pen, "_");
    pen_str(&pen, e->name);
    json_t *name = pen.rc == 0 ? json_stringn(buf_c(&metric), metric.len) : NULL;
    buf_done(&metric);
    return add_row(b, r, name, NULL, NULL, entry_measurements(e, total));
}

/* --- trial_summary --------------------------------------------------------------------------- */

/* Copy the scalars of an object as texts. */
static int set_flat(json_t *into, json_t *from)
{
    const char *key;
    json_t *value;
    int rc = into && from ? 0 : -ENOMEM;
    json_object_foreach(from, key, value)
    {
        if (rc == 0)
            rc = set(into, key, flat_text(value));
    }
    return rc;
}

/* Entries whose names read the same are one operation: GET and POST of /items are "items". */
static int set_failure_ratios(json_t *o, const struct sorted *sorted)
{
    json_auto_t *sums = json_object();
    struct buf key;
    buf_init(&key, NAME_MAX_BYTES);
    int rc = sums ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sorted->count; i++) {
        const struct stats_entry *e = sorted->entries[i];
        buf_clear(&key);
        rc = snake_case(&key, e->name);
        if (rc == 0)
            rc = buf_add(&key, key.len ? STR("_failure_ratio") : STR("failure_ratio"));
        const json_t *before = rc == 0 ? json_object_getn(sums, key.ptr, key.len) : NULL;
        if (rc == 0 && !before && json_object_getn(o, key.ptr, key.len))
            continue; /* an entry called "aggregate" does not stand in for the whole */
        json_int_t failures = json_integer_value(json_array_get(before, 0));
        json_int_t requests = json_integer_value(json_array_get(before, 1));
        failures += (json_int_t)e->num_failures;
        requests += (json_int_t)e->num_requests;
        struct measure ratio = failure_ratio((uint64_t)failures, (uint64_t)requests);
        if (rc == 0)
            rc = set_named(sums, buf_str(&key), json_pack("[I,I]", failures, requests));
        if (rc == 0)
            rc = set_named(o, buf_str(&key), measure_text(ratio, false));
    }
    buf_done(&key);
    return rc;
}

static int set_actors(json_t *o, const struct actors_summary *a)
{
    int rc = set(o, "running_actors_peak", measure_text(a->running_peak, true));
    rc |= set(o, "running_actors_p50", measure_text(a->running_p50, true));
    rc |= set(o, "running_actors_p90", measure_text(a->running_p90, true));
    rc |= set(o, "live_actors_peak", measure_text(a->live_peak, true));
    rc |= set(o, "hibernate_pending_actors_peak", measure_text(a->hibernate_pending_peak, true));
    rc |= set(o, "crashed_actors_final", measure_text(a->crashed_final, true));
    return rc;
}

static int add_trial(struct buf *b, const struct report *r, const struct sorted *sorted)
{
    static const struct cluster_facts no_facts;
    struct frontiers f = {0};
    if (r->frontiers)
        f = *r->frontiers;
    else /* what the load alone tells */
        f.aggregate_failure_ratio =
            failure_ratio(sorted->total->num_failures, sorted->total->num_requests);
    struct measure actors =
        r->actors_per_user > 0 ? measure_of(r->actors_per_user) : MEASURE_UNKNOWN;
    json_t *raw = facts_raw_configuration(r->facts ? r->facts : &no_facts,
                                          users_source_name(r->users_source), actors);
    json_t *frontiers = facts_frontiers(&f), *o = json_object();
    int rc = set_flat(o, raw);
    rc |= set_flat(o, frontiers);
    rc |= set(o, "actors_per_pod_p50", measure_text(f.actors_per_pod_p50, false));
    rc |= set(o, "actors_per_pod_p90", measure_text(f.actors_per_pod_p90, false));
    rc |= set(o, "actors_per_pod_p99", measure_text(f.actors_per_pod_p99, false));
    if (rc == 0)
        rc = set_failure_ratios(o, sorted);
    if (rc == 0 && r->actors)
        rc = set_actors(o, r->actors);
    if (rc == 0)
        return add_row(b, r, json_string("trial_summary"), raw, frontiers, o);
    json_decref(o);
    json_decref(frontiers);
    json_decref(raw);
    return -ENOMEM;
}

/* --- server_summary, generator --------------------------------------------------------------- */

static int add_server(struct buf *b, const struct report *r, const json_t *flat)
{
    json_t *o = r->server_flat ? json_deep_copy(r->server_flat)
                : flat         ? json_deep_copy(flat)
                               : json_object();
    return add_row(b, r, json_string("server_summary"), NULL, NULL, o);
}

static int add_generator(struct buf *b, const struct report *r)
{
    const struct generator_verdict *g = &r->generator;
    json_t *o = json_object();
    int rc = set(o, "cpu_p50", measure_text(g->cpu_p50, false));
    rc |= set(o, "cpu_p90", measure_text(g->cpu_p90, false));
    rc |= set(o, "cpu_max", measure_text(g->cpu_max, false));
    rc |= set(o, "loop_lag_p99_ms", measure_text(g->loop_lag_p99_ms, false));
    rc |= set(o, "missed_starts", count_text(g->missed_starts_1ms));
    rc |= set(o, "missed_starts_over_10ms", count_text(g->missed_starts_10ms));
    rc |= set(o, "saturated", json_string(g->saturated ? "true" : "false"));
    rc |= set(o, "saturated_reasons", text_or_null(g->reasons[0] ? g->reasons : NULL));
    rc |= set(o, "connect_errors", count_text(g->connect_errors));
    rc |= set(o, "retries", count_text(g->retries));
    rc |= set(o, "sockets_peak", count_text(g->sockets_peak));
    rc |= set(o, "requests_started", count_text(r->requests.started));
    rc |= set(o, "requests_succeeded", count_text(r->requests.succeeded));
    rc |= set(o, "requests_failed", count_text(r->requests.failed));
    rc |= set(o, "requests_interrupted", count_text(r->requests.interrupted));
    if (rc == 0)
        return add_row(b, r, json_string("generator"), NULL, NULL, o);
    json_decref(o);
    return -ENOMEM;
}

int rows_add(struct buf *b, const struct report *r, const json_t *server_flat)
{
    struct sorted sorted;
    int rc = sorted_make(r->stats, &sorted);
    for (size_t i = 0; rc == 0 && i < sorted.count; i++)
        rc = add_entry(b, r, sorted.entries[i], sorted.total);
    if (rc == 0)
        rc = add_trial(b, r, &sorted);
    if (rc == 0)
        rc = add_server(b, r, server_flat);
    if (rc == 0)
        rc = add_generator(b, r);
    sorted_done(&sorted);
    return rc;
}

bool rows_any(const struct report *r)
{
    return !stats_is_empty(r->stats);
}
