#include "worker/runner/tally.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S 1000000u

static struct tally make(const struct plan *plan, const struct str *texts, size_t count)
{
    struct tally t;
    assert_int_equal(tally_init(&t, plan, texts, count, (struct stats_limits){0}, NULL), 0);
    tally_begin(&t, 10 * S, 1000);
    return t;
}

/* As samples_take spreads them. */
static void record(struct tally *t, unsigned count, uint64_t us, bool fails)
{
    struct stats *sets[] = {t->samples.unsent, t->samples.run};
    for (size_t i = 0; i < 2; i++) {
        uint32_t slot;
        assert_int_equal(stats_slot(sets[i], STR("GET"), STR("/"), &slot), 0);
        for (unsigned n = 0; n < count; n++) {
            stats_record(sets[i], slot,
                         &(struct stats_sample){.response_time_us = us, .wall_s = 1001});
            if (fails)
                stats_record_error(sets[i], slot, STR("no"), 1001);
        }
    }
}

static void point(struct tally *t, uint64_t at_us, bool steady)
{
    const struct engine_status status = {.running_total = 3, .cpu_pct = 7, .loop_lag_ms = 2};
    const struct tally_moment m = {.now_us = at_us,
                                   .wall_s = 990 + (double)at_us / 1e6,
                                   .target = 4,
                                   .steady = steady,
                                   .engine = &status};
    assert_int_equal(tally_point(t, &m), 0);
}

static void test_points(void **state)
{
    (void)state;
    const struct plan plan = {0};
    struct tally t = make(&plan, NULL, 0);
    record(&t, 8, 2000, false);
    record(&t, 2, 4000, true);
    point(&t, 12 * S, false); /* two seconds */
    point(&t, 13 * S, false);
    record(&t, 1, 5000, false);
    point(&t, 13 * S + 1, false);
    const struct history_point *p = t.history.points;
    assert_int_equal(t.history.count, 3);
    assert_true(p[0].rps.value == 5 && p[0].fail_per_s.value == 1);
    assert_true(p[0].average_ms.value == 2.4);
    assert_int_equal(p[0].user_count, 3);
    assert_int_equal(p[0].target, 4);
    assert_true(p[1].rps.known && p[1].rps.value == 0 && !p[1].p50_ms.known);
    assert_false(p[1].average_ms.known);
    assert_int_equal(p[1].requests, 10);
    assert_false(p[2].rps.known); /* of a microsecond */
    assert_true(p[2].p50_ms.known);
    assert_int_equal(p[2].requests, 11);
    assert_int_equal(p[2].failures, 2);
    assert_int_equal(t.generator.count, 3);
    tally_done(&t);
    tally_done(&t);
}

static void test_the_steady_state_alone(void **state)
{
    (void)state;
    const struct plan plan = {0};
    const struct str texts[] = {STR("max < 10 steady"), STR("max < 10"),
                                STR("failures < 1 steady")};
    struct tally t = make(&plan, texts, 3);
    assert_int_equal(tally_judge(&t), 0);
    assert_false(t.outcomes[0].measured.known || t.outcomes[1].measured.known);
    assert_true(t.outcomes[0].unsteady && !t.outcomes[1].unsteady);
    assert_false(t.outcomes[2].measured.known || t.outcomes[2].met); /* no failure of nothing */
    record(&t, 1, 50000, false);
    point(&t, 11 * S, false);
    record(&t, 1, 5000, false);
    point(&t, 12 * S, true);
    record(&t, 1, 60000, false);
    point(&t, 13 * S, false);
    assert_int_equal(tally_judge(&t), 0);
    assert_true(t.outcomes[0].met && t.outcomes[0].measured.value == 5);
    assert_string_equal(t.outcomes[0].unit, " ms");
    assert_true(t.outcomes[2].met && !t.outcomes[2].unsteady && !t.outcomes[2].unit);
    assert_true(!t.outcomes[1].met && t.outcomes[1].measured.value == 60);
    tally_done(&t);
}

static void test_abort_after_the_grace_time(void **state)
{
    (void)state;
    const struct plan_threshold of_plan = {
        .text = STR("failures < 1"), .metric = THRESHOLD_FAILURES, .limit = 1};
    const struct plan plan = {.thresholds = &of_plan, .threshold_count = 1};
    const struct str texts[] = {STR("GET /: avg < 1 abort after 5"), STR("avg > 0 abort after 0")};
    struct tally t = make(&plan, texts, 2);
    assert_true(tally_judges_failures(&t));
    assert_null(tally_broken(&t, 100 * S)); /* nothing measured breaks nothing */
    record(&t, 1, 50000, true);
    assert_null(tally_broken(&t, 4 * S));
    const struct report_threshold *broken = tally_broken(&t, 5 * S);
    assert_non_null(broken);
    assert_true(str_eq(broken->text, texts[0]) && broken->measured.value == 50);
    tally_reset(&t, 20 * S, 1010);
    assert_null(tally_broken(&t, 100 * S));
    tally_done(&t);
}

static void test_who_judges_failures(void **state)
{
    (void)state;
    const struct plan plan = {0};
    const struct str texts[] = {STR("p95 < 1"), STR("GET /: failures < 1"),
                                STR("failure_ratio < 1")};
    struct tally t = make(&plan, texts, 2);
    assert_false(tally_judges_failures(&t));
    tally_done(&t);
    t = make(&plan, texts, 3);
    assert_true(tally_judges_failures(&t));
    tally_done(&t);
}

static void test_a_bad_threshold(void **state)
{
    (void)state;
    const struct plan plan = {0};
    const struct str text = STR("p95");
    struct tally t;
    struct err err = {0};
    assert_int_equal(tally_init(&t, &plan, &text, 1, (struct stats_limits){0}, &err), -EINVAL);
    assert_true(str_starts(str_of(err.text), STR("--threshold 'p95': needs <")));
}

static void test_without_memory(void **state)
{
    (void)state;
    const struct plan plan = {0};
    const struct str text = STR("p95 < 1 steady");
    int rc = -ENOMEM;
    for (unsigned long n = 1; rc == -ENOMEM; n++) {
        struct tally t;
        alloc_fail_at(n);
        rc = tally_init(&t, &plan, &text, 1, (struct stats_limits){0}, NULL);
        alloc_fail_at(0);
        tally_done(&t);
    }
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_the_steady_state_alone),
        cmocka_unit_test(test_abort_after_the_grace_time),
        cmocka_unit_test(test_who_judges_failures),
        cmocka_unit_test(test_a_bad_threshold),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
