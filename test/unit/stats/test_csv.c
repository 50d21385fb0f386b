#include "worker/stats/csv.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX_BYTES 100000

static struct stats *set(void)
{
    struct stats *s;
    assert_int_equal(stats_new((struct stats_limits){0, 0}, 1000, &s), 0);
    return s;
}

static void record(struct stats *s, const char *name, uint64_t us, double wall_s)
{
    uint32_t slot;
    assert_int_equal(stats_slot(s, STR("GET"), str_of(name), &slot), 0);
    stats_record(s, slot, &(struct stats_sample){us, 3, wall_s});
}

/* The header lines of files that Locust 2.47.0 wrote */
static void test_headers_are_locusts(void **state)
{
    (void)state;
    static const struct {
        int (*header)(struct buf *);
        const char *want;
    } cases[] = {
        {stats_csv_requests_header,
         "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,"
         "Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,"
         "75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%\r\n"},
        {stats_csv_failures_header, "Method,Name,Error,Occurrences,First Seen,Last Seen\r\n"},
        {stats_csv_exceptions_header, "Count,Message,Traceback,Nodes\r\n"},
        {stats_csv_history_header,
         "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,"
         "99.9%,99.99%,100%,Total Request Count,Total Failure Count,Total Median Response Time,"
         "Total Average Response Time,Total Min Response Time,Total Max Response Time,"
         "Total Average Content Size\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, MAX_BYTES);
        assert_int_equal(cases[i].header(&b), 0);
        assert_string_equal(buf_c(&b), cases[i].want);
        buf_done(&b);
    }
}

static void test_text_is_quoted_as_python_does(void **state)
{
    (void)state;
    static const struct {
        struct str field;
        struct str want;
    } cases[] = {
        {STR("plain"), STR("plain,x\r\n")},
        {STR(""), STR(",x\r\n")},
        {STR(" =a;'b'\t"), STR(" =a;'b'\t,x\r\n")},
        {STR("a,b"), STR("\"a,b\",x\r\n")},
        {STR("a\"b\""), STR("\"a\"\"b\"\"\",x\r\n")},
        {STR("\""), STR("\"\"\"\",x\r\n")},
        {STR("a\nb"), STR("\"a\nb\",x\r\n")},
        {STR("a\rb"), STR("\"a\rb\",x\r\n")},
        {STR("a\0b"), STR("a\0b,x\r\n")},
    };
    struct buf b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_init(&b, MAX_BYTES);
        struct str fields[] = {cases[i].field, STR("x")};
        assert_int_equal(stats_csv_line(&b, fields, 2), 0);
        assert_true(str_eq(buf_str(&b), cases[i].want));
        buf_done(&b);
    }
    buf_init(&b, MAX_BYTES);
    assert_int_equal(stats_csv_line(&b, &STR(""), 1), 0);
    assert_string_equal(buf_c(&b), "\"\"\r\n");
    buf_done(&b);
}

static void test_requests_are_ordered_and_summed(void **state)
{
    (void)state;
    struct stats *s = set();
    record(s, "/b", 4600, 1004);
    record(s, "/a", 0, 1002);
    record(s, "/c", 105000, 1002);
    stats_record_error(s, 0, STR("x"), 1004);
    uint32_t unused;
    assert_int_equal(stats_slot(s, STR("GET"), STR("/unused"), &unused), 0);
    struct buf b;
    buf_init(&b, MAX_BYTES);
    assert_int_equal(stats_csv_requests_rows(&b, s), 0);
    assert_string_equal(
        buf_c(&b),
        "GET,/a,1,0,0,0.0,0,0,3.0,0.25,0.0,0,0,0,0,0,0,0,0,0,0,0\r\n"
        "GET,/b,1,1,4.6,4.6,4.6,4.6,3.0,0.25,0.25,5,5,5,5,5,5,5,5,5,5,5\r\n"
        "GET,/c,1,0,105.0,105.0,105.0,105.0,3.0,0.25,0.0,100,100,100,100,100,100,100,100,100,100,"
        "100\r\n"
        ",Aggregated,3,1,5,36.53333333333333,0,105.0,3.0,0.75,0.25,5,5,100,100,100,100,100,100,"
        "100,100,100\r\n");
    buf_done(&b);
    stats_free(s);
}

static void test_nothing_measured_is_not_available(void **state)
{
    (void)state;
    struct stats *s = set();
    struct buf b;
    buf_init(&b, MAX_BYTES);
    assert_int_equal(stats_csv_requests_rows(&b, s), 0);
    assert_string_equal(buf_c(&b),
                        ",Aggregated,0,0,0,0.0,0,0,0,0.0,0.0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,"
                        "N/A,N/A,N/A,N/A\r\n");
    buf_clear(&b);
    struct stats_entry *total;
    assert_int_equal(stats_total(s, &total), 0);
    assert_int_equal(
        stats_csv_history_row(&b, (struct stats_csv_moment){1003, 5}, total, total, NULL), 0);
    assert_string_equal(buf_c(&b), "1003,5,,Aggregated,0.000000,0.000000,N/A,N/A,N/A,N/A,N/A,N/A,"
                                   "N/A,N/A,N/A,N/A,N/A,0,0,0,0.0,0,0,0\r\n");
    stats_entry_free(total);
    buf_done(&b);
    stats_free(s);
}

