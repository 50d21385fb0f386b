#include "test/unit/alloc.h"
#include "worker/engine/cookies.h"
#include "worker/scenario/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 1000000000.0 /* Sun, 09 Sep 2001 01:46:40 GMT */

static struct cookie_place place(const char *url)
{
    struct url u;
    if (url_parse(str_of(url), &u, NULL) < 0)
        fail_msg("%s is no URL", url);
    return (struct cookie_place){.tls = u.tls, .host = u.host, .path = u.path};
}

static void set_at(struct cookies **jar, const char *url, const char *header, double now_s)
{
    struct cookie_place from = place(url);
    assert_int_equal(cookies_set(jar, str_of(header), &from, now_s), 0);
}

/* The header for a URL; valid until the next call. */
static const char *header_at(struct cookies *jar, const char *url, double now_s)
{
    static char text[2 * COOKIES_MAX_BYTES];
    struct cookie_place to = place(url);
    struct buf b;
    buf_init(&b, sizeof text - 1);
    assert_int_equal(cookies_header(jar, &to, now_s, &b), 0);
    (void)snprintf(text, sizeof text, "%s", buf_c(&b));
    buf_done(&b);
    return text;
}

#define MAX_SETS 4

/* Headers that one URL sets, and what goes to another a second later. */
static const struct {
    const char *label;
    const char *from;
    const char *set[MAX_SETS];
    const char *to;
    const char *want;
} cases[] = {
    /* RFC 6265 3.1 */
    {"session",
     "http://example.com/",
     {"SID=31d4d96e407aad42"},
     "http://example.com/",
     "SID=31d4d96e407aad42"},
    {"path and domain",
     "https://www.example.com/",
     {"SID=31d4d96e407aad42; Path=/; Domain=example.com"},
     "http://example.com/x",
     "SID=31d4d96e407aad42"},
    {"two at once",
     "https://example.com/",
     {"SID=31d4d96e407aad42; Path=/; Secure; HttpOnly", "lang=en-US; Path=/; Domain=example.com"},
     "https://example.com/",
     "SID=31d4d96e407aad42; lang=en-US"},
    {"expires in the future",
     "http://a.b/",
     {"lang=en-US; Expires=Wed, 09 Jun 2021 10:18:14 GMT"},
     "http://a.b/",
     "lang=en-US"},
    {"deleted by a date in the past",
     "http://a.b/",
     {"lang=en-US; Expires=Wed, 09 Jun 2021 10:18:14 GMT",
      "lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT"},
     "http://a.b/",
     ""},
    /* 5.2: names and values */
    {"blanks", "http://a.b/", {" \t a \t= b c \t; Path=/"}, "http://a.b/", "a=b c"},
    {"equals in the value", "http://a.b/", {"a=b=c=="}, "http://a.b/", "a=b=c=="},
    {"quotes stay", "http://a.b/", {"a=\"b c\""}, "http://a.b/", "a=\"b c\""},
    {"empty value", "http://a.b/", {"a="}, "http://a.b/", "a="},
    {"no name", "http://a.b/", {"=b"}, "http://a.b/", "b"},
    {"no equals", "http://a.b/", {"b; Path=/"}, "http://a.b/", "b"},
    {"no name, twice", "http://a.b/", {"b", "=c"}, "http://a.b/", "c"},
    {"nothing", "http://a.b/", {"", ";", "=", "; Path=/"}, "http://a.b/", ""},
    {"names have a case", "http://a.b/", {"a=1", "A=2"}, "http://a.b/", "a=1; A=2"},
    {"not ASCII", "http://a.b/", {"a=\xC3\xA4"}, "http://a.b/", "a=\xC3\xA4"},
    {"comma is no separator", "http://a.b/", {"a=1, b=2"}, "http://a.b/", "a=1, b=2"},
    {"control character",
     "http://a.b/",
     {"a=1\x01", "b=2\x7F", "c=3; Path=/\r"},
     "http://a.b/",
     ""},
    {"tab inside", "http://a.b/", {"a=1\t2"}, "http://a.b/", "a=1\t2"},
    {"unknown attributes",
     "http://a.b/",
     {"a=1; HttpOnly; SameSite=Strict; Version=1; Foo; ;=x"},
     "http://a.b/",
     "a=1"},
    /* replaced, with its place kept */
    {"replaced", "http://a.b/", {"a=1", "b=2", "a=3"}, "http://a.b/", "a=3; b=2"},
    /* Max-Age */
    {"max-age", "http://a.b/", {"a=1; Max-Age=2"}, "http://a.b/", "a=1"},
    {"max-age over", "http://a.b/", {"a=1; Max-Age=1"}, "http://a.b/", ""},
    {"max-age 0 deletes", "http://a.b/", {"a=1", "a=1; max-age=0"}, "http://a.b/", ""},
    {"max-age negative deletes", "http://a.b/", {"a=1", "a=1; max-age=-7"}, "http://a.b/", ""},
    {"max-age before expires",
     "http://a.b/",
     {"a=1; Max-Age=60; Expires=Sun, 06 Nov 1994 08:49:37 GMT"},
     "http://a.b/",
     "a=1"},
    {"max-age behind expires",
     "http://a.b/",
     {"a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=60"},
     "http://a.b/",
     "a=1"},
    {"last max-age counts", "http://a.b/", {"a=1; Max-Age=0; Max-Age=60"}, "http://a.b/", "a=1"},
    {"max-age of no number",
     "http://a.b/",
     {"a=1; Max-Age=0x", "b=1; Max-Age=", "c=1; Max-Age=-", "d=1; Max-Age=+0"},
     "http://a.b/",
     "a=1; b=1; c=1; d=1"},
    {"max-age huge",
     "http://a.b/",
     {"a=1; Max-Age=99999999999999999999999", "b=1; Max-Age=-99999999999999999999999"},
     "http://a.b/",
     "a=1"},
    {"expires of no date",
     "http://a.b/",
     {"a=1; Expires=0", "b=1; Expires=-1"},
     "http://a.b/",
     "a=1; b=1"},
    {"last expires counts",
     "http://a.b/",
     {"a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Expires=Wed, 09 Jun 2021 10:18:14 GMT"},
     "http://a.b/",
     "a=1"},
    /* 5.1.3: domains */
    {"host only", "http://example.com/", {"a=1"}, "http://www.example.com/", ""},
    {"domain goes to hosts below",
     "http://example.com/",
     {"a=1; Domain=example.com"},
     "http://x.www.example.com/",
     "a=1"},
    {"leading dot",
     "http://example.com/",
     {"a=1; Domain=.example.com"},
     "http://www.example.com/",
     "a=1"},
    {"two leading dots",
     "http://example.com/",
     {"a=1; Domain=..example.com"},
     "http://example.com/",
     ""},
    {"domain's case",
     "http://www.EXAMPLE.com/",
     {"a=1; Domain=Example.COM"},
     "http://Www2.example.Com/",
     "a=1"},
    {"from a host below",
     "http://www.example.com/",
     {"a=1; Domain=example.com"},
     "http://foo.example.com/",
     "a=1"},
    {"another domain",
     "http://www.example.com/",
     {"a=1; Domain=example.org"},
     "http://example.org/",
     ""},
    {"domain below the host",
     "http://example.com/",
     {"a=1; Domain=www.example.com"},
     "http://www.example.com/",
     ""},
    {"no dot between",
     "http://badexample.com/",
     {"a=1; Domain=example.com"},
     "http://example.com/",
     ""},
    {"no dot between, later",
     "http://example.com/",
     {"a=1; Domain=example.com"},
     "http://badexample.com/",
     ""},
    {"top level", "http://example.com/", {"a=1; Domain=com"}, "http://example.com/", ""},
    {"empty domain",
     "http://example.com/",
     {"a=1; Domain=", "b=1; Domain=."},
     "http://example.com/",
     "a=1; b=1"},
    {"last domain counts",
     "http://www.example.com/",
     {"a=1; Domain=example.org; Domain=example.com"},
     "http://example.com/",
     "a=1"},
    {"one label is host only",
     "http://localhost/",
     {"a=1; Domain=localhost"},
     "http://localhost/",
     "a=1"},
    {"one label has none below",
     "http://localhost/",
     {"a=1; Domain=localhost"},
     "http://x.localhost/",
     ""},
    {"address", "http://127.0.0.1/", {"a=1; Domain=127.0.0.1"}, "http://127.0.0.1/", "a=1"},
    {"part of an address",
     "http://127.0.0.1/",
     {"a=1; Domain=0.0.1", "b=1; Domain=1"},
     "http://127.0.0.1/",
     ""},
    {"IPv6", "http://[::1]/", {"a=1", "b=1; Domain=::1"}, "http://[::1]:81/", "a=1; b=1"},
    {"ports are not looked at", "http://a.b:8080/", {"a=1"}, "http://a.b:9090/", "a=1"},
    {"host and domain side by side",
     "http://a.b/",
     {"a=1", "a=2; Domain=a.b"},
     "http://a.b/",
     "a=1; a=2"},
    /* 5.1.4: paths */
    {"default path", "http://a.b/x/y", {"a=1"}, "http://a.b/x/z", "a=1"},
    {"default path is a folder", "http://a.b/x/y", {"a=1"}, "http://a.b/xy", ""},
    {"default path of a folder", "http://a.b/x/", {"a=1"}, "http://a.b/x", "a=1"},
    {"default path at the top", "http://a.b/x", {"a=1"}, "http://a.b/y", "a=1"},
    {"default path of no path", "http://a.b", {"a=1"}, "http://a.b?q", "a=1"},
    {"path below", "http://a.b/", {"a=1; Path=/x"}, "http://a.b/x/y", "a=1"},
    {"path itself", "http://a.b/", {"a=1; Path=/x"}, "http://a.b/x?q=/", "a=1"},
    {"path no folder", "http://a.b/", {"a=1; Path=/x"}, "http://a.b/xy", ""},
    {"path with slash", "http://a.b/", {"a=1; Path=/x/"}, "http://a.b/x", ""},
    {"path's case", "http://a.b/", {"a=1; Path=/X"}, "http://a.b/x", ""},
    {"path may be another", "http://a.b/x/y", {"a=1; Path=/z"}, "http://a.b/z", "a=1"},
    {"path that is none",
     "http://a.b/x/y",
     {"a=1; Path=z", "b=1; Path="},
     "http://a.b/x",
     "a=1; b=1"},
    {"last path counts", "http://a.b/x/y", {"a=1; Path=/z; Path"}, "http://a.b/x", "a=1"},
    {"paths are kept apart",
     "http://a.b/x/",
     {"a=1; Path=/x", "a=2; Path=/"},
     "http://a.b/x",
     "a=1; a=2"},
    {"longer paths first",
     "http://a.b/",
     {"a=1", "b=2; Path=/x/y", "c=3; Path=/x", "d=4; Path=/z/y"},
     "http://a.b/x/y",
     "b=2; c=3; a=1"},
    /* Secure and the prefixes */
    {"secure goes to https", "https://a.b/", {"a=1; Secure"}, "https://a.b/", "a=1"},
    {"secure goes to https only", "https://a.b/", {"a=1; secure=no"}, "http://a.b/", ""},
    {"secure from http", "http://a.b/", {"a=1; Secure"}, "https://a.b/", "a=1"},
    {"__Secure-", "https://a.b/", {"__Secure-a=1; Secure"}, "https://a.b/", "__Secure-a=1"},
    {"__Secure- without Secure",
     "https://a.b/",
     {"__Secure-a=1", "__SECURE-b=1"},
     "https://a.b/",
     ""},
    {"__Secure- over http", "http://a.b/", {"__Secure-a=1; Secure"}, "https://a.b/", ""},
    {"__Host-", "https://a.b/x/y", {"__Host-a=1; Secure; Path=/"}, "https://a.b/", "__Host-a=1"},
    {"__Host- without its promises",
     "https://a.b/",
     {"__Host-a=1; Secure", "__Host-b=1; Path=/", "__Host-c=1; Secure; Path=/x",
      "__host-d=1; Secure; Path=/; Domain=a.b"},
     "https://a.b/",
     ""},
    {"__Host- over http", "http://a.b/", {"__Host-a=1; Secure; Path=/"}, "https://a.b/", ""},
    {"__Host- of one label",
     "https://a/",
     {"__Host-a=1; Secure; Path=/; Domain=a"},
     "https://a/",
     ""},
    {"prefix in a cookie without a name",
     "https://a.b/",
     {"=__Host-a=1; Secure; Path=/", "=__Secure-a=1; Secure"},
     "https://a.b/",
     ""},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cookies *jar = NULL;
        for (size_t s = 0; s < MAX_SETS && cases[i].set[s]; s++)
            set_at(&jar, cases[i].from, cases[i].set[s], NOW);
        const char *got = header_at(jar, cases[i].to, NOW + 1);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: \"%s\", want \"%s\"", cases[i].label, got, cases[i].want);
        cookies_free(jar);
    }
}

