#include "worker/report/leader.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void add(struct leader *l, enum users_source source, double from_s, double to_s,
                double users)
{
    for (double at = from_s; at <= to_s; at++)
        assert_int_equal(leader_add(l, source, at, users), 0);
}

static void assert_measure(struct measure m, double want)
{
    assert_true(m.known);
    assert_true(m.value == want);
}

static void test_who_reports(void **state)
{
    static const struct {
        enum leader_role role;
        bool has_index;
        uint64_t index;
        bool named;
        bool reports;
    } cases[] = {
        {LEADER_AUTO, true, 0, false, true},   {LEADER_AUTO, true, 1, false, false},
        {LEADER_AUTO, false, 0, false, false}, /* a master older than 2.11 tells nobody apart */
        {LEADER_AUTO, true, 1, true, true},    {LEADER_AUTO, false, 0, true, true},
        {LEADER_ALWAYS, true, 3, false, true}, {LEADER_ALWAYS, false, 0, true, true},
        {LEADER_NEVER, true, 0, false, false}, {LEADER_NEVER, true, 1, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            leader_reports(cases[i].role, cases[i].has_index, cases[i].index, cases[i].named),
            cases[i].reports);
    enum leader_role role;
    assert_true(leader_role_parse(STR("never"), &role));
    assert_int_equal(role, LEADER_NEVER);
    assert_true(leader_role_parse(STR("auto"), &role));
    assert_int_equal(role, LEADER_AUTO);
    assert_false(leader_role_parse(STR("Always"), &role));
    assert_false(leader_role_parse(STR(""), &role));
}

static void test_the_best_source_that_covers_the_run_is_taken(void **state)
{
    (void)state;
    struct leader l = {0};
    leader_begin(&l, false, 100);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_NONE);
    add(&l, USERS_SOURCE_LOCAL, 100, 160, 5);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_NONE); /* others have users too */
    add(&l, USERS_SOURCE_PLAN, 100, 160, 20);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_PLAN);
    add(&l, USERS_SOURCE_PROMETHEUS, 110, 160, 17);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_PROMETHEUS);
    add(&l, USERS_SOURCE_MASTER_WEB, 101, 160, 18);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_MASTER_WEB);
    add(&l, USERS_SOURCE_MASTER, 120, 147, 19); /* it fell silent: 27 s of 60 */
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_MASTER_WEB);
    add(&l, USERS_SOURCE_MASTER, 148, 148, 19); /* 28 s, and two for getting started */
    struct leader_users u = leader_users(&l);
    assert_int_equal(u.source, USERS_SOURCE_MASTER);
    assert_int_equal(u.count, 29);
    assert_true(u.samples[0].wall_s == 120 && u.samples[0].users == 19);
    leader_done(&l);
    leader_done(&l);
}

static void test_a_run_of_a_second_is_covered_by_one_sample(void **state)
{
    (void)state;
    struct leader l = {0};
    leader_begin(&l, false, 100);
    assert_int_equal(leader_add(&l, USERS_SOURCE_MASTER, 100.5, 3), 0);
    leader_end(&l, 101);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_MASTER);
    leader_done(&l);
}

static void test_users_are_local_when_every_total_was_our_own(void **state)
{
    (void)state;
    struct leader l = {0};
    leader_begin(&l, false, 100);
    add(&l, USERS_SOURCE_LOCAL, 100, 110, 20);
    add(&l, USERS_SOURCE_MASTER, 100, 110, 20);
    leader_total(&l, 20, 20);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_LOCAL);
    leader_total(&l, 0, 0); /* a shape that ends */
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_LOCAL);
    leader_total(&l, 30, 20); /* somebody joined */
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_MASTER);
    leader_total(&l, 20, 20); /* and left: for a time there were others all the same */
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_MASTER);
    assert_measure(l.target, 30);

    leader_begin(&l, true, 200); /* no master at all */
    assert_false(l.target.known);
    add(&l, USERS_SOURCE_LOCAL, 200, 203, 7);
    struct leader_users u = leader_users(&l);
    assert_int_equal(u.source, USERS_SOURCE_LOCAL);
    assert_int_equal(u.count, 4);
    leader_done(&l);
}

