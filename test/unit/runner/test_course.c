#include "worker/runner/course.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000u
#define S  1000000u
#define T0 (77 * S) /* the clock when the load begins */

static const struct plan_class classes[] = {
    {.name = {"A", 1}, .weight = 1, .task_count = 1},
    {.name = {"B", 1}, .weight = 1, .task_count = 1},
};

static struct plan plan_of(const struct plan_shape *shape)
{
    return (struct plan){.classes = classes, .class_count = 2, .shape = shape};
}

static unsigned advance(struct course *c, uint64_t at_us, bool reached)
{
    unsigned wishes;
    assert_int_equal(course_advance(c, T0 + at_us, reached, &wishes), 0);
    return wishes;
}

static void begin(struct course *c, const struct plan *plan, const struct course_options *options)
{
    assert_int_equal(course_init(c, plan, options), 0);
    assert_true(course_next_us(c) == UINT64_MAX);
    assert_int_equal(advance(c, 0, true), 0);
    assert_int_equal(course_begin(c, T0), 0);
}

static void test_a_ramp_and_its_end(void **state)
{
    (void)state;
    struct course c;
    struct plan plan = plan_of(NULL);
    begin(&c, &plan, &(struct course_options){.users = 5, .spawn_rate = 2, .run_time_us = 10 * S});
    assert_int_equal(course_next_us(&c), T0);
    assert_int_equal(advance(&c, 0, true), COURSE_RAMPS | COURSE_SET_USERS);
    assert_int_equal(c.target, 5);
    assert_int_equal(dispatcher_total(&c.dispatcher), 2);
    assert_int_equal(course_next_us(&c), T0 + S);
    assert_int_equal(advance(&c, 0, true), 0);
    assert_int_equal(advance(&c, 999 * MS, true), 0);
    assert_int_equal(advance(&c, S, true), COURSE_SET_USERS);
    assert_int_equal(advance(&c, 2 * S + 100 * MS, true), COURSE_SET_USERS);
    assert_int_equal(dispatcher_total(&c.dispatcher), 5);
    assert_int_equal(c.state, COURSE_SPAWNING);
    assert_int_equal(advance(&c, 2 * S + 200 * MS, false), 0); /* the engine is not there yet */
    assert_int_equal(advance(&c, 2 * S + 300 * MS, true), COURSE_SPAWNED);
    assert_int_equal(c.state, COURSE_RUNNING);
    assert_int_equal(course_next_us(&c), T0 + 10 * S);
    assert_int_equal(advance(&c, 9 * S, true), 0);
    assert_int_equal(advance(&c, 10 * S, true), COURSE_END);
    assert_string_equal(c.why, "--run-time limit reached");
    assert_int_equal(advance(&c, 11 * S, true), 0);
    assert_true(course_next_us(&c) == UINT64_MAX);
    course_done(&c);
}

/* A step that came late moves the next ones, when it came later than the next one was due. */
static void test_late_steps_are_not_made_up_for(void **state)
{
    (void)state;
    struct course c;
    struct plan plan = plan_of(NULL);
    begin(&c, &plan, &(struct course_options){.users = 10, .spawn_rate = 1});
    (void)advance(&c, 0, true);
    assert_int_equal(advance(&c, S + 300 * MS, true), COURSE_SET_USERS);
    assert_int_equal(course_next_us(&c), T0 + 2 * S);
    assert_int_equal(advance(&c, 5 * S, true), COURSE_SET_USERS);
    assert_int_equal(course_next_us(&c), T0 + 6 * S);
    assert_int_equal(dispatcher_total(&c.dispatcher), 3);
    course_done(&c);
}

static void test_the_run_time_ends_a_ramp(void **state)
{
    (void)state;
    struct course c;
    struct plan plan = plan_of(NULL);
    begin(&c, &plan, &(struct course_options){.users = 10, .spawn_rate = 0.1, .run_time_us = S});
    (void)advance(&c, 0, true);
    assert_int_equal(course_next_us(&c), T0 + S);
    assert_int_equal(advance(&c, S, false), COURSE_END);
    course_done(&c);
}

