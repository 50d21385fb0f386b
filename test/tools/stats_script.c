/* Plays a script of samples into the stats module and prints what comes out, for the differential
 * tests. Texts are hexadecimal, "-" when empty. Reads lines from stdin:
 *
 *   start WALL                   first line: two empty sets, a shard's and the run's
 *   slot METHOD NAME             make the next slot
 *   request SLOT US BYTES WALL
 *   error SLOT TEXT WALL
 *   delta WALL                   print the shard's set as the wire has it, merge it, clear it
 *   repr TEXT                    print Python's repr of it, hexadecimal
 *   key METHOD NAME TEXT         print Locust's error key
 *
 * and at the end prints one JSON line with the run's set in every form. */
#include "base/num.h"
#include "worker/stats/csv.h"
#include "worker/stats/error_key.h"
#include "worker/stats/pyrepr.h"
#include "worker/stats/wire.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES  (64u << 20)
#define MAX_FIELDS 5

struct script {
    struct stats *shard;
    struct stats *run;
    struct str fields[MAX_FIELDS];
    size_t field_count;
    struct buf texts[MAX_FIELDS]; /* of the fields that are hexadecimal */
};

/* A script of ours is wrong, or there is no memory: both end the test. */
static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "stats_script: %s\n", what);
    exit(1);
}

static uint64_t integer(const struct script *s, size_t i)
{
    uint64_t n = 0;
    must(i < s->field_count && num_parse_u64(s->fields[i], UINT64_MAX, &n) == 0, "integer");
    return n;
}

static double number(const struct script *s, size_t i)
{
    double n = 0;
    must(i < s->field_count && num_parse_double(s->fields[i], &n) == 0, "number");
    return n;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct str text(struct script *s, size_t i)
{
    must(i < s->field_count, "text");
    struct buf *b = &s->texts[i];
    buf_clear(b);
    struct str hex = s->fields[i];
    for (size_t at = 0; at + 1 < hex.len; at += 2)
        must(buf_add_byte(b, (char)(digit(hex.ptr[at]) << 4 | digit(hex.ptr[at + 1]))) == 0,
             "text");
    return buf_str(b);
}

static void print_hex(struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        (void)printf("%02x", (unsigned char)bytes.ptr[i]);
    (void)printf("\n");
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *json_text(struct str s)
{
    return json_stringn(s.len ? s.ptr : "", s.len);
}

static json_t *json_measure(struct measure m)
{
    return m.known ? json_real(m.value) : json_null();
}

static json_t *json_seconds(const struct wire_second *seconds, size_t count)
{
    json_t *pairs = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            pairs, json_pack("[I,I]", (json_int_t)seconds[i].second, (json_int_t)seconds[i].count));
    return pairs;
}

static json_t *json_entry(const struct wire_entry *e)
{
    json_t *buckets = json_array();
    for (size_t i = 0; i < e->response_time_count; i++)
        (void)json_array_append_new(buckets,
                                    json_pack("[I,I]", (json_int_t)e->response_times[i].key,
                                              (json_int_t)e->response_times[i].count));
    return json_pack(
        "{s:o,s:o,s:o,s:f,s:I,s:I,s:I,s:f,s:f,s:o,s:I,s:o,s:o,s:o}", "name", json_text(e->name),
        "method", json_text(e->method), "last_request_timestamp",
        json_measure(e->last_request_timestamp), "start_time", e->start_time, "num_requests",
        (json_int_t)e->num_requests, "num_none_requests", (json_int_t)e->num_none_requests,
        "num_failures", (json_int_t)e->num_failures, "total_response_time", e->total_response_time,
        "max_response_time", e->max_response_time, "min_response_time",
        json_measure(e->min_response_time), "total_content_length",
        (json_int_t)e->total_content_length, "response_times", buckets, "num_reqs_per_sec",
        json_seconds(e->num_reqs_per_sec, e->num_reqs_per_sec_count), "num_fail_per_sec",
        json_seconds(e->num_fail_per_sec, e->num_fail_per_sec_count));
}

static json_t *json_wire(const struct stats *set)
{
    struct stats_wire w;
    must(stats_wire_build(set, &w) == 0, "wire");
    json_t *entries = json_array(), *errors = json_object();
    for (size_t i = 0; i < w.message.entry_count; i++)
        (void)json_array_append_new(entries, json_entry(&w.message.entries[i]));
    for (size_t i = 0; i < w.message.error_count; i++) {
        const struct wire_error *e = &w.message.errors[i];
        json_t *error = json_pack("{s:o,s:o,s:o,s:I,s:f,s:f}", "method", json_text(e->method),
                                  "name", json_text(e->name), "error", json_text(e->error),
                                  "occurrences", (json_int_t)e->occurrences, "first_seen",
                                  e->first_seen, "last_seen", e->last_seen);
        (void)json_object_setn_new(errors, e->key.ptr, e->key.len, error);
    }
    json_t *wire = json_pack("{s:o,s:o,s:o}", "stats", entries, "stats_total",
                             json_entry(&w.message.total), "errors", errors);
    stats_wire_done(&w);
    return wire;
}

static void print_json(json_t *json)
{
    must(json != NULL, "json");
    must(json_dumpf(json, stdout, JSON_COMPACT) == 0, "print");
    (void)printf("\n");
    json_decref(json);
}

static json_t *json_percentiles(const struct stats_entry *e)
{
    json_t *values = json_array();
    for (unsigned i = 0; i <= 1000; i++)
        (void)json_array_append_new(
            values, json_integer((json_int_t)stats_entry_percentile_ms(e, i / 1000.0)));
    return values;
}

static json_t *csv_of(int (*header)(struct buf *), int (*rows)(struct buf *, const struct stats *),
                      const struct stats *set)
{
    struct buf b;
    buf_init(&b, MAX_BYTES);
    must(header(&b) == 0 && rows(&b, set) == 0, "csv");
    json_t *all = json_text(buf_str(&b));
    buf_done(&b);
    return all;
}

static int history_rows(struct buf *b, const struct stats *set)
{
    struct stats_entry *total;
    int rc = stats_total(set, &total);
    if (rc < 0)
        return rc;
    struct stats_csv_moment now = {(uint64_t)total->last_request_s, 12};
    for (uint32_t i = 0; rc == 0 && i < stats_entry_count(set); i++)
        rc = stats_csv_history_row(b, now, stats_entry_at(set, i), total, NULL);
    if (rc == 0)
        rc = stats_csv_history_row(b, now, total, total, NULL);
    stats_entry_free(total);
    return rc;
}

static void print_run(const struct stats *run)
{
    json_t *percentiles = json_array();
    for (uint32_t i = 0; i < stats_entry_count(run); i++)
        (void)json_array_append_new(percentiles, json_percentiles(stats_entry_at(run, i)));
    print_json(
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:I}", "wire", json_wire(run), "percentiles", percentiles,
                  "stats_csv", csv_of(stats_csv_requests_header, stats_csv_requests_rows, run),
                  "failures_csv", csv_of(stats_csv_failures_header, stats_csv_failures_rows, run),
                  "history_csv", csv_of(stats_csv_history_header, history_rows, run), "lost",
                  (json_int_t)stats_lost_samples(run)));
}

