#include "telemetry/packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define ANSWER(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" series "]}}"
#define SERIES(process, state, values)                                                             \
    "{\"metric\":{\"exported_instance\":\"" process "\",\"ate_worker_state\":\"" state             \
    "\"},\"values\":[" values "]}"

static struct packing pack(const char *body, double start_s, double end_s)
{
    struct query_answer a;
    struct packing p;
    json_auto_t *process = json_pack("[s, s]", "exported_instance", "instance");
    json_auto_t *busy = json_pack("[s, s, s]", "partial", "at_capacity", "assigned");
    assert_int_equal(query_answer_parse(str_of(body), &a, NULL), 0);
    assert_int_equal(
        packing_of(&a, process, "ate_worker_state", busy, (struct window){start_s, end_s}, &p), 0);
    query_answer_done(&a);
    return p;
}

static void check(const struct packing *p, size_t i, double busy, double total)
{
    if (p->points[i].busy != busy || p->points[i].total != total)
        fail_msg("point %zu: %g of %g", i, p->points[i].busy, p->points[i].total);
}

static void test_busy_over_all_states_of_the_moment(void **state)
{
    (void)state;
    struct packing p = pack(
        ANSWER(SERIES("a", "partial", "[100,\"3\"],[110,\"4\"],[120,\"Inf\"]") "," SERIES(
            "a", "at_capacity",
            "[100,\"1\"],[110,\"0\"]") "," SERIES("a", "idle",
                                                  "[100,\"1\"],[110,\"36\"]") "," SERIES("a",
                                                                                         "draining",
                                                                                         "[110,"
                                                                                         "\"10\""
                                                                                         "]")),
        100, 110);
    assert_int_equal(p.count, 2);
    check(&p, 0, 4, 5);
    check(&p, 1, 4, 50);
    assert_true(p.points[0].ratio.value == 0.8 && p.points[1].ratio.value == 0.08);
    assert_true(p.summary.stat[DISTRIBUTION_MAX].value == 0.8);
    assert_true(p.summary.stat[DISTRIBUTION_AVG].value == 0.44);
    packing_done(&p);
}

static void test_the_process_that_runs_latest_counts(void **state)
{
    (void)state;
    /* told for a dead one until 110; the live one's states come and go */
    struct packing p = pack(
        ANSWER(SERIES("dead", "idle", "[100,\"2\"],[110,\"2\"]") "," SERIES(
            "dead", "assigned",
            "[100,\"9\"],[110,\"9\"]") "," SERIES("live", "idle",
                                                  "[110,\"0\"],[120,\"1\"]") "," SERIES("live",
                                                                                        "partial",
                                                                                        "[110,"
                                                                                        "\"3\"],["
                                                                                        "120,"
                                                                                        "\"2\"]")),
        0, 1000);
    assert_int_equal(p.count, 3);
    check(&p, 0, 9, 11); /* alone at that time */
    check(&p, 1, 3, 3);
    check(&p, 2, 2, 3);
    packing_done(&p);
}

static void test_replicas_are_not_added_up(void **state)
{
    (void)state;
    struct packing p =
        pack(ANSWER(SERIES("a", "assigned", "[100,\"5\"],[110,\"5\"]") "," SERIES(
                 "a", "idle",
                 "[100,\"5\"],[110,\"5\"]") "," SERIES("b", "assigned",
                                                       "[110,\"6\"]") "," SERIES("b", "idle",
                                                                                 "[110,\"4\"]")),
             0, 1000);
    check(&p, 0, 5, 10);
    check(&p, 1, 6, 10); /* both run to 110; b began later */
    packing_done(&p);
}

static void test_no_workers_is_no_ratio(void **state)
{
    (void)state;
    struct packing p = pack(ANSWER(SERIES("a", "idle", "[100,\"0\"],[110,\"4\"]")), 0, 1000);
    assert_false(p.points[0].ratio.known);
    assert_true(p.points[1].ratio.known && p.points[1].ratio.value == 0);
    assert_true(p.summary.stat[DISTRIBUTION_P50].known);
    packing_done(&p);
    p = pack(ANSWER(""), 0, 1000);
    assert_int_equal(p.count, 0);
    assert_false(p.summary.stat[DISTRIBUTION_P50].known);
    packing_done(&p);
}

static void test_only_the_steady_window_is_summed_up(void **state)
{
    (void)state;
    struct packing p = pack(
        ANSWER(
            SERIES("a", "partial", "[100,\"0\"],[110,\"5\"],[120,\"10\"],[130,\"1\"]") "," SERIES(
                "a", "idle", "[100,\"10\"],[110,\"5\"],[120,\"0\"],[130,\"9\"]")),
        110, 120);
    assert_int_equal(p.count, 4);
    assert_true(p.summary.stat[DISTRIBUTION_MIN].value == 0.5);
    assert_true(p.summary.stat[DISTRIBUTION_MAX].value == 1);
    packing_done(&p);
}

static void test_too_many_processes(void **state)
{
    (void)state;
    struct buf b;
    struct query_answer a;
    struct packing p;
    buf_init(&b, 1u << 20);
    assert_int_equal(
        buf_add(&b,
                STR("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[")),
        0);
    for (int i = 0; i <= PACKING_PROCESSES_MAX; i++)
        assert_int_equal(buf_printf(&b,
                                    "%s{\"metric\":{\"instance\":\"%d\"},\"values\":[[1,\"1\"]]}",
                                    i ? "," : "", i),
                         0);
    assert_int_equal(buf_add(&b, STR("]}}")), 0);
    assert_int_equal(query_answer_parse(buf_str(&b), &a, NULL), 0);
    json_auto_t *process = json_pack("[s]", "instance");
    json_auto_t *busy = json_pack("[s]", "partial");
    assert_int_equal(packing_of(&a, process, "state", busy, (struct window){0, 1}, &p), -ERANGE);
    packing_done(&p);
    query_answer_done(&a);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy_over_all_states_of_the_moment),
        cmocka_unit_test(test_the_process_that_runs_latest_counts),
        cmocka_unit_test(test_replicas_are_not_added_up),
        cmocka_unit_test(test_no_workers_is_no_ratio),
        cmocka_unit_test(test_only_the_steady_window_is_summed_up),
        cmocka_unit_test(test_too_many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
