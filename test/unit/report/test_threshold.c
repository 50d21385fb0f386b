#include "worker/report/threshold.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Ten requests of 1, 2, … 10 ms on GET /a, the last two of them failures; one of 100 ms on POST /b,
 * within two seconds. */
static struct stats *sample_set(void)
{
    struct stats *s;
    uint32_t a, b;
    assert_int_equal(stats_new((struct stats_limits){0}, 1000, &s), 0);
    assert_int_equal(stats_slot(s, STR("GET"), STR("/a"), &a), 0);
    assert_int_equal(stats_slot(s, STR("POST"), STR("/b"), &b), 0);
    for (uint64_t i = 1; i <= 10; i++) {
        stats_record(s, a, &(struct stats_sample){.response_time_us = i * 1000, .wall_s = 1001});
        if (i > 8)
            stats_record_error(s, a, STR("no"), 1001);
    }
    stats_record(s, b, &(struct stats_sample){.response_time_us = 100000, .wall_s = 1002});
    return s;
}

static void check_all(const struct stats *s, const char *const *texts, const double *values,
                      size_t count, bool met)
{
    struct stats_entry *total;
    assert_int_equal(stats_total(s, &total), 0);
    for (size_t i = 0; i < count; i++) {
        struct plan_threshold t;
        print_message("%s\n", texts[i]);
        assert_int_equal(threshold_parse(str_of(texts[i]), &t, NULL), 0);
        struct threshold_outcome o = threshold_check(&t, s, total);
        assert_int_equal(o.met, met);
        assert_int_equal(o.measured.known, !!values);
        if (values &&
            (o.measured.value < values[i] * 0.999 || o.measured.value > values[i] * 1.001))
            fail_msg("%f instead of %f", o.measured.value, values[i]);
    }
    stats_entry_free(total);
}

static void test_measured_values(void **state)
{
    (void)state;
    struct stats *s = sample_set();
    static const char *const met[] = {
        "GET /a: p50 <= 6.1",
        "GET /a: p90 < 10.1",
        "GET /a: avg < 6",
        "GET /a: min >= 1",
        "GET /a: max < 11",
        "GET /a: failure_ratio <= 0.2",
        "GET /a: failures < 3",
        "GET /a: requests >= 10",
        "POST /b: failures <= 0",
        "requests > 10",
        "rps > 5",
        "POST /b: rps < 1",
    };
    static const double met_values[] = {6, 10, 5.5, 1, 10, 0.2, 2, 10, 0, 11, 5.5, 0.5};
    static const char *const missed[] = {
        "GET /a: p50 < 6",     "GET /a: p90 < 9",  "p100 < 100",
        "failure_ratio < 0.1", "POST /b: avg < 3",
    };
    static const double missed_values[] = {6, 10, 100, 2.0 / 11, 100};
    check_all(s, met, met_values, 12, true);
    check_all(s, missed, missed_values, 5, false);
    stats_free(s);
}

static void test_what_was_not_measured_is_not_met(void **state)
{
    (void)state;
    struct stats *s = sample_set();
    static const char *const texts[] = {"GET /c: p95 < 1000", "PUT /a: failure_ratio < 1",
                                        "GET /c: avg < 5", "GET /c: min >= 0", "GET /c: max < 5"};
    check_all(s, texts, NULL, 5, false);
    stats_clear(s, 2000);
    check_all(s, texts, NULL, 5, false);
    static const char *const counts[] = {"requests <= 0", "GET /a: failures < 1", "rps < 1"};
    static const double zeros[] = {0, 0, 0};
    check_all(s, counts, zeros, 3, true);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_values),
        cmocka_unit_test(test_what_was_not_measured_is_not_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