static void test_nothing_is_added_outside_of_a_run(void **state)
{
    (void)state;
    struct leader l = {0};
    add(&l, USERS_SOURCE_MASTER, 1, 3, 5);
    leader_total(&l, 5, 5);
    leader_begin(&l, false, 10);
    add(&l, USERS_SOURCE_MASTER, 10, 12, 5);
    leader_end(&l, 12);
    leader_end(&l, 90);
    add(&l, USERS_SOURCE_MASTER, 13, 14, 0);
    leader_total(&l, 9, 9);
    assert_int_equal(leader_users(&l).count, 3);
    assert_true(l.end_s == 12);
    assert_false(l.target.known);
    leader_done(&l);
}

static void test_what_is_no_count_is_left_out(void **state)
{
    (void)state;
    struct leader l = {0};
    leader_begin(&l, false, 10);
    assert_int_equal(leader_add(&l, USERS_SOURCE_MASTER, 10, -1), 0);
    assert_int_equal(leader_add(&l, USERS_SOURCE_MASTER, 10, (double)NAN), 0);
    assert_int_equal(leader_add(&l, USERS_SOURCE_MASTER, 10, (double)INFINITY), 0);
    assert_int_equal(leader_add(&l, USERS_SOURCE_NONE, 10, 3), 0);
    assert_int_equal(leader_users(&l).source, USERS_SOURCE_NONE);
    assert_int_equal(leader_add(&l, USERS_SOURCE_MASTER, 10, 0), 0); /* nobody is a count */
    assert_int_equal(leader_users(&l).count, 1);
    leader_done(&l);
}

static void test_a_full_series_keeps_every_second_sample(void **state)
{
    (void)state;
    struct leader l = {0};
    leader_begin(&l, true, 0);
    for (int i = 0; i < LEADER_SAMPLES_MAX + 1; i++)
        assert_int_equal(leader_add(&l, USERS_SOURCE_LOCAL, i, i), 0);
    struct leader_users u = leader_users(&l);
    assert_int_equal(u.count, LEADER_SAMPLES_MAX / 2 + 1);
    assert_true(u.samples[0].users == 1);
    assert_true(u.samples[u.count - 2].users == LEADER_SAMPLES_MAX - 1);
    assert_true(u.samples[u.count - 1].users == LEADER_SAMPLES_MAX);
    leader_done(&l);
}

