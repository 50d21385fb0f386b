#include "worker/stats/pyrepr.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* repr() of CPython 3.11; all code points are compared in
 * test/integration/test_stats_differential.py */
static void test_repr_is_pythons(void **state)
{
    (void)state;
    static const struct {
        struct str text;
        const char *want;
    } cases[] = {
        {STR(""), "''"},
        {STR("plain"), "'plain'"},
        {STR("it's"), "\"it's\""},
        {STR("say \"it\""), "'say \"it\"'"},
        {STR("it's \"it\""), "'it\\'s \"it\"'"},
        {STR("a\\b"), "'a\\\\b'"},
        {STR("\t\n\r\0\x1f\x7f"), "'\\t\\n\\r\\x00\\x1f\\x7f'"},
        {STR("caf\xC3\xA9"), "'caf\xC3\xA9'"},
        {STR("\xC2\x80\xC2\xA0\xC2\xAD"), "'\\x80\\xa0\\xad'"},
        {STR("\xE2\x80\x8B\xEF\xBB\xBF"), "'\\u200b\\ufeff'"},
        {STR("\xF0\x9F\x98\x80"), "'\xF0\x9F\x98\x80'"},
        {STR("\xF3\xA0\x80\x81\xF4\x8F\xBF\xBF"), "'\\U000e0001\\U0010ffff'"},
        {STR("\xFF"), "'\xEF\xBF\xBD'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 1000);
        assert_int_equal(pyrepr_add(&b, cases[i].text), 0);
        assert_string_equal(buf_c(&b), cases[i].want);
        buf_done(&b);
    }
}

static void test_failure_leaves_the_buffer(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 8);
    assert_int_equal(buf_add(&b, STR("abc")), 0);
    assert_int_equal(pyrepr_add(&b, STR("\x01\x02")), -ERANGE);
    assert_string_equal(buf_c(&b), "abc");
    buf_done(&b);
    alloc_fail_at(1);
    assert_int_equal(pyrepr_add(&b, STR("x")), -ENOMEM);
    alloc_fail_at(0);
    assert_int_equal(b.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repr_is_pythons),
        cmocka_unit_test(test_failure_leaves_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