static void test_stages(void **state)
{
    (void)state;
    static const uint32_t by_class[] = {0, 3};
    const struct shape_stage stages[] = {
        {.until_us = 10 * S, .users = 4, .spawn_rate = 2},
        {.until_us = 20 * S, .users = 4, .spawn_rate = 2}, /* nothing new */
        {.until_us = 30 * S, .users = 3, .class_users = by_class, .spawn_rate = 100},
    };
    const struct plan_shape shape = {.stages = stages, .stage_count = 3};
    struct course c;
    struct plan plan = plan_of(&shape);
    begin(&c, &plan, &(struct course_options){.users = 99, .spawn_rate = 9, .run_time_us = S});
    assert_int_equal(advance(&c, 0, true), COURSE_RAMPS | COURSE_SET_USERS);
    assert_int_equal(advance(&c, S, true), COURSE_SET_USERS);
    assert_int_equal(advance(&c, S + 1, true), COURSE_SPAWNED);
    assert_int_equal(course_next_us(&c), T0 + 10 * S);
    assert_int_equal(advance(&c, 10 * S, true), 0);
    assert_int_equal(course_next_us(&c), T0 + 20 * S);
    assert_int_equal(advance(&c, 20 * S, true), COURSE_RAMPS | COURSE_SET_USERS);
    assert_int_equal(c.dispatcher.counts[0], 0);
    assert_int_equal(c.dispatcher.counts[1], 3);
    assert_int_equal(advance(&c, 20 * S + 1, true), COURSE_SPAWNED);
    assert_true(course_is_steady(&c, T0 + 9 * S, 4));
    assert_false(course_is_steady(&c, T0 + 9 * S, 3));
    assert_int_equal(advance(&c, 30 * S, true), COURSE_END);
    assert_string_equal(c.why, "Shape test completed");
    course_done(&c);
}

static void test_a_stage_overtakes_the_ramp_of_the_one_before(void **state)
{
    (void)state;
    const struct shape_stage stages[] = {
        {.until_us = 2 * S, .users = 100, .spawn_rate = 1},
        {.until_us = 9 * S, .users = 1, .spawn_rate = 1},
    };
    const struct plan_shape shape = {.stages = stages, .stage_count = 2};
    struct course c;
    struct plan plan = plan_of(&shape);
    begin(&c, &plan, &(struct course_options){0});
    (void)advance(&c, 0, true);
    (void)advance(&c, S, true);
    assert_int_equal(dispatcher_total(&c.dispatcher), 2);
    assert_int_equal(advance(&c, 2 * S, true), COURSE_RAMPS | COURSE_SET_USERS);
    assert_int_equal(dispatcher_total(&c.dispatcher), 1);
    course_done(&c);
}

static void test_arrivals(void **state)
{
    (void)state;
    const struct shape_rate rates[] = {{.until_us = 10 * S, .rate = 100}};
    const struct plan_shape shape = {
        .arrival = true, .rates = rates, .rate_count = 1, .max_users = 5};
    struct course c;
    struct plan plan = plan_of(&shape);
    begin(&c, &plan, &(struct course_options){.users = 99, .spawn_rate = 9, .run_time_us = S});
    assert_int_equal(advance(&c, 0, true), COURSE_SET_ARRIVALS | COURSE_SPAWNED);
    assert_int_equal(advance(&c, 1, true), 0);
    assert_int_equal(course_next_us(&c), T0 + 10 * S);
    assert_int_equal(course_change_users(&c, 1, T0 + S), -ENOTSUP);
    assert_false(course_is_steady(&c, T0 + 8 * S, 5));
    assert_true(course_is_steady(&c, T0 + 9 * S, 0));
    assert_int_equal(advance(&c, 10 * S, true), COURSE_END);
    course_done(&c);
}

static void test_keys(void **state)
{
    (void)state;
    struct course c;
    struct plan plan = plan_of(NULL);
    begin(&c, &plan, &(struct course_options){.users = 2, .spawn_rate = 1});
    (void)advance(&c, 0, true);
    assert_int_equal(course_change_users(&c, 1, T0), -EAGAIN);
    (void)advance(&c, S, true);
    (void)advance(&c, S + 1, true);
    assert_int_equal(course_change_users(&c, 10, T0 + 2 * S), 0);
    assert_int_equal(advance(&c, 2 * S, true), COURSE_RAMPS | COURSE_SET_USERS);
    assert_int_equal(dispatcher_total(&c.dispatcher), 12);
    assert_true(course_is_steady(&c, T0 + 2 * S, 11));
    (void)advance(&c, 2 * S + 1, true);
    assert_int_equal(course_change_users(&c, -20, T0 + 3 * S), 0);
    (void)advance(&c, 3 * S, true);
    assert_int_equal(dispatcher_total(&c.dispatcher), 0);
    course_end(&c);
    assert_int_equal(course_change_users(&c, 1, T0 + 4 * S), -EAGAIN);
    course_done(&c);
}

static void test_without_memory(void **state)
{
    (void)state;
    struct plan plan = plan_of(NULL);
    const struct course_options options = {.users = 5, .spawn_rate = 1};
    int rc = -ENOMEM;
    for (unsigned long n = 1; rc == -ENOMEM; n++) {
        struct course c;
        alloc_fail_at(n);
        rc = course_init(&c, &plan, &options);
        if (rc == 0)
            rc = course_begin(&c, T0);
        alloc_fail_at(0);
        course_done(&c);
    }
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ramp_and_its_end),
        cmocka_unit_test(test_late_steps_are_not_made_up_for),
        cmocka_unit_test(test_the_run_time_ends_a_ramp),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_a_stage_overtakes_the_ramp_of_the_one_before),
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
