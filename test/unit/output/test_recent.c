#include "worker/output/recent.h"

#include "test/unit/alloc.h"
#include "worker/stats/percentile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct stats_entry *entry(void)
{
    struct stats_entry *e;
    assert_int_equal(stats_entry_new(STR("GET"), STR("/"), 1000, &e), 0);
    return e;
}

/* One request a second, as many ms long as the second is late: 0, 1, 2, … */
static void second(struct recent *w, struct stats_entry *e, uint64_t at)
{
    struct stats_sample sample = {(at - 1000) * 1000, 0, (double)at + 0.5};
    assert_true(stats_entry_record(e, &sample));
    assert_int_equal(recent_note(w, e, at + 1), 0);
}

static void assert_recent(const struct recent *w, const struct stats_entry *e, uint64_t at,
                          uint64_t requests, uint64_t least, uint64_t most)
{
    struct stats_entry *recent;
    assert_int_equal(recent_entry(w, e, at, &recent), 0);
    assert_true(recent->num_requests == requests);
    assert_true(stats_entry_percentile_ms(recent, 0) == least);
    assert_true(stats_entry_percentile_ms(recent, 1) == most);
    stats_entry_free(recent);
}

static void test_ten_seconds_of_many(void **state)
{
    (void)state;
    struct recent w = {0};
    struct stats_entry *e = entry();
    for (uint64_t at = 1000; at < 1050; at++)
        second(&w, e, at);
    /* the moment at the end of second 1040 holds 0 to 40 ms */
    assert_recent(&w, e, 1050, 9, 41, 49);
    stats_entry_free(e);
    recent_done(&w);
}

static void test_a_young_entry_has_no_window_at_first(void **state)
{
    (void)state;
    struct recent w = {0};
    struct stats_entry *e = entry();
    second(&w, e, 1000);
    assert_recent(&w, e, 1001, 0, 0, 0); /* its beginning is too near */
    second(&w, e, 1001);
    assert_recent(&w, e, 1002, 1, 1, 1); /* the end of second 1000, where 0 ms was counted */
    second(&w, e, 1002);
    assert_recent(&w, e, 1003, 2, 1, 2);
    stats_entry_free(e);
    recent_done(&w);
}

static void test_a_pause_is_no_moment(void **state)
{
    (void)state;
    struct recent w = {0};
    struct stats_entry *e = entry();
    second(&w, e, 1000);
    second(&w, e, 1001);
    for (uint64_t at = 1003; at <= 1030; at++)
        assert_int_equal(recent_note(&w, e, at), 0);
    assert_recent(&w, e, 1031, 0, 0, 0); /* nothing within 18 seconds */
    second(&w, e, 1040);
    second(&w, e, 1041);
    assert_recent(&w, e, 1042, 1, 41, 41);
    stats_entry_free(e);
    recent_done(&w);
}

static void test_a_reset_begins_anew(void **state)
{
    (void)state;
    struct recent w = {0};
    struct stats_entry *e = entry();
    for (uint64_t at = 1000; at < 1020; at++)
        second(&w, e, at);
    stats_entry_clear(e, 1020);
    second(&w, e, 1020);
    second(&w, e, 1021);
    assert_recent(&w, e, 1022, 1, 21, 21);
    stats_entry_free(e);
    recent_done(&w);
}

static void test_without_memory_a_second_is_missing(void **state)
{
    (void)state;
    struct recent w = {0};
    struct stats_entry *e = entry(), *recent;
    second(&w, e, 1000);
    struct stats_sample sample = {5000, 0, 1001.5};
    assert_true(stats_entry_record(e, &sample));
    alloc_fail_at(1);
    assert_int_equal(recent_note(&w, e, 1002), -ENOMEM);
    alloc_fail_at(1);
    assert_int_equal(recent_entry(&w, e, 1002, &recent), -ENOMEM);
    alloc_fail_at(2);
    assert_int_equal(recent_entry(&w, e, 1002, &recent), -ENOMEM);
    alloc_fail_at(0);
    second(&w, e, 1003);
    assert_recent(&w, e, 1004, 2, 3, 5); /* since the end of second 1000 */
    stats_entry_free(e);
    recent_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_seconds_of_many),
        cmocka_unit_test(test_a_young_entry_has_no_window_at_first),
        cmocka_unit_test(test_a_pause_is_no_moment),
        cmocka_unit_test(test_a_reset_begins_anew),
        cmocka_unit_test(test_without_memory_a_second_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
