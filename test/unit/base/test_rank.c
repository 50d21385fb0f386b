#include "base/rank.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_one_to_two_hundred(void **state)
{
    (void)state;
    double v[200];
    for (size_t i = 0; i < 200; i++)
        v[i] = (double)(200 - i);
    rank_sort(v, 200);
    assert_true(v[0] == 1 && v[199] == 200);
    assert_true(rank_of(v, 200, 0.5) == 101);
    assert_true(rank_of(v, 200, 0.9) == 181);
    assert_true(rank_of(v, 200, 0.95) == 191);
    assert_true(rank_of(v, 200, 0.99) == 199);
    assert_true(rank_of(v, 200, 1.0) == 200);
}

static void test_few_values(void **state)
{
    (void)state;
    double one[] = {7.5}, two[] = {1, 2};
    assert_true(rank_of(one, 1, 0.0) == 7.5 && rank_of(one, 1, 0.99) == 7.5);
    assert_true(rank_of(two, 2, 0.49) == 1 && rank_of(two, 2, 0.5) == 2);
    rank_sort(one, 1);
    rank_sort(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_to_two_hundred),
        cmocka_unit_test(test_few_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
