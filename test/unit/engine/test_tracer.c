/* Which requests are traced, and what bounds them; nothing is sent. */
#include "test/unit/alloc.h"
#include "worker/engine/tracer.h"
#include "worker/engine/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct shard shard;
static struct user user;
static const struct http_call plain = {.method = STR("GET"), .url = STR("http://h/")};

static struct tracer *begin(double ratio, uint64_t rows)
{
    shard = (struct shard){.tracer = tracer_new(ratio)};
    user = (struct user){.shard = &shard, .request_start_us = 1000, .request_sent_us = 3000};
    assert_non_null(shard.tracer);
    tracer_begin_run(shard.tracer, rows);
    return shard.tracer;
}

static bool send(const struct http_call *call)
{
    const struct http_call *sent = tracer_send(shard.tracer, &user, call);
    assert_true((sent != call) == (sent->added.len > 0));
    return user.trace != NULL;
}

static void test_a_traced_call_is_a_copy_with_a_header(void **state)
{
    (void)state;
    struct tracer *t = begin(1, 10);
    const struct http_call *sent = tracer_send(t, &user, &plain);
    assert_ptr_not_equal(sent, &plain);
    assert_true(sent->once);
    assert_true(str_eq(sent->url, plain.url));
    assert_true(str_starts(sent->added, STR("traceparent: 00-")));
    assert_int_equal(plain.added.len, 0);
    tracer_record(&user, STR("/"), STR(""), 5500);
    assert_null(user.trace);
    assert_non_null(strstr(buf_c(&t->rows), "\t/\t4.500\tscheduled_start\t"));
    tracer_free(t);
}

static void test_the_share(void **state)
{
    (void)state;
    struct tracer *t = begin(0.1, 100000);
    unsigned traced = 0;
    rng_init(&t->rng, 7);
    for (int i = 0; i < 10000; i++)
        traced += send(&plain);
    assert_in_range(traced, 850, 1150); /* a fixed seed: five sigma */
    tracer_forget(&user);
    tracer_free(t);
}

static void test_a_header_of_the_scenario_stays(void **state)
{
    (void)state;
    struct plan_header headers[] = {
        {STR("TraceParent"), STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}};
    const struct http_call call = {.url = STR("http://h/"), .headers = headers, .header_count = 1};
    struct tracer *t = begin(1, 10);
    assert_ptr_equal(tracer_send(t, &user, &call), &call);
    tracer_record(&user, STR("/"), STR(""), 5500);
    assert_non_null(strstr(buf_c(&t->rows), "\t4bf92f3577b34da6a3ce929d0e0e4736\t\n"));
    headers[0].value = STR("none of your business");
    assert_ptr_equal(tracer_send(t, &user, &call), &call);
    assert_null(user.trace);
    assert_int_equal(t->left_out, 0);
    tracer_free(t);
}

static void test_a_run_has_so_many_rows(void **state)
{
    (void)state;
    struct tracer *t = begin(1, 2);
    assert_true(send(&plain));
    assert_true(send(&plain)); /* what became of the one before is forgotten */
    assert_false(send(&plain));
    assert_int_equal(t->left_out, 1);
    tracer_begin_run(t, 0);
    assert_false(send(&plain));
    assert_int_equal(t->left_out, 1); /* nothing was to be traced */
    tracer_begin_run(t, 1);
    assert_true(send(&plain));
    tracer_forget(&user);
    tracer_free(t);
}

static void test_rows_that_nobody_takes_are_bounded(void **state)
{
    (void)state;
    struct tracer *t = begin(1, UINT64_MAX);
    static char name[1000];
    memset(name, 'n', sizeof name);
    while (t->left_out == 0) {
        if (send(&plain))
            tracer_record(&user, (struct str){name, sizeof name}, STR(""), 5500);
    }
    assert_in_range(t->rows.len, TRACER_FULL_BYTES, TRACER_FULL_BYTES + 2 * sizeof name);
    buf_clear(&t->rows);
    assert_true(send(&plain));
    tracer_forget(&user);
    tracer_free(t);
}

static void test_without_memory_nothing_is_traced(void **state)
{
    (void)state;
    alloc_fail_at(1);
    assert_null(tracer_new(1));
    alloc_fail_at(0);
    struct tracer *t = begin(1, 10);
    alloc_fail_at(1);
    assert_false(send(&plain));
    alloc_fail_at(0);
    assert_int_equal(t->left_out, 1);
    assert_true(send(&plain));
    alloc_fail_at(1);
    tracer_record(&user, STR("/"), STR(""), 5500); /* the row is lost */
    alloc_fail_at(0);
    assert_int_equal(t->left_out, 2);
    assert_null(user.trace);
    tracer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_traced_call_is_a_copy_with_a_header),
        cmocka_unit_test(test_the_share),
        cmocka_unit_test(test_a_header_of_the_scenario_stays),
        cmocka_unit_test(test_a_run_has_so_many_rows),
        cmocka_unit_test(test_rows_that_nobody_takes_are_bounded),
        cmocka_unit_test(test_without_memory_nothing_is_traced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