static void test_no_cookies_no_jar(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    set_at(&jar, "http://a.b/", "a=1; Domain=c.d", NOW);
    set_at(&jar, "http://a.b/", "a=1; Max-Age=0", NOW);
    assert_null(jar);
    assert_int_equal(cookies_count(NULL), 0);
    assert_string_equal(header_at(NULL, "http://a.b/", NOW), "");
    cookies_free(NULL);
}

static void test_expired_cookies_leave(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    set_at(&jar, "http://a.b/", "a=1; Max-Age=10", NOW);
    set_at(&jar, "http://a.b/", "b=1; Expires=Sun, 09 Sep 2001 01:46:45 GMT", NOW); /* NOW + 5 */
    set_at(&jar, "http://a.b/", "c=1", NOW);
    assert_string_equal(header_at(jar, "http://a.b/", NOW + 4.9), "a=1; b=1; c=1");
    assert_string_equal(header_at(jar, "http://a.b/", NOW + 5), "a=1; c=1");
    assert_string_equal(header_at(jar, "http://a.b/", NOW + 10), "c=1");
    assert_int_equal(cookies_count(jar), 1);
    cookies_free(jar);
}

/* "name=" and so many bytes in all. */
static char *cookie_of(size_t bytes, const char *behind)
{
    char *text = malloc(bytes + strlen(behind) + 2);
    assert_non_null(text);
    memset(text, 'x', bytes + 1);
    text[4] = '=';
    (void)snprintf(text + bytes + 1, strlen(behind) + 1, "%s", behind);
    return text;
}

