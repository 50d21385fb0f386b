#include "worker/output/keep.h"

#include "test/unit/alloc.h"
#include "worker/output/gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_BYTES (16u << 20)

/* A report with something of everything. */
struct sample {
    struct stats *stats;
    struct history history;
    struct history_point points[2];
    struct report report;
};

static void make_sample(struct sample *s)
{
    static const struct str node = {"local", 5};
    static const struct stats_csv_exception exceptions[] = {
        {3, {"it\0s", 4}, {"Traceback\n", 10}, &node, 1}};
    static const uint64_t phases[STATS_PHASE_COUNT] = {1, 2, STATS_NO_TIME, 300, UINT32_MAX};
    static const struct str errors[] = {{"HTTP 500", 8}, {"a\0b", 3}};
    const struct stats_times times = {777, phases};
    uint32_t slot;
    assert_int_equal(stats_new((struct stats_limits){0, 0}, 1000.1, &s->stats), 0);
    for (uint64_t i = 0; i < 200; i++) {
        const struct stats_sample one = {i * i * 1000, i, 1000.3 + (double)i / 10};
        struct str name = i % 3 ? STR("/") : STR("/\0 \xC3\xA9\"");
        assert_int_equal(stats_slot(s->stats, i % 2 ? STR("GET") : STR(""), name, &slot), 0);
        stats_record(s->stats, slot, &one);
        if (i % 5 == 0)
            stats_record_times(s->stats, slot, &times);
        if (i % 7 == 0)
            stats_record_error(s->stats, slot, errors[i % 2], one.wall_s);
    }
    assert_int_equal(stats_slot(s->stats, STR("GET"), STR("never"), &slot), 0);
    stats_record_error(s->stats, slot, errors[0], 1001); /* a failure without a request */
    s->points[0] = (struct history_point){.wall_s = 1001.25, .user_count = 5, .requests = 3};
    s->points[1] = (struct history_point){
        .wall_s = 1002, .user_count = 6, .target = 9, .rps = measure_of(0.1), .cpu_pct = 12.5};
    s->history = (struct history){s->points, 2, 2};
    s->report = (struct report){
        .test_name = "demo",
        .host = "http://h",
        .start_s = 1000.1,
        .end_s = 1020.7,
        .requests = {210, 170, 30, 10, 55555},
        .stats = s->stats,
        .history = &s->history,
        .exceptions = exceptions,
        .exception_count = 1,
        .generator = {.cpu_p50 = measure_of(33.3),
                      .saturated = true,
                      .too_short = true,
                      .reasons = "CPU"},
        .exit_code = 1,
    };
}

static struct buf encoded(const struct report *r)
{
    struct buf b;
    buf_init(&b, MAX_BYTES);
    assert_int_equal(keep_encode(&b, r), 0);
    return b;
}

static void assert_same_histogram(const struct histogram *a, const struct histogram *b)
{
    uint32_t i = 0, j = 0;
    uint64_t low_a, low_b, count_a, count_b;
    assert_true(a->count == b->count);
    while (histogram_next(a, &i, &low_a, &count_a)) {
        assert_true(histogram_next(b, &j, &low_b, &count_b));
        assert_true(low_a == low_b && count_a == count_b);
    }
}

static void assert_same_entry(const struct stats_entry *a, const struct stats_entry *b)
{
    assert_true(str_eq(a->method, b->method) && str_eq(a->name, b->name));
    assert_true(a->num_requests == b->num_requests && a->num_failures == b->num_failures);
    assert_true(a->min_response_time_us == b->min_response_time_us);
    assert_true(a->max_response_time_us == b->max_response_time_us);
    assert_true(a->total_response_time_us == b->total_response_time_us);
    assert_true(a->last_request_s == b->last_request_s);
    assert_same_histogram(&a->response_times, &b->response_times);
    assert_true(!a->details == !b->details);
    if (!a->details)
        return;
    assert_same_histogram(&a->details->service_times, &b->details->service_times);
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        assert_same_histogram(&a->details->phases[i], &b->details->phases[i]);
}

static void test_everything_comes_back(void **state)
{
    (void)state;
    struct sample s;
    struct kept k;
    struct err err = {0};
    make_sample(&s);
    struct buf b = encoded(&s.report);
    assert_int_equal(keep_decode(buf_str(&b), &k, &err), 0);
    const struct report *r = &k.report;
    assert_string_equal(r->test_name, "demo");
    assert_null(r->tag);
    assert_true(r->start_s == 1000.1 && r->end_s == 1020.7);
    assert_memory_equal(&r->requests, &s.report.requests, sizeof r->requests);
    assert_true(r->generator.saturated && r->generator.too_short &&
                r->generator.cpu_p50.value == 33.3);
    assert_false(r->generator.cpu_max.known);
    assert_string_equal(r->generator.reasons, "CPU");
    assert_int_equal(r->exception_count, 1);
    assert_true(str_eq(r->exceptions[0].message, (struct str){"it\0s", 4}));
    assert_true(str_eq(r->exceptions[0].nodes[0], STR("local")));
    assert_int_equal(r->history->count, 2);
    assert_memory_equal(&r->history->points[1], &s.points[1], sizeof s.points[1]);
    assert_int_equal(stats_entry_count(k.stats), stats_entry_count(s.stats));
    for (uint32_t i = 0; i < stats_entry_count(s.stats); i++)
        assert_same_entry(stats_entry_at(s.stats, i), stats_entry_at(k.stats, i));
    assert_int_equal(stats_error_count(k.stats), stats_error_count(s.stats));
    /* and again from there: the same bytes */
    struct buf again = encoded(r);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.ptr, b.ptr, b.len);
    buf_done(&again);
    buf_done(&b);
    kept_done(&k);
    stats_free(s.stats);
}

