#include "worker/engine/dispatch.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_users_spread_evenly(void **state)
{
    (void)state;
    uint32_t counts[3][2] = {{0}};
    const uint32_t targets[] = {4, 3};
    dispatch_spread(&counts[0][0], 3, 2, targets);
    for (int s = 0; s < 3; s++)
        assert_in_range(counts[s][0] + counts[s][1], 2, 3);
    assert_int_equal(counts[0][0] + counts[1][0] + counts[2][0], 4);
    assert_int_equal(counts[0][1] + counts[1][1] + counts[2][1], 3);
}

static void test_one_more_user_moves_nobody(void **state)
{
    (void)state;
    uint32_t counts[4][1] = {{3}, {2}, {3}, {3}};
    const uint32_t targets[] = {12};
    dispatch_spread(&counts[0][0], 4, 1, targets);
    const uint32_t want[] = {3, 3, 3, 3};
    for (int s = 0; s < 4; s++)
        assert_int_equal(counts[s][0], want[s]);
}

static void test_zero_empties_all(void **state)
{
    (void)state;
    uint32_t counts[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const uint32_t targets[] = {0, 0, 0};
    dispatch_spread(&counts[0][0], 2, 3, targets);
    for (int s = 0; s < 2; s++)
        for (int c = 0; c < 3; c++)
            assert_int_equal(counts[s][c], 0);
}

/* Whatever the way, sums are right. */
static void test_random_walk_keeps_sums(void **state)
{
    (void)state;
    enum { SHARDS = 5, CLASSES = 3 };
    uint32_t counts[SHARDS][CLASSES] = {{0}};
    struct rng r;
    rng_init(&r, 7);
    for (int turn = 0; turn < 2000; turn++) {
        uint32_t targets[CLASSES];
        for (int c = 0; c < CLASSES; c++)
            targets[c] = (uint32_t)rng_below(&r, 40);
        dispatch_spread(&counts[0][0], SHARDS, CLASSES, targets);
        for (int c = 0; c < CLASSES; c++) {
            uint32_t sum = 0;
            for (int s = 0; s < SHARDS; s++)
                sum += counts[s][c];
            assert_int_equal(sum, targets[c]);
        }
    }
}

static void test_one_class_stays_level_up_and_down(void **state)
{
    (void)state;
    enum { SHARDS = 5 };
    uint32_t counts[SHARDS][1] = {{0}};
    struct rng r;
    rng_init(&r, 8);
    for (int turn = 0; turn < 2000; turn++) {
        const uint32_t targets[] = {(uint32_t)rng_below(&r, 100)};
        uint32_t least = UINT32_MAX, most = 0;
        dispatch_spread(&counts[0][0], SHARDS, 1, targets);
        for (int s = 0; s < SHARDS; s++) {
            least = counts[s][0] < least ? counts[s][0] : least;
            most = counts[s][0] > most ? counts[s][0] : most;
        }
        assert_true(most - least <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_spread_evenly),
        cmocka_unit_test(test_one_more_user_moves_nobody),
        cmocka_unit_test(test_zero_empties_all),
        cmocka_unit_test(test_random_walk_keeps_sums),
        cmocka_unit_test(test_one_class_stays_level_up_and_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