/* The worked values: 10 users, 1 node, 3.92 cores, 12.96 GiB, 5 pods; 25 failures of 100. */
static void test_frontiers_of_the_run(void **state)
{
    (void)state;
    struct leader l = {0};
    struct frontiers f;
    struct cluster_facts facts = {
        .node_count = measure_of(1),
        .allocatable_cores = measure_of(3.92),
        .allocatable_ram_gb = measure_of(12.96),
        .worker_pod_count = measure_of(5),
    };
    leader_begin(&l, false, 100);
    add(&l, USERS_SOURCE_MASTER, 100, 104, 4); /* the ramp */
    add(&l, USERS_SOURCE_MASTER, 105, 110, 10);
    leader_total(&l, 10, 4);
    assert_int_equal(leader_frontiers(&l, &facts, 1, 100, 25, &f), 0);
    assert_measure(f.actors_per_node, 10.0);
    assert_measure(f.actors_per_vcpu, 2.55);
    assert_measure(f.actors_per_gb_ram, 0.77);
    assert_measure(f.ap_ratio_p50, 2.0);
    assert_measure(f.ap_ratio_p99, 2.0);
    assert_measure(f.aggregate_failure_ratio, 0.25);
    assert_int_equal(leader_frontiers(&l, &facts, 3, 100, 25, &f), 0); /* actors per user */
    assert_measure(f.actors_per_node, 30.0);
    assert_int_equal(leader_frontiers(&l, NULL, 1, 1708, 0, &f), 0);
    assert_false(f.actors_per_node.known);
    assert_false(f.ap_ratio_p50.known);
    assert_measure(f.aggregate_failure_ratio, 0.0);
    leader_begin(&l, false, 200); /* nobody told anything */
    assert_int_equal(leader_frontiers(&l, &facts, 1, 0, 0, &f), 0);
    assert_false(f.actors_per_node.known);
    assert_false(f.aggregate_failure_ratio.known);
    leader_done(&l);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    struct leader l = {0};
    int failures = 0;
    leader_begin(&l, true, 0);
    for (unsigned long n = 1;; n++) {
        alloc_fail_at(n);
        int rc = leader_add(&l, USERS_SOURCE_LOCAL, 1, 1);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        if (!failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        failures++;
    }
    assert_int_equal(failures, 1);
    leader_done(&l);
}

static void test_message_of_the_masters_listener(void **state)
{
    static const struct {
        const char *json;
        double users; /* -1: none */
    } cases[] = {
        {"{\"user_count\": 20}", 20},
        {"{\"user_count\": 2.5, \"x\": 1}", 2.5},
        {"20", 20},
        {"0", 0},
        {"{\"user_count\": -1}", -1},
        {"{\"user_count\": \"20\"}", -1},
        {"{\"user_count\": true}", -1},
        {"{}", -1},
        {"[20]", -1},
        {"null", -1},
        {"-3", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *data = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        double users = -1;
        assert_int_equal(leader_message_users(data, &users), cases[i].users >= 0);
        assert_true(users == cases[i].users);
        json_decref(data);
    }
    double users;
    assert_false(leader_message_users(NULL, &users));
}

static void test_planned_users(void **state)
{
    (void)state;
    json_t *web = json_pack("{s:i, s:n}", "users", 10, "num_users");
    json_t *headless = json_pack("{s:i, s:n}", "num_users", 4, "users");
    json_t *neither = json_pack("{s:n}", "num_users");
    assert_measure(leader_planned_users(web), 10);
    assert_measure(leader_planned_users(headless), 4);
    assert_false(leader_planned_users(neither).known);
    assert_false(leader_planned_users(NULL).known);
    json_decref(web);
    json_decref(headless);
    json_decref(neither);
}

static void test_answers_of_the_masters_web_ui(void **state)
{
    static const struct {
        const char *type, *body;
        double users;
        const char *why;
    } cases[] = {
        {"application/json", "{\"user_count\": 20, \"state\": \"running\"}", 20, NULL},
        {"Application/JSON; charset=utf-8", "{\"user_count\": 0}", 0, NULL},
        {"text/html; charset=utf-8", "Locust auth exception", -1,
         "an answer of type 'text/html; charset=utf-8' and not JSON: does it want a login?"},
        {"", "{\"user_count\": 1}", -1, "an answer of type '' and not JSON: does it want a login?"},
        {"application/json", "{\"user_count\": 2", -1, "invalid JSON (line 1, column 16)"},
        {"application/json", "", -1, "invalid JSON (line 1, column 0)"},
        {"application/json", "[1]", -1, "no user_count in it: is it a Locust master?"},
        {"application/json", "{\"user_count\": null}", -1,
         "no user_count in it: is it a Locust master?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        double users = -1;
        int rc = leader_web_users(cases[i].type, str_of(cases[i].body), &users, &err);
        assert_int_equal(rc, cases[i].why ? -EPROTO : 0);
        assert_string_equal(err.text, cases[i].why ? cases[i].why : "");
        assert_true(users == cases[i].users);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_reports),
        cmocka_unit_test(test_the_best_source_that_covers_the_run_is_taken),
        cmocka_unit_test(test_a_run_of_a_second_is_covered_by_one_sample),
        cmocka_unit_test(test_users_are_local_when_every_total_was_our_own),
        cmocka_unit_test(test_nothing_is_added_outside_of_a_run),
        cmocka_unit_test(test_what_is_no_count_is_left_out),
        cmocka_unit_test(test_a_full_series_keeps_every_second_sample),
        cmocka_unit_test(test_frontiers_of_the_run),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_message_of_the_masters_listener),
        cmocka_unit_test(test_planned_users),
        cmocka_unit_test(test_answers_of_the_masters_web_ui),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