static void test_damage_is_seen(void **state)
{
    (void)state;
    struct sample s;
    struct kept k;
    make_sample(&s);
    struct buf b = encoded(&s.report);
    for (size_t cut = 0; cut < b.len; cut += 7) {
        assert_int_equal(keep_decode(str_sub(buf_str(&b), 0, cut), &k, NULL), -EPROTO);
        kept_done(&k);
    }
    for (size_t at = 10; at < b.len; at += 11) {
        b.ptr[at] = (char)(b.ptr[at] ^ 0x10);
        assert_true(keep_decode(buf_str(&b), &k, NULL) == -EPROTO);
        kept_done(&k);
        b.ptr[at] = (char)(b.ptr[at] ^ 0x10);
    }
    assert_int_equal(buf_add_byte(&b, 'x'), 0);
    assert_int_equal(keep_decode(buf_str(&b), &k, NULL), -EPROTO);
    kept_done(&k);
    buf_done(&b);
    stats_free(s.stats);
}

/* The JSON of a small report with one part replaced by another. */
static int decode_with(const char *part, const char *other, struct err *err)
{
    static const char whole[] =
        "{\"format\":\"cicada-histograms\",\"version\":1,\"test_name\":null,\"tag\":null,"
        "\"host\":null,\"start_s\":1,\"end_s\":2,\"stats_start_s\":1,\"exit_code\":0,"
        "\"requests\":{\"started\":2,\"succeeded\":2,\"failed\":0,\"interrupted\":0,"
        "\"interrupted_oldest_us\":0},"
        "\"generator\":{\"cpu_p50\":null,\"cpu_p90\":null,\"cpu_max\":1,\"loop_lag_p99_ms\":null,"
        "\"missed_starts_1ms\":0,\"missed_starts_10ms\":0,\"connect_errors\":0,\"retries\":0,"
        "\"sockets_peak\":0,\"saturated\":false,\"too_short\":false,\"reasons\":\"\"},"
        "\"entries\":[{\"method\":\"GET\",\"name\":\"/\",\"num_requests\":2,"
        "\"num_none_requests\":0,\"num_failures\":1,\"total_response_time_us\":3000,"
        "\"min_response_time_us\":1000,\"max_response_time_us\":2000,\"total_content_length\":5,"
        "\"start_time_s\":1,\"last_request_s\":1.5,\"num_reqs_per_sec\":[1,2],"
        "\"num_fail_per_sec\":[1,1],\"buckets_ms\":[1,1,2,1],"
        "\"response_times_us\":[1000,1,2000,1]}],"
        "\"errors\":[{\"method\":\"GET\",\"name\":\"/\",\"error\":\"x\",\"occurrences\":1,"
        "\"first_seen_s\":1,\"last_seen_s\":1}],\"exceptions\":[],"
        "\"history\":[[1,1,0,0,0,null,null,null,null,null,null,0,0],"
        "[2,1,0,2,0,2,0,1,1,1,1,0,0]]}";
    struct str text = str_of(whole);
    size_t at = str_find_str(text, str_of(part));
    assert_true(at < text.len);
    struct buf b;
    struct kept k;
    buf_init(&b, MAX_BYTES);
    assert_int_equal(buf_printf(&b, "%.*s%s", (int)at, whole, other), 0);
    assert_int_equal(buf_add(&b, str_sub(text, at + strlen(part), text.len)), 0);
    int rc = keep_decode_json(buf_str(&b), &k, err);
    kept_done(&k);
    buf_done(&b);
    return rc;
}

