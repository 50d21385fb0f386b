#include "telemetry/braced.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_names_of_a_pattern(void **state)
{
    (void)state;
    static const char *const names[] = {"size_p50_mb", "size_p99_9_mb", "size_avg_mb"};
    struct braced b;
    struct str item;
    assert_true(braced_parse(STR("size_{p50,p99_9,avg}_mb"), &b));
    assert_int_equal(braced_count(&b), 3);
    for (size_t i = 0; i < 3; i++) {
        struct buf name;
        buf_init(&name, 100);
        assert_true(braced_item(&b, i, &item));
        assert_int_equal(braced_add(&name, &b, item), 0);
        assert_string_equal(buf_c(&name), names[i]);
        buf_done(&name);
    }
    assert_false(braced_item(&b, 3, &item));
}

static void test_no_braces(void **state)
{
    (void)state;
    struct braced b;
    struct str item;
    struct buf name;
    buf_init(&name, 100);
    assert_true(braced_parse(STR("plain"), &b));
    assert_false(b.has_items);
    assert_int_equal(braced_count(&b), 0);
    assert_false(braced_item(&b, 0, &item));
    assert_int_equal(braced_add(&name, &b, (struct str){NULL, 0}), 0);
    assert_string_equal(buf_c(&name), "plain");
    buf_done(&name);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"{",     "}",     "a{b",    "a}b",      "}{",
                                      "{}",    "{a,}",  "{a,,b}", "{a}{b}",   "{a{b}}",
                                      "{a}}b", "{a}b{", "x{,a}y", "x{a,b}}y", "{{a}"};
    struct braced b;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (braced_parse(str_of(bad[i]), &b))
            fail_msg("%s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_a_pattern),
        cmocka_unit_test(test_no_braces),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
