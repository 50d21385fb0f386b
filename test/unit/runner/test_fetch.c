#include "worker/runner/fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S        1000000u
#define SCENARIO "# --- cicada scenario begin\n"

static void test_asked_once_over_each_connection(void **state)
{
    (void)state;
    struct fetch_clock c;
    fetch_clock_init(&c, 0, 7);
    assert_int_equal(fetch_clock_step(&c, false, 7), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, true, 8), FETCH_ASK);
    assert_int_equal(fetch_clock_step(&c, true, 9), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, false, 10), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, true, 11), FETCH_ASK);
    assert_int_equal(fetch_clock_step(&c, true, 12), FETCH_WAIT);
}

static void test_complains_now_and_then(void **state)
{
    (void)state;
    struct fetch_clock c;
    fetch_clock_init(&c, 0, 0);
    assert_int_equal(fetch_clock_step(&c, false, S - 1), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, false, S), FETCH_COMPLAIN);
    assert_int_equal(fetch_clock_step(&c, false, S + 1), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, false, 31 * S - 1), FETCH_WAIT);
    assert_int_equal(fetch_clock_step(&c, false, 31 * S), FETCH_COMPLAIN);
    assert_int_equal(fetch_clock_step(&c, false, 100000ull * S), FETCH_COMPLAIN); /* no end */
}

static void test_gives_up_without_a_master(void **state)
{
    (void)state;
    struct fetch_clock c;
    fetch_clock_init(&c, 1.5, S);
    assert_int_equal(fetch_clock_step(&c, false, 2 * S + S / 2 - 1), FETCH_COMPLAIN);
    assert_int_equal(fetch_clock_step(&c, false, 2 * S + S / 2), FETCH_GIVE_UP);
    assert_int_equal(fetch_clock_step(&c, true, 3 * S), FETCH_GIVE_UP);
}

static void test_gives_up_a_silent_master(void **state)
{
    (void)state;
    struct fetch_clock c;
    fetch_clock_init(&c, 0, 0);
    assert_int_equal(fetch_clock_step(&c, true, 100), FETCH_ASK);
    assert_int_equal(fetch_clock_step(&c, true, FETCH_SILENCE_US + 99), FETCH_COMPLAIN);
    assert_int_equal(fetch_clock_step(&c, true, FETCH_SILENCE_US + 100), FETCH_GIVE_UP);
    fetch_clock_init(&c, 0, 0); /* another connection, another master */
    assert_int_equal(fetch_clock_step(&c, true, 100), FETCH_ASK);
    assert_int_equal(fetch_clock_step(&c, false, FETCH_SILENCE_US), FETCH_COMPLAIN);
    assert_int_equal(fetch_clock_step(&c, true, FETCH_SILENCE_US + 100), FETCH_ASK);
    assert_int_equal(fetch_clock_step(&c, true, 2 * FETCH_SILENCE_US + 99), FETCH_WAIT);
}

static struct message_locustfile_source file(const char *name, const char *contents)
{
    return (struct message_locustfile_source){str_of(name), str_of(contents)};
}

static size_t chosen(const struct message_locustfile *answer)
{
    size_t ret = SIZE_MAX;
    struct err err = {0};
    int rc = fetch_choose(answer, &ret, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    return ret;
}

static void refused(const struct message_locustfile *answer, int code, const char *text)
{
    size_t ret = SIZE_MAX;
    struct err err = {0};
    assert_int_equal(fetch_choose(answer, &ret, &err), code);
    assert_string_equal(err.text, text);
    assert_int_equal(ret, SIZE_MAX);
}

static void test_the_first_file_with_a_scenario(void **state)
{
    struct message_locustfile_source sources[] = {
        file("a.py", "x = 1\n"),
        file(NULL, "http://h/" SCENARIO),
        file("b.py", "y\n" SCENARIO),
        file("c.py", SCENARIO),
    };
    (void)state;
    assert_int_equal(chosen(&(struct message_locustfile){.sources = sources, .source_count = 4}),
                     2);
    assert_int_equal(
        chosen(&(struct message_locustfile){.sources = sources + 3, .source_count = 1}), 0);
    /* the only file is read in any case, for the message of what it lacks */
    assert_int_equal(chosen(&(struct message_locustfile){.sources = sources, .source_count = 1}),
                     0);
}

static void test_answers_without_a_scenario(void **state)
{
    struct message_locustfile_source sources[] = {
        file("a.py", "x = 1\n"),
        file("b.py", ""),
        file(NULL, "http://user:secret@h/c.py"),
    };
    (void)state;
    refused(&(struct message_locustfile){.error = STR("no\nfile")}, -EREMOTEIO,
            "the master cannot give its locustfile: 'no\\nfile'");
    refused(&(struct message_locustfile){0}, -EREMOTEIO, "the master has no locustfile to give");
    refused(&(struct message_locustfile){.sources = sources, .source_count = 3}, -EINVAL,
            "none of the master's 3 locustfiles holds a scenario: make one that does with 'cicada "
            "locustfile SCENARIO'");
    refused(&(struct message_locustfile){.sources = sources + 2, .source_count = 1}, -EINVAL,
            "the master's locustfile is a URL, which cicada does not load: start the master with "
            "the file itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_once_over_each_connection),
        cmocka_unit_test(test_complains_now_and_then),
        cmocka_unit_test(test_gives_up_without_a_master),
        cmocka_unit_test(test_gives_up_a_silent_master),
        cmocka_unit_test(test_the_first_file_with_a_scenario),
        cmocka_unit_test(test_answers_without_a_scenario),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
