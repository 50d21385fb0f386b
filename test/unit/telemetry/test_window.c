#include "telemetry/window.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct window_sample ramp[] = {
    {100, 2}, {110, 4}, {120, 6.3}, {130, 7}, {140, 3}, /* 90 % of 7 is 6.3 */
};
static const struct window_sample to_the_end[] = {{100, 5}, {110, 10}, {120, 15}, {130, 15}};
static const struct window_sample nobody[] = {{120, 0}, {130, 0}};
static const struct window_sample odd[] = {
    {110, (double)NAN}, {HUGE_VAL, 90}, {120, 10}, {105, 9.5}};
static const struct window_sample outside[] = {{90, 10}, {120, 10}, {170, 10}};
static const struct window_sample dip[] = {{100, 10}, {110, 5}, {120, 9}, {130, 8.99}};

static const struct {
    const char *label;
    const struct window_sample *samples;
    size_t count;
    double start_s, end_s;
} cases[] = {
    {"ramp and teardown", ramp, 5, 120, 130},
    {"the peak observed, not the target", to_the_end, 4, 120, 130},
    {"no sample: the whole run", NULL, 0, 100, 150},
    {"nobody there: the whole run", nobody, 2, 100, 150},
    {"not finite or out of order", odd, 4, 105, 120},
    {"kept within the run", outside, 3, 100, 150},
    {"a dip does not end it", dip, 4, 100, 120},
};

static void test_first_and_last_sample_near_the_peak(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w =
            window_steady((struct window){100, 150}, cases[i].samples, cases[i].count);
        if (w.start_s != cases[i].start_s || w.end_s != cases[i].end_s)
            fail_msg("%s: %g to %g", cases[i].label, w.start_s, w.end_s);
    }
}

static void test_a_run_that_ends_before_it_starts_is_empty(void **state)
{
    (void)state;
    struct window w = window_steady((struct window){100, 90}, ramp, 5);
    assert_true(w.start_s == 100 && w.end_s == 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_and_last_sample_near_the_peak),
        cmocka_unit_test(test_a_run_that_ends_before_it_starts_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
