#include "worker/engine/fiber.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct job {
    struct fiber *fiber;
    unsigned steps;
    unsigned done;
    double sum;
};

static void count(void *arg)
{
    struct job *j = arg;
    assert_ptr_equal(fiber_current(), j->fiber);
    for (unsigned i = 0; i < j->steps; i++) {
        j->sum += 0.5 * i;
        j->done++;
        fiber_park(j->fiber);
    }
}

static void test_it_goes_on_behind_each_park(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct job j = {.steps = 3};
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    assert_int_equal(fiber_new(pool, count, &j, &j.fiber), 0);
    assert_null(fiber_current());
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(fiber_resume(j.fiber));
        assert_int_equal(j.done, i);
        assert_null(fiber_current());
    }
    assert_false(fiber_resume(j.fiber));
    assert_true(j.sum == 1.5);
    fiber_free(pool, j.fiber);
    fiber_pool_free(pool);
}

/* Compilers save vectors on the stack with instructions that trap when it is not aligned. */
static void look_at_frame(void *arg)
{
    *(uintptr_t *)arg = (uintptr_t)__builtin_frame_address(0);
}

static void test_its_stack_is_aligned(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct fiber *fiber;
    uintptr_t frame = 1;
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    assert_int_equal(fiber_new(pool, look_at_frame, &frame, &fiber), 0);
    assert_false(fiber_resume(fiber));
    assert_int_equal(frame % 16, 0);
    fiber_free(pool, fiber);
    fiber_pool_free(pool);
}

static int dig(volatile char *above, int depth)
{
    volatile char frame[1024];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = above[0];
    return depth == 0 ? frame[0] : dig(frame, depth - 1) + frame[1];
}

static void dig_deep(void *arg)
{
    volatile char top[] = {1};
    *(int *)arg = dig(top, *(int *)arg);
}

/* Into the last page, but not beyond it. */
static void test_a_stack_without_a_guard_tells_that_it_was_used_up(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct fiber *fiber;
    int depth = 10;
    assert_int_equal(fiber_pool_new(0, &pool), 0);
    assert_int_equal(fiber_new(pool, dig_deep, &depth, &fiber), 0);
    assert_false(fiber_resume(fiber));
    assert_false(fiber_overflowed(fiber));
    fiber_free(pool, fiber);
#ifndef __SANITIZE_ADDRESS__ /* frames are larger by as much as it likes */
#ifndef __SANITIZE_THREAD__
    bool overflowed = false;
    for (depth = 200; depth < 260 && !overflowed; depth++) {
        int deep = depth;
        assert_int_equal(fiber_new(pool, dig_deep, &deep, &fiber), 0);
        assert_false(fiber_resume(fiber));
        overflowed = fiber_overflowed(fiber);
        fiber_free(pool, fiber);
    }
    assert_true(overflowed);
#endif
#endif
    fiber_pool_free(pool);
}

static void test_many_take_turns(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    struct fiber_pool *pool;
    struct job *jobs = calloc(COUNT, sizeof *jobs);
    assert_non_null(jobs);
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    for (int i = 0; i < COUNT; i++) {
        jobs[i].steps = 1 + (unsigned)i % 7;
        assert_int_equal(fiber_new(pool, count, &jobs[i], &jobs[i].fiber), 0);
    }
    for (int turn = 0; turn < 8; turn++)
        for (int i = 0; i < COUNT; i++)
            if (jobs[i].fiber && !fiber_resume(jobs[i].fiber)) {
                fiber_free(pool, jobs[i].fiber);
                jobs[i].fiber = NULL;
            }
    for (int i = 0; i < COUNT; i++) {
        assert_null(jobs[i].fiber);
        assert_int_equal(jobs[i].done, jobs[i].steps);
    }
    fiber_pool_free(pool);
    free(jobs);
}

static void use_stack(void *arg)
{
    struct job *j = arg;
    volatile char block[100000];
    memset((char *)(uintptr_t)block, 7, sizeof block);
    j->done = (unsigned char)block[50000];
    fiber_park(j->fiber);
    j->done += (unsigned char)block[99999];
}

static void test_locals_of_a_hundred_kilobytes_survive(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct job j = {0};
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    assert_int_equal(fiber_new(pool, use_stack, &j, &j.fiber), 0);
    assert_true(fiber_resume(j.fiber));
    assert_false(fiber_overflowed(j.fiber));
    assert_false(fiber_resume(j.fiber));
    assert_int_equal(j.done, 14);
    fiber_free(pool, j.fiber);
    fiber_pool_free(pool);
}

static void test_a_dropped_fiber_gives_its_stack_back(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct job j = {.steps = 5}, k = {.steps = 1};
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    assert_int_equal(fiber_new(pool, count, &j, &j.fiber), 0);
    assert_true(fiber_resume(j.fiber));
    fiber_free(pool, j.fiber);
    assert_int_equal(fiber_new(pool, count, &k, &k.fiber), 0);
    assert_ptr_equal(k.fiber, j.fiber);
    assert_true(fiber_resume(k.fiber));
    assert_false(fiber_resume(k.fiber));
    fiber_free(pool, k.fiber);
    fiber_pool_free(pool);
}

static void test_without_memory_there_is_none(void **state)
{
    (void)state;
    struct fiber_pool *pool;
    struct job j = {0};
    assert_int_equal(fiber_pool_new(FIBER_MAX_GUARDED, &pool), 0);
    alloc_fail_at(1);
    assert_int_equal(fiber_new(pool, count, &j, &j.fiber), -ENOMEM);
    alloc_fail_at(0);
    assert_int_equal(fiber_new(pool, count, &j, &j.fiber), 0);
    fiber_free(pool, j.fiber);
    fiber_pool_free(pool);
}

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    _exit(fiber_is_guard(info->si_addr) ? 42 : 1);
}

static unsigned deeper(volatile char *above, unsigned n)
{
    volatile char block[1024];
    block[0] = (char)n;
    return n == 0 ? (unsigned char)above[0] : deeper(block, n - 1) + (unsigned char)block[0];
}

static void overflow(void *arg)
{
    volatile char top = 1;
    ((struct job *)arg)->done = deeper(&top, 1000000);
}

static void test_an_overflow_hits_the_guard_page(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char alternate[65536];
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        struct fiber_pool *pool;
        struct job j = {0};
        sigaltstack(&stack, NULL);
        sigaction(SIGSEGV, &action, NULL);
        if (fiber_pool_new(FIBER_MAX_GUARDED, &pool) < 0 ||
            fiber_new(pool, overflow, &j, &j.fiber) < 0)
            _exit(2);
        (void)fiber_resume(j.fiber);
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}
#define WITH_OVERFLOW_TEST 1
#endif
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_goes_on_behind_each_park),
        cmocka_unit_test(test_its_stack_is_aligned),
        cmocka_unit_test(test_a_stack_without_a_guard_tells_that_it_was_used_up),
        cmocka_unit_test(test_many_take_turns),
        cmocka_unit_test(test_locals_of_a_hundred_kilobytes_survive),
        cmocka_unit_test(test_a_dropped_fiber_gives_its_stack_back),
        cmocka_unit_test(test_without_memory_there_is_none),
#ifdef WITH_OVERFLOW_TEST
        cmocka_unit_test(test_an_overflow_hits_the_guard_page),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
