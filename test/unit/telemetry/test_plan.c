#include "telemetry/plan.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct window run = {1000, 2000}, steady = {1100, 1900};

static void test_substrate(void **state)
{
    (void)state;
    struct profile p;
    struct query_plan plan;
    struct err err = {0};
    assert_int_equal(profile_load("substrate", &p, &err), 0);
    assert_int_equal(query_plan_make(&p, run, steady, 70, &plan, &err), 0);
    assert_int_equal(plan.entry_count, p.count);
    /* 8 ranges; sizes 4 + 2, their count again (shared) and its value, 6 for each RPC, bytes and
     * seconds, bytes again (shared) */
    assert_int_equal(plan.count, 8 + 6 + 1 + 12 + 2);
    for (size_t i = 0; i < plan.count; i++) {
        const struct query *q = &plan.queries[i];
        assert_null(strstr(q->text, "${"));
        if (!q->is_range) /* snapshots are read late by half the lag */
            assert_true(q->span.start_s == 1135 && q->span.end_s == 1935);
        else if (strstr(q->text, "ate_workerpool_workers"))
            assert_true(q->span.start_s == 1000 && q->span.end_s == 2000);
        else
            assert_true(q->span.start_s == 1100 && q->span.end_s == 1900);
    }
    assert_string_equal(plan_asker(&plan, &p, 0), "cluster_packing");
    query_plan_done(&plan);
    profile_done(&p);
}

static void test_too_long_a_query_names_its_measurement(void **state)
{
    (void)state;
    struct buf text;
    struct profile p;
    struct query_plan plan;
    struct err err = {0};
    buf_init(&text, PROMQL_TEXT_BYTES);
    assert_int_equal(buf_add(&text, STR("{\"profile\":\"x\",\"measurements\":[{\"name\":\"a\","
                                        "\"kind\":\"counter_growth\",\"counter\":\"x{l=\\\"")),
                     0);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(buf_add_byte(&text, 'x'), 0);
    assert_int_equal(buf_add(&text, STR("\\\"}\"}]}")), 0);
    assert_int_equal(profile_parse(buf_str(&text), "x", &p, &err), 0);
    assert_int_equal(query_plan_make(&p, run, steady, 0, &plan, &err), -ERANGE);
    assert_string_equal(err.text, "a: its query is too long");
    query_plan_done(&plan);
    profile_done(&p);
    buf_done(&text);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct profile p;
    assert_int_equal(profile_load("substrate", &p, NULL), 0);
    for (unsigned long n = 1;; n++) {
        struct query_plan plan;
        alloc_fail_at(n);
        int rc = query_plan_make(&p, run, steady, 70, &plan, NULL);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        query_plan_done(&plan);
        if (!failed)
            break;
        assert_int_equal(rc, -ENOMEM);
    }
    profile_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_substrate),
        cmocka_unit_test(test_too_long_a_query_names_its_measurement),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
