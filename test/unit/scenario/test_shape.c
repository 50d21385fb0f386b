#include "worker/scenario/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S 1000000u

static void check_near(double got, double want)
{
    if (fabs(got - want) > 1e-6 * fmax(1, fabs(want)))
        fail_msg("%.9f instead of %.9f", got, want);
}

static void test_a_constant_rate_never_ends(void **state)
{
    (void)state;
    const struct plan_shape s = {.arrival = true, .first_rate = 4};
    assert_true(shape_end_us(&s) == UINT64_MAX);
    check_near(shape_arrivals(&s, 0), 0);
    check_near(shape_arrivals(&s, 2500000), 10);
    assert_int_equal(shape_arrival_us(&s, 0), 0);
    assert_int_equal(shape_arrival_us(&s, 1), 250000);
    assert_int_equal(shape_arrival_us(&s, 4e6), 1000000ull * S);
    check_near(shape_rate_at(&s, 77), 4);
}

/* 0 to 10 a second in 10 s (50 arrivals), a jump to 2, 5 s of it (10), nothing for 5 s, then up to
 * 4 in 2 s (4 arrivals). */
static void test_ramps_jumps_and_pauses(void **state)
{
    (void)state;
    const struct shape_rate rates[] = {
        {10 * S, 10}, {10 * S, 2}, {15 * S, 2}, {15 * S, 0}, {20 * S, 0}, {22 * S, 4},
    };
    const struct plan_shape s = {.arrival = true, .rates = rates, .rate_count = 6};
    static const struct {
        uint64_t at_us;
        double rate, due;
    } cases[] = {
        {0, 0, 0},       {1 * S, 1, 0.5}, {5 * S, 5, 12.5}, {10 * S, 2, 50}, {12 * S, 2, 54},
        {15 * S, 0, 60}, {18 * S, 0, 60}, {21 * S, 2, 61},  {22 * S, 0, 64}, {99 * S, 0, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%llu us\n", (unsigned long long)cases[i].at_us);
        check_near(shape_rate_at(&s, cases[i].at_us), cases[i].rate);
        check_near(shape_arrivals(&s, cases[i].at_us), cases[i].due);
    }
    assert_int_equal(shape_arrival_us(&s, 0), 0);
    assert_int_equal(shape_arrival_us(&s, 0.5), 1 * S);
    assert_int_equal(shape_arrival_us(&s, 12.5), 5 * S);
    assert_int_equal(shape_arrival_us(&s, 54), 12 * S);
    assert_int_equal(shape_arrival_us(&s, 60), 20 * S); /* the pause is over */
    assert_int_equal(shape_arrival_us(&s, 61), 21 * S);
    assert_true(shape_arrival_us(&s, 64) == UINT64_MAX);
    assert_int_equal(shape_end_us(&s), 22 * S);
    check_near(shape_highest_rate(&s), 10);
}

static void test_arrival_times_invert_arrival_counts(void **state)
{
    (void)state;
    const struct shape_rate rates[] = {
        {3 * S, 1000}, {7 * S, 999.9999}, {8 * S, 1e6}, {20 * S, 0.001}};
    const struct plan_shape s = {
        .arrival = true, .first_rate = 0.1, .rates = rates, .rate_count = 4};
    uint64_t last_us = 0;
    for (double n = 0; n < shape_arrivals(&s, 20 * S); n += 997) {
        uint64_t us = shape_arrival_us(&s, n);
        assert_true(us >= last_us);
        last_us = us;
        assert_true(fabs(shape_arrivals(&s, us) - n) <=
                    1.0); /* a microsecond of a million a second */
    }
}

static void test_stages_by_time(void **state)
{
    (void)state;
    const struct shape_stage stages[] = {{.until_us = 10, .users = 5},
                                         {.until_us = 30, .users = 2}};
    const struct plan_shape s = {.stages = stages, .stage_count = 2};
    assert_ptr_equal(shape_stage_at(&s, 0), &stages[0]);
    assert_ptr_equal(shape_stage_at(&s, 9), &stages[0]);
    assert_ptr_equal(shape_stage_at(&s, 10), &stages[1]);
    assert_null(shape_stage_at(&s, 30));
    assert_int_equal(shape_end_us(&s), 30);
    assert_int_equal(shape_most_users(&s), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_constant_rate_never_ends),
        cmocka_unit_test(test_ramps_jumps_and_pauses),
        cmocka_unit_test(test_arrival_times_invert_arrival_counts),
        cmocka_unit_test(test_stages_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