static void test_history_shows_the_whole_run_or_a_window(void **state)
{
    (void)state;
    struct stats *s = set(), *recent = set();
    for (unsigned i = 0; i < 20; i++) {
        record(s, "/a", 10000, 1000 + i);
        if (i >= 17)
            record(recent, "/a", 20000, 1000 + i);
    }
    struct stats_entry *total, *window;
    assert_int_equal(stats_total(s, &total), 0);
    assert_int_equal(stats_total(recent, &window), 0);
    struct buf b;
    buf_init(&b, MAX_BYTES);
    struct stats_csv_moment now = {1020, 7};
    assert_int_equal(stats_csv_history_row(&b, now, stats_entry_at(s, 0), total, NULL), 0);
    assert_int_equal(stats_csv_history_row(&b, now, total, total, window), 0);
    assert_string_equal(buf_c(&b),
                        "1020,7,GET,/a,1.000000,0.000000,10,10,10,10,10,10,10,10,10,10,10,20,0,10,"
                        "10.0,10.0,10.0,3.0\r\n"
                        "1020,7,,Aggregated,1.000000,0.000000,20,20,20,20,20,20,20,20,20,20,20,20,"
                        "0,10,10.0,10.0,10.0,3.0\r\n");
    buf_done(&b);
    stats_entry_free(window);
    stats_entry_free(total);
    stats_free(recent);
    stats_free(s);
}

static void test_failures_are_ordered_by_key(void **state)
{
    (void)state;
    struct stats *s = set();
    uint32_t slot;
    assert_int_equal(stats_slot(s, STR("GET"), STR("/a"), &slot), 0);
    stats_record_error(s, slot, STR("HTTP 500"), 1700000000.9);                        /* f368… */
    stats_record_error(s, slot, STR("<x.Y object at 0x7f01> and 0x7f01"), 1700000001); /* ad85… */
    stats_record_error(s, slot, STR("HTTP 500"), 1700000100.1);
    struct buf b;
    buf_init(&b, MAX_BYTES);
    assert_int_equal(stats_csv_failures_rows(&b, s), 0);
    assert_string_equal(
        buf_c(&b),
        "GET,/a,<x.Y object at 0x....> and 0x....,1,2023-11-14T22:13:21Z,2023-11-14T22:13:21Z\r\n"
        "GET,/a,HTTP 500,2,2023-11-14T22:13:20Z,2023-11-14T22:15:00Z\r\n");
    buf_done(&b);
    stats_free(s);
}

static void test_exceptions(void **state)
{
    (void)state;
    static const struct str nodes[] = {{"w1", 2}, {"w2", 2}};
    struct buf b;
    buf_init(&b, MAX_BYTES);
    struct stats_csv_exception e = {3, STR("boom"), STR("Trace:\n  \"x\""), nodes, 2};
    assert_int_equal(stats_csv_exceptions_row(&b, &e), 0);
    e = (struct stats_csv_exception){1, STR("a"), STR(""), nodes, 1};
    assert_int_equal(stats_csv_exceptions_row(&b, &e), 0);
    assert_string_equal(buf_c(&b), "3,boom,\"Trace:\n  \"\"x\"\"\",\"w1, w2\"\r\n1,a,,w1\r\n");
    buf_done(&b);
}

static void test_failure_leaves_the_buffer(void **state)
{
    (void)state;
    struct stats *s = set();
    record(s, "/a", 1000, 1001);
    stats_record_error(s, 0, STR("x"), 1001);
    for (unsigned long n = 1;; n++) {
        struct buf b;
        buf_init(&b, MAX_BYTES);
        assert_int_equal(buf_add(&b, STR("kept")), 0);
        alloc_fail_at(n);
        int rc = stats_csv_requests_rows(&b, s);
        size_t before = rc == 0 ? b.len : 4;
        if (rc == 0)
            rc = stats_csv_failures_rows(&b, s);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (failed)
            assert_int_equal(b.len, before);
        buf_done(&b);
        if (!failed)
            break;
    }
    struct buf small;
    buf_init(&small, 40);
    assert_int_equal(stats_csv_requests_rows(&small, s), -ERANGE);
    assert_int_equal(small.len, 0);
    assert_int_equal(stats_csv_failures_rows(&small, s), -ERANGE);
    assert_int_equal(small.len, 0);
    assert_int_equal(stats_csv_requests_header(&small), -ERANGE);
    assert_int_equal(small.len, 0);
    buf_done(&small);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_are_locusts),
        cmocka_unit_test(test_text_is_quoted_as_python_does),
        cmocka_unit_test(test_requests_are_ordered_and_summed),
        cmocka_unit_test(test_nothing_measured_is_not_available),
        cmocka_unit_test(test_history_shows_the_whole_run_or_a_window),
        cmocka_unit_test(test_failures_are_ordered_by_key),
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_failure_leaves_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
