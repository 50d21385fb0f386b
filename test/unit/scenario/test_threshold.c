#include "worker/scenario/threshold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* What is read is shown by test/data/scenario/good-thresholds; here is what is not. */
static void test_mistakes(void **state)
{
    (void)state;
    static const char form[] =
        "write it as 'p95 < 300', 'failure_ratio < 1 %' or 'GET /items: avg < 100'";
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "is empty: "},
        {"  ", "is empty: "},
        {"p95", "needs <, <=, > or >= behind the metric: "},
        {"p95 = 3", "needs <, <=, > or >= behind the metric: "},
        {"p95 3", "needs <, <=, > or >= behind the metric: "},
        {"p0 < 3", "a percentile is from p0 to p100, not 'p0'"},
        {"p100.1 < 3", "a percentile is from p0 to p100, not 'p100.1'"},
        {"p < 3", "unknown metric 'p': there are p50 to p99.99, avg, median, min, max, rps, "
                  "failure_ratio, failures and requests"},
        {"p95 < fast", "the limit must be a number, not 'fast'"},
        {"p95 <", "the limit must be a number, not ''"},
        {"p95 < 1e999", "the limit must be a number, not '1e999'"},
        {"p95 < -1", "the limit must not be below zero"},
        {"p95 < 3 %", "'%' does not fit behind the limit: a time is in ms, s or us"},
        {"rps > 3 ms", "'ms' does not fit behind the limit: it has no unit"},
        {"failure_ratio < 3", "a ratio is from 0 to 1, or in %"},
        {"failure_ratio < 300 %", "a ratio is from 0 to 1, or in %"},
        {"failure_ratio < 3 s",
         "'s' does not fit behind the limit: a ratio is from 0 to 1, or in %"},
        {"p95 < 3 steady now", "'now' is too much: "},
        {"p95 < 3 after 3", "'after' does not fit behind the limit: a time is in ms, s or us"},
        {"p95 < 3 ms after 3", "'after' is too much: "},
        {"p95 < 3 abort after soon", "'after' needs a time as 20, 20s or 1m30s, not 'soon'"},
        {"p95 < 3 abort after", "'after' needs a time as 20, 20s or 1m30s, not ''"},
        {"/items: p95 < 3", "before ':' stands a method and a name, as 'GET /items'"},
        {": p95 < 3", "before ':' stands a method and a name, as 'GET /items'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_threshold t;
        struct err err = {0};
        char want[ERR_TEXT_BYTES];
        bool open = str_ends(str_of(cases[i].error), STR(": "));
        print_message("%s\n", cases[i].text);
        (void)snprintf(want, sizeof want, "%s%s", cases[i].error, open ? form : "");
        assert_int_equal(threshold_parse(str_of(cases[i].text), &t, &err), -EINVAL);
        assert_string_equal(err.text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