static void test_size_limits(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    char *most = cookie_of(COOKIES_MAX_BYTES, ""), *more = cookie_of(COOKIES_MAX_BYTES + 1, "");
    set_at(&jar, "http://a.b/", more, NOW);
    assert_null(jar);
    set_at(&jar, "http://a.b/", most, NOW);
    assert_string_equal(header_at(jar, "http://a.b/", NOW), most);
    cookies_free(jar);
    free(most);
    free(more);
}

static void test_long_attributes_are_not_there(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    char header[64 + COOKIES_MAX_PATH_BYTES], url[64 + COOKIES_MAX_PATH_BYTES];
    (void)snprintf(header, sizeof header, "a=1; Path=/%0*d", COOKIES_MAX_PATH_BYTES, 0);
    set_at(&jar, "http://a.b/x/", header, NOW);
    (void)snprintf(header, sizeof header, "b=1; Path=/%0*d", COOKIES_MAX_PATH_BYTES - 1, 0);
    set_at(&jar, "http://a.b/x/", header, NOW);
    assert_string_equal(header_at(jar, "http://a.b/x", NOW), "a=1");
    (void)snprintf(url, sizeof url, "http://a.b/%0*d", COOKIES_MAX_PATH_BYTES - 1, 0);
    assert_string_equal(header_at(jar, url, NOW), "b=1");
    (void)snprintf(url, sizeof url, "http://a.b/%0*d/", COOKIES_MAX_PATH_BYTES, 0);
    set_at(&jar, url, "c=1", NOW); /* its default path is too long */
    assert_int_equal(cookies_count(jar), 2);
    cookies_free(jar);
}

