#include "worker/engine/arrival.h"

#include "worker/engine/shard.h"
#include "worker/engine/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define CLASSES  3
#define ARRIVALS 1000

static const struct plan_task task = {.weight = 1, .step_count = 1};
static const struct plan_class classes[CLASSES] = {
    {.name = {"A", 1}, .weight = 3, .tasks = &task, .task_count = 1},
    {.name = {"B", 1}, .weight = 1, .tasks = &task, .task_count = 1},
    {.name = {"Idle", 4}, .weight = 9}, /* tags left it no task */
};

/* Each arrival of a class is exactly one shard's, and the pools of all shards are no larger than
 * what was allowed, but for the one user that each class has at least. */
static void check_shares(uint32_t max_users, unsigned shards)
{
    const struct plan_shape shape = {.arrival = true, .first_rate = 1, .max_users = max_users};
    const struct plan plan = {.classes = classes, .class_count = CLASSES, .shape = &shape};
    unsigned taken[CLASSES][ARRIVALS] = {{0}};
    uint64_t users[CLASSES] = {0};
    for (unsigned i = 0; i < shards; i++) {
        struct arrivals *a = arrivals_new(&plan, NULL, i, shards, 1);
        assert_non_null(a);
        for (size_t c = 0; c < CLASSES; c++) {
            const struct arrival_class *here = &a->classes[c];
            users[c] += here->share > 0 ? here->max_users : 0;
            assert_true(here->share <= 0 || here->max_users > 0);
            for (uint64_t n = here->next; here->share > 0 && n < ARRIVALS; n += here->step)
                taken[c][n]++;
        }
        arrivals_free(a);
    }
    print_message("%u users, %u shards\n", max_users, shards);
    for (size_t n = 0; n < ARRIVALS; n++)
        assert_true(taken[0][n] == 1 && taken[1][n] == 1 && taken[2][n] == 0);
    assert_int_equal(users[0], max_users * 3 / 4 ? max_users * 3 / 4 : 1);
    assert_int_equal(users[1], max_users / 4 ? max_users / 4 : 1);
}

static void test_shards_share_arrivals_and_users(void **state)
{
    (void)state;
    static const uint32_t users[] = {1, 2, 5, 8, 100, 1001};
    static const unsigned shards[] = {1, 2, 3, 7, 64};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        for (size_t j = 0; j < sizeof shards / sizeof *shards; j++)
            check_shares(users[i], shards[j]);
    }
}

static void test_only_who_is_wanted(void **state)
{
    (void)state;
    const struct plan_shape shape = {.arrival = true, .first_rate = 1, .max_users = 10};
    const struct plan plan = {.classes = classes, .class_count = CLASSES, .shape = &shape};
    const bool wanted[CLASSES] = {false, true, true};
    struct arrivals *a = arrivals_new(&plan, wanted, 0, 1, 1);
    assert_non_null(a);
    assert_true(a->classes[0].share == 0 && a->classes[1].share == 1 && a->classes[2].share == 0);
    assert_int_equal(a->classes[1].max_users, 10);
    arrivals_free(a);
    arrivals_free(NULL);
}

/* 5 a second: arrivals 0 to 4 have begun, number 5 is due after a second. */
static uint64_t missed(struct user *idle, uint32_t users, uint64_t end_us)
{
    static struct shard shard;
    const struct plan_shape shape = {.arrival = true, .first_rate = 5, .max_users = 2};
    const struct plan plan = {.classes = classes, .class_count = 1, .shape = &shape};
    const uint64_t begin_us = 1000000;
    struct arrivals *a = arrivals_new(&plan, NULL, 0, 1, begin_us);
    assert_non_null(a);
    shard = (struct shard){.plan = &plan};
    timers_init(&shard.timers, begin_us);
    a->classes[0].shard = &shard;
    a->classes[0].next = 5;
    a->classes[0].users = users;
    a->classes[0].idle = idle;
    arrivals_end(a, begin_us + end_us);
    arrivals_free(a);
    return shard.counters.arrivals_missed;
}

static void test_the_last_moment_misses_nothing_that_a_user_was_free_for(void **state)
{
    (void)state;
    struct user user;
    assert_int_equal(missed(NULL, 2, 999000), 0);
    assert_int_equal(missed(NULL, 2, 1000100), 1); /* all were busy */
    assert_int_equal(missed(&user, 2, 1000100), 0);
    assert_int_equal(missed(NULL, 1, 1000100), 0); /* one more could have been started */
    assert_int_equal(missed(&user, 2, 1300000), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_share_arrivals_and_users),
        cmocka_unit_test(test_only_who_is_wanted),
        cmocka_unit_test(test_the_last_moment_misses_nothing_that_a_user_was_free_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
