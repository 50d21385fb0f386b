#include "worker/runner/capacity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A worker and a target to be measured: what each user asks for a second, what a request costs of a
 * core, and how many requests the target answers a second (0: any number). */
struct world {
    double per_user;
    double cost_pct;
    double most;
};

static struct capacity make(bool waits, uint32_t unit, uint32_t users_max)
{
    struct capacity c;
    const struct capacity_options o = {
        .unit = unit,
        .users_max = users_max,
        .waits = waits,
        .cpu_limit_pct = CAPACITY_CPU_PCT,
        .lag_limit_ms = CAPACITY_LAG_MS,
    };
    capacity_init(&c, &o);
    return c;
}

static struct capacity_window window(uint32_t users, uint64_t requests, double cpu_pct)
{
    return (struct capacity_window){.users = users,
                                    .running = users,
                                    .seconds = 2,
                                    .requests = requests,
                                    .cpu_pct = cpu_pct,
                                    .loop_lag_ms = 1};
}

static struct capacity_window measure_world(const struct world *w, uint32_t users)
{
    double rate = w->per_user * users;
    if (w->most > 0 && rate > w->most)
        rate = w->most;
    double cpu_pct = rate * w->cost_pct;
    if (cpu_pct > 100) {
        cpu_pct = 100;
        rate = 100 / w->cost_pct;
    }
    return window(users, (uint64_t)(rate * 2), cpu_pct);
}

/* To its end; returns how many windows it took. */
static unsigned search(struct capacity *c, const struct world *w)
{
    unsigned count = 0;
    bool goes_on = true;
    while (goes_on) {
        const struct capacity_window m = measure_world(w, c->users);
        count++;
        assert_true(count < 100);
        assert_true(c->users >= 1 && c->users <= c->options.users_max);
        goes_on = capacity_add(c, &m);
        assert_true(goes_on == (c->limit == CAPACITY_NONE));
    }
    return count;
}

static void test_users_that_wait_are_found_to_the_precision(void **state)
{
    (void)state;
    const struct world w = {.per_user = 0.5, .cost_pct = 0.01}; /* 80 % at 8,000/s: 16,000 users */
    struct capacity c = make(true, 2, 100000);
    unsigned count = search(&c, &w);
    struct capacity_result r = capacity_result(&c);
    assert_int_equal(c.limit, CAPACITY_CPU);
    assert_true(r.users.known && r.users.value <= 16000 && r.users.value >= 0.95 * 16000);
    assert_true(r.rate.value == r.users.value / 2);
    assert_true(c.over.users > 16000 && c.over.cpu_pct > 80 && c.under.cpu_pct <= 80);
    assert_false(r.at_least || r.estimated);
    assert_in_range(count, 1, 20);
}

static void test_numbers_are_multiples_of_the_threads(void **state)
{
    (void)state;
    const struct world w = {.per_user = 1, .cost_pct = 1}; /* 80 users */
    struct capacity c = make(true, 3, 1000);
    bool goes_on = true;
    while (goes_on) {
        const struct capacity_window m = measure_world(&w, c.users);
        assert_int_equal(c.users % 3, 0);
        goes_on = capacity_add(&c, &m);
    }
    assert_int_equal(c.under.users, 78);
    assert_int_equal(c.over.users, 81);
}

static void test_it_grows_faster_with_much_to_spare(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    const struct capacity_window idle = window(1, 2, 10), busy = window(4, 8, 10.1);
    assert_true(capacity_add(&c, &idle));
    assert_int_equal(c.users, 4);
    assert_true(capacity_add(&c, &busy));
    assert_int_equal(c.users, 8);
}

static void test_the_target_is_the_limit(void **state)
{
    (void)state;
    const struct world w = {.per_user = 1, .cost_pct = 0.02, .most = 100};
    struct capacity c = make(true, 1, 100000);
    (void)search(&c, &w);
    struct capacity_result r = capacity_result(&c);
    assert_int_equal(c.limit, CAPACITY_TARGET);
    assert_true(r.at_least && !r.estimated);
    assert_true(r.users.value == 64 && r.rate.value == 64); /* 256 ask for more than it can do */
    assert_int_equal(c.under.users, 512);
}

static void test_without_waits_the_best_rate_counts(void **state)
{
    (void)state;
    struct capacity c = make(false, 1, 1000);
    const struct capacity_window all[] = {window(1, 2000, 20), window(2, 2200, 21),
                                          window(4, 2100, 22)};
    for (size_t i = 0; i < 3; i++)
        assert_true(capacity_add(&c, &all[i]) == (i < 2));
    struct capacity_result r = capacity_result(&c);
    assert_int_equal(c.limit, CAPACITY_TARGET);
    assert_true(r.rate.value == 1100 && r.users.value == 4 && r.at_least && !r.estimated);
}

