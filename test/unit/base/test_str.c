#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_views(void **state)
{
    (void)state;
    assert_int_equal(str_of(NULL).len, 0);
    assert_int_equal(str_of("abc").len, 3);
    assert_int_equal(STR("a\0b").len, 3);
    char text[16];
    (void)snprintf(text, sizeof text, "[%.*s][%.*s]", STR_ARG(str_sub(STR("abcd"), 1, 3)),
                   STR_ARG(((struct str){NULL, 0})));
    assert_string_equal(text, "[bc][]");
}

static void test_equality(void **state)
{
    (void)state;
    struct str none = {NULL, 0};
    assert_true(str_eq(none, STR("")));
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_false(str_eq(STR("a"), STR("ab")));
    assert_true(str_eq_nocase(STR("Host"), STR("hOST")));
    assert_false(str_eq_nocase(STR("["), STR("{"))); /* 0x20 apart, but no letters */
    assert_false(str_eq_nocase(STR("\xC4"), STR("\xE4")));
}

static int small(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Every pair of bytes, at each place of texts of 1 to 17 bytes. */
static void test_case_is_ignored_for_letters_only(void **state)
{
    (void)state;
    char a[17], b[17];
    for (size_t len = 1; len <= sizeof a; len++) {
        memset(a, 'x', len);
        memset(b, 'X', len);
        for (size_t at = 0; at < len; at++) {
            for (int i = 0; i < 65536; i++) {
                int c = i & 255, d = i >> 8;
                a[at] = (char)c;
                b[at] = (char)d;
                if (str_eq_nocase((struct str){a, len}, (struct str){b, len}) !=
                    (small(c) == small(d)))
                    fail_msg("%d and %d at %zu of %zu", c, d, at, len);
            }
            a[at] = 'x';
            b[at] = 'X';
        }
    }
}

static void test_order_is_bytewise(void **state)
{
    (void)state;
    static const struct str sorted[] = {
        {"", 0}, {"\0", 1}, {"A", 1}, {"AB", 2}, {"a", 1}, {"a\0", 2}, {"ab", 2}, {"\xFF", 1},
    };
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++) {
        for (size_t j = 0; j < sizeof sorted / sizeof *sorted; j++) {
            int order = str_cmp(sorted[i], sorted[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

static void test_beginnings_and_ends(void **state)
{
    (void)state;
    assert_true(str_starts(STR("http://h"), STR("http://")));
    assert_true(str_starts(STR("x"), STR("")));
    assert_false(str_starts(STR("htt"), STR("http")));
    assert_true(str_starts_nocase(STR("HTTP/1.1"), STR("http/")));
    assert_true(str_ends(STR("x.json"), STR(".json")));
    assert_true(str_ends(STR("x"), STR("")));
    assert_false(str_ends(STR("json"), STR(".json")));
}

static void test_sub_clamps(void **state)
{
    (void)state;
    struct str s = STR("abcd");
    assert_true(str_eq(str_sub(s, 0, 4), s));
    assert_true(str_eq(str_sub(s, 1, 99), STR("bcd")));
    assert_int_equal(str_sub(s, 3, 2).len, 0);
    assert_int_equal(str_sub(s, 9, 99).len, 0);
    assert_null(str_sub((struct str){NULL, 0}, 0, 1).ptr);
}

static void test_trim(void **state)
{
    (void)state;
    assert_true(str_eq(str_trim(STR(" \t\r\n a b \n")), STR("a b")));
    assert_int_equal(str_trim(STR(" \n ")).len, 0);
    assert_int_equal(str_trim((struct str){NULL, 0}).len, 0);
    assert_true(str_eq(str_trim(STR("\va\f")), STR("\va\f")));
}

static void test_find(void **state)
{
    (void)state;
    assert_int_equal(str_find(STR("abab"), 'b'), 1);
    assert_int_equal(str_find(STR("abab"), 'c'), 4);
    assert_int_equal(str_find(STR("a\0b"), '\0'), 1);
    assert_int_equal(str_find((struct str){NULL, 0}, 'c'), 0);
    assert_int_equal(str_find_str(STR("aab"), STR("ab")), 1);
    assert_int_equal(str_find_str(STR("aab"), STR("abc")), 3);
    assert_int_equal(str_find_str(STR("aab"), STR("")), 0);
    assert_int_equal(str_find_str((struct str){NULL, 0}, STR("a")), 0);
}

static void test_next_gives_every_part(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
        const char *parts[4];
    } cases[] = {
        {"a,b", 2, {"a", "b"}},  {"", 1, {""}},       {"a,", 2, {"a", ""}},
        {",,", 3, {"", "", ""}}, {"abc", 1, {"abc"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str rest = str_of(cases[i].text), part;
        size_t n = 0;
        print_message("'%s'\n", cases[i].text);
        for (; str_next(&rest, ',', &part); n++)
            assert_true(n < cases[i].count && str_eq(part, str_of(cases[i].parts[n])));
        assert_int_equal(n, cases[i].count);
    }
}

static void test_hash_tells_neighbours_apart(void **state)
{
    (void)state;
    size_t seen[256];
    for (unsigned i = 0; i < 256; i++) {
        char text[] = {'x', (char)i};
        seen[i] = str_hash((struct str){text, sizeof text});
        assert_true(seen[i] == str_hash((struct str){text, sizeof text}));
        for (unsigned j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    assert_true(str_is_token(STR("GET")));
    assert_true(str_is_token(STR("X-Api_Key.1!#$%&'*+^`|~")));
    const struct str none[] = {STR(""),  {NULL, 0},   STR("a b"), STR("a:"),    STR("a\t"),
                               STR("é"), STR("a\0b"), STR("(a)"), STR("\"a\""), STR("a/b")};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(str_is_token(none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_case_is_ignored_for_letters_only),
        cmocka_unit_test(test_order_is_bytewise),
        cmocka_unit_test(test_beginnings_and_ends),
        cmocka_unit_test(test_sub_clamps),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_next_gives_every_part),
        cmocka_unit_test(test_hash_tells_neighbours_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
