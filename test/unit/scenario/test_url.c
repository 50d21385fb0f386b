#include "worker/scenario/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LONG_HOST                                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"             \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"             \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"             \
    "aaaaaaaaaaaaaaaa"

static void assert_part(struct str got, const char *want)
{
    assert_int_equal(got.ptr == NULL, want == NULL);
    assert_true(str_eq(got, str_of(want)));
}

static void test_parts_of_a_url(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool tls;
        const char *userinfo, *host, *zone;
        bool ipv6;
        unsigned port;
        bool port_given;
        const char *path, *query;
    } cases[] = {
        {"http://h", false, NULL, "h", NULL, false, 80, false, "", NULL},
        {"https://h/", true, NULL, "h", NULL, false, 443, false, "/", NULL},
        {"HTTPS://H.example:8443/a/b?c=d?e#f", true, NULL, "H.example", NULL, false, 8443, true,
         "/a/b", "c=d?e"},
        {"http://h:/x", false, NULL, "h", NULL, false, 80, false, "/x", NULL},
        {"http://h?q", false, NULL, "h", NULL, false, 80, false, "", "q"},
        {"http://h/?", false, NULL, "h", NULL, false, 80, false, "/", ""},
        {"http://h#f/?x", false, NULL, "h", NULL, false, 80, false, "", NULL},
        {"http://u:p@ss@h:1/", false, "u:p@ss", "h", NULL, false, 1, true, "/", NULL},
        {"http://@h/", false, "", "h", NULL, false, 80, false, "/", NULL},
        {"http://h/a@b:c", false, NULL, "h", NULL, false, 80, false, "/a@b:c", NULL},
        {"http://127.0.0.1:65535", false, NULL, "127.0.0.1", NULL, false, 65535, true, "", NULL},
        {"http://[::1]:8080/x", false, NULL, "::1", NULL, true, 8080, true, "/x", NULL},
        {"http://[fe80::1%25eth0]:8080/", false, NULL, "fe80::1", "eth0", true, 8080, true, "/",
         NULL},
        {"http://[fe80::1%eth0]", false, NULL, "fe80::1", "eth0", true, 80, false, "", NULL},
        {"http://[::ffff:1.2.3.4]/", false, NULL, "::ffff:1.2.3.4", NULL, true, 80, false, "/",
         NULL},
        {"http://u@[::1]", false, "u", "::1", NULL, true, 80, false, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct url u;
        struct err err = {0};
        print_message("%s\n", cases[i].text);
        assert_int_equal(url_parse(str_of(cases[i].text), &u, &err), 0);
        assert_int_equal(u.tls, cases[i].tls);
        assert_part(u.userinfo, cases[i].userinfo);
        assert_part(u.host, cases[i].host);
        assert_part(u.zone, cases[i].zone);
        assert_int_equal(u.ipv6, cases[i].ipv6);
        assert_int_equal(u.port, cases[i].port);
        assert_int_equal(u.port_given, cases[i].port_given);
        assert_part(u.path, cases[i].path);
        assert_part(u.query, cases[i].query);
    }
}

static void test_refused_urls_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "is empty"},
        {"h", "has no scheme: write http://… or https://…"},
        {"h:8080", "has no scheme: write http://… or https://…"},
        {"//h/x", "has no scheme: write http://… or https://…"},
        {"/x?u=http://h", "has no scheme: write http://… or https://…"},
        {"http:/h", "has no '//' behind its scheme"},
        {"ws://h", "has the scheme 'ws': only http and https are known"},
        {"http://", "has no host"},
        {"http://:80", "has no host"},
        {"http://u@/", "has no host"},
        {"http://h:0", "has a port that is not a number from 1 to 65535"},
        {"http://h:+1", "has a port that is not a number from 1 to 65535"},
        {"http://h:65536", "has a port that is not a number from 1 to 65535"},
        {"http://h:18446744073709551617", "has a port that is not a number from 1 to 65535"},
        {"http://[::1]x", "has something other than a port behind ']'"},
        {"http://[::1", "has no ']' behind its IPv6 address"},
        {"http://[]", "has no valid IPv6 address in its brackets"},
        {"http://[1.2.3.4]", "has no valid IPv6 address in its brackets"},
        {"http://[::1%25]", NULL}, /* the zone with the number 25 */
        {"http://[::1%]", "has no valid zone behind its IPv6 address"},
        {"http://::1/", "has two ':' in its host: an IPv6 address needs [brackets]"},
        {"http://h\\x", "has the character '\\' in its host"},
        {"http://h/a b", "has a space at position 11"},
        {"http://h/\t", "has a control character at position 10"},
        {"http://h/\x7F", "has a control character at position 10"},
        {"http://h/é", "has a character outside ASCII at position 10"},
        {"http://256.1.1.1", "has the host '256.1.1.1', which is no IPv4 address"},
        {"http://u@1.2.3.999:80/x", "has the host '1.2.3.999', which is no IPv4 address"},
        {"http://1.2.4294967297.4", "has the host '1.2.4294967297.4', which is no IPv4 address"},
        {"http://255.255.255.255", NULL},
        {"http://256.1.1", NULL}, /* what resolvers know or do not */
        {"http://256.1.1.1.nip.example", NULL},
        {"http://256.1.1.1x", NULL},
        {"http://256.1..1", NULL},
        {"http://" LONG_HOST, "has a host of more than 255 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct url u;
        struct err err = {0};
        int rc = url_parse(str_of(cases[i].text), &u, &err);
        assert_int_equal(rc, cases[i].why ? -EINVAL : 0);
        if (cases[i].why)
            assert_string_equal(err.text, cases[i].why);
        assert_int_equal(url_parse(str_of(cases[i].text), &u, NULL), rc);
    }
}

