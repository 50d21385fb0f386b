#include "worker/cli/help.h"

#include "test/unit/alloc.h"
#include "worker/cli/flags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_every_used_flag_is_explained(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 16);
    assert_int_equal(help_add(&b), 0);
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        bool told = (f->use == FLAG_USED && f->text) || f->use == FLAG_IGNORED;
        print_message("%s\n", f->name);
        assert_true(!told || strstr(buf_c(&b), f->name));
        assert_true(!told || f->use == FLAG_IGNORED || !f->env || strstr(buf_c(&b), f->env));
    }
    buf_done(&b);
}

static void test_lines_fit_a_terminal(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 16);
    assert_int_equal(help_add(&b), 0);
    struct str rest = buf_str(&b), line;
    while (str_next(&rest, '\n', &line)) {
        print_message("%.*s\n", STR_ARG(line));
        assert_true(line.len <= 80);
        assert_false(str_ends(line, STR(" ")));
    }
    buf_done(&b);
}

static void test_out_of_memory_travels_up(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned long n = 1; rc != 0; n++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        alloc_fail_at(n);
        rc = help_add(&b);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(rc == 0 ? !failed : rc == -ENOMEM && failed);
        buf_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_used_flag_is_explained),
        cmocka_unit_test(test_lines_fit_a_terminal),
        cmocka_unit_test(test_out_of_memory_travels_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
