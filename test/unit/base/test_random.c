#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

/* The generator's published values for the state 1, 2, 3, 4. */
static void test_reference_values(void **state)
{
    (void)state;
    static const uint64_t want[] = {
        11520,
        0,
        1509978240,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    struct rng r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_true(rng_u64(&r) == want[i]);
}

/* splitmix64's published values for the seed 0 */
static void test_seed_is_spread(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdafu);
    assert_true(r.s[1] == 0x6e789e6aa1b965f4u);
    assert_true(r.s[2] == 0x06c45d188009454fu);
    assert_true(r.s[3] == 0xf88bb8a8724c81ecu);
    struct rng a, b;
    rng_init(&a, 1);
    rng_init(&b, 1);
    assert_true(rng_u64(&a) == rng_u64(&b));
    rng_init(&b, 2);
    assert_true(rng_u64(&a) != rng_u64(&b));
}

static void test_unit_is_below_one(void **state)
{
    (void)state;
    struct rng lowest = {{1, 0, 0, 0}}, highest = {{0, 0x4fc71c71c71c71c7u, 0, 0}};
    assert_true(rng_unit(&lowest) == 0.0);
    assert_true(rng_unit(&highest) == 1 - 0x1p-53); /* all bits set */
    struct rng r;
    rng_init(&r, 3);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double v = rng_unit(&r);
        assert_true(v >= 0 && v < 1);
        sum += v;
    }
    assert_true(sum > 49000 && sum < 51000); /* a fixed seed: 10 sigma around the mean */
}

static void test_below_reaches_all_and_no_more(void **state)
{
    (void)state;
    struct rng r;
    unsigned seen[7] = {0};
    rng_init(&r, 4);
    for (int i = 0; i < 70000; i++) {
        uint64_t v = rng_below(&r, 7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9500, 10500);
    for (int i = 0; i < 100; i++) {
        assert_true(rng_below(&r, 1) == 0);
        assert_true(rng_below(&r, (UINT64_MAX / 3) * 2) < (UINT64_MAX / 3) * 2);
    }
}

static void test_system_seeds_differ(void **state)
{
    (void)state;
    assert_true(rng_seed_from_system() != rng_seed_from_system());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_values),
        cmocka_unit_test(test_seed_is_spread),
        cmocka_unit_test(test_unit_is_below_one),
        cmocka_unit_test(test_below_reaches_all_and_no_more),
        cmocka_unit_test(test_system_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