static void set_numbered(struct cookies **jar, int domain, int number)
{
    char url[64], header[64];
    (void)snprintf(url, sizeof url, "http://d%d.example/", domain);
    (void)snprintf(header, sizeof header, "n%d=%d", number, number);
    set_at(jar, url, header, NOW);
}

static bool holds(struct cookies *jar, int domain, int number)
{
    struct buf b;
    char url[64], text[64];
    (void)snprintf(url, sizeof url, "http://d%d.example/", domain);
    (void)snprintf(text, sizeof text, "n%d=%d", number, number);
    struct cookie_place to = place(url);
    buf_init(&b, COOKIES_MAX_HEADER_BYTES);
    assert_int_equal(cookies_header(jar, &to, NOW, &b), 0);
    struct str rest = buf_str(&b), part;
    bool found = false;
    while (b.len && str_next(&rest, ';', &part))
        found |= str_eq(str_trim(part), str_of(text));
    buf_done(&b);
    return found;
}

static void test_a_domain_has_room_for_so_many(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    for (int n = 0; n < COOKIES_MAX_PER_DOMAIN; n++)
        set_numbered(&jar, 1, n);
    set_numbered(&jar, 2, 0);
    set_numbered(&jar, 1, 0); /* set anew: the oldest unused one is now the next */
    set_numbered(&jar, 1, COOKIES_MAX_PER_DOMAIN);
    assert_int_equal(cookies_count(jar), COOKIES_MAX_PER_DOMAIN + 1);
    assert_true(holds(jar, 1, 0));
    assert_false(holds(jar, 1, 1));
    assert_true(holds(jar, 1, 2));
    assert_true(holds(jar, 1, COOKIES_MAX_PER_DOMAIN));
    assert_true(holds(jar, 2, 0));
    cookies_free(jar);
}

