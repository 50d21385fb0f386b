#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_first_error_wins(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, -EPROTO, "%s is %d", "x", 1), -EPROTO);
    assert_int_equal(err_set(&err, -ENOMEM, "out of memory"), -ENOMEM);
    assert_int_equal(err.code, -EPROTO);
    assert_string_equal(err.text, "x is 1");
    assert_int_equal(err_set(NULL, -EINVAL, "nobody reads this"), -EINVAL);
}

static void test_prefix(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_prefix(&err, "file"), 0);
    assert_string_equal(err.text, "");
    (void)err_set(&err, -EINVAL, "bad"); /* the code is looked at below */
    assert_int_equal(err_prefix(&err, "%s:%d", "file", 3), -EINVAL);
    assert_int_equal(err_prefix(&err, "run"), -EINVAL);
    assert_string_equal(err.text, "run: file:3: bad");
    assert_int_equal(err_prefix(NULL, "x"), 0);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    char text[2 * ERR_TEXT_BYTES];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct err err = {0};
    (void)err_set(&err, -EINVAL, "%s", text); /* the text is what counts here */
    assert_int_equal(strlen(err.text), ERR_TEXT_BYTES - 1);
    for (size_t n = ERR_TEXT_BYTES - 5; n < ERR_TEXT_BYTES + 5; n++) {
        assert_int_equal(err_prefix(&err, "%.*s", (int)n, text), -EINVAL);
        assert_true(strlen(err.text) < ERR_TEXT_BYTES);
    }
    err = (struct err){0};
    (void)err_set(&err, -EINVAL, "%s", text); /* as above */
    assert_int_equal(err_prefix(&err, "file"), -EINVAL);
    assert_int_equal(strlen(err.text), ERR_TEXT_BYTES - 1);
    assert_memory_equal(err.text, "file: aaa", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_error_wins),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
