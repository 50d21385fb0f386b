#include "worker/cli/calibrate_text.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEXT_BYTES 4096

static struct capacity_window windows[] = {
    {.users = 64,
     .running = 64,
     .seconds = 2,
     .requests = 128,
     .cpu_pct = 3.2,
     .loop_lag_ms = 0.25},
    {.users = 25600, .running = 25600, .seconds = 2, .requests = 25600, .cpu_pct = 84.4},
};

static struct calibration make(enum capacity_limit limit)
{
    return (struct calibration){
        .search = {.limit = limit,
                   .under = windows[0],
                   .over = windows[1],
                   .grown = windows[0],
                   .over_limit = limit,
                   .options = {.unit = 2,
                               .users_max = 100000,
                               .waits = true,
                               .cpu_limit_pct = 80,
                               .lag_limit_ms = 5}},
        .windows = windows,
        .window_count = 2,
        .threads = 2,
        .step_s = 3,
        .max_s = 60,
        .failure = "GET /: connection refused",
    };
}

static void check_answer(const struct calibration *c, const struct calibrate_wish *wish,
                         const char *expected)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES);
    assert_int_equal(calibrate_text_answer(c, wish, &out), 0);
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void test_the_worker_is_the_limit(void **state)
{
    (void)state;
    const struct calibrate_wish wish = {.users = measure_of(50000), .rate = measure_of(64)};
    struct calibration c = make(CAPACITY_CPU);
    c.search.under.users = 12800;
    c.search.under.running = 12800;
    c.search.under.requests = 12801;
    c.search.has_under = c.search.has_over = true;
    check_answer(&c, &wish,
                 "One worker of 2 threads sustains 12,800 users (6,400 requests a second) with at "
                 "most 80 % CPU and 5 ms lag.\n"
                 "Limit: this worker: its busiest thread uses 84 % of a core with 25,600 users.\n"
                 "For 50,000 users: 4 workers of 2 threads (8 cores).\n"
                 "For 64 requests a second: 1 worker of 2 threads (2 cores).\n");
}

static void test_the_target_is_the_limit(void **state)
{
    (void)state;
    struct capacity_window all[] = {windows[0], windows[0]};
    const struct calibrate_wish wish = {.users = measure_of(1000)};
    struct calibration c = make(CAPACITY_TARGET);
    all[0].p50_ms = measure_of(0.42);
    all[1] = (struct capacity_window){.users = 128, .seconds = 2, .requests = 131, .cpu_pct = 3};
    all[1].p50_ms = measure_of(1510);
    c.windows = all;
    c.search.grown = all[0];
    c.search.under = all[1];
    c.search.has_under = true;
    c.search.stalls = 2;
    check_answer(
        &c, &wish,
        "One worker of 2 threads sustains at least 64 users (64 requests a second) with at "
        "most 80 % CPU and 5 ms lag.\n"
        "Limit: the target: with 128 users instead of 64 it answers 65.5 requests a second "
        "instead of 64, in 1.5 s instead of 0.42 ms, while this worker uses 3.0 % of a core. "
        "The worker could do more.\n"
        "For 1,000 users: at most 16 workers of 2 threads (32 cores).\n");
}

static void test_nothing_was_measured(void **state)
{
    (void)state;
    const struct calibrate_wish wish = {.users = measure_of(1000)};
    struct capacity_window failed = {.users = 1, .seconds = 2, .requests = 4, .failures = 3};
    struct calibration c = make(CAPACITY_FAILURES);
    c.windows = &failed;
    c.window_count = 1;
    check_answer(&c, &wish,
                 "One worker of 2 threads was not measured within its limits.\n"
                 "Limit: the target: 75 % of the requests failed with 1 user (GET /: connection "
                 "refused).\n"
                 "For 1,000 users: not known.\n");
}

static void test_each_limit_is_explained(void **state)
{
    (void)state;
    for (int limit = CAPACITY_CPU; limit <= CAPACITY_SCENARIO; limit++) {
        const struct calibration c = make((enum capacity_limit)limit);
        struct buf out;
        buf_init(&out, TEXT_BYTES);
        assert_int_equal(calibrate_text_why(&c, &out), 0);
        assert_true(out.len > 0 && out.ptr[out.len - 1] != '.');
        buf_done(&out);
    }
}

static void check_row(const struct capacity_window *w, enum capacity_limit over,
                      const char *expected)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES);
    assert_int_equal(calibrate_text_row(w, over, &out), 0);
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void test_rows(void **state)
{
    (void)state;
    struct capacity_window w = windows[0];
    check_row(&w, CAPACITY_NONE,
              "        64           64    3.2 %   0.25 ms          -          -      0 %\n");
    w.users = 1234567;
    w.requests = 3;
    w.failures = 1;
    w.p50_ms = measure_of(12.34);
    w.p95_ms = measure_of(1000);
    check_row(&w, CAPACITY_FAILURES,
              " 1,234,567          1.5    3.2 %   0.25 ms    12.3 ms      1.0 s     33 %  too many "
              "failures\n");
    w.requests = w.failures = 0;
    w.p50_ms = w.p95_ms = MEASURE_UNKNOWN;
    check_row(&w, CAPACITY_NONE,
              " 1,234,567            0    3.2 %   0.25 ms          -          -        -\n");
}

static void test_json_of_nothing_is_null(void **state)
{
    (void)state;
    const struct calibrate_wish wish = {.rate = measure_of(10)};
    struct calibration c = make(CAPACITY_SIGNAL);
    c.window_count = 0;
    json_t *all = calibrate_json(&c, &wish);
    const char *why, *by;
    json_t *sustained_users, *rate, *for_users, *workers, *threads;
    assert_non_null(all);
    assert_int_equal(json_unpack(all, "{s:s, s:s, s:{s:o, s:o}, s:o, s:{s:o, s:o}}", "limited_by",
                                 &by, "why", &why, "sustained", "users", &sustained_users,
                                 "requests_per_s", &rate, "for_users", &for_users,
                                 "for_requests_per_s", "workers", &workers, "threads", &threads),
                     0);
    assert_string_equal(by, "signal");
    assert_true(json_is_null(sustained_users) && json_is_null(rate) && json_is_null(for_users));
    assert_true(json_is_null(workers) && json_is_null(threads));
    assert_int_equal(json_array_size(json_object_get(all, "steps")), 0);
    json_decref(all);
}

static void test_out_of_memory_travels_up(void **state)
{
    (void)state;
    const struct calibrate_wish wish = {.users = measure_of(50000)};
    const struct calibration c = make(CAPACITY_CPU);
    int rc = -ENOMEM;
    for (unsigned long n = 1; rc != 0; n++) {
        struct buf out;
        buf_init(&out, TEXT_BYTES);
        alloc_fail_at(n);
        rc = calibrate_text_answer(&c, &wish, &out);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(rc == 0 ? !failed : rc == -ENOMEM && failed);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worker_is_the_limit),
        cmocka_unit_test(test_the_target_is_the_limit),
        cmocka_unit_test(test_nothing_was_measured),
        cmocka_unit_test(test_each_limit_is_explained),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_json_of_nothing_is_null),
        cmocka_unit_test(test_out_of_memory_travels_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
