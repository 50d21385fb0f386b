#include "worker/engine/redirect.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_BYTES 65536
#define BASE      "http://h:81/a/b/c?q=1"

/* The wanted URLs are those that the requests library 2.32 asks for next; NULL: it refuses, or we
 * do where it guesses ("http:///x"). */
static const struct {
    const char *base, *location, *want;
} cases[] = {
    {BASE, "/x", "http://h:81/x"},
    {BASE, "x", "http://h:81/a/b/x"},
    {BASE, "./x", "http://h:81/a/b/x"},
    {BASE, "../x", "http://h:81/a/x"},
    {BASE, "../../x", "http://h:81/x"},
    {BASE, "../../../x", "http://h:81/x"},
    {BASE, "..", "http://h:81/a/"},
    {BASE, ".", "http://h:81/a/b/"},
    {BASE, "?y=2", "http://h:81/a/b/c?y=2"},
    {BASE, "", "http://h:81/a/b/c?q=1"},
    {BASE, "#f", "http://h:81/a/b/c?q=1"},
    {BASE, "/x#f", "http://h:81/x"},
    {BASE, "x?y#z", "http://h:81/a/b/x?y"},
    {BASE, ";x", "http://h:81/a/b/;x"},
    {BASE, "/x:y", "http://h:81/x:y"},
    {BASE, "//other/y", "http://other/y"},
    {BASE, "https://s/", "https://s/"},
    {BASE, "http://h:81", "http://h:81/"},
    {BASE, "http://h:81?z", "http://h:81/?z"},
    {BASE, "http://[::1]:8/x", "http://[::1]:8/x"},
    {BASE, "/a b", "http://h:81/a%20b"},
    {BASE, "/a?b c", "http://h:81/a?b%20c"},
    {BASE, "/\xc3\xa9", "http://h:81/%C3%A9"},
    {BASE, "/%zz", "http://h:81/%25zz"},
    {BASE, "/%7Eu", "http://h:81/~u"},
    {BASE, "/\"<>", "http://h:81/%22%3C%3E"},
    {BASE, "\\x", "http://h:81/a/b/%5Cx"},
    {BASE, "/a/./b/../c", "http://h:81/a/c"},
    {BASE, "/a//b", "http://h:81/a//b"},
    {"http://h", "x", "http://h/x"},
    {"http://h", "?q", "http://h/?q"},
    {"http://h?q", "?r", "http://h/?r"},
    {"http://h/a", "b/c/", "http://h/b/c/"},
    {"https://h/a", "//other/y", "https://other/y"},
    {BASE, "x:y", NULL},
    {BASE, "mailto:a", NULL},
    {BASE, "ftp://h/", NULL},
    {BASE, "javascript:x", NULL},
    {BASE, "file:///etc", NULL},
    {BASE, "http:///x", NULL},
    {BASE, "http://", NULL},
    {BASE, "http://h:99999/", NULL},
    {BASE, "http://h:x/", NULL},
    /* user and password stay with their origin */
    {"http://u:p@h/a", "/x", "http://u:p@h/x"},
    {"http://u:p@h/a", "http://h/x", "http://u:p@h/x"},
    {"http://u:p@h/a", "http://H:80/x", "http://u:p@H:80/x"},
    {"http://u:p@h/a", "https://h/x", "https://u:p@h/x"},
    {"http://u:p@h/a", "http://h:81/x", "http://h:81/x"},
    {"http://u:p@h/a", "http://g/x", "http://g/x"},
    {"http://u:p@h/a", "http://v@h/x", "http://v@h/x"},
    {"https://u:p@h/a", "http://h/x", "http://h/x"},
};

static void test_locations_are_resolved_as_locust_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, MAX_BYTES);
        assert_int_equal(buf_add(&out, STR("before ")), 0);
        int rc = redirect_resolve(&out, str_of(cases[i].base), str_of(cases[i].location));
        const char *got = buf_c(&out) + strlen("before ");
        if (cases[i].want ? rc != 0 || strcmp(got, cases[i].want) != 0 : rc != -EINVAL)
            fail_msg("'%s' from '%s': %d, '%s'", cases[i].location, cases[i].base, rc, got);
        buf_done(&out);
    }
}

static void test_a_location_may_not_grow_without_end(void **state)
{
    (void)state;
    struct buf out;
    char *location = malloc(MAX_BYTES + 1);
    assert_non_null(location);
    memset(location, 'x', MAX_BYTES + 1);
    buf_init(&out, MAX_BYTES);
    assert_int_equal(redirect_resolve(&out, STR(BASE), (struct str){location, MAX_BYTES + 1}),
                     -ERANGE);
    memset(location, ' ', MAX_BYTES / 2); /* three bytes each when encoded */
    assert_int_equal(redirect_resolve(&out, STR(BASE), (struct str){location, MAX_BYTES / 2}),
                     -ERANGE);
    buf_done(&out);
    free(location);
}

static void test_without_memory_nothing_is_lost(void **state)
{
    (void)state;
    int rc;
    unsigned long n = 0;
    do {
        struct buf out;
        buf_init(&out, MAX_BYTES);
        alloc_fail_at(++n);
        rc = redirect_resolve(&out, STR("http://u:p@h/a"), STR("http://h/x y"));
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        buf_done(&out);
    } while (rc != 0);
    assert_true(n > 2);
}

static void test_methods_change_as_in_locust(void **state)
{
    (void)state;
    static const unsigned statuses[] = {301, 302, 303, 307, 308};
    static const struct {
        const char *method;
        bool get[5];
    } methods[] = {
        {"POST", {true, true, true, false, false}},    {"PUT", {false, true, true, false, false}},
        {"DELETE", {false, true, true, false, false}}, {"PATCH", {false, true, true, false, false}},
        {"HEAD", {false, false, false, false, false}},
    };
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (size_t s = 0; s < 5; s++)
            assert_int_equal(redirect_becomes_get(statuses[s], str_of(methods[m].method)),
                             methods[m].get[s]);
    for (size_t s = 0; s < 5; s++) {
        assert_true(redirect_status(statuses[s]));
        assert_int_equal(redirect_keeps_body(statuses[s]), statuses[s] >= 307);
    }
    assert_false(redirect_status(300));
    assert_false(redirect_status(304));
    assert_false(redirect_status(305));
    assert_false(redirect_status(200));
}

static void test_origins(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        bool same;
    } pairs[] = {
        {"http://h/a", "http://h/b", true},
        {"http://h/a", "http://H:80/b", true},
        {"https://h/a", "https://h:443/b", true},
        {"http://h/a", "https://h/b", true}, /* an upgrade */
        {"https://h/a", "http://h/b", false},
        {"http://h:8080/a", "https://h:8443/b", false},
        {"http://h:8080/a", "https://h:8080/b", false},
        {"http://h/a", "http://h:81/b", false},
        {"http://h/a", "http://g/b", false},
        {"http://h/a", "http://h.evil/b", false},
        {"http://[::1]/a", "http://[::1]/b", true},
        {"http://[::1]/a", "http://[::2]/b", false},
        {"no URL", "http://h/b", false},
        {"http://h/a", "no URL", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (redirect_same_origin(str_of(pairs[i].from), str_of(pairs[i].to)) != pairs[i].same)
            fail_msg("%s and %s", pairs[i].from, pairs[i].to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locations_are_resolved_as_locust_does),
        cmocka_unit_test(test_a_location_may_not_grow_without_end),
        cmocka_unit_test(test_without_memory_nothing_is_lost),
        cmocka_unit_test(test_methods_change_as_in_locust),
        cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
