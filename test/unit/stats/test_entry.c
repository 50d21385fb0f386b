#include "worker/stats/entry.h"

#include "base/num.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct stats_entry *entry(void)
{
    struct stats_entry *e;
    assert_int_equal(stats_entry_new(STR("GET"), STR("/"), 1000, &e), 0);
    return e;
}

static bool record(struct stats_entry *e, uint64_t us, double wall_s)
{
    return stats_entry_record(e, &(struct stats_sample){us, 10, wall_s});
}

static void test_buckets_round_half_to_even(void **state)
{
    (void)state;
    static const struct {
        uint64_t us, ms;
    } cases[] = {
        {0, 0},
        {400, 0},
        {500, 0},
        {501, 1},
        {1499, 1},
        {1500, 2},
        {2500, 2},
        {2501, 3},
        {99499, 99},
        {99500, 100},
        {99999, 100},
        {100000, 100},
        {104999, 100},
        {105000, 100},
        {105001, 110},
        {115000, 120},
        {994999, 990},
        {995000, 1000},
        {999999, 1000},
        {1000000, 1000},
        {1050000, 1000},
        {1050001, 1100},
        {1150000, 1200},
        {9949999, 9900},
        {9950000, 10000},
        {9999999, 10000},
        {10499999, 10000},
        {10500000, 10000},
        {10500001, 11000},
        {11500000, 12000},
        {58760000, 59000},
        {3600500000, 3600000},
        {3601500000, 3602000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(stats_bucket_ms(cases[i].us), cases[i].ms);
}

/* Locust's function on the double that it would be given */
static uint64_t locust_bucket(uint64_t us)
{
    double ms = (double)us / 1000.0;
    int digits = ms < 100 ? 0 : ms < 1000 ? -1 : ms < 10000 ? -2 : -3;
    return (uint64_t)num_round(ms, digits);
}

/* The bucket changes only between two values beside a tie, and there it is as Python's round has
 * it: so it is right everywhere. */
static void test_buckets_are_right_for_every_microsecond(void **state)
{
    (void)state;
    static const struct {
        uint64_t begin_us, end_us, unit_us;
    } ranges[] = {
        {0, 100000, 1000},
        {100000, 1000000, 10000},
        {1000000, 10000000, 100000},
        {10000000, 4000000000, 1000000},
    };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        uint64_t unit = ranges[r].unit_us;
        for (uint64_t tie = ranges[r].begin_us + unit / 2; tie < ranges[r].end_us; tie += unit) {
            for (uint64_t us = tie - 2; us <= tie + 2; us++)
                assert_int_equal(stats_bucket_ms(us), locust_bucket(us));
        }
        for (uint64_t us = ranges[r].begin_us < 2 ? 0 : ranges[r].begin_us - 2;
             us < ranges[r].begin_us + 3; us++)
            assert_int_equal(stats_bucket_ms(us), locust_bucket(us));
    }
    uint64_t last = 0;
    for (uint64_t us = 1; us < 12000000; us++) {
        uint64_t unit = us < 100000     ? 1000
                        : us < 1000000  ? 10000
                        : us < 10000000 ? 100000
                                        : 1000000;
        uint64_t ms = stats_bucket_ms(us), past_tie = (us + unit / 2) % unit;
        if (ms != last && past_tie > 1)
            fail_msg("%lu us: %lu ms", (unsigned long)us, (unsigned long)ms);
        last = ms;
    }
}

static void test_record_counts_as_locust_does(void **state)
{
    (void)state;
    struct stats_entry *e = entry();
    assert_false(stats_entry_used(e));
    assert_true(record(e, 1500, 1000.25));
    assert_true(record(e, 400, 1000.75));
    assert_true(record(e, 12345678, 1002.5));
    assert_true(stats_entry_record_failure(e, 1002.5));
    assert_true(stats_entry_used(e));
    assert_true(e->num_requests == 3);
    assert_true(e->num_failures == 1);
    assert_true(e->total_response_time_us == 12347578);
    assert_true(e->min_response_time_us == 400);
    assert_true(e->max_response_time_us == 12345678);
    assert_true(e->total_content_length_bytes == 30);
    assert_true(e->last_request_s == 1002.5);
    assert_true(e->response_times.count == 3);
    assert_int_equal(e->num_reqs_per_sec.count, 2);
    assert_true(e->num_reqs_per_sec.at[0].second == 1000 && e->num_reqs_per_sec.at[0].count == 2);
    assert_true(e->num_reqs_per_sec.at[1].second == 1002 && e->num_reqs_per_sec.at[1].count == 1);
    assert_int_equal(e->num_fail_per_sec.count, 1);
    static const uint64_t want[] = {0, 2, 12000};
    uint64_t ms, count;
    size_t seen = 0;
    for (uint32_t at = 0; stats_entry_next_bucket(e, &at, &ms, &count); seen++) {
        assert_int_equal(ms, want[seen]);
        assert_int_equal(count, 1);
    }
    assert_int_equal(seen, 3);
    stats_entry_free(e);
    stats_entry_free(NULL);
}

static void test_all_buckets_are_walked_in_order(void **state)
{
    (void)state;
    struct stats_entry *e = entry();
    for (uint64_t us = 20000000; us >= 500; us -= 500)
        assert_true(record(e, us, 1000));
    uint64_t ms, count, last = 0, sum = 0, buckets = 0;
    for (uint32_t at = 0; stats_entry_next_bucket(e, &at, &ms, &count); buckets++) {
        assert_true(buckets == 0 || ms > last);
        last = ms;
        sum += count;
    }
    assert_int_equal(sum, 40000);
    assert_int_equal(buckets, 281 + 10);
    assert_int_equal(last, 20000);
    stats_entry_free(e);
}

static void test_a_clock_that_steps_back_keeps_seconds_ascending(void **state)
{
    (void)state;
    static const double walls[] = {1010, 1011, 1005, 1010.5, 1004, 1011, 1007, 1005};
    static const struct stats_second want[] = {
        {1004, 1}, {1005, 2}, {1007, 1}, {1010, 2}, {1011, 2}};
    struct stats_entry *e = entry();
    for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
        assert_true(record(e, 1, walls[i]));
    assert_int_equal(e->num_reqs_per_sec.count, 5);
    assert_memory_equal(e->num_reqs_per_sec.at, want, sizeof want);
    assert_true(e->last_request_s == 1011);
    stats_entry_free(e);
}

static void test_merge_extends_as_locust_does(void **state)
{
    (void)state;
    struct stats_entry *into = entry(), *from = entry();
    from->start_time_s = 900;
    assert_true(record(into, 2000, 1003));
    assert_true(record(from, 1000, 1001));
    assert_true(record(from, 20000000, 1003));
    from->num_none_requests = 1;
    assert_int_equal(stats_entry_merge(into, from), 0);
    assert_true(into->start_time_s == 900);
    assert_true(into->last_request_s == 1003);
    assert_true(into->num_requests == 3);
    assert_true(into->num_none_requests == 1);
    assert_true(into->min_response_time_us == 1000);
    assert_true(into->max_response_time_us == 20000000);
    assert_int_equal(into->num_reqs_per_sec.count, 2);
    assert_true(into->num_reqs_per_sec.at[1].count == 2);

    struct stats_entry *empty = entry();
    empty->start_time_s = 1100;
    assert_int_equal(stats_entry_merge(into, empty), 0);
    assert_true(into->min_response_time_us == 1000);
    assert_true(into->last_request_s == 1003);
    assert_true(into->start_time_s == 900);
    stats_entry_clear(into, 2000);
    assert_false(stats_entry_used(into));
    assert_int_equal(stats_entry_merge(empty, into), 0);
    assert_true(empty->min_response_time_us == UINT64_MAX);
    assert_true(empty->last_request_s == 0);
    stats_entry_free(empty);
    stats_entry_free(from);
    stats_entry_free(into);
}

static void test_recording_allocates_only_for_what_is_new(void **state)
{
    (void)state;
    struct stats_entry *e = entry();
    assert_true(record(e, 1500, 1000));
    assert_true(record(e, 20000000, 1001));
    alloc_fail_at(0);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(record(e, 1024 + i, 1000 + i % 8));
        assert_true(record(e, 19000000, 1001));
    }
    assert_int_equal(alloc_count(), 0);
    stats_entry_clear(e, 1010);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(record(e, 1024 + i, 1010 + i % 8));
    assert_int_equal(alloc_count(), 0);
    stats_entry_free(e);
}

