#include "telemetry/measured.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define VECTOR(samples)                                                                            \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" samples "]}}"
#define MATRIX(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" series "]}}"
#define ONE(value) VECTOR("{\"metric\":{},\"value\":[100,\"" value "\"]}")
#define NOTHING    VECTOR("")
#define FAILED     NULL

#define OUTCOMES_MAX 4

struct scene {
    struct profile profile;
    struct query_plan plan;
    struct query_outcome outcomes[OUTCOMES_MAX];
    struct notes notes;
    struct measured got;
};

static const struct window run = {0, 500}, steady = {100, 300};

/* One measurement with its answers, in the order of its queries. */
static void measure(struct scene *s, const char *measurement, const char *const *answers)
{
    char text[600];
    struct err err = {0};
    memset(s, 0, sizeof *s);
    (void)snprintf(text, sizeof text, "{\"profile\":\"own\",\"measurements\":[{\"name\":%s}]}",
                   measurement);
    if (profile_parse(str_of(text), "own", &s->profile, &err) < 0 ||
        query_plan_make(&s->profile, run, steady, 0, &s->plan, &err) < 0)
        fail_msg("%s", err.text);
    assert_in_range(s->plan.count, 1, OUTCOMES_MAX);
    for (size_t i = 0; i < s->plan.count; i++) {
        struct query_outcome *o = &s->outcomes[i];
        if (!answers[i])
            (void)err_set(&o->err, -ETIMEDOUT, "timed out"); /* what was asked of it */
        else
            assert_int_equal(query_answer_parse(str_of(answers[i]), &o->answer, NULL), 0);
    }
    assert_int_equal(measured_of(&s->profile.measurements[0], &s->plan.entries[0], s->outcomes,
                                 steady, 0, &s->notes, &s->got),
                     0);
}

static void done(struct scene *s)
{
    measured_done(&s->got);
    notes_done(&s->notes);
    for (size_t i = 0; i < s->plan.count; i++)
        query_outcome_done(&s->outcomes[i]);
    query_plan_done(&s->plan);
    profile_done(&s->profile);
}

static void check(struct measure m, bool known, double value)
{
    if (m.known != known || (known && m.value != value))
        fail_msg("%s %g", m.known ? "known" : "unknown", m.value);
}

