#include "worker/engine/run.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    int wake_fd;
    struct cicada_run *run;
};

static void open_run(struct fixture *f)
{
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->run = run_new(f->wake_fd);
    assert_non_null(f->run);
}

static void close_run(struct fixture *f)
{
    run_free(f->run);
    (void)close(f->wake_fd);
}

static bool rang(const struct fixture *f)
{
    uint64_t count;
    return read(f->wake_fd, &count, sizeof count) == sizeof count;
}

static void expect_option(struct fixture *f, const char *name, const char *value)
{
    char *found = run_option(f->run, name);
    if (value)
        assert_string_equal(found, value);
    else
        assert_null(found);
    free(found);
}

static void test_values_are_set_changed_and_taken_back(void **state)
{
    (void)state;
    struct fixture f;
    open_run(&f);
    expect_option(&f, "a", NULL);
    assert_int_equal(run_set_option(f.run, STR("a"), STR("1")), 0);
    assert_int_equal(run_set_option(f.run, STR("ab"), STR("2")), 0);
    expect_option(&f, "a", "1");
    expect_option(&f, "ab", "2");
    assert_int_equal(run_set_option(f.run, STR("a"), STR("3")), 0);
    expect_option(&f, "a", "3");
    assert_int_equal(run_set_option(f.run, STR("a"), (struct str){NULL, 0}), 0);
    assert_int_equal(run_set_option(f.run, STR("never"), (struct str){NULL, 0}), 0);
    expect_option(&f, "a", NULL);
    assert_int_equal(run_worker_index(f.run), -1);
    run_set_worker_index(f.run, 3);
    assert_int_equal(run_worker_index(f.run), 3);
    close_run(&f);
}

static void test_what_is_sent_comes_out_in_order_and_wakes(void **state)
{
    (void)state;
    struct fixture f;
    open_run(&f);
    assert_null(run_take(f.run));
    assert_false(rang(&f));
    assert_int_equal(run_send(f.run, RUN_OUT_MESSAGE, STR("hello"), json_integer(1)), 0);
    assert_true(rang(&f));
    assert_int_equal(run_send(f.run, RUN_OUT_EXCEPTION, STR("oh"), NULL), 0);
    struct run_outgoing *first = run_take(f.run), *second = run_take(f.run);
    assert_int_equal(first->kind, RUN_OUT_MESSAGE);
    assert_string_equal(first->text, "hello");
    assert_int_equal(json_integer_value(first->data), 1);
    assert_int_equal(second->kind, RUN_OUT_EXCEPTION);
    assert_string_equal(second->text, "oh");
    assert_null(run_take(f.run));
    run_outgoing_free(first);
    run_outgoing_free(second);
    assert_int_equal(run_send(f.run, RUN_OUT_MESSAGE, STR("left behind"), json_null()), 0);
    close_run(&f);
}

static void test_no_more_than_a_thousand_wait(void **state)
{
    (void)state;
    struct fixture f;
    open_run(&f);
    for (int i = 0; i < RUN_MAX_OUTGOING; i++)
        assert_int_equal(run_send(f.run, RUN_OUT_MESSAGE, STR("m"), NULL), 0);
    assert_int_equal(run_send(f.run, RUN_OUT_MESSAGE, STR("m"), json_array()), -EAGAIN);
    run_outgoing_free(run_take(f.run));
    assert_int_equal(run_send(f.run, RUN_OUT_MESSAGE, STR("m"), NULL), 0);
    close_run(&f);
}

static void test_the_wish_to_stop_is_taken_once(void **state)
{
    (void)state;
    struct fixture f;
    open_run(&f);
    assert_false(run_take_stop(f.run));
    run_stop(f.run);
    assert_true(rang(&f));
    assert_true(run_take_stop(f.run));
    assert_false(run_take_stop(f.run));
    close_run(&f);
}

static void test_failing_allocations_change_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_run(&f);
    int rc = -ENOMEM;
    for (unsigned n = 1; rc == -ENOMEM; n++) {
        alloc_fail_at(n);
        rc = run_set_option(f.run, STR("a"), STR("1"));
        alloc_fail_at(0);
        if (rc == -ENOMEM)
            expect_option(&f, "a", NULL);
    }
    assert_int_equal(rc, 0);
    json_t *data = json_integer(1);
    alloc_fail_at(1);
    rc = run_send(f.run, RUN_OUT_MESSAGE, STR("m"), data);
    alloc_fail_at(0);
    assert_int_equal(rc, -ENOMEM);
    assert_null(run_take(f.run));
    close_run(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_set_changed_and_taken_back),
        cmocka_unit_test(test_what_is_sent_comes_out_in_order_and_wakes),
        cmocka_unit_test(test_no_more_than_a_thousand_wait),
        cmocka_unit_test(test_the_wish_to_stop_is_taken_once),
        cmocka_unit_test(test_failing_allocations_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
