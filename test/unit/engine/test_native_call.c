#include "worker/engine/native_call.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOST STR("http://127.0.0.1:8080/api")

struct fixture {
    struct binding binding;
    struct native_calls *calls;
    struct str host;
};

static void open(struct fixture *f)
{
    *f = (struct fixture){.calls = native_calls_new(&http_fast_ops), .host = HOST};
    assert_non_null(f->calls);
    atomic_init(&f->binding.references, 1);
}

static void close(struct fixture *f)
{
    native_calls_free(f->calls);
    assert_int_equal(atomic_load(&f->binding.references), 1);
}

static struct native_call *plain(struct fixture *f, const char *url)
{
    const struct native_ask ask = {.method = "GET", .url = url};
    struct native_call *c = native_call_get(f->calls, &f->binding, f->host, &ask);
    assert_non_null(c);
    return c;
}

static struct native_call *whole(struct fixture *f, const struct cicada_request *request)
{
    const struct native_ask ask = {.whole = request};
    struct native_call *c = native_call_get(f->calls, &f->binding, f->host, &ask);
    assert_non_null(c);
    return c;
}

static void put_back(struct fixture *f, struct native_call *c)
{
    native_call_release(f->calls, c);
}

static void test_the_same_text_is_the_same_call(void **state)
{
    (void)state;
    struct fixture f;
    open(&f);
    char a[16] = "/x", b[16] = "/x";
    struct native_call *c = plain(&f, a);
    assert_string_equal(c->call.url.ptr, "http://127.0.0.1:8080/api/x");
    assert_null(c->error);
    assert_ptr_equal(plain(&f, a), c);
    assert_ptr_equal(plain(&f, b), c);
    assert_ptr_equal(plain(&f, a), c);
    const struct cicada_request request = {.url = b};
    assert_ptr_equal(whole(&f, &request), c);
    for (int i = 0; i < 5; i++)
        put_back(&f, c);
    close(&f);
}

static void test_the_same_place_with_another_text_is_another_call(void **state)
{
    (void)state;
    struct fixture f;
    open(&f);
    char url[16] = "/x";
    struct native_call *x = plain(&f, url);
    url[1] = 'y';
    struct native_call *y = plain(&f, url);
    assert_ptr_not_equal(x, y);
    assert_string_equal(y->call.url.ptr, "http://127.0.0.1:8080/api/y");
    url[1] = 'x';
    assert_ptr_equal(plain(&f, url), x);
    put_back(&f, x);
    put_back(&f, x);
    put_back(&f, y);
    close(&f);
}

