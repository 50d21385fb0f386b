#include "worker/runner/usage.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_a_thread_that_works_uses_its_core(void **state)
{
    (void)state;
    struct usage u = {0};
    assert_true(usage_thread_cpu_pct(&u, clock_mono_us()) == 0);
    uint64_t busy_us = clock_thread_cpu_us() + 20000;
    while (clock_thread_cpu_us() < busy_us)
        continue;
    uint64_t begin_us = u.at_us;
    assert_true(usage_thread_cpu_pct(&u, begin_us + 400000) == 0); /* too soon */
    double pct = usage_thread_cpu_pct(&u, begin_us + 1000000);
    assert_true(pct >= 2 && pct <= 100); /* 20 ms in what is said to be a second */
    assert_true(usage_thread_cpu_pct(&u, begin_us + 1100000) == pct);
}

static void test_memory_is_known_and_sensible(void **state)
{
    (void)state;
    struct measure m = usage_memory_bytes();
    assert_true(m.known);
    assert_true(m.value > 100e3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_works_uses_its_core),
        cmocka_unit_test(test_memory_is_known_and_sensible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
