/* The wanted texts are those of CPython's json.dumps and urllib.parse.quote_plus. */
#include "worker/scenario/encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct pair {
    const char *text, *wanted;
};

static void check(int (*encode)(struct buf *out, struct str text), const struct pair *cases,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf out;
        buf_init(&out, 1000);
        assert_int_equal(encode(&out, str_of(cases[i].text)), 0);
        assert_string_equal(buf_c(&out), cases[i].wanted);
        buf_done(&out);
        buf_init(&out, strlen(cases[i].wanted) / 2);
        if (out.max > 0)
            assert_int_equal(encode(&out, str_of(cases[i].text)), -ERANGE);
        buf_done(&out);
    }
}

static void test_json(void **state)
{
    static const struct pair cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"\"\\/\b\f\n\r\t\x7F", "\\\"\\\\/\\b\\f\\n\\r\\t\\u007f"},
        {"\xC3\xA9\xF0\x9F\x98\x80z", "\\u00e9\\ud83d\\ude00z"},
        {"a\xFF"
         "b\xC3",
         "a\\ufffdb\\ufffd"},
    };
    (void)state;
    check(encode_json, cases, sizeof cases / sizeof *cases);
}

static void test_names_of_parts(void **state)
{
    static const struct pair cases[] = {
        {"", ""},
        {"a b&c%.txt", "a b&c%.txt"},
        {"a\"b\r\nc\\", "a%22b%0D%0Ac\\"},
        {"\xC3\xA9", "\xC3\xA9"},
    };
    (void)state;
    check(encode_quoted, cases, sizeof cases / sizeof *cases);
}

static void test_forms(void **state)
{
    static const struct pair cases[] = {
        {"", ""},
        {"aZ09-._~", "aZ09-._~"},
        {"a b&c=d+e/%", "a+b%26c%3Dd%2Be%2F%25"},
        {"\xC3\xA9", "%C3%A9"},
    };
    (void)state;
    check(encode_form, cases, sizeof cases / sizeof *cases);
}

static void test_ids_in_paths_are_folded(void **state)
{
    static const struct pair cases[] = {
        {"/", "/"},
        {"/items/17/edit?x=5", "/items/:id/edit"},
        {"/u/0b5c7a52-6f0e-4f0f-9f37-f2a5a8f7d3b1", "/u/:id"},
        {"/c/deadbeef01", "/c/:id"},
        {"/facade/decade/v1/a1", "/facade/decade/v1/a1"},
        {"/1/2/", "/:id/:id/"},
        {"", ""},
    };
    (void)state;
    check(encode_folded, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_names_of_parts),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_ids_in_paths_are_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
