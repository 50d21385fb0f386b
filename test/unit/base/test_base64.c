#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The vectors of RFC 4648, section 10. */
static void test_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *plain, *coded;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"},
                 {"\xff\xef\xbe", "/+++"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        assert_int_equal(base64_encode(&b, str_of(cases[i].plain)), 0);
        assert_string_equal(buf_c(&b), cases[i].coded);
        buf_clear(&b);
        assert_int_equal(base64_decode(&b, str_of(cases[i].coded)), 0);
        assert_string_equal(buf_c(&b), cases[i].plain);
        buf_done(&b);
    }
}

static void test_line_breaks_are_skipped(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    assert_int_equal(base64_decode(&b, STR("Zm\r\n9v\nYg==\n")), 0);
    assert_string_equal(buf_c(&b), "foob");
    buf_done(&b);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "Z", "Zg", "Zg=", "Z===", "=Zg=", "Zg==Zg==", "Zm9v!", "Zm9-", "Zg=a", "====", "Zm 9v"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        assert_int_equal(base64_decode(&b, str_of(cases[i])), -EINVAL);
        buf_done(&b);
    }
    struct buf small;
    buf_init(&small, 2);
    assert_int_equal(base64_decode(&small, STR("Zm9v")), -ERANGE);
    buf_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_line_breaks_are_skipped),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