static void test_contradictions_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *part, *other, *told;
    } cases[] = {
        {"{", "", "line 1: "},
        {"cicada-histograms", "other", "not a file of histograms"},
        {"\"version\":1", "\"version\":2", "version 2, of which this program knows nothing"},
        {"\"start_s\":1,", "", "report[0].start_s: is not a number"},
        {"\"start_s\":1,", "\"start_s\":1e300,", "report[0].start_s: is not a number"},
        {"\"tag\":null", "\"tag\":3", "report[0].tag: is not a text"},
        {"\"tag\":null", "\"tag\":\"a\\u0000b\"", "report[0].tag: has a NUL inside"},
        {"\"started\":2", "\"started\":3", "report[0].started: is not the sum of the others"},
        {"\"failed\":0", "\"failed\":-1", "report[0].failed: is not a count"},
        {"\"cpu_max\":1", "\"cpu_max\":\"1\"", "report[0].cpu_max: is not a number"},
        {"\"entries\":[{", "\"entries\":[1,{", "entries[0].method: is not a text"},
        {"\"num_requests\":2", "\"num_requests\":1",
         "entries[0].num_reqs_per_sec: counts more than there were"},
        {"\"num_requests\":2", "\"num_requests\":9223372036854775807",
         "entries[0].num_requests: is not a count"},
        {"\"num_failures\":1", "\"num_failures\":0",
         "entries[0].num_fail_per_sec: counts more than there were"},
        {"\"min_response_time_us\":1000", "\"min_response_time_us\":null",
         "entries[0].min_response_time_us: contradicts the rest"},
        {"\"min_response_time_us\":1000", "\"min_response_time_us\":2001",
         "entries[0].min_response_time_us: contradicts the rest"},
        {"[1,1,2,1]", "[1,1,2]", "entries[0].buckets_ms: is not a list of pairs"},
        {"[1,1,2,1]", "[2,1,1,1]", "entries[0].buckets_ms: does not ascend"},
        {"[1,1,2,1]", "[1,1,101,1]", "entries[0].buckets_ms: is not made of Locust's buckets"},
        {"[1,1,2,1]", "[1,1,2,2]", "entries[0].buckets_ms: counts more than there were"},
        {"[1,1,2,1]", "{}", "entries[0].buckets_ms: is not a list"},
        {"[1000,1,2000,1]", "[1000,1,2000,9]",
         "entries[0].response_times_us: counts more than there were"},
        {"[1000,1,2000,1]", "[1000,1152921504606846976,2000,1]",
         "entries[0].response_times_us: counts too many"},
        {"\"error\":\"x\"", "\"error\":null", "errors[0].error: is not a text"},
        {"\"exceptions\":[]", "\"exceptions\":[{\"count\":1}]",
         "exceptions[0].nodes: is not a list"},
        {"\"exceptions\":[]",
         "\"exceptions\":[{\"count\":1,\"message\":\"\",\"traceback\":\"\",\"nodes\":[1]}]",
         "exceptions[0].nodes: is not a list of names"},
        {"[2,1,0,2,", "[0,1,0,2,", "history[1].time: steps back"},
        {"[2,1,0,2,", "[2,1,0,", "history[1].lag: is not a number"},
    };
    struct err err = {0};
    assert_int_equal(decode_with("{", "{", &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err = (struct err){0};
        int rc = decode_with(cases[i].part, cases[i].other, &err);
        if (rc != -EPROTO || strncmp(err.text, cases[i].told, strlen(cases[i].told)) != 0)
            fail_msg("%s: %d, %s", cases[i].other, rc, err.text);
    }
}

static void test_without_memory_nothing_is_lost_or_leaked(void **state)
{
    (void)state;
    struct sample s;
    struct kept k;
    make_sample(&s);
    struct buf b = encoded(&s.report);
    for (unsigned long n = 1, rc = 1; rc != 0; n++) {
        alloc_fail_at(n);
        rc = (unsigned long)-keep_decode(buf_str(&b), &k, NULL);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(failed ? rc == ENOMEM : rc == 0);
        kept_done(&k);
    }
    for (unsigned long n = 1, rc = 1; rc != 0; n++) {
        struct buf other;
        buf_init(&other, MAX_BYTES);
        alloc_fail_at(n);
        rc = (unsigned long)-keep_encode(&other, &s.report);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(failed ? rc == ENOMEM : rc == 0);
        buf_done(&other);
    }
    buf_done(&b);
    stats_free(s.stats);
}

static void test_gzip_is_bounded(void **state)
{
    (void)state;
    static char zeros[1 << 20];
    struct buf packed, back;
    buf_init(&packed, MAX_BYTES);
    buf_init(&back, sizeof zeros - 1);
    assert_int_equal(gzip_pack(&packed, (struct str){zeros, sizeof zeros}), 0);
    assert_true(packed.len < 2000);
    assert_int_equal(gzip_unpack(&back, buf_str(&packed)), -ERANGE);
    assert_int_equal(back.len, 0);
    buf_done(&back);
    buf_init(&back, sizeof zeros);
    assert_int_equal(gzip_unpack(&back, buf_str(&packed)), 0);
    assert_int_equal(back.len, sizeof zeros);
    buf_done(&back);
    buf_done(&packed);
    buf_init(&packed, 10);
    assert_int_equal(gzip_pack(&packed, (struct str){zeros, sizeof zeros}), -ERANGE);
    buf_done(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_comes_back),
        cmocka_unit_test(test_damage_is_seen),
        cmocka_unit_test(test_contradictions_are_told),
        cmocka_unit_test(test_without_memory_nothing_is_lost_or_leaked),
        cmocka_unit_test(test_gzip_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
