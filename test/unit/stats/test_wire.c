#include "worker/stats/wire.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct stats *set(void)
{
    struct stats *s;
    assert_int_equal(stats_new((struct stats_limits){0, 0}, 1000.5, &s), 0);
    return s;
}

static uint32_t slot(struct stats *s, const char *method, const char *name)
{
    uint32_t ret;
    assert_int_equal(stats_slot(s, str_of(method), str_of(name), &ret), 0);
    return ret;
}

static void record(struct stats *s, uint32_t at, uint64_t us, double wall_s)
{
    stats_record(s, at, &(struct stats_sample){us, 7, wall_s});
}

static void test_an_empty_set_is_a_total_without_measurements(void **state)
{
    (void)state;
    struct stats *s = set();
    (void)slot(s, "GET", "/unused");
    struct stats_wire w;
    assert_int_equal(stats_wire_build(s, &w), 0);
    const struct wire_entry *total = &w.message.total;
    assert_int_equal(w.message.entry_count, 0);
    assert_int_equal(w.message.error_count, 0);
    assert_true(str_eq(total->name, STR("Aggregated")));
    assert_true(total->method.len == 0 && total->method.ptr);
    assert_false(total->min_response_time.known);
    assert_false(total->last_request_timestamp.known);
    assert_true(total->start_time == 1000.5);
    assert_true(total->max_response_time == 0);
    assert_int_equal(total->response_time_count, 0);
    stats_wire_done(&w);
    stats_wire_done(&w);
    stats_free(s);
}

static void test_entries_carry_what_was_counted(void **state)
{
    (void)state;
    struct stats *s = set();
    (void)slot(s, "GET", "/unused");
    uint32_t a = slot(s, "GET", "/a"), failed = slot(s, "PUT", "/failed");
    record(s, a, 400, 1001.25);
    record(s, a, 1500, 1002.5);
    record(s, a, 1600, 1002.75);
    record(s, a, 20400000, 1002.75);
    stats_record_error(s, failed, STR("HTTP 500"), 1002.5);
    stats_record_error(s, failed, STR("HTTP 500"), 1003.5);
    struct stats_wire w;
    assert_int_equal(stats_wire_build(s, &w), 0);
    assert_int_equal(w.message.entry_count, 2);
    const struct wire_entry *e = &w.message.entries[0];
    assert_true(str_eq(e->name, STR("/a")) && str_eq(e->method, STR("GET")));
    assert_true(e->num_requests == 4 && e->num_failures == 0);
    assert_true(e->min_response_time.known && e->min_response_time.value == 0.4);
    assert_true(e->max_response_time == 20400);
    assert_true(e->total_response_time == 20403.5);
    assert_true(e->total_content_length == 28);
    assert_true(e->last_request_timestamp.value == 1002.75);
    assert_int_equal(e->response_time_count, 3);
    assert_true(e->response_times[1].key == 2 && e->response_times[1].count == 2);
    assert_true(e->response_times[2].key == 20000 && e->response_times[2].count == 1);
    assert_int_equal(e->num_reqs_per_sec_count, 2);
    assert_true(e->num_reqs_per_sec[1].second == 1002 && e->num_reqs_per_sec[1].count == 3);
    e = &w.message.entries[1];
    assert_true(e->num_requests == 0 && e->num_failures == 2);
    assert_false(e->min_response_time.known);
    assert_int_equal(e->num_fail_per_sec_count, 2);
    e = &w.message.total;
    assert_true(e->num_requests == 4 && e->num_failures == 2);
    assert_int_equal(e->response_time_count, 3);
    assert_int_equal(e->num_fail_per_sec_count, 2);
    assert_int_equal(w.message.error_count, 1);
    const struct wire_error *error = &w.message.errors[0];
    assert_int_equal(error->key.len, 64);
    assert_true(str_eq(error->error, STR("HTTP 500")) && error->occurrences == 2);
    assert_true(error->first_seen == 1002.5 && error->last_seen == 1003.5);
    stats_wire_done(&w);
    stats_free(s);
}

/* The key does not tell ("a.b", "c") from ("a", "b.c"); a map with the same key twice would lose
 * one of them at the master. */
static void test_errors_of_one_key_are_one_row(void **state)
{
    (void)state;
    struct stats *s = set();
    stats_record_error(s, slot(s, "a.b", "c"), STR("x"), 1002);
    stats_record_error(s, slot(s, "GET", "c"), STR("x"), 1002);
    stats_record_error(s, slot(s, "a", "b.c"), STR("x"), 1001);
    stats_record_error(s, slot(s, "a", "b.c"), STR("x"), 1003);
    struct stats_wire w;
    assert_int_equal(stats_wire_build(s, &w), 0);
    assert_int_equal(w.message.error_count, 2);
    const struct wire_error *error = &w.message.errors[0];
    assert_true(str_eq(error->method, STR("a.b")) && error->occurrences == 3);
    assert_true(error->first_seen == 1001 && error->last_seen == 1003);
    assert_true(str_eq(w.message.errors[1].method, STR("GET")));
    stats_wire_done(&w);
    stats_free(s);
}

static void test_without_memory_nothing_is_built(void **state)
{
    (void)state;
    struct stats *s = set();
    record(s, slot(s, "GET", "/a"), 400, 1001);
    stats_record_error(s, 0, STR("x"), 1001);
    for (unsigned long n = 1;; n++) {
        struct stats_wire w;
        alloc_fail_at(n);
        int rc = stats_wire_build(s, &w);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (failed)
            assert_null(w.memory);
        stats_wire_done(&w);
        if (!failed)
            break;
    }
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_set_is_a_total_without_measurements),
        cmocka_unit_test(test_entries_carry_what_was_counted),
        cmocka_unit_test(test_errors_of_one_key_are_one_row),
        cmocka_unit_test(test_without_memory_nothing_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