/* --- the script ----------------------------------------------------------------------------- */

static void play(struct script *s)
{
    struct str verb = s->fields[0];
    if (str_eq(verb, STR("request"))) {
        struct stats_sample sample = {integer(s, 2), integer(s, 3), number(s, 4)};
        stats_record(s->shard, (uint32_t)integer(s, 1), &sample);
    } else if (str_eq(verb, STR("error"))) {
        stats_record_error(s->shard, (uint32_t)integer(s, 1), text(s, 2), number(s, 3));
    } else if (str_eq(verb, STR("slot"))) {
        uint32_t slot;
        must(stats_slot(s->shard, text(s, 1), text(s, 2), &slot) == 0, "slot");
    } else if (str_eq(verb, STR("start"))) {
        must(stats_new((struct stats_limits){0, 0}, number(s, 1), &s->shard) == 0, "start");
        must(stats_new((struct stats_limits){0, 0}, number(s, 1), &s->run) == 0, "start");
    } else if (str_eq(verb, STR("delta"))) {
        print_json(json_wire(s->shard));
        must(stats_merge(s->run, s->shard) == 0, "delta");
        stats_clear(s->shard, number(s, 1));
    } else if (str_eq(verb, STR("repr"))) {
        struct buf b;
        buf_init(&b, MAX_BYTES);
        must(pyrepr_add(&b, text(s, 1)) == 0, "repr");
        print_hex(buf_str(&b));
        buf_done(&b);
    } else if (str_eq(verb, STR("key"))) {
        char key[ERROR_KEY_BYTES];
        must(error_key(text(s, 1), text(s, 2), text(s, 3), key) == 0, "key");
        (void)printf("%s\n", key);
    } else {
        must(false, "verb");
    }
}

int main(void)
{
    struct script s = {0};
    for (size_t i = 0; i < MAX_FIELDS; i++)
        buf_init(&s.texts[i], MAX_BYTES);
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        struct str rest = str_trim((struct str){line, (size_t)n}), field;
        s.field_count = 0;
        while (s.field_count < MAX_FIELDS && str_next(&rest, ' ', &field))
            s.fields[s.field_count++] = field;
        play(&s);
    }
    if (s.run)
        print_run(s.run);
    free(line);
    for (size_t i = 0; i < MAX_FIELDS; i++)
        buf_done(&s.texts[i]);
    stats_free(s.run);
    stats_free(s.shard);
    return 0;
}
