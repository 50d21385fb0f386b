#include "base/buf.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void test_grows_and_ends_in_nul(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_string_equal(buf_c(&b), "");
    assert_null(b.ptr);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_add(&b, STR("ab\0")), 0);
        assert_int_equal(b.ptr[b.len], '\0');
    }
    assert_int_equal(b.len, 3000);
    assert_memory_equal(b.ptr + 2997, "ab\0", 3);
    buf_clear(&b);
    assert_string_equal(buf_c(&b), "");
    assert_true(b.cap >= 3000);
    buf_done(&b);
    buf_done(&b);
}

static void test_ceiling_keeps_what_was_there(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 5);
    assert_int_equal(buf_add(&b, STR("abc")), 0);
    assert_int_equal(buf_add(&b, STR("def")), -ERANGE);
    assert_int_equal(buf_printf(&b, "%d", 123), -ERANGE);
    assert_string_equal(buf_c(&b), "abc");
    assert_int_equal(buf_add(&b, STR("de")), 0);
    assert_int_equal(buf_add_byte(&b, 'f'), -ERANGE);
    assert_int_equal(buf_add(&b, STR("")), 0);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -ERANGE);
    assert_string_equal(buf_c(&b), "abcde");
    buf_done(&b);
    struct buf zeroed = {0};
    assert_int_equal(buf_add_byte(&zeroed, 'x'), -ERANGE);
    assert_int_equal(buf_add(&zeroed, STR("")), 0);
}

static void test_printf_fits_exactly(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 300);
    assert_int_equal(buf_printf(&b, "%s-%05.1f", "x", 2.25), 0);
    assert_string_equal(buf_c(&b), "x-002.2");
    assert_int_equal(buf_printf(&b, "%200s", "y"), 0);
    assert_int_equal(b.len, 207);
    assert_int_equal(buf_printf(&b, "%s", ""), 0);
    assert_int_equal(b.len, 207);
    buf_done(&b);
}

static void test_drop_and_take(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    assert_null(buf_take(&b));
    assert_int_equal(buf_add(&b, STR("abcdef")), 0);
    buf_drop(&b, 2);
    assert_string_equal(buf_c(&b), "cdef");
    buf_drop(&b, 0);
    char *taken = buf_take(&b);
    assert_string_equal(taken, "cdef");
    free(taken);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_add(&b, STR("x")), 0); /* the ceiling is kept */
    buf_drop(&b, 1);
    assert_string_equal(buf_c(&b), "");
    buf_done(&b);
}

static void test_no_memory_keeps_what_was_there(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(buf_add(&b, STR("abc")), 0);
    alloc_fail_at(1);
    assert_int_equal(buf_reserve(&b, 1 << 16), -ENOMEM);
    alloc_fail_at(0);
    assert_string_equal(buf_c(&b), "abc");
    buf_done(&b);
}

static void test_read_file(void **state)
{
    (void)state;
    char path[] = "/tmp/cicada-buf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a\0b\n", 4), 4);
    assert_int_equal(close(fd), 0);
    struct buf b;
    struct err err = {0};
    buf_init(&b, 4);
    assert_int_equal(buf_add(&b, STR("old")), 0);
    assert_int_equal(buf_read_file(&b, path, &err), 0);
    assert_true(str_eq(buf_str(&b), STR("a\0b\n")));
    buf_done(&b);
    buf_init(&b, 3);
    assert_int_equal(buf_read_file(&b, path, &err), -ERANGE);
    assert_non_null(strstr(err.text, "larger than 3 bytes"));
    buf_done(&b);
    assert_int_equal(unlink(path), 0);
    err = (struct err){0};
    assert_int_equal(buf_read_file(&b, path, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    err = (struct err){0};
    assert_int_equal(buf_read_file(&b, "/", &err), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_and_ends_in_nul),
        cmocka_unit_test(test_ceiling_keeps_what_was_there),
        cmocka_unit_test(test_printf_fits_exactly),
        cmocka_unit_test(test_drop_and_take),
        cmocka_unit_test(test_no_memory_keeps_what_was_there),
        cmocka_unit_test(test_read_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