static void test_a_host_has_no_query(void **state)
{
    (void)state;
    static const char *const refused[] = {"http://h?a", "http://h/#a", "http://h#"};
    struct url u;
    for (size_t i = 0; i < 3; i++) {
        struct err err = {0};
        assert_int_equal(url_parse_host(str_of(refused[i]), &u, &err), -EINVAL);
        assert_string_equal(err.text, "has a query or a fragment, which a host cannot have");
    }
    assert_int_equal(url_parse_host(STR("http://h/api/"), &u, NULL), 0);
}

#define PROXY_PATH "has a path, a query or a fragment, which a proxy cannot have"
#define PROXY_SCHEMES                                                                              \
    "must begin with http://, https://, socks4://, socks4a://, socks5:// or socks5h://"

static void test_a_proxy(void **state)
{
    (void)state;
    static const struct {
        const char *text, *userinfo, *host;
        unsigned port;
        const char *error;
    } cases[] = {
        {"http://p:3128", "", "p", 3128, ""},
        {"HTTPS://p:443/", "", "p", 443, ""},
        {"socks5h://a:b%40@p:1", "a:b%40", "p", 1, ""},
        {"socks4a://[::1]:1080", "", "::1", 1080, ""},
        {"", "", "", 0, "is empty"},
        {"p:3128", "", "", 0, PROXY_SCHEMES},
        {"socks6://p:1", "", "", 0, PROXY_SCHEMES},
        {"socks://p:1", "", "", 0, PROXY_SCHEMES},
        {"http://:1", "", "", 0, "has no host"},
        {"socks5://p", "", "", 0, "has no port: write socks5://host:port"},
        {"http://p:", "", "", 0, "has no port: write http://host:port"},
        {"http://p:1/x", "", "", 0, PROXY_PATH},
        {"http://p:1?x", "", "", 0, PROXY_PATH},
        {"http://p :1", "", "", 0, "has a space at position 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct url u = {0};
        struct err err = {0};
        int rc = url_parse_proxy(str_of(cases[i].text), &u, &err);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(rc, err.code);
        assert_true(str_eq(u.host, str_of(cases[i].host)));
        assert_true(str_eq(u.userinfo, str_of(cases[i].userinfo)));
        assert_int_equal(u.port, cases[i].port);
    }
}

static void test_absolute(void **state)
{
    (void)state;
    assert_true(url_is_absolute(STR("http://h")));
    assert_true(url_is_absolute(STR("HttpS://h")));
    assert_false(url_is_absolute(STR("/x")));
    assert_false(url_is_absolute(STR("//h/x")));
    assert_false(url_is_absolute(STR("http:/x")));
    assert_false(url_is_absolute(STR("ftp://h")));
    assert_false(url_is_absolute(STR("")));
}

static void test_scheme(void **state)
{
    (void)state;
    assert_true(url_has_scheme(STR("mailto:x")));
    assert_true(url_has_scheme(STR("localhost:8080/x")));
    assert_true(url_has_scheme(STR("http://h")));
    assert_false(url_has_scheme(STR("")));
    assert_false(url_has_scheme(STR("/a:b")));
    assert_false(url_has_scheme(STR("a?b:c")));
    assert_false(url_has_scheme(STR("a#b:c")));
    assert_false(url_has_scheme(STR("a")));
}

static void test_join(void **state)
{
    (void)state;
    static const struct {
        const char *host, *path, *joined;
    } cases[] = {
        {"http://h/api/", "/x", "http://h/api/x"},
        {"http://h/api/", "x", "http://h/api/x"},
        {"http://h/api", "/x", "http://h/api/x"},
        {"http://h/api", "x", "http://h/api/x"},
        {"http://h", "/", "http://h/"},
        {"http://h/", "/", "http://h/"},
        {"http://h/", "", "http://h/"},
        {"http://h", "", "http://h"},
        {"http://h/api", "?a=1", "http://h/api?a=1"},
        {"http://h/api/", "http://other/y", "http://other/y"},
        {"http://h/api/", "HTTPS://other/y", "HTTPS://other/y"},
        {"http://h", "//x", "http://h//x"},
        {"http://[::1]:8080", "/x", "http://[::1]:8080/x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(url_join(&out, str_of(cases[i].host), str_of(cases[i].path)), 0);
        assert_string_equal(buf_c(&out), cases[i].joined);
        buf_done(&out);
        buf_init(&out, 5);
        assert_int_equal(url_join(&out, str_of(cases[i].host), str_of(cases[i].path)), -ERANGE);
        buf_done(&out);
    }
}

/* path_url of a request prepared by requests 2.34 with urllib3 2.8 */
static void test_encode_is_that_of_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text, *encoded;
    } cases[] = {
        {"/", "/"},
        {"/x", "/x"},
        {"x", "/x"},
        {"/a b", "/a%20b"},
        {"/a%20b", "/a%20b"},
        {"/a%2fb", "/a%2Fb"},
        {"/%7Euser", "/~user"},
        {"/%41%zz", "/%2541%25zz"},
        {"/100%", "/100%25"},
        {"/%2f%", "/%252F%25"},
        {"/%%41", "/%25%2541"},
        {"/é", "/%C3%A9"},
        {"/ü?ß=é", "/%C3%BC?%C3%9F=%C3%A9"},
        {"/a?b c", "/a?b%20c"},
        {"/a?b=[1]|^`{}\\\"<>", "/a?b=%5B1%5D%7C%5E%60%7B%7D%5C%22%3C%3E"},
        {"/[1]{2}|3^4`5\"6<7>8\\9", "/%5B1%5D%7B2%7D%7C3%5E4%605%226%3C7%3E8%5C9"},
        {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"/a/b/..", "/a/"},
        {"/a/.", "/a/"},
        {"/..", "/"},
        {"/../x", "/x"},
        {"/..//x", "/x"},
        {"/../..//../y/", "/y/"},
        {"/a//b", "/a//b"},
        {"/a//../b", "/a/b"},
        {"//a//b", "//a//b"},
        {"/%2e%2e/x", "/../x"},
        {"/%2E/x", "/./x"},
        {"/x#f", "/x"},
        {"/x?#f", "/x"},
        {"/x?a#f", "/x?a"},
        {"/?", "/"},
        {"/a?b?c/d", "/a?b?c/d"},
        {"/:@!$&'()*+,;=-._~", "/:@!$&'()*+,;=-._~"},
        {"/?:@!$&'()*+,;=-._~", "/?:@!$&'()*+,;=-._~"},
        {"/a;b=c", "/a;b=c"},
        {"/😀", "/%F0%9F%98%80"},
        {"/a%c3%a9", "/a%C3%A9"},
        {"/é%20%", "/%C3%A9%2520%25"},
        {"/x?a=%", "/x?a=%25"},
        {"/x?a=%20%e9", "/x?a=%20%E9"},
        {"/../x/..//y", "/y"},
        {"/x/..", "/"},
        {"/x/../", "/"},
        {"/./", "/"},
        {"/.", "/"},
        {"/.a/..b/...", "/.a/..b/..."},
        {"/a\177b", "/a%7Fb"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, 1000);
        assert_int_equal(url_encode(&out, str_of(cases[i].text)), 0);
        assert_string_equal(buf_c(&out), cases[i].encoded);
        buf_done(&out);
    }
}

