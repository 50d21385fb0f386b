#include "test/unit/alloc.h"
#include "worker/engine/feeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* One feed of so many rows. */
struct fixture {
    struct plan_feed feed;
    struct plan plan;
    struct feeds *feeds;
    struct rng rng;
};

static void begin(struct fixture *f, struct plan_feed feed)
{
    *f = (struct fixture){.feed = feed};
    f->plan = (struct plan){.feeds = &f->feed, .feed_count = 1};
    rng_init(&f->rng, 1);
    assert_int_equal(feeds_new(&f->plan, &f->feeds), 0);
}

static uint32_t take(struct fixture *f, uint32_t worker)
{
    return feeds_take(f->feeds, 0, worker, &f->rng);
}

static void test_rows_come_in_order_and_begin_anew(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, (struct plan_feed){.row_count = 3, .workers = 1});
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(take(&f, 0), i % 3);
    feeds_rewind(f.feeds);
    assert_int_equal(take(&f, 7), 0);
    feeds_free(f.feeds);
}

static void test_rows_end(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, (struct plan_feed){.row_count = 2, .workers = 1, .stop_at_end = true});
    assert_int_equal(take(&f, 0), 0);
    assert_int_equal(take(&f, 0), 1);
    assert_int_equal(take(&f, 0), FEEDS_NO_ROW);
    assert_int_equal(take(&f, 0), FEEDS_NO_ROW);
    feeds_rewind(f.feeds);
    assert_int_equal(take(&f, 0), 0);
    feeds_free(f.feeds);
}

/* 7 rows over 3 workers: each row is one worker's, and all are somebody's. */
static void test_rows_are_dealt_out_to_workers(void **state)
{
    static const uint32_t wanted[3][3] = {{0, 3, 6}, {1, 4, FEEDS_NO_ROW}, {2, 5, FEEDS_NO_ROW}};
    (void)state;
    for (uint32_t worker = 0; worker < 3; worker++) {
        struct fixture f;
        begin(&f, (struct plan_feed){.row_count = 7, .workers = 3, .stop_at_end = true});
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(take(&f, worker), wanted[worker][i]);
        assert_int_equal(take(&f, worker), FEEDS_NO_ROW);
        feeds_free(f.feeds);
    }
}

static void test_random_rows_are_the_workers_own(void **state)
{
    struct fixture f;
    unsigned seen[9] = {0};
    (void)state;
    begin(&f, (struct plan_feed){.order = PLAN_FEED_RANDOM, .row_count = 9, .workers = 3});
    for (unsigned i = 0; i < 300; i++)
        seen[take(&f, 4)]++; /* of three workers, the second */
    for (uint32_t row = 0; row < 9; row++)
        assert_int_equal(seen[row] > 50, row % 3 == 1);
    feeds_free(f.feeds);
}

static void test_unique_rows_come_back(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, (struct plan_feed){
                  .order = PLAN_FEED_UNIQUE, .row_count = 2, .workers = 1, .stop_at_end = true});
    assert_int_equal(take(&f, 0), 0);
    assert_int_equal(take(&f, 0), 1);
    assert_int_equal(take(&f, 0), FEEDS_NO_ROW);
    feeds_give_back(f.feeds, 0, FEEDS_NO_ROW);
    assert_int_equal(take(&f, 0), FEEDS_NO_ROW);
    feeds_give_back(f.feeds, 0, 0);
    assert_int_equal(take(&f, 0), 0);
    assert_int_equal(take(&f, 0), FEEDS_NO_ROW);
    feeds_free(f.feeds);
}

static void test_out_of_memory(void **state)
{
    struct fixture f = {.feed = {.order = PLAN_FEED_UNIQUE, .row_count = 2, .workers = 1}};
    (void)state;
    f.plan = (struct plan){.feeds = &f.feed, .feed_count = 1};
    for (unsigned long n = 1; n <= 2; n++) {
        alloc_fail_at(n);
        assert_int_equal(feeds_new(&f.plan, &f.feeds), -ENOMEM);
    }
    alloc_fail_at(0);
    f.plan.feed_count = 0;
    assert_int_equal(feeds_new(&f.plan, &f.feeds), 0);
    assert_null(f.feeds);
    feeds_rewind(NULL);
    feeds_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_in_order_and_begin_anew),
        cmocka_unit_test(test_rows_end),
        cmocka_unit_test(test_rows_are_dealt_out_to_workers),
        cmocka_unit_test(test_random_rows_are_the_workers_own),
        cmocka_unit_test(test_unique_rows_come_back),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
