#include "worker/runner/pace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S 1000000u

static const struct plan_step request = {.kind = PLAN_STEP_REQUEST};

static void test_waits(void **state)
{
    (void)state;
    const struct {
        struct plan_wait wait;
        double s;
    } cases[] = {
        {{.kind = PLAN_WAIT_NONE}, 0},
        {{PLAN_WAIT_CONSTANT, 2 * S, 2 * S}, 2},
        {{PLAN_WAIT_BETWEEN, 1 * S, 2 * S}, 1.5},
        {{.kind = PLAN_WAIT_PACING, .min_us = 5 * S}, 5},
        {{.kind = PLAN_WAIT_THROUGHPUT, .min_us = S / 4}, 0.25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct plan_task task = {.weight = 1, .steps = &request, .step_count = 1};
        const struct plan_class class = {.wait = cases[i].wait, .tasks = &task, .task_count = 1};
        const struct plan plan = {.classes = &class, .class_count = 1};
        assert_true(pace_longest_s(&plan, NULL) == cases[i].s);
    }
}

static void test_pauses_by_the_weight_of_their_task(void **state)
{
    (void)state;
    const struct plan_piece piece = {0};
    const struct plan_step steps[] = {
        request,
        {.kind = PLAN_STEP_PAUSE, .pause = {.min_us = 2 * S, .max_us = 6 * S}},
        {.kind = PLAN_STEP_PAUSE,
         .pause = {.min_us = 9 * S,
                   .max_us = 9 * S,
                   .seconds = {.pieces = &piece, .piece_count = 1}}},
    };
    const struct plan_task tasks[] = {{.weight = 3, .steps = &request, .step_count = 1},
                                      {.weight = 1, .steps = steps, .step_count = 3}};
    struct plan_class class = {.tasks = tasks, .task_count = 2};
    const struct plan plan = {.classes = &class, .class_count = 1};
    assert_true(pace_longest_s(&plan, NULL) == 1);
    class.sequential = true;
    assert_true(pace_longest_s(&plan, NULL) == 2);
}

static void test_the_longest_of_those_who_run(void **state)
{
    (void)state;
    const struct plan_class classes[] = {{.wait = {PLAN_WAIT_CONSTANT, 2 * S, 2 * S}},
                                         {.wait = {PLAN_WAIT_CONSTANT, 7 * S, 7 * S}},
                                         {.wait = {.kind = PLAN_WAIT_NONE}}};
    const struct plan plan = {.classes = classes, .class_count = 3};
    const bool first[] = {true, false, true};
    assert_true(pace_longest_s(&plan, NULL) == 7);
    assert_true(pace_longest_s(&plan, first) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_pauses_by_the_weight_of_their_task),
        cmocka_unit_test(test_the_longest_of_those_who_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