static void test_without_waits_the_rate_is_read_off(void **state)
{
    (void)state;
    struct capacity c = make(false, 1, 1000);
    const struct capacity_window under = window(1, 80000, 60), over = window(2, 120000, 90);
    assert_true(capacity_add(&c, &under));
    assert_false(capacity_add(&c, &over));
    struct capacity_result r = capacity_result(&c);
    assert_true(r.estimated && !r.at_least && r.users.value == 1);
    assert_true(r.rate.value > 53333 && r.rate.value < 53334); /* 40000 + 20/30 of 20000 */

    c = make(false, 1, 1000); /* the first is too much already */
    const struct capacity_window full = window(1, 200000, 100);
    assert_false(capacity_add(&c, &full));
    r = capacity_result(&c);
    assert_true(!r.users.known && r.rate.known && r.rate.value == 80000 && r.estimated);
}

static void test_with_waits_nothing_is_read_off(void **state)
{
    (void)state;
    struct capacity c = make(true, 2, 1000);
    const struct capacity_window full = window(2, 200000, 100);
    assert_false(capacity_add(&c, &full));
    struct capacity_result r = capacity_result(&c);
    assert_false(r.users.known || r.rate.known || r.at_least || r.estimated);
}

static void test_failures_end_it(void **state)
{
    (void)state;
    const struct {
        const char *label;
        uint64_t requests, failures;
        bool ends;
    } cases[] = {
        {"none", 100, 0, false},
        {"five in a hundred", 100, 5, false},
        {"six in a hundred", 100, 6, true},
        {"one of few", 10, 1, false},
        {"two of few", 10, 2, true},
        {"the only one", 1, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct capacity c = make(true, 1, 1000);
        struct capacity_window w = window(1, cases[i].requests, 95); /* failing takes CPU, too */
        w.failures = cases[i].failures;
        print_message("%s\n", cases[i].label);
        assert_true((capacity_judge(&c.options, &w) == CAPACITY_FAILURES) == cases[i].ends);
        if (!cases[i].ends)
            continue;
        assert_false(capacity_add(&c, &w));
        assert_int_equal(c.limit, CAPACITY_FAILURES);
        assert_false(capacity_result(&c).users.known);
    }
}

static void test_what_went_well_before_failures_is_kept(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    const struct capacity_window good = window(1, 10, 1);
    struct capacity_window bad = window(4, 40, 1);
    bad.failures = 20;
    assert_true(capacity_add(&c, &good));
    assert_false(capacity_add(&c, &bad));
    struct capacity_result r = capacity_result(&c);
    assert_true(r.users.value == 1 && r.rate.value == 5 && r.at_least);
}

static void test_what_ran_out_comes_before_the_failures_it_makes(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    const struct capacity_window good = window(1, 100, 60);
    struct capacity_window bad = window(2, 200, 70);
    bad.failures = 100;
    bad.ports_exhausted = 100;
    assert_true(capacity_add(&c, &good));
    assert_false(capacity_add(&c, &bad)); /* nothing lies between one and two */
    assert_int_equal(c.limit, CAPACITY_PORTS);
    assert_false(capacity_result(&c).at_least);
    bad.files_exhausted = 1;
    assert_int_equal(capacity_judge(&c.options, &bad), CAPACITY_FILES);
    bad.files_exhausted = bad.ports_exhausted = 0;
    bad.memory_exhausted = 1;
    assert_int_equal(capacity_judge(&c.options, &bad), CAPACITY_MEMORY);
}

static void test_lag_is_looked_at_again(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    struct capacity_window late = window(1, 10, 50), good = late;
    late.loop_lag_ms = 5.1;
    assert_true(capacity_add(&c, &late));
    assert_int_equal(c.users, 1);
    assert_true(capacity_add(&c, &good)); /* it was for a moment */
    assert_int_equal(c.users, 2);
    late.users = good.users = 2;
    assert_true(capacity_add(&c, &late));
    assert_false(capacity_add(&c, &late));
    assert_int_equal(c.limit, CAPACITY_LAG);
    assert_false(capacity_result(&c).at_least);
}

static void test_lag_of_an_idle_worker_says_little(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    const struct capacity_window good = window(1, 10, 30);
    struct capacity_window late = window(2, 20, 40);
    late.loop_lag_ms = 30;
    assert_true(capacity_add(&c, &good));
    assert_true(capacity_add(&c, &late));
    assert_true(capacity_add(&c, &late));
    assert_false(capacity_add(&c, &late));
    assert_int_equal(c.limit, CAPACITY_LAG);
    assert_true(capacity_result(&c).at_least);
}

static void test_a_target_that_does_not_answer(void **state)
{
    (void)state;
    struct capacity c = make(true, 2, 1000);
    for (unsigned i = 1; i <= CAPACITY_SILENT; i++) {
        const struct capacity_window w = window(c.users, 0, 0);
        assert_true(capacity_add(&c, &w) == (i < CAPACITY_SILENT));
    }
    assert_int_equal(c.limit, CAPACITY_SILENCE);
    assert_false(capacity_result(&c).rate.known);
}

static void test_the_most_users(void **state)
{
    (void)state;
    const struct world w = {.per_user = 1, .cost_pct = 0.001};
    struct capacity c = make(true, 2, 100);
    (void)search(&c, &w);
    assert_int_equal(c.limit, CAPACITY_USERS);
    assert_true(capacity_result(&c).users.value == 100 && capacity_result(&c).at_least);
    c = make(true, 4, 3);
    assert_int_equal(c.users, 3);
    c.options.file_limited = true;
    (void)search(&c, &w);
    assert_int_equal(c.limit, CAPACITY_FILES);
    assert_false(capacity_result(&c).at_least);
}

static void test_ended_early(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 1000);
    capacity_stop(&c, CAPACITY_SIGNAL);
    assert_int_equal(c.limit, CAPACITY_SIGNAL);
    assert_false(capacity_result(&c).users.known || capacity_result(&c).at_least);
    capacity_stop(&c, CAPACITY_TIME);
    assert_int_equal(c.limit, CAPACITY_SIGNAL);

    c = make(true, 1, 1000);
    const struct capacity_window good = window(1, 10, 30), over = window(64, 20, 90);
    assert_true(capacity_add(&c, &good));
    assert_true(capacity_add(&c, &over));
    capacity_stop(&c, CAPACITY_TIME);
    struct capacity_result r = capacity_result(&c);
    assert_true(r.users.value == 1 && !r.at_least);
}

