#include "worker/cli/flags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void test_rows_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        print_message("%s\n", f->name);
        assert_true(str_starts(str_of(f->name), STR("--")));
        assert_true(!f->letter || (strlen(f->letter) == 2 && f->letter[0] == '-'));
        assert_true(f->use != FLAG_REFUSED || f->text);
        assert_true(f->use != FLAG_USED || f->kind != FLAG_NUMBER || f->min < f->max);
        assert_true(f->use != FLAG_USED || !f->text ||
                    (f->kind == FLAG_SWITCH) != !!f->placeholder);
        assert_ptr_equal(flag_find(str_of(f->name)), f);
        assert_ptr_equal(flag_find_key(str_of(f->name)), f);
        assert_ptr_equal(flag_find_key(str_of(f->name + 2)), f);
        for (size_t j = 0; j < i; j++) {
            assert_false(same(f->name, flag_table[j].name));
            assert_false(same(f->letter, flag_table[j].letter));
            assert_false(same(f->env, flag_table[j].env));
        }
    }
}

static void test_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"--wroker", "--worker"},
        {"worker", "--worker"},
        {"-worker", "--worker"},
        {"--master_host", "--master-host"},
        {"--mater-port", "--master-port"},
        {"--hosts", "--host"},
        {"--exclude-tag", "--exclude-tags"},
        {"--hatch-rat", NULL}, /* gone: nobody should go there */
        {"--", NULL},
        {"--zzzzzz", NULL},
        {"-x", NULL},
        {"--a-flag-that-is-much-longer-than-any-flag-there-is", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct flag *f = flag_nearest(str_of(cases[i].text));
        print_message("%s\n", cases[i].text);
        assert_true(cases[i].name ? f && same(f->name, cases[i].name) : !f);
    }
}

static void test_prefix(void **state)
{
    (void)state;
    const struct flag *f = NULL;
    assert_int_equal(flag_find_prefix(STR("--hos"), &f), 1);
    assert_string_equal(f->name, "--host");
    assert_int_equal(flag_find_prefix(STR("--log"), &f), 2);
    assert_int_equal(flag_find_prefix(STR("--st"), &f), 1); /* --step-load is gone */
    assert_int_equal(flag_find_prefix(STR("--ta"), &f), 1); /* --tag is ours */
    assert_string_equal(f->name, "--tags");
    assert_int_equal(flag_find_prefix(STR("--thre"), &f), 2);
    assert_int_equal(flag_find_prefix(STR("--zz"), &f), 0);
    assert_int_equal(flag_find_prefix(STR("--en"), &f), 1); /* as if --engine were not there */
    assert_string_equal(f->name, "--enable-rebalancing");
    assert_int_equal(flag_find_prefix(STR("--eng"), &f), 1);
    assert_string_equal(f->name, "--engine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
