#include "worker/runner/samples.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* An engine that holds one set at a time. */
struct engine {
    struct stats *filled;
    bool complete;
};

int engine_take_stats(struct engine *e, struct stats *into)
{
    int rc = stats_merge(into, e->filled);
    if (rc == 0)
        stats_clear(e->filled, 1);
    return rc;
}

bool engine_stats_complete(const struct engine *e)
{
    return e->complete;
}

static void fill(struct engine *e, const char *name, unsigned count)
{
    uint32_t slot;
    assert_int_equal(stats_slot(e->filled, STR("GET"), str_of(name), &slot), 0);
    for (unsigned i = 0; i < count; i++) {
        const struct stats_sample sample = {1000u * (i + 1), 10, 100.0 + i};
        stats_record(e->filled, slot, &sample);
    }
}

static uint64_t requests(const struct stats *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < stats_entry_count(s); i++)
        sum += stats_entry_at(s, i)->num_requests;
    return sum;
}

static void set_up(struct engine *e, struct samples *s)
{
    *e = (struct engine){.complete = true};
    assert_int_equal(stats_new((struct stats_limits){0}, 1, &e->filled), 0);
    assert_int_equal(samples_init(s, (struct stats_limits){0}, 1), 0);
}

static void tear_down(struct engine *e, struct samples *s)
{
    samples_done(s);
    samples_done(s);
    stats_free(e->filled);
}

static void test_what_was_sent_stays_in_the_run(void **state)
{
    (void)state;
    struct engine e;
    struct samples s;
    set_up(&e, &s);
    fill(&e, "/a", 3);
    assert_int_equal(samples_take(&s, &e, 2), 0);
    assert_int_equal(requests(s.unsent), 3);
    samples_sent(&s, 2);
    fill(&e, "/b", 2);
    assert_int_equal(samples_take(&s, &e, 3), 0);
    assert_int_equal(requests(s.unsent), 2);
    assert_int_equal(requests(s.run), 5);
    samples_begin(&s, 4);
    assert_true(stats_is_empty(s.unsent));
    assert_true(stats_is_empty(s.run));
    tear_down(&e, &s);
}

static void test_what_was_not_sent_goes_with_the_next(void **state)
{
    (void)state;
    struct engine e;
    struct samples s;
    set_up(&e, &s);
    fill(&e, "/a", 3);
    assert_int_equal(samples_take(&s, &e, 2), 0);
    fill(&e, "/a", 4);
    assert_int_equal(samples_take(&s, &e, 3), 0);
    assert_int_equal(requests(s.unsent), 7);
    tear_down(&e, &s);
}

/* Whichever allocation fails, trying again gives every sample to both sets exactly once. */
static void test_failed_allocations_lose_and_double_nothing(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct engine e;
        struct samples s;
        set_up(&e, &s);
        fill(&e, "/a", 50);
        fill(&e, "/b", 7);
        alloc_fail_at(n);
        int rc = samples_take(&s, &e, 2);
        failed = alloc_failed();
        alloc_fail_at(0);
        if (failed) {
            fill(&e, "/b", 3);
            assert_int_equal(samples_take(&s, &e, 3), 0);
        }
        assert_true(failed || rc == 0);
        assert_int_equal(requests(s.unsent), failed ? 60 : 57);
        assert_int_equal(requests(s.run), failed ? 60 : 57);
        tear_down(&e, &s);
    }
}

static void test_making_survives_failed_allocations(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct samples s;
        alloc_fail_at(n);
        int rc = samples_init(&s, (struct stats_limits){0}, 1);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        samples_done(&s);
    }
}

static void test_a_reset_drops_what_the_engine_still_brings(void **state)
{
    (void)state;
    struct engine e;
    struct samples s;
    set_up(&e, &s);
    fill(&e, "/a", 3);
    assert_int_equal(samples_take(&s, &e, 2), 0);
    samples_reset(&s, 3);
    fill(&e, "/a", 4);
    e.complete = false; /* one shard of two */
    assert_int_equal(samples_take(&s, &e, 3), 0);
    fill(&e, "/a", 5);
    e.complete = true;
    assert_int_equal(samples_take(&s, &e, 3), 0);
    assert_true(stats_is_empty(s.unsent));
    assert_true(stats_is_empty(s.run));
    fill(&e, "/a", 6);
    assert_int_equal(samples_take(&s, &e, 4), 0);
    assert_int_equal(requests(s.unsent), 6);
    assert_int_equal(requests(s.run), 6);
    tear_down(&e, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_sent_stays_in_the_run),
        cmocka_unit_test(test_what_was_not_sent_goes_with_the_next),
        cmocka_unit_test(test_failed_allocations_lose_and_double_nothing),
        cmocka_unit_test(test_making_survives_failed_allocations),
        cmocka_unit_test(test_a_reset_drops_what_the_engine_still_brings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
