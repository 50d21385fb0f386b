#include "telemetry/distribution.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const struct distribution *d, const double want[static DISTRIBUTION_STATS])
{
    for (size_t i = 0; i < DISTRIBUTION_STATS; i++) {
        if (!d->stat[i].known || d->stat[i].value != want[i])
            fail_msg("%s: %.17g", distribution_stat_name((enum distribution_stat)i),
                     d->stat[i].value);
    }
}

static void test_one_to_two_hundred(void **state)
{
    (void)state;
    double v[200];
    for (size_t i = 0; i < 200; i++)
        v[i] = (double)((i * 7) % 200 + 1); /* shuffled */
    struct distribution d = distribution_of(v, 200);
    check(&d, (const double[]){1, 101, 181, 191, 199, 200, 100.5});
}

static void test_one_value_is_every_percentile(void **state)
{
    (void)state;
    double v[] = {7.5};
    struct distribution d = distribution_of(v, 1);
    check(&d, (const double[]){7.5, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5});
}

static void test_four_decimals_half_to_even(void **state)
{
    (void)state;
    double v[] = {0.00005, 0.333333, 1.0 / 3}; /* 0.00005 lies a little above the half */
    struct distribution d = distribution_of(v, 3);
    check(&d, (const double[]){0.0001, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.2222});
}

static void test_no_value_is_unknown_and_zero_is_zero(void **state)
{
    (void)state;
    double zeros[] = {0, 0};
    struct distribution none = distribution_of(NULL, 0), zero = distribution_of(zeros, 2);
    for (size_t i = 0; i < DISTRIBUTION_STATS; i++)
        assert_false(none.stat[i].known);
    check(&zero, (const double[]){0, 0, 0, 0, 0, 0, 0});
}

static void test_sums_beyond_the_range_have_a_mean(void **state)
{
    (void)state;
    double v[] = {1.6e308, 1.6e308};
    struct distribution d = distribution_of(v, 2);
    assert_true(d.stat[DISTRIBUTION_AVG].known && d.stat[DISTRIBUTION_AVG].value == 1.6e308);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_to_two_hundred),
        cmocka_unit_test(test_one_value_is_every_percentile),
        cmocka_unit_test(test_four_decimals_half_to_even),
        cmocka_unit_test(test_no_value_is_unknown_and_zero_is_zero),
        cmocka_unit_test(test_sums_beyond_the_range_have_a_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
