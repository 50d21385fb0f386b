#include "worker/runner/dispatcher.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define CLASSES 3

static const struct plan_class classes[CLASSES] = {
    {.name = {"B", 1}, .weight = 1},
    {.name = {"A", 1}, .weight = 5},
    {.name = {"Admin", 5}, .weight = 1, .fixed_count = 2},
};

static struct plan plan_of(size_t first, size_t count)
{
    return (struct plan){.classes = classes + first, .class_count = count};
}

static void check(const struct dispatcher *d, uint32_t b, uint32_t a, uint32_t admin)
{
    assert_int_equal(d->counts[0], b);
    assert_int_equal(d->counts[1], a);
    assert_int_equal(d->counts[2], admin);
    assert_int_equal(dispatcher_total(d), b + a + admin);
}

/* What Locust's generator gives for these weights. */
static void test_weights_5_and_1_give_aabaaaaabaaa(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, 2);
    struct dispatcher d;
    char order[13] = "";
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, 12, 1, NULL), 0);
    for (size_t i = 0; i < 12; i++) {
        uint32_t b = d.counts[0];
        assert_int_equal(dispatcher_step(&d), i < 11);
        order[i] = d.counts[0] > b ? 'B' : 'A';
    }
    assert_string_equal(order, "AABAAAAABAAA");
    dispatcher_done(&d);
    dispatcher_done(&d);
}

static void test_fixed_users_come_first_and_come_back(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, 5, 2, NULL), 0);
    assert_int_equal(d.wait_us, 1000000);
    assert_true(dispatcher_step(&d));
    check(&d, 0, 0, 2);
    assert_true(dispatcher_step(&d));
    check(&d, 0, 2, 2);
    assert_false(dispatcher_step(&d));
    check(&d, 1, 2, 2);
    assert_int_equal(dispatcher_ramp(&d, 1, 100, NULL), 0); /* the last ones leave first */
    assert_false(dispatcher_step(&d));
    check(&d, 0, 0, 1);
    assert_int_equal(dispatcher_ramp(&d, 3, 100, NULL), 0);
    assert_false(dispatcher_step(&d));
    check(&d, 0, 1, 2);
    dispatcher_done(&d);
}

static void test_rates_below_one_wait_longer(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, 2, 0.25, NULL), 0);
    assert_int_equal(d.wait_us, 4000000);
    assert_int_equal(d.at_once, 1);
    assert_int_equal(dispatcher_ramp(&d, 10, 2.5, NULL), 0);
    assert_int_equal(d.wait_us, 800000);
    assert_int_equal(d.at_once, 2);
    dispatcher_done(&d);
}

static void test_no_users_and_no_change_are_one_step(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, 0, 1, NULL), 0);
    assert_false(dispatcher_step(&d));
    check(&d, 0, 0, 0);
    dispatcher_done(&d);
}

static void test_only_fixed_classes_stop_where_they_are_full(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    const bool wanted[CLASSES] = {false, false, true};
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, wanted), 0);
    assert_int_equal(dispatcher_ramp(&d, 10, 5, NULL), 0);
    assert_false(dispatcher_step(&d));
    check(&d, 0, 0, 2);
    dispatcher_done(&d);
}

static void test_a_ramp_may_add_other_classes(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    const bool only_b[CLASSES] = {true, false, false};
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, 3, 100, NULL), 0);
    assert_false(dispatcher_step(&d));
    check(&d, 0, 1, 2);
    assert_int_equal(dispatcher_ramp(&d, 6, 100, only_b), 0);
    assert_false(dispatcher_step(&d));
    check(&d, 3, 1, 2);
    dispatcher_done(&d);
}

static void test_given_numbers_of_each_class(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    struct dispatcher d;
    static const uint32_t first[CLASSES] = {2, 1, 0}, second[CLASSES] = {0, 3, 1};
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp_to(&d, first, 2), 0);
    assert_true(dispatcher_step(&d));
    assert_int_equal(dispatcher_total(&d), 2);
    assert_false(dispatcher_step(&d));
    check(&d, 2, 1, 0);
    assert_int_equal(dispatcher_ramp_to(&d, second, 1), 0);
    assert_true(dispatcher_step(&d)); /* one comes and one goes */
    assert_int_equal(d.counts[0], 1);
    assert_int_equal(dispatcher_total(&d), 3);
    assert_true(dispatcher_step(&d));
    assert_false(dispatcher_step(&d));
    check(&d, 0, 3, 1);
    assert_int_equal(dispatcher_ramp(&d, 5, 100, NULL), 0); /* by weight again: Admins first */
    assert_false(dispatcher_step(&d));
    check(&d, 0, 3, 2);
    assert_int_equal(dispatcher_ramp(&d, 1, 100, NULL), 0);
    assert_false(dispatcher_step(&d));
    assert_int_equal(dispatcher_total(&d), 1);
    dispatcher_done(&d);
}

static void test_too_many_users(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    struct dispatcher d;
    assert_int_equal(dispatcher_init(&d, &plan, NULL), 0);
    assert_int_equal(dispatcher_ramp(&d, DISPATCHER_MAX_USERS + 1, 1, NULL), -ERANGE);
    dispatcher_done(&d);
}

static void test_without_memory(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, CLASSES);
    int rc = -ENOMEM;
    for (long n = 1; rc == -ENOMEM; n++) {
        struct dispatcher d;
        alloc_fail_at(n);
        rc = dispatcher_init(&d, &plan, NULL);
        if (rc == 0)
            rc = dispatcher_ramp(&d, 5, 1, NULL);
        alloc_fail_at(0);
        dispatcher_done(&d);
    }
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_5_and_1_give_aabaaaaabaaa),
        cmocka_unit_test(test_fixed_users_come_first_and_come_back),
        cmocka_unit_test(test_rates_below_one_wait_longer),
        cmocka_unit_test(test_no_users_and_no_change_are_one_step),
        cmocka_unit_test(test_only_fixed_classes_stop_where_they_are_full),
        cmocka_unit_test(test_a_ramp_may_add_other_classes),
        cmocka_unit_test(test_given_numbers_of_each_class),
        cmocka_unit_test(test_too_many_users),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
