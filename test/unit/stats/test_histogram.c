#include "worker/stats/histogram.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LARGEST ((UINT64_C(2048) << 31) - 1)

static uint64_t only_low(const struct histogram *h)
{
    uint32_t position = 0;
    uint64_t low, count, none;
    assert_true(histogram_next(h, &position, &low, &count));
    assert_true(count == 1);
    assert_false(histogram_next(h, &position, &none, &none));
    return low;
}

/* Every value is found again within a thousandth, and below 2048 µs as it is. */
static void test_steps_are_exact_to_a_thousandth(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 42; shift++) {
        for (int64_t off = -2; off <= 2; off++) {
            uint64_t value = (UINT64_C(1) << shift) + (uint64_t)off;
            if (value > LARGEST)
                continue;
            struct histogram h = {0};
            uint64_t middle;
            assert_int_equal(histogram_add(&h, value, 1), 0);
            uint64_t low = only_low(&h);
            assert_true(low <= value && value - low <= value / 1000);
            assert_true(histogram_percentile(&h, 0.5, &middle));
            uint64_t error = middle > value ? middle - value : value - middle;
            assert_true(value < 2048 ? error == 0 : error <= value / 1000);
            histogram_done(&h);
        }
    }
}

static void test_what_is_too_large_counts_in_the_last_step(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_int_equal(histogram_add(&h, UINT64_MAX, 1), 0);
    assert_int_equal(histogram_add(&h, LARGEST, 1), 0);
    uint32_t position = 0;
    uint64_t low, count;
    assert_true(histogram_next(&h, &position, &low, &count));
    assert_true(low == UINT64_C(2047) << 31);
    assert_true(count == 2);
    histogram_done(&h);
}

/* v[min(int(n * q), n - 1)] of 10, 20, …, 100 */
static void test_percentile_is_the_nearest_rank(void **state)
{
    (void)state;
    static const struct {
        double q;
        uint64_t want;
    } cases[] = {{0, 10}, {0.05, 10}, {0.1, 20}, {0.5, 60}, {0.95, 100}, {0.89, 90}, {1, 100}};
    struct histogram h = {0};
    uint64_t got;
    assert_false(histogram_percentile(&h, 0.5, &got));
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(histogram_add(&h, i * 10, 1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(histogram_percentile(&h, cases[i].q, &got));
        assert_int_equal(got, cases[i].want);
    }
    histogram_done(&h);
}

static void test_walk_ascends_over_octaves(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 1023, 1024, 2047, 2048, 4096, 1000000, 60000000};
    static const uint64_t lows[] = {0, 1, 1023, 1024, 2047, 2048, 4096, 999936, 59998208};
    size_t n = sizeof values / sizeof *values, seen = 0;
    struct histogram h = {0};
    for (size_t i = n; i-- > 0;)
        assert_int_equal(histogram_add(&h, values[i], i + 1), 0);
    uint64_t low, count;
    for (uint32_t position = 0; histogram_next(&h, &position, &low, &count); seen++) {
        assert_true(low == lows[seen]);
        assert_true(count == seen + 1);
    }
    assert_int_equal(seen, n);
    assert_true(h.count == n * (n + 1) / 2);
    histogram_done(&h);
}

static void test_memory_is_taken_by_octave_and_kept_by_clear(void **state)
{
    (void)state;
    struct histogram h = {0};
    alloc_fail_at(0);
    for (uint64_t v = 0; v < 1024; v++)
        assert_int_equal(histogram_add(&h, v, 1), 0);
    assert_int_equal(alloc_count(), 1);
    assert_int_equal(histogram_add(&h, 5000, 1), 0);
    assert_int_equal(alloc_count(), 2);
    histogram_clear(&h);
    assert_true(h.count == 0);
    uint32_t position = 0;
    uint64_t low, count;
    assert_false(histogram_next(&h, &position, &low, &count));
    assert_int_equal(histogram_add(&h, 5000, 1), 0);
    assert_int_equal(alloc_count(), 2);
    histogram_done(&h);
    histogram_done(&h);
}

static void test_merge_adds_or_changes_nothing(void **state)
{
    (void)state;
    struct histogram from = {0};
    for (uint64_t v = 1; v < 100000000; v *= 3)
        assert_int_equal(histogram_add(&from, v, 2), 0);
    for (unsigned long n = 1;; n++) {
        struct histogram into = {0};
        assert_int_equal(histogram_add(&into, 7, 1), 0);
        alloc_fail_at(n);
        int rc = histogram_merge(&into, &from);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        assert_true(into.count == (failed ? 1 : from.count + 1));
        if (failed)
            assert_true(only_low(&into) == 7);
        histogram_done(&into);
        if (!failed)
            break;
    }
    alloc_fail_at(1);
    struct histogram h = {0};
    assert_int_equal(histogram_add(&h, 1, 1), -ENOMEM);
    assert_true(h.count == 0);
    alloc_fail_at(0);
    histogram_done(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_exact_to_a_thousandth),
        cmocka_unit_test(test_what_is_too_large_counts_in_the_last_step),
        cmocka_unit_test(test_percentile_is_the_nearest_rank),
        cmocka_unit_test(test_walk_ascends_over_octaves),
        cmocka_unit_test(test_memory_is_taken_by_octave_and_kept_by_clear),
        cmocka_unit_test(test_merge_adds_or_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