/* The first two answers are those of a measurement with two queries. */
static void test_numbers(void **state)
{
    (void)state;
#define VALUE  "\"a\",\"kind\":\"value\",\"query\":\"x\""
#define GROWTH "\"a\",\"kind\":\"counter_growth\",\"counter\":\"c\""
#define RATIO  "\"a\",\"kind\":\"growth_ratio\",\"counter\":\"c\",\"over\":\"d\""
    static const struct {
        const char *label, *measurement, *answers[2];
        bool known;
        double value;
        size_t notes;
    } cases[] = {
        {"a number", VALUE, {ONE("2.5")}, true, 2.5, 0},
        {"zero is zero", VALUE, {ONE("0")}, true, 0, 0},
        {"four decimals", VALUE, {ONE("0.123456")}, true, 0.1235, 0},
        {"a whole number", VALUE ",\"integer\":true", {ONE("2.5")}, true, 2, 0},
        {"scaled before it is rounded",
         VALUE ",\"multiply_by\":1000,\"divide_by\":8",
         {ONE("0.00123456")},
         true,
         0.1543,
         0},
        {"negative", VALUE, {ONE("-3")}, true, -3, 0},
        {"no series", VALUE, {NOTHING}, false, 0, 0},
        {"not a number", VALUE, {ONE("NaN")}, false, 0, 0},
        {"a failed query", VALUE, {FAILED}, false, 0, 0},
        {"two series",
         VALUE,
         {VECTOR("{\"metric\":{\"a\":\"1\"},\"value\":[1,\"1\"]},"
                 "{\"metric\":{\"a\":\"2\"},\"value\":[1,\"2\"]}")},
         false,
         0,
         1},
        {"growth", GROWTH, {ONE("40")}, true, 40, 0},
        {"no growth", GROWTH, {ONE("0")}, true, 0, 0},
        {"the noise of sums", GROWTH, {ONE("-0.0000001")}, true, 0, 0},
        {"a reset", GROWTH, {ONE("-1")}, false, 0, 0},
        {"over the 200 s of the window", GROWTH ",\"per_second\":true", {ONE("50")}, true, 0.25, 0},
        {"no rate of no growth known", GROWTH ",\"per_second\":true", {NOTHING}, false, 0, 0},
        {"a ratio", RATIO, {ONE("1"), ONE("8")}, true, 0.125, 0},
        {"nothing of something", RATIO, {ONE("0"), ONE("8")}, true, 0, 0},
        {"something of nothing", RATIO, {ONE("1"), ONE("0")}, false, 0, 0},
        {"half of it failed", RATIO, {ONE("1"), FAILED}, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene s;
        print_message("%s\n", cases[i].label);
        measure(&s, cases[i].measurement, cases[i].answers);
        check(s.got.values[0], cases[i].known, cases[i].value);
        assert_int_equal(s.notes.count, cases[i].notes);
        done(&s);
    }
}

static void test_quantiles_and_mean_of_a_histogram(void **state)
{
    (void)state;
    static const char both[] = "\"took.{p50,mean}_ms\",\"kind\":\"histogram_quantiles\","
                               "\"histogram\":\"h\",\"multiply_by\":"
                               "1000";
    struct scene s;
    measure(&s, both, (const char *const[]){ONE("0.25"), ONE("30"), ONE("100")});
    check(s.got.values[0], true, 250);
    check(s.got.values[1], true, 300);
    done(&s);
    /* nothing was counted: neither */
    measure(&s, both, (const char *const[]){ONE("NaN"), ONE("0"), ONE("0")});
    check(s.got.values[0], false, 0);
    check(s.got.values[1], false, 0);
    done(&s);
    measure(&s, both, (const char *const[]){FAILED, ONE("30"), ONE("100")});
    check(s.got.values[0], false, 0);
    check(s.got.values[1], true, 300);
    done(&s);
}

static void test_a_distribution_is_of_all_series(void **state)
{
    (void)state;
    static const char load[] = "\"load\",\"kind\":\"range_distribution\",\"query\":\"x\","
                               "\"count_as\":\"n\",\"divide_by\":2";
    struct scene s;
    measure(&s, load,
            (const char *const[]){
                MATRIX("{\"metric\":{\"a\":\"1\"},\"values\":[[100,\"2\"],[110,\"4\"]]},"
                       "{\"metric\":{\"a\":\"2\"},\"values\":[[100,\"6\"],[110,\"NaN\"]]},"
                       "{\"metric\":{\"a\":\"3\"},\"values\":[[100,\"NaN\"]]}")});
    check(s.got.distribution.stat[DISTRIBUTION_MIN], true, 1);
    check(s.got.distribution.stat[DISTRIBUTION_AVG], true, 2);
    check(s.got.distribution.stat[DISTRIBUTION_MAX], true, 3);
    check(s.got.series_count, true, 2); /* the third one had no sample */
    done(&s);
    measure(&s, load, (const char *const[]){MATRIX("")});
    check(s.got.distribution.stat[DISTRIBUTION_MAX], false, 0);
    check(s.got.series_count, false, 0);
    done(&s);
    measure(&s, load, (const char *const[]){FAILED});
    check(s.got.series_count, false, 0);
    done(&s);
}

static void test_packing_is_read_over_the_steady_window(void **state)
{
    (void)state;
    static const char pool[] = "\"pool\",\"kind\":\"state_packing\",\"query\":\"x\","
                               "\"process\":[\"p\"],\"state\":\"s\",\"busy\":[\"b\"]";
    struct scene s;
    measure(&s, pool,
            (const char *const[]){MATRIX(
                "{\"metric\":{\"p\":\"1\",\"s\":\"b\"},\"values\":[[50,\"4\"],[150,\"1\"]]},"
                "{\"metric\":{\"p\":\"1\",\"s\":\"i\"},\"values\":[[50,\"0\"],[150,\"3\"]]}")});
    assert_int_equal(s.got.packing.count, 2);
    check(s.got.distribution.stat[DISTRIBUTION_MAX], true,
          0.25); /* not the 1 of before the window */
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_quantiles_and_mean_of_a_histogram),
        cmocka_unit_test(test_a_distribution_is_of_all_series),
        cmocka_unit_test(test_packing_is_read_over_the_steady_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
