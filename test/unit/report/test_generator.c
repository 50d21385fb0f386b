#include "worker/report/generator.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct generator_verdict judge(const struct generator_second *seconds, size_t count,
                                      const struct engine_status *end)
{
    struct generator g = {0};
    struct generator_verdict v;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(generator_add(&g, &seconds[i]), 0);
    assert_int_equal(generator_judge(&g, end, &v), 0);
    generator_done(&g);
    generator_done(&g);
    return v;
}

static void test_nothing_measured_is_unknown(void **state)
{
    (void)state;
    struct generator_verdict v = judge(NULL, 0, &(struct engine_status){0});
    assert_true(!v.saturated && v.too_short);
    assert_string_equal(v.reasons, "");
    assert_false(v.cpu_p50.known);
    assert_false(v.loop_lag_p99_ms.known);
}

/* 1, 2, … 100 % and a lag of 0.01 … 1 ms. */
static void test_figures(void **state)
{
    (void)state;
    struct generator_second seconds[100];
    for (size_t i = 0; i < 100; i++)
        seconds[i] = (struct generator_second){(double)i + 1, ((double)i + 1) / 100, i % 7 != 0};
    const struct engine_status end = {.late_starts_1ms = 5,
                                      .late_starts_10ms = 4,
                                      .connections_failed = 3,
                                      .retries = 2,
                                      .sockets_peak = 1};
    struct generator_verdict v = judge(seconds, 100, &end);
    assert_true(v.cpu_p50.value == 51 && v.cpu_p90.value == 91 && v.cpu_max.value == 100);
    assert_true(v.loop_lag_p99_ms.value == 1);
    assert_int_equal(v.missed_starts_1ms, 5);
    assert_int_equal(v.missed_starts_10ms, 4);
    assert_int_equal(v.connect_errors, 3);
    assert_int_equal(v.retries, 2);
    assert_int_equal(v.sockets_peak, 1);
    assert_true(v.saturated && !v.too_short); /* 93 to 97, 94 to 98 … in a row */
}

#define BUSY                                                                                       \
    {                                                                                              \
        95, 1, true                                                                                \
    }
#define CALM                                                                                       \
    {                                                                                              \
        50, 1, true                                                                                \
    }
#define RAMP                                                                                       \
    {                                                                                              \
        95, 50, false                                                                              \
    }
#define LATE                                                                                       \
    {                                                                                              \
        50, 11, true                                                                               \
    }

static void test_arrivals_that_never_began(void **state)
{
    (void)state;
    struct engine_status end = {.tasks_started = 990, .arrivals_missed = 10, .late_starts_1ms = 7};
    struct generator_verdict v = judge(NULL, 0, &end);
    assert_false(v.saturated);
    assert_int_equal(v.missed_starts_1ms, 17);
    assert_int_equal(v.missed_starts_10ms, 10);
    end.arrivals_missed = 11;
    v = judge(NULL, 0, &end);
    assert_true(v.saturated);
    assert_string_equal(v.reasons, "users ran out (11 tasks never started)");
}

static void test_five_steady_seconds_in_a_row(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct generator_second seconds[8];
        const char *reasons;
    } cases[] = {
        {"calm", {CALM, CALM, CALM, CALM, CALM, CALM, CALM, CALM}, ""},
        {"busy for four", {CALM, BUSY, BUSY, BUSY, BUSY, {69, 1, true}, CALM, CALM}, ""},
        {"busy for five",
         {CALM, BUSY, BUSY, BUSY, BUSY, BUSY, CALM, CALM},
         "CPU of the busiest thread at 95 % for 5 s"},
        {"busy on average",
         {CALM,
          {100, 1, true},
          {80, 1, true},
          {100, 1, true},
          {80, 1, true},
          {100, 1, true},
          CALM,
          CALM},
         "CPU of the busiest thread at 92 % for 5 s"},
        {"in the ramp", {RAMP, RAMP, RAMP, RAMP, RAMP, RAMP, BUSY, BUSY}, ""},
        {"interrupted", {BUSY, BUSY, BUSY, BUSY, RAMP, BUSY, BUSY, BUSY}, ""},
        {"late for four", {CALM, LATE, LATE, LATE, LATE, CALM, LATE, LATE}, ""},
        {"late for five",
         {CALM, LATE, LATE, {50, 12, true}, LATE, LATE, CALM, CALM},
         "event loop late by 11 ms and more for 5 s"},
        {"both",
         {{95, 20, true},
          {95, 20, true},
          {95, 20, true},
          {95, 20, true},
          {95, 20, true},
          CALM,
          CALM,
          CALM},
         "CPU of the busiest thread at 95 % for 5 s; event loop late by 20 ms and more for 5 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].label);
        struct generator_verdict v = judge(cases[i].seconds, 8, &(struct engine_status){0});
        assert_string_equal(v.reasons, cases[i].reasons);
        assert_int_equal(v.saturated, cases[i].reasons[0] != '\0');
    }
}

static void test_what_ran_out(void **state)
{
    (void)state;
    const struct engine_status end = {
        .ports_exhausted = 1, .files_exhausted = 20, .memory_exhausted = UINT64_MAX};
    struct generator_verdict v = judge(NULL, 0, &end);
    assert_true(v.saturated);
    assert_string_equal(v.reasons, "local ports ran out (1); file descriptors ran out (20); "
                                   "memory ran out (18446744073709551615)");
}

static void test_without_memory(void **state)
{
    (void)state;
    struct generator g = {0};
    struct generator_verdict v;
    const struct generator_second second = CALM;
    alloc_fail_at(1);
    assert_int_equal(generator_add(&g, &second), -ENOMEM);
    alloc_fail_at(0);
    assert_int_equal(generator_add(&g, &second), 0);
    alloc_fail_at(1);
    assert_int_equal(generator_judge(&g, &(struct engine_status){0}, &v), -ENOMEM);
    alloc_fail_at(0);
    generator_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_measured_is_unknown),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_arrivals_that_never_began),
        cmocka_unit_test(test_five_steady_seconds_in_a_row),
        cmocka_unit_test(test_what_ran_out),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
