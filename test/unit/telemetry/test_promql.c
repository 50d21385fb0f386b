#include "telemetry/promql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct promql_scope scope(const json_t *variables)
{
    return (struct promql_scope){
        {1700000100, 1700000500.25}, {1700000000, 1700000600}, 10, variables};
}

static void test_placeholders(void **state)
{
    (void)state;
    json_auto_t *variables = json_pack("{s:s}", "pod", "a\\.b\"c\nd");
    struct promql_scope s = scope(variables);
    struct buf b;
    buf_init(&b, PROMQL_TEXT_BYTES);
    const char *text = "x{pod=\"${pod}\"}[${window}] @ ${start} ${end} ${range} ${run_start} "
                       "${run_end} ${step} $ {}";
    assert_int_equal(promql_check(str_of(text), variables, NULL), 0);
    assert_int_equal(promql_expand(&b, str_of(text), &s), 0);
    assert_string_equal(buf_c(&b), "x{pod=\"a\\\\.b\\\"c\\nd\"}[400250ms] @ 1700000100 "
                                   "1700000500.250 600s 1700000000 1700000600 10s $ {}");
    buf_done(&b);
}

static void test_unknown_placeholders(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"x ${pods}", "unknown placeholder 'pods'"},
        {"x ${}", "unknown placeholder ''"},
        {"x ${start", "a '${' without its '}'"},
        {"${start}${ end}", "unknown placeholder ' end'"},
    };
    json_auto_t *variables = json_pack("{s:s}", "pod", "a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        assert_int_equal(promql_check(str_of(cases[i].text), variables, &err), -EINVAL);
        assert_string_equal(err.text, cases[i].reason);
    }
}

static void test_times_and_durations(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *time, *duration;
    } cases[] = {
        {0, "0", "1ms"},           {-5, "0", "1ms"},
        {60, "60", "60s"},         {0.5, "0.500", "500ms"},
        {1.25, "1.250", "1250ms"}, {1e300, "100000000000", "100000000000s"},
        {90.0004, "90", "90s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        assert_int_equal(promql_add_time(&b, cases[i].value), 0);
        assert_string_equal(buf_c(&b), cases[i].time);
        buf_clear(&b);
        assert_int_equal(promql_add_duration(&b, cases[i].value), 0);
        assert_string_equal(buf_c(&b), cases[i].duration);
        buf_done(&b);
    }
}

static void test_selectors(void **state)
{
    (void)state;
    static const char *const good[] = {
        "up", " a:b_1 ", "x{}", "x {a=\"b\"}", "x{a=~\"}{\\\"\",b='}'}", "x{a=`\\`}"};
    static const char *const bad[] = {"",           "{a=\"b\"}",   "1x",        "sum(x)",
                                      "x[5m]",      "x offset 5m", "x{a=\"b\"", "x{a=\"b\"} + 1",
                                      "x{a=\"b}",   "x @ 5",       "x-y",       "x{}}",
                                      "x{a=\"\\\"}"};
    struct promql_selector s;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct err err = {0};
        if (promql_selector_parse(str_of(good[i]), &s, &err) < 0)
            fail_msg("%s: %s", good[i], err.text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (promql_selector_parse(str_of(bad[i]), &s, NULL) != -EINVAL)
            fail_msg("%s", bad[i]);
    }
}

static void test_growth_names_both_edges(void **state)
{
    (void)state;
    struct promql_scope sc = scope(NULL);
    struct promql_selector s;
    struct buf b;
    buf_init(&b, PROMQL_TEXT_BYTES);
    assert_int_equal(promql_selector_parse(STR("x{a=\"b\"}"), &s, NULL), 0);
    assert_int_equal(promql_growth(&b, s, "_sum", &sc), 0);
    assert_string_equal(
        buf_c(&b),
        "(sum(last_over_time(x_sum{a=\"b\"}[700250ms]))"
        " - (sum(last_over_time(x_sum{a=\"b\"}[300s] @ 1700000100)) or vector(0)))"
        " and on () (count(x_sum{a=\"b\"}) or count(last_over_time(x_sum{a=\"b\"}[60s])))"
        " unless on () ((sum(resets(x_sum{a=\"b\"}[400250ms])) or vector(0))"
        " + (count(min_over_time(x_sum{a=\"b\"}[400250ms])"
        " < last_over_time(x_sum{a=\"b\"}[300s] @ 1700000100)) or vector(0)) > 0)");
    buf_clear(&b);
    assert_int_equal(promql_quantile(&b, 0.999, s, &sc), 0);
    assert_true(str_starts(buf_str(&b), STR("histogram_quantile(0.999, sum by (le) "
                                            "(last_over_time(x_bucket{a=\"b\"}[700250ms]))")));
    buf_done(&b);
}

static void test_too_long(void **state)
{
    (void)state;
    struct promql_scope s = scope(NULL);
    struct buf b;
    buf_init(&b, 10);
    assert_int_equal(promql_expand(&b, STR("01234567890"), &s), -ERANGE);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placeholders),
        cmocka_unit_test(test_unknown_placeholders),
        cmocka_unit_test(test_times_and_durations),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_growth_names_both_edges),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
