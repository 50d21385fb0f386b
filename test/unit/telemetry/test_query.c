#include "telemetry/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_forms(void **state)
{
    (void)state;
    char text[] = "sum(x{a=\"b\"}) / 2 > 1";
    struct query instant = {.text = text, .span = {1700000000, 1700000600.5}};
    struct query range = {
        .text = text, .is_range = true, .span = {1700000000, 1700000600}, .step_s = 10};
    struct buf b;
    buf_init(&b, 1000);
    assert_int_equal(query_add_form(&b, &instant), 0);
    assert_string_equal(
        buf_c(&b), "query=sum%28x%7Ba%3D%22b%22%7D%29%20%2F%202%20%3E%201&time=1700000600.500");
    buf_clear(&b);
    assert_int_equal(query_add_form(&b, &range), 0);
    assert_string_equal(buf_c(&b), "query=sum%28x%7Ba%3D%22b%22%7D%29%20%2F%202%20%3E%201"
                                   "&start=1700000000&end=1700000600&step=10");
    assert_string_equal(query_path(&instant), "/api/v1/query");
    assert_string_equal(query_path(&range), "/api/v1/query_range");
    buf_done(&b);
}

static void test_steps_keep_within_the_points(void **state)
{
    (void)state;
    static const struct {
        double length_s, wanted_s, step_s;
    } cases[] = {
        {0, 10, 10},         {600, 10, 10}, {109990, 10, 10}, {109991, 10, 11},
        {86400 * 7, 10, 55}, {10999, 1, 1}, {11000, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double start = 1700000000;
        double step =
            query_step_s((struct window){start, start + cases[i].length_s}, cases[i].wanted_s);
        if (step != cases[i].step_s)
            fail_msg("%g s: step %g", cases[i].length_s, step);
        assert_true(cases[i].length_s / step + 1 <= QUERY_POINTS_MAX);
    }
}

static void test_base_urls(void **state)
{
    (void)state;
    static const char *const good[] = {"http://h", "https://u:p@h:1/prom/", "http://[::1]:9090"};
    static const char *const bad[] = {"",   "prometheus:9090", "ftp://h",    "http://",
                                      "/x", "http://h/?x=1",   "http://h/#x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(query_check_url(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (query_check_url(bad[i], NULL) != -EINVAL)
            fail_msg("%s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_steps_keep_within_the_points),
        cmocka_unit_test(test_base_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
