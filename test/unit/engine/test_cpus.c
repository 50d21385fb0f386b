#include "worker/engine/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_quota_is_rounded_up(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned cpus;
    } cases[] = {
        {"200000 100000\n", 2},
        {"250000 100000\n", 3},
        {"50000 100000", 1},
        {"max 100000\n", 0},
        {"", 0},
        {"1", 0},
        {"1 0", 0},
        {"-1 100000", 0},
        {"x y", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(cpus_of_quota(str_of(cases[i].text)), cases[i].cpus);
}

static void test_there_is_always_one(void **state)
{
    (void)state;
    assert_true(cpus_usable() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_is_rounded_up),
        cmocka_unit_test(test_there_is_always_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
