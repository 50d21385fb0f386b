#include "facts/actors.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_measure(struct measure m, double want)
{
    assert_true(m.known);
    assert_true(m.value == want);
}

static void test_a_page(void **state)
{
    (void)state;
    static const char page[] =
        "# HELP locust_actors Actors by state.\n"
        "# TYPE locust_actors gauge\n"
        "locust_actors{user_class=\"Dur\\\"Dir\",state=\"running\"} 12\n"
        "locust_actors{state=\"crashed\",user_class=\"Dur\\\"Dir\",} 1 1700000000000\n"
        "locust_actors { user_class = \"B\" , state = \"running\" } 3.0e0 \r\n"
        "\n"
        "  \n"
        "locust_actors{user_class=\"B\",state=\"running\",pod=\"x\"} 2\n"
        "http_requests_total 1027\n"
        "rpc:duration{quantile=\"0.9\",le=\"+Inf\",a=\"b\\n\\\\\"} NaN -12\n"
        "up +Inf\n"
        "locust_actors_created{a=\"b\"} 5";
    struct actors_scrape s = {0};
    assert_int_equal(actors_parse(str_of(page), &s, NULL), 0);
    assert_int_equal(s.count, 3);
    assert_string_equal(s.rows[0].user_class, "Dur\"Dir");
    assert_string_equal(s.rows[0].state, "running");
    assert_true(s.rows[0].count == 12);
    assert_string_equal(s.rows[1].state, "crashed");
    assert_string_equal(s.rows[2].user_class, "B");
    assert_true(s.rows[2].count == 5);
    actors_scrape_done(&s);
}

static void test_refused_pages(void **state)
{
    (void)state;
    static const struct {
        const char *page;
        int rc;
        const char *error;
    } cases[] = {
        {"", -ENOENT, "no locust_actors on the page"},
        {"up 1\n", -ENOENT, "no locust_actors on the page"},
        {"<html>", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors 1\nup\n", -EPROTO, "line 2 is not in the Prometheus text format"},
        {"locust_actors{user_class=\"a\" 1", -EPROTO,
         "line 1 is not in the Prometheus text format"},
        {"locust_actors{user_class=\"a} 1", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors{user_class=\"a\\x\"} 1", -EPROTO,
         "line 1 is not in the Prometheus text format"},
        {"locust_actors{user_class=\"\xff\"} 1", -EPROTO,
         "line 1 is not in the Prometheus text format"},
        {"locust_actors{,} 1", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors{a:b=\"c\"} 1", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors 1 2 3", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors 0x10", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"1up 1", -EPROTO, "line 1 is not in the Prometheus text format"},
        {"locust_actors NaN", -EPROTO, "line 1: locust_actors is no count"},
        {"locust_actors +Inf", -EPROTO, "line 1: locust_actors is no count"},
        {"locust_actors -1", -EPROTO, "line 1: locust_actors is no count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct actors_scrape s = {0};
        struct err err = {0};
        assert_int_equal(actors_parse(str_of(cases[i].page), &s, &err), cases[i].rc);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(s.count, 0);
        actors_scrape_done(&s);
    }
}

static void test_too_many_series(void **state)
{
    (void)state;
    struct buf page;
    struct actors_scrape s = {0};
    buf_init(&page, ACTORS_PAGE_BYTES);
    for (int i = 0; i <= ACTORS_ROWS_MAX; i++)
        assert_int_equal(buf_printf(&page, "locust_actors{state=\"s%d\"} 1\n", i), 0);
    assert_int_equal(actors_parse(buf_str(&page), &s, NULL), -ERANGE);
    actors_scrape_done(&s);
    buf_done(&page);
}

static void add(struct actors_series *series, double running, double pending, double crashed)
{
    struct actors_row rows[] = {{.user_class = "A", .state = "running", .count = running},
                                {.user_class = "B", .state = "running", .count = running},
                                {.state = "hibernate_pending", .count = pending},
                                {.state = "crashed", .count = crashed},
                                {.state = "starting", .count = 1}};
    struct actors_scrape scrape = {.rows = rows, .count = 5};
    assert_int_equal(actors_series_add(series, &scrape), 0);
}

static void test_summary(void **state)
{
    (void)state;
    struct actors_series series = {0};
    struct actors_summary a;
    for (int i = 0; i < 300; i++) /* running 0, 2, … 598 */
        add(&series, i, 300 - i, 7);
    add(&series, 0, 0, 2);
    assert_int_equal(actors_summarize(&series, &a), 0);
    assert_measure(a.running_peak, 598);
    assert_measure(a.running_p50, 298); /* 0 twice: v[150] = 2 * 149 */
    assert_measure(a.running_p90, 538); /* v[270] = 2 * 269 */
    assert_measure(a.live_peak, 598 + 1 + 7 + 1);
    assert_measure(a.hibernate_pending_peak, 300);
    assert_measure(a.crashed_final, 2);
    actors_series_done(&series);
}

static void test_no_samples_are_null(void **state)
{
    (void)state;
    struct actors_series series = {0};
    struct actors_summary a;
    assert_int_equal(actors_summarize(&series, &a), 0);
    assert_false(a.running_peak.known || a.running_p50.known || a.running_p90.known ||
                 a.live_peak.known || a.hibernate_pending_peak.known || a.crashed_final.known);
    add(&series, 0, 0, 0);
    assert_int_equal(actors_summarize(&series, &a), 0);
    assert_measure(a.running_peak, 0);
    assert_measure(a.crashed_final, 0);
    actors_series_done(&series);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct actors_scrape scrape = {0};
        struct actors_series series = {0};
        struct actors_summary a;
        alloc_fail_at(n);
        int rc = actors_parse(STR("locust_actors 1\n"), &scrape, NULL);
        if (rc == 0)
            rc = actors_series_add(&series, &scrape);
        if (rc == 0)
            rc = actors_summarize(&series, &a);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        actors_scrape_done(&scrape);
        actors_series_done(&series);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page),
        cmocka_unit_test(test_refused_pages),
        cmocka_unit_test(test_too_many_series),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_no_samples_are_null),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
