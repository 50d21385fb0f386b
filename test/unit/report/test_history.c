#include "worker/report/history.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void add(struct history *h, double wall_s)
{
    assert_int_equal(history_add(h, &(struct history_point){.wall_s = wall_s}), 0);
}

static void test_points_stay_in_order(void **state)
{
    (void)state;
    struct history h = {0};
    for (int i = 0; i < 1000; i++)
        add(&h, i);
    assert_int_equal(h.count, 1000);
    for (size_t i = 0; i < h.count; i++)
        assert_true(h.points[i].wall_s == (double)i);
    history_clear(&h);
    assert_int_equal(h.count, 0);
    add(&h, 5);
    assert_int_equal(h.count, 1);
    history_done(&h);
    history_done(&h);
}

static void test_a_full_one_is_thinned_out(void **state)
{
    (void)state;
    struct history h = {0};
    for (int i = 0; i <= HISTORY_MAX_POINTS; i++)
        add(&h, i);
    assert_int_equal(h.count, HISTORY_MAX_POINTS / 2 + 1);
    for (size_t i = 0; i + 1 < h.count; i++)
        assert_true(h.points[i].wall_s == (double)(2 * i + 1));
    assert_true(h.points[h.count - 1].wall_s == HISTORY_MAX_POINTS);
    history_done(&h);
}

static void test_without_memory_the_rest_stays(void **state)
{
    (void)state;
    struct history h = {0};
    alloc_fail_at(1);
    assert_int_equal(history_add(&h, &(struct history_point){0}), -ENOMEM);
    alloc_fail_at(0);
    while (h.count < h.cap || h.count == 0)
        add(&h, 1);
    alloc_fail_at(1);
    assert_int_equal(history_add(&h, &(struct history_point){0}), -ENOMEM);
    alloc_fail_at(0);
    assert_int_equal(h.count, h.cap);
    add(&h, 2);
    history_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_stay_in_order),
        cmocka_unit_test(test_a_full_one_is_thinned_out),
        cmocka_unit_test(test_without_memory_the_rest_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