static void test_each_part_tells_calls_apart(void **state)
{
    (void)state;
    const struct cicada_header one[] = {{"A", "1"}, {NULL, NULL}};
    const struct cicada_header two[] = {{"A", "2"}, {NULL, NULL}};
    const struct cicada_header both[] = {{"A", "1"}, {"B", "1"}, {NULL, NULL}};
    const struct cicada_request requests[] = {
        {.url = "/"},
        {.url = "/", .method = "PUT"},
        {.url = "/", .name = "n"},
        {.url = "/", .headers = one},
        {.url = "/", .headers = two},
        {.url = "/", .headers = both},
        {.url = "/", .body = "b", .body_length = 1},
        {.url = "/", .body = "b", .body_length = 0},
        {.url = "/", .timeout_s = 1},
        {.url = "/", .connect_timeout_s = 1},
        {.url = "/", .no_redirects = true},
        {.url = "/", .body_limit = 1},
        {.url = "/", .body_limit = CICADA_NO_BODY},
    };
    enum { COUNT = sizeof requests / sizeof *requests };
    struct native_call *calls[COUNT];
    struct fixture f;
    open(&f);
    for (size_t i = 0; i < COUNT; i++) {
        calls[i] = whole(&f, &requests[i]);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(calls[i], calls[j]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(whole(&f, &requests[i]), calls[i]);
        put_back(&f, calls[i]);
        put_back(&f, calls[i]);
    }
    struct str other = STR("http://127.0.0.2");
    f.host = other;
    struct native_call *elsewhere = whole(&f, &requests[0]);
    assert_ptr_not_equal(elsewhere, calls[0]);
    put_back(&f, elsewhere);
    close(&f);
}

static void test_what_is_kept_is_bounded_and_what_is_used_stays(void **state)
{
    (void)state;
    struct fixture f;
    open(&f);
    struct native_call *used = plain(&f, "/used");
    for (unsigned i = 0; i < 20000; i++) {
        char url[32];
        (void)snprintf(url, sizeof url, "/items/%u", i);
        put_back(&f, plain(&f, url));
    }
    assert_in_range(atomic_load(&f.binding.references), 2, NATIVE_CALL_SETS * 4 + 1);
    assert_string_equal(used->url.ptr, "/used");
    assert_ptr_equal(plain(&f, "/used"), used);
    put_back(&f, used);
    put_back(&f, used);
    close(&f);
}

static void test_a_large_body_is_not_kept(void **state)
{
    (void)state;
    struct fixture f;
    open(&f);
    char *body = calloc(1, NATIVE_CALL_KEPT_BYTES);
    assert_non_null(body);
    const struct cicada_request request = {
        .url = "/", .body = body, .body_length = NATIVE_CALL_KEPT_BYTES};
    struct native_call *c = whole(&f, &request);
    assert_false(c->kept);
    assert_int_equal(atomic_load(&f.binding.references), 2);
    put_back(&f, c);
    assert_int_equal(atomic_load(&f.binding.references), 1);
    free(body);
    close(&f);
}

static void test_what_cannot_be_sent_says_why(void **state)
{
    (void)state;
    const struct cicada_header folded[] = {{"A", "1\r\n 2"}, {NULL, NULL}};
    const struct cicada_header length[] = {{"content-length", "1"}, {NULL, NULL}};
    const struct cicada_header space[] = {{"A B", "1"}, {NULL, NULL}};
    const struct {
        const char *label;
        struct cicada_request request;
        const char *error;
    } cases[] = {
        {"good", {.url = "x y"}, NULL},
        {"absolute", {.url = "https://x.example:1/"}, NULL},
        {"no url", {.url = NULL}, "request with an empty or too long URL"},
        {"empty", {.url = ""}, "request with an empty or too long URL"},
        {"scheme", {.url = "ftp://x/"}, "request to an invalid URL"},
        {"port", {.url = "http://x:99999/"}, "request to an invalid URL"},
        {"method", {.url = "/", .method = "A B"}, "request with an invalid method"},
        {"no method", {.url = "/", .method = ""}, "request with an invalid method"},
        {"folded", {.url = "/", .headers = folded}, "request with an invalid header"},
        {"length", {.url = "/", .headers = length}, "request with an invalid header"},
        {"name", {.url = "/", .headers = space}, "request with an invalid header"},
    };
    struct fixture f;
    open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct native_call *c = whole(&f, &cases[i].request);
        const char *error = c->error ? c->error : "none";
        if (strcmp(error, cases[i].error ? cases[i].error : "none") != 0)
            fail_msg("%s: %s", cases[i].label, error);
        put_back(&f, c);
    }
    f.host = (struct str){NULL, 0};
    struct native_call *c = plain(&f, "/");
    assert_string_equal(c->error, "request to a path without a host");
    put_back(&f, c);
    close(&f);
}

static void test_a_failing_allocation_makes_no_call(void **state)
{
    (void)state;
    const struct cicada_header one[] = {{"A", "1"}, {NULL, NULL}};
    const struct cicada_request request = {
        .url = "/", .headers = one, .body = "b", .body_length = 1};
    const struct native_ask ask = {.whole = &request};
    struct fixture f;
    open(&f);
    struct native_call *c = NULL;
    for (unsigned n = 1; !c; n++) {
        alloc_fail_at(n);
        c = native_call_get(f.calls, &f.binding, f.host, &ask);
        alloc_fail_at(0);
        if (!c)
            assert_int_equal(atomic_load(&f.binding.references), 1);
    }
    put_back(&f, c);
    close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_text_is_the_same_call),
        cmocka_unit_test(test_the_same_place_with_another_text_is_another_call),
        cmocka_unit_test(test_each_part_tells_calls_apart),
        cmocka_unit_test(test_what_is_kept_is_bounded_and_what_is_used_stays),
        cmocka_unit_test(test_a_large_body_is_not_kept),
        cmocka_unit_test(test_what_cannot_be_sent_says_why),
        cmocka_unit_test(test_a_failing_allocation_makes_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
