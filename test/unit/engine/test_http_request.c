#include "worker/engine/http_request.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define AGENT     "User-Agent: cicada/" CICADA_VERSION "\r\n"
#define MAX_GIVEN 3

static const struct {
    const char *label, *method, *url;
    const char *headers[2 * MAX_GIVEN]; /* name, value, name, … */
    const char *body;                   /* NULL: none */
    const char *want;
} cases[] = {
    {"plain",
     "GET",
     "http://h/x?y=1",
     {NULL},
     NULL,
     "GET /x?y=1 HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"no path",
     "GET",
     "http://h",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"query without a path",
     "GET",
     "http://h?q",
     {NULL},
     NULL,
     "GET /?q HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"port",
     "GET",
     "http://h:8080/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h:8080\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"usual port, given",
     "GET",
     "https://h:443/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"the other scheme's port",
     "GET",
     "http://h:443/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h:443\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"IPv6",
     "GET",
     "http://[::1]:8080/x",
     {NULL},
     NULL,
     "GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"IPv6 with a zone",
     "GET",
     "http://[fe80::1%25eth0]:8080/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: [fe80::1]:8080\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"user and password",
     "GET",
     "http://Aladdin:open%20sesame@h/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT
     "Accept: */*\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"},
    {"user alone",
     "GET",
     "http://u@h/",
     {NULL},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\nAuthorization: Basic dTo=\r\n\r\n"},
    {"the user's own authorization wins",
     "GET",
     "http://u:p@h/",
     {"authorization", "Bearer t"},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\nauthorization: Bearer t\r\n\r\n"},
    {"the user's own headers replace ours",
     "GET",
     "http://h/",
     {"host", "other", "ACCEPT", "a/b", "user-agent", ""},
     NULL,
     "GET / HTTP/1.1\r\nhost: other\r\nACCEPT: a/b\r\nuser-agent: \r\n\r\n"},
    {"connection",
     "GET",
     "http://h/",
     {"connection", "keep-alive"},
     NULL,
     "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\nconnection: keep-alive\r\n\r\n"},
    {"body",
     "POST",
     "http://h/",
     {"Content-Type", "a/b"},
     "hello",
     "POST / HTTP/1.1\r\nHost: h\r\n" AGENT
     "Accept: */*\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello"},
    {"empty body",
     "DELETE",
     "http://h/",
     {NULL},
     "",
     "DELETE / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\nContent-Length: 0\r\n\r\n"},
    {"POST without a body",
     "POST",
     "http://h/",
     {NULL},
     NULL,
     "POST / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\nContent-Length: 0\r\n\r\n"},
    {"DELETE without a body",
     "DELETE",
     "http://h/",
     {NULL},
     NULL,
     "DELETE / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"a method of one's own",
     "PURGE",
     "http://h/",
     {NULL},
     NULL,
     "PURGE / HTTP/1.1\r\nHost: h\r\n" AGENT "Accept: */*\r\n\r\n"},
};

static struct http_call call_of(size_t i, struct plan_header headers[static MAX_GIVEN])
{
    size_t n = 0;
    for (; n < MAX_GIVEN && cases[i].headers[2 * n]; n++) {
        headers[n].name = str_of(cases[i].headers[2 * n]);
        headers[n].value = str_of(cases[i].headers[2 * n + 1]);
    }
    return (struct http_call){
        .method = str_of(cases[i].method),
        .url = str_of(cases[i].url),
        .headers = headers,
        .header_count = n,
        .body = str_of(cases[i].body),
    };
}

static void test_requests_are_the_bytes_wanted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_header headers[MAX_GIVEN];
        struct http_call call = call_of(i, headers);
        struct http_request *r;
        assert_int_equal(http_request_new(&call, &r), 0);
        if (!str_eq(r->bytes, str_of(cases[i].want)))
            fail_msg("%s:\n%.*s", cases[i].label, STR_ARG(r->bytes));
        assert_int_equal(r->body_at, r->bytes.len - call.body.len);
        assert_true(str_eq(str_sub(r->bytes, r->head_len, r->body_at), STR("\r\n")));
        free(r);
    }
}

static void test_what_else_is_known_of_a_request(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        bool idempotent, no_body;
    } methods[] = {
        {"GET", true, false},    {"HEAD", true, true},     {"PUT", true, false},
        {"DELETE", true, false}, {"OPTIONS", true, false}, {"TRACE", true, false},
        {"POST", false, false},  {"PATCH", false, false},  {"PURGE", false, false},
        {"get", false, false}, /* methods are case-sensitive */
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct http_call call = {.method = str_of(methods[i].method), .url = STR("https://h/")};
        struct http_request *r;
        assert_int_equal(http_request_new(&call, &r), 0);
        assert_int_equal(r->idempotent, methods[i].idempotent);
        assert_int_equal(r->no_body, methods[i].no_body);
        assert_true(r->origin.tls);
        assert_int_equal(r->origin.port, 443);
        assert_string_equal(r->origin.host.ptr, "h");
        free(r);
    }
}

static void test_origin_of_an_address_with_a_zone(void **state)
{
    (void)state;
    struct http_call call = {.method = STR("GET"), .url = STR("http://[fe80::1%25eth0]:8080/")};
    struct http_request *r;
    assert_int_equal(http_request_new(&call, &r), 0);
    assert_string_equal(r->origin.host.ptr, "fe80::1");
    assert_string_equal(r->origin.zone.ptr, "eth0");
    assert_int_equal(r->origin.port, 8080);
    assert_false(r->origin.tls);
    free(r);
}

static void test_connection_close_is_noticed(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool closes;
    } given[] = {
        {"Connection", "close", true},
        {"connection", "CLOSE", true},
        {"Connection", "keep-alive", false},
        {"X-Connection", "close", false},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct plan_header header = {str_of(given[i].name), str_of(given[i].value)};
        struct http_call call = {
            .method = STR("GET"), .url = STR("http://h/"), .headers = &header, .header_count = 1};
        struct http_request *r;
        assert_int_equal(http_request_new(&call, &r), 0);
        assert_int_equal(r->close, given[i].closes);
        assert_int_equal(http_call_closes(&call), given[i].closes);
        free(r);
    }
}

static void test_what_is_no_url_is_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"", "h", "/x", "ftp://h/", "http://", "http://h:0x1/"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct http_call call = {.method = STR("GET"), .url = str_of(urls[i])};
        struct http_request *r = NULL;
        assert_int_equal(http_request_new(&call, &r), -EINVAL);
        assert_null(r);
    }
}

static void test_without_memory_nothing_leaks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc;
        unsigned long n = 0;
        do {
            struct plan_header headers[MAX_GIVEN];
            struct http_call call = call_of(i, headers);
            struct http_request *r = NULL;
            alloc_fail_at(++n);
            rc = http_request_new(&call, &r);
            bool failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            free(r);
        } while (rc != 0);
        assert_true(n > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_the_bytes_wanted),
        cmocka_unit_test(test_what_else_is_known_of_a_request),
        cmocka_unit_test(test_origin_of_an_address_with_a_zone),
        cmocka_unit_test(test_connection_close_is_noticed),
        cmocka_unit_test(test_what_is_no_url_is_refused),
        cmocka_unit_test(test_without_memory_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