static void test_a_jar_has_room_for_so_many(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    for (int n = 0; n < COOKIES_MAX; n++)
        set_numbered(&jar, n, 7);
    assert_int_equal(cookies_count(jar), COOKIES_MAX);
    assert_true(holds(jar, 0, 7)); /* used: the next one goes */
    set_numbered(&jar, COOKIES_MAX, 7);
    assert_int_equal(cookies_count(jar), COOKIES_MAX);
    assert_true(holds(jar, 0, 7));
    assert_false(holds(jar, 1, 7));
    assert_true(holds(jar, 2, 7));
    assert_true(holds(jar, COOKIES_MAX, 7));
    cookies_free(jar);
}

static void test_expired_ones_make_room_first(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    for (int n = 0; n < COOKIES_MAX_PER_DOMAIN - 1; n++)
        set_numbered(&jar, 1, n);
    set_at(&jar, "http://d1.example/", "gone=1; Max-Age=1", NOW - 10);
    set_numbered(&jar, 1, COOKIES_MAX_PER_DOMAIN);
    assert_int_equal(cookies_count(jar), COOKIES_MAX_PER_DOMAIN);
    assert_true(holds(jar, 1, 0));
    cookies_free(jar);
}

static void test_header_is_appended(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    struct cookie_place to = place("http://a.b/");
    struct buf b;
    buf_init(&b, 12);
    assert_int_equal(buf_add(&b, STR("Cookie: ")), 0);
    set_at(&jar, "http://a.b/", "a=1", NOW);
    assert_int_equal(cookies_header(jar, &to, NOW, &b), 0);
    assert_string_equal(buf_c(&b), "Cookie: a=1");
    assert_int_equal(cookies_header(jar, &to, NOW, &b), -ERANGE);
    buf_done(&b);
    cookies_free(jar);
}

/* Each allocation fails once: the jar stays as it was, and setting again works. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    struct cookies *jar = NULL;
    struct cookie_place at = place("http://a.b/");
    for (int n = 0; n < 40; n++) {
        char header[32];
        (void)snprintf(header, sizeof header, "n%d=1", n % 30); /* ten replace others */
        size_t before = cookies_count(jar);
        bool failed = true;
        for (unsigned long k = 1; failed; k++) {
            alloc_fail_at(k);
            int rc = cookies_set(&jar, str_of(header), &at, NOW);
            failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            assert_int_equal(cookies_count(jar), before + (!failed && n < 30));
        }
    }
    cookies_free(jar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_no_cookies_no_jar),
        cmocka_unit_test(test_expired_cookies_leave),
        cmocka_unit_test(test_size_limits),
        cmocka_unit_test(test_long_attributes_are_not_there),
        cmocka_unit_test(test_a_domain_has_room_for_so_many),
        cmocka_unit_test(test_a_jar_has_room_for_so_many),
        cmocka_unit_test(test_expired_ones_make_room_first),
        cmocka_unit_test(test_header_is_appended),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