static void test_users_that_end_are_not_counted(void **state)
{
    (void)state;
    struct capacity c = make(true, 1, 8);
    struct capacity_window w = window(8, 100, 30);
    w.running = 5;
    c.users = 8;
    assert_false(capacity_add(&c, &w));
    assert_true(capacity_result(&c).users.value == 5);
}

static void test_workers_for_a_load(void **state)
{
    (void)state;
    const struct {
        double wished, sustained, workers;
    } cases[] = {
        {50000, 12800, 4}, {1, 12800, 1}, {12800, 12800, 1}, {12801, 12800, 2}, {0.3, 0.1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measure n = capacity_workers(cases[i].wished, measure_of(cases[i].sustained));
        assert_true(n.known && n.value == cases[i].workers);
    }
    assert_false(capacity_workers(1, MEASURE_UNKNOWN).known);
    assert_false(capacity_workers(1, measure_of(0)).known);
}

static void test_each_limit_has_a_name(void **state)
{
    (void)state;
    for (int a = CAPACITY_NONE; a <= CAPACITY_SCENARIO; a++) {
        for (int b = CAPACITY_NONE; b < a; b++)
            assert_string_not_equal(capacity_limit_name((enum capacity_limit)a),
                                    capacity_limit_name((enum capacity_limit)b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_that_wait_are_found_to_the_precision),
        cmocka_unit_test(test_numbers_are_multiples_of_the_threads),
        cmocka_unit_test(test_it_grows_faster_with_much_to_spare),
        cmocka_unit_test(test_the_target_is_the_limit),
        cmocka_unit_test(test_without_waits_the_best_rate_counts),
        cmocka_unit_test(test_without_waits_the_rate_is_read_off),
        cmocka_unit_test(test_with_waits_nothing_is_read_off),
        cmocka_unit_test(test_failures_end_it),
        cmocka_unit_test(test_what_went_well_before_failures_is_kept),
        cmocka_unit_test(test_what_ran_out_comes_before_the_failures_it_makes),
        cmocka_unit_test(test_lag_is_looked_at_again),
        cmocka_unit_test(test_lag_of_an_idle_worker_says_little),
        cmocka_unit_test(test_a_target_that_does_not_answer),
        cmocka_unit_test(test_the_most_users),
        cmocka_unit_test(test_ended_early),
        cmocka_unit_test(test_users_that_end_are_not_counted),
        cmocka_unit_test(test_workers_for_a_load),
        cmocka_unit_test(test_each_limit_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