static void test_without_memory_the_rest_is_counted(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        struct stats_entry *e = entry();
        alloc_fail_at(n);
        bool kept = record(e, 30000000, 1000);
        kept &= stats_entry_record_failure(e, 1000);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(kept == !failed);
        assert_true(e->num_requests == 1);
        assert_true(e->num_failures == 1);
        assert_true(e->total_response_time_us == 30000000);
        assert_true(record(e, 30000000, 1000));
        stats_entry_free(e);
        if (!failed)
            break;
    }
}

/* Entries are made ahead for every request of a plan, in two sets a shard. */
static void test_buckets_alone(void **state)
{
    (void)state;
    static const uint64_t ms[] = {0, 1, 99, 100, 110, 1000, 1100, 9900, 10000, 11000, 4000000};
    static const uint64_t wrong[] = {101, 1010, 10100, UINT64_MAX, UINT64_MAX / 1000};
    struct stats_entry *e = entry();
    uint32_t at = 0;
    uint64_t found, count;
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
        assert_int_equal(stats_entry_add_bucket(e, ms[i], i + 1), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(stats_entry_add_bucket(e, wrong[i], 1), -EINVAL);
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        assert_true(stats_entry_next_bucket(e, &at, &found, &count));
        assert_true(found == ms[i] && count == i + 1);
    }
    assert_false(stats_entry_next_bucket(e, &at, &found, &count));
    stats_entry_free(e);
}

static void test_an_unused_entry_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct stats_entry) <= 448);
    alloc_fail_at(0);
    struct stats_entry *e = entry();
    assert_int_equal(alloc_count(), 1);
    stats_entry_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_round_half_to_even),
        cmocka_unit_test(test_buckets_are_right_for_every_microsecond),
        cmocka_unit_test(test_record_counts_as_locust_does),
        cmocka_unit_test(test_all_buckets_are_walked_in_order),
        cmocka_unit_test(test_a_clock_that_steps_back_keeps_seconds_ascending),
        cmocka_unit_test(test_merge_extends_as_locust_does),
        cmocka_unit_test(test_recording_allocates_only_for_what_is_new),
        cmocka_unit_test(test_without_memory_the_rest_is_counted),
        cmocka_unit_test(test_buckets_alone),
        cmocka_unit_test(test_an_unused_entry_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
