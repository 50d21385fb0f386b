#include "test/unit/alloc.h"
#include "worker/scenario/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_matches_and_groups(void **state)
{
    static const struct {
        const char *pattern, *text;
        uint32_t group;
        bool matches;
        const char *found; /* NULL: the group took no part */
    } cases[] = {
        {"a(b+)c", "xabbc", 1, true, "bb"},
        {"a(b+)c", "xabbc", 0, true, "abbc"},
        {"^x$", "x\n", 0, true, "x"},
        {"^x$", "y", 0, false, NULL},
        {"(a)|(b)", "b", 1, true, NULL},
        {"(a)|(b)", "b", 2, true, "b"},
        {"caf.", "caf\xC3\xA9", 0, true, "caf\xC3\xA9"},
        {"", "", 0, true, ""},
        {"b",
         "\xFF"
         "b",
         0, true, "b"},
    };
    struct pattern_scratch *scratch = pattern_scratch_new();
    (void)state;
    assert_non_null(scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern *p;
        struct str found = {NULL, 0};
        assert_int_equal(pattern_new(str_of(cases[i].pattern), &p, NULL), 0);
        assert_int_equal(pattern_match(p, scratch, str_of(cases[i].text), cases[i].group, &found),
                         cases[i].matches);
        assert_int_equal(found.ptr != NULL, cases[i].found != NULL);
        if (cases[i].found)
            assert_true(str_eq(found, str_of(cases[i].found)));
        pattern_free(p);
    }
    pattern_scratch_free(scratch);
}

/* One that would take longer than the age of the universe is no match. */
static void test_a_match_without_end_ends(void **state)
{
    struct pattern_scratch *scratch = pattern_scratch_new();
    struct pattern *p;
    char text[60];
    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(pattern_new(STR("^(a+)+b"), &p, NULL), 0);
    assert_false(pattern_match(p, scratch, (struct str){text, sizeof text}, 0, NULL));
    pattern_free(p);
    pattern_scratch_free(scratch);
}

static void test_what_is_none_is_told(void **state)
{
    struct pattern *p;
    struct err err = {0};
    (void)state;
    assert_int_equal(pattern_new(STR("a(b"), &p, &err), -EINVAL);
    assert_string_equal(err.text, "missing closing parenthesis, at byte 4");
}

static void test_out_of_memory(void **state)
{
    (void)state;
    alloc_fail_at(1);
    struct pattern *p;
    assert_int_equal(pattern_new(STR("a"), &p, NULL), -ENOMEM);
    alloc_fail_at(1);
    assert_null(pattern_scratch_new());
    alloc_fail_at(0);
    pattern_free(NULL);
    pattern_scratch_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches_and_groups),
        cmocka_unit_test(test_a_match_without_end_ends),
        cmocka_unit_test(test_what_is_none_is_told),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