static void test_encode_keeps_the_origin(void **state)
{
    (void)state;
    static const struct {
        const char *text, *encoded, *target;
    } cases[] = {
        {"http://h", "http://h/", "/"},
        {"http://h?a b", "http://h/?a%20b", "/?a%20b"},
        {"http://h#f", "http://h/", "/"},
        {"HTTP://u:p@[::1]:80/a b#c", "HTTP://u:p@[::1]:80/a%20b", "/a%20b"},
        {"https://h/../a?http://x", "https://h/a?http://x", "/a?http://x"},
        {"/a?http://x/..", "/a?http://x/..", "/a?http://x/.."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, 1000);
        assert_int_equal(url_encode(&out, str_of(cases[i].text)), 0);
        assert_string_equal(buf_c(&out), cases[i].encoded);
        assert_true(str_eq(url_target(buf_str(&out)), str_of(cases[i].target)));
        buf_done(&out);
    }
}

static void test_encode_is_bounded(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 6);
    assert_int_equal(url_encode(&out, STR("/é")), -ERANGE);
    buf_done(&out);
    buf_init(&out, 7);
    assert_int_equal(url_encode(&out, STR("/é")), 0);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_a_url),
        cmocka_unit_test(test_refused_urls_say_why),
        cmocka_unit_test(test_a_host_has_no_query),
        cmocka_unit_test(test_a_proxy),
        cmocka_unit_test(test_absolute),
        cmocka_unit_test(test_scheme),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_encode_is_that_of_requests),
        cmocka_unit_test(test_encode_keeps_the_origin),
        cmocka_unit_test(test_encode_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
