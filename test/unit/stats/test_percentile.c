#include "worker/stats/percentile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct stats_entry *entry_of(const uint64_t *us, size_t count)
{
    struct stats_entry *e;
    assert_int_equal(stats_entry_new(STR("GET"), STR("/"), 1000, &e), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(stats_entry_record(e, &(struct stats_sample){us[i], 3, 1001}));
    return e;
}

static void test_percentiles_are_locusts(void **state)
{
    (void)state;
    /* 1, 2, …, 10 ms: int(10 * p) requests may lie below the answer */
    static const uint64_t us[] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000};
    static const struct {
        double percent;
        uint64_t ms;
    } cases[] = {{0, 1}, {0.5, 6}, {0.66, 7}, {0.9, 10}, {0.89, 9}, {0.99, 10}, {1, 10}};
    struct stats_entry *e = entry_of(us, 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(stats_entry_percentile_ms(e, cases[i].percent), cases[i].ms);
    stats_entry_free(e);
}

/* Ten requests without a response time beside ten with one: only these ten count (2.46.2). */
static void test_requests_without_a_time_do_not_count(void **state)
{
    (void)state;
    static const uint64_t us[] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000};
    struct stats_entry *e = entry_of(us, 10);
    e->num_requests += 10;
    e->num_none_requests = 10;
    assert_int_equal(stats_entry_percentile_ms(e, 0.5), 6);
    assert_true(stats_entry_average_ms(e) == 5.5);
    assert_true(stats_entry_average_content_bytes(e) == 1.5);
    stats_entry_free(e);
}

static void test_median_stays_between_minimum_and_maximum(void **state)
{
    (void)state;
    static const uint64_t high[] = {147000}, low[] = {4600}, both[] = {1000, 2000, 9000};
    struct stats_entry *e = entry_of(high, 1);
    assert_true(stats_entry_median_ms(e) == 147);
    stats_entry_free(e);
    e = entry_of(low, 1);
    assert_true(stats_entry_median_ms(e) == 4.6);
    stats_entry_free(e);
    e = entry_of(both, 3);
    assert_true(stats_entry_median_ms(e) == 2);
    stats_entry_free(e);
}

static void test_nothing_measured_gives_zeroes(void **state)
{
    (void)state;
    struct stats_entry *e = entry_of(NULL, 0);
    assert_int_equal(stats_entry_percentile_ms(e, 0.5), 0);
    assert_true(stats_entry_median_ms(e) == 0);
    assert_true(stats_entry_average_ms(e) == 0);
    assert_true(stats_entry_average_content_bytes(e) == 0);
    assert_true(stats_entry_fail_ratio(e) == 0);
    assert_true(stats_entry_total_rps(e, e) == 0);
    assert_true(stats_entry_current_rps(e, e) == 0);
    assert_true(stats_entry_record_failure(e, 1001));
    assert_true(stats_entry_fail_ratio(e) == 1);
    stats_entry_free(e);
}

static void test_rates_are_over_the_totals_time(void **state)
{
    (void)state;
    struct stats_entry *total = entry_of(NULL, 0), *e = entry_of(NULL, 0);
    for (unsigned second = 0; second <= 30; second++) {
        struct stats_sample sample = {1000, 0, 1000.5 + second};
        assert_true(stats_entry_record(total, &sample));
        if (second % 2 == 0)
            assert_true(stats_entry_record(e, &sample));
        if (second == 20)
            assert_true(stats_entry_record_failure(e, 1000.5 + second));
    }
    assert_true(stats_entry_total_rps(e, total) == 16 / 30.5);
    assert_true(stats_entry_total_fail_per_sec(e, total) == 1 / 30.5);
    /* of the seconds 1018 to 1027 */
    assert_true(stats_entry_current_rps(e, total) == 0.5);
    assert_true(stats_entry_current_rps(total, total) == 1);
    assert_true(stats_entry_current_fail_per_sec(e, total) == 0.1);
    total->start_time_s = 1025;
    /* 1025 to 1027 */
    assert_true(stats_entry_current_rps(e, total) == 1 / 3.0);
    total->start_time_s = 1030.5;
    assert_true(stats_entry_current_rps(e, total) == 0);
    assert_true(stats_entry_total_rps(e, total) == 0);
    stats_entry_free(e);
    stats_entry_free(total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles_are_locusts),
        cmocka_unit_test(test_requests_without_a_time_do_not_count),
        cmocka_unit_test(test_median_stays_between_minimum_and_maximum),
        cmocka_unit_test(test_nothing_measured_gives_zeroes),
        cmocka_unit_test(test_rates_are_over_the_totals_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
