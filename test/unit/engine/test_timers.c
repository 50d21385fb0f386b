#include "worker/engine/timers.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define TICK ((uint64_t)1 << TIMERS_TICK_SHIFT)

struct item {
    struct timer timer;
    uint64_t fired_at;
    unsigned fired;
};

static uint64_t last_fired_due;

static void fire(struct timer *t, void *context, uint64_t now_us)
{
    struct item *item = (struct item *)t;
    (void)context;
    assert_true(now_us >= t->due_us);
    item->fired_at = now_us;
    item->fired++;
    last_fired_due = t->due_us;
}

static void fire_again(struct timer *t, void *context, uint64_t now_us)
{
    struct item *item = (struct item *)t;
    item->fired++;
    timers_set(context, t, now_us); /* already past: must wait for the next run */
}

/* Walk from wake-up to wake-up as a loop would; returns the time when all have fired. */
static uint64_t run_until_empty(struct timers *w, uint64_t now, unsigned *ret_wakes)
{
    unsigned wakes = 0;
    while (w->count > 0) {
        uint64_t next = timers_next_us(w);
        assert_true(next != UINT64_MAX);
        if (next > now)
            now = next;
        timers_run(w, now, w);
        assert_true(++wakes < 100000);
    }
    *ret_wakes = wakes;
    return now;
}

static void test_one_timer_fires_within_a_tick_and_never_early(void **state)
{
    (void)state;
    static const uint64_t delays[] = {
        0,          1,          TICK - 1,     TICK,         255 * TICK,
        256 * TICK, 257 * TICK, 65535 * TICK, 65536 * TICK, 65537 * TICK,
        5000000,    3600000000, 86400000000};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        for (uint64_t start = 0; start < 3 * 256 * TICK; start += 256 * TICK - 777) {
            struct timers *w = malloc(sizeof *w);
            struct item item = {.timer.fire = fire};
            unsigned wakes;
            assert_non_null(w);
            timers_init(w, start);
            timers_set(w, &item.timer, start + delays[i]);
            (void)run_until_empty(w, start, &wakes);
            assert_int_equal(item.fired, 1);
            assert_true(item.fired_at >= start + delays[i]);
            assert_true(item.fired_at <= start + delays[i] + 2 * TICK);
            assert_true(wakes <= 8);
            free(w);
        }
    }
}

static void test_cancelled_timer_does_not_fire(void **state)
{
    (void)state;
    struct timers *w = malloc(sizeof *w);
    struct item a = {.timer.fire = fire}, b = {.timer.fire = fire};
    assert_non_null(w);
    timers_init(w, 1000);
    timers_set(w, &a.timer, 500000);
    timers_set(w, &b.timer, 500000);
    timers_cancel(w, &a.timer);
    timers_cancel(w, &a.timer);
    assert_false(timer_is_set(&a.timer));
    assert_int_equal(w->count, 1);
    timers_run(w, 1000000, w);
    assert_int_equal(a.fired, 0);
    assert_int_equal(b.fired, 1);
    assert_true(timers_next_us(w) == UINT64_MAX);
    free(w);
}

static void test_moved_timer_fires_once_at_its_new_time(void **state)
{
    (void)state;
    struct timers *w = malloc(sizeof *w);
    struct item a = {.timer.fire = fire};
    assert_non_null(w);
    timers_init(w, 0);
    timers_set(w, &a.timer, 10000);
    timers_set(w, &a.timer, 90000000);
    timers_run(w, 50000000, w);
    assert_int_equal(a.fired, 0);
    timers_run(w, 91000000, w);
    assert_int_equal(a.fired, 1);
    free(w);
}

static void test_timer_set_to_the_past_in_its_callback_waits_for_the_next_run(void **state)
{
    (void)state;
    struct timers *w = malloc(sizeof *w);
    struct item a = {.timer.fire = fire_again};
    assert_non_null(w);
    timers_init(w, 0);
    timers_set(w, &a.timer, 5000);
    timers_run(w, 20000000, w); /* many ticks late: a timer reset to "now" lands on the last tick */
    unsigned first = a.fired;
    assert_true(first >= 1 && first <= 2);
    timers_run(w, 20000000 + 2 * TICK, w);
    assert_true(a.fired > first);
    free(w);
}

static void test_many_random_timers_fire_in_order_of_ticks(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct timers *w = malloc(sizeof *w);
    struct item *items = calloc(COUNT, sizeof *items);
    struct rng r;
    uint64_t now = 123456789;
    assert_non_null(w);
    assert_non_null(items);
    rng_init(&r, 42);
    timers_init(w, now);
    for (int i = 0; i < COUNT; i++) {
        items[i].timer.fire = fire;
        timers_set(w, &items[i].timer, now + rng_below(&r, i % 3 ? 2000000 : 200000000));
    }
    for (int i = 0; i < COUNT; i += 7)
        timers_cancel(w, &items[i].timer);
    uint64_t highest = 0;
    while (w->count > 0) {
        uint64_t next = timers_next_us(w);
        now = (next > now ? next : now) + rng_below(&r, 5000);
        timers_run(w, now, w);
        if (last_fired_due)
            assert_true(last_fired_due + 2 * TICK >= highest);
        highest = last_fired_due > highest ? last_fired_due : highest;
        assert_true(timers_next_us(w) > now - TICK);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(items[i].fired, i % 7 ? 1 : 0);
    free(items);
    free(w);
}

static void test_a_flood_is_fired_in_portions(void **state)
{
    (void)state;
    enum { COUNT = 3 * TIMERS_A_RUN + 5 };
    struct timers *w = malloc(sizeof *w);
    struct item *items = calloc(COUNT, sizeof *items);
    assert_non_null(w);
    assert_non_null(items);
    timers_init(w, 0);
    for (int i = 0; i < COUNT; i++) {
        items[i].timer.fire = fire;
        timers_set(w, &items[i].timer, 250 * TICK + (uint64_t)(i % 3) * 3 * TICK);
    }
    for (int run = 1; run <= 4; run++) {
        assert_true(timers_next_us(w) <= 1000 * TICK);
        timers_run(w, 1000 * TICK, w);
        assert_int_equal(w->count, run < 4 ? COUNT - run * TIMERS_A_RUN : 0);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(items[i].fired, 1);
    free(items);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_timer_fires_within_a_tick_and_never_early),
        cmocka_unit_test(test_cancelled_timer_does_not_fire),
        cmocka_unit_test(test_moved_timer_fires_once_at_its_new_time),
        cmocka_unit_test(test_timer_set_to_the_past_in_its_callback_waits_for_the_next_run),
        cmocka_unit_test(test_a_flood_is_fired_in_portions),
        cmocka_unit_test(test_many_random_timers_fire_in_order_of_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
