/* What is kept of a response, for every way in which its bytes may come: as the fast engine reads.
 */
#include "worker/engine/http_response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

#define BUFFER_BYTES 512

struct reading {
    struct http_engine_setup setup;
    struct http_keeper keeper;
    struct http_call call;
    struct http_parser parser;
    struct http_response response;
    struct http_result result;
    struct http_kept *kept;
};

static void no_cookie(void *owner, struct str value)
{
    (void)owner;
    (void)value;
}

static void begin(struct reading *r, bool wants_head, size_t wants_body_bytes)
{
    *r = (struct reading){
        .call = {.wants_head = wants_head, .wants_body_bytes = wants_body_bytes},
        .setup.set_cookie = no_cookie,
    };
    r->setup.keeper = &r->keeper;
    http_parser_init(&r->parser);
    http_parser_begin(&r->parser, false);
    http_response_begin(&r->response, &r->call, &r->setup);
}

/* True at the end of the response. */
static bool take(struct reading *r, struct str input)
{
    for (;;) {
        switch (http_parser_next(&r->parser, &input)) {
        case HTTP_EVENT_HEAD:
            http_response_head(&r->response, &r->parser, &r->setup, NULL);
            break;
        case HTTP_EVENT_BODY:
            assert_int_equal(http_response_body(&r->response, r->parser.body), HTTP_FAILURE_NONE);
            break;
        case HTTP_EVENT_DONE:
            return true;
        case HTTP_EVENT_FAILED:
            fail_msg("failed");
            return true;
        case HTTP_EVENT_MORE:
            http_response_settle(&r->response);
            return false;
        }
    }
}

/* The bytes in pieces, each through the same buffer, which holds nothing of the one before. */
static void read_in_pieces(struct reading *r, struct str bytes, size_t first, size_t further)
{
    static char buffer[BUFFER_BYTES + 1];
    size_t at = 0, n = first;
    bool done = false;
    while (!done) {
        struct str piece = str_sub(bytes, at, at + n);
        assert_true(piece.len > 0);
        memset(buffer, '#', sizeof buffer);
        memcpy(buffer, piece.ptr, piece.len);
        done = take(r, (struct str){buffer, piece.len});
        at += piece.len;
        n = further;
    }
    http_response_end(&r->response);
    r->kept = http_response_take_kept(&r->response, &r->result);
}

static void end(struct reading *r)
{
    http_kept_release(r->kept);
    http_response_done(&r->response);
    http_parser_done(&r->parser);
    http_keeper_done(&r->keeper);
}

static void expect(const struct reading *r, const char *body, bool cut, const char *label, size_t n)
{
    struct str rest = r->result.head, name, value = {NULL, 0};
    bool found = false;
    while (rest.len && !found && http_parser_header(&rest, &name, &value))
        found = str_eq(name, STR("X-Last"));
    if (!found || !str_eq(value, STR("yes")))
        fail_msg("%s, %zu: no head", label, n);
    if (!str_eq(r->result.body, str_of(body)) || r->result.body_cut != cut)
        fail_msg("%s, %zu: '%.*s'", label, n, STR_ARG(r->result.body));
    if (r->result.body.len > 0 && r->result.body.ptr[r->result.body.len] != '\0')
        fail_msg("%s, %zu: no NUL", label, n);
}

static const struct {
    const char *label;
    const char *bytes;
    size_t wants;
    const char *body;
    bool cut;
} cases[] = {
    {"length", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-Last: yes\r\n\r\nhello world", 100,
     "hello world", false},
    {"exactly", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-Last: yes\r\n\r\nhello world", 11,
     "hello world", false},
    {"limit", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-Last: yes\r\n\r\nhello world", 5, "hello",
     true},
    {"head only", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-Last: yes\r\n\r\nhello world", 0, "",
     false},
    {"empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Last: yes\r\n\r\n", 100, "", false},
    {"chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Last: yes\r\n\r\n5\r\nhello\r\n1\r\n \r\n"
     "5\r\nworld\r\n0\r\n\r\n",
     100, "hello world", false},
    {"one chunk",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Last: yes\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     100, "hello", false},
    {"chunks over the limit",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Last: yes\r\n\r\n5\r\nhello\r\n1\r\n \r\n"
     "5\r\nworld\r\n0\r\n\r\n",
     7, "hello w", true},
};

static void test_what_is_wanted_is_there_however_the_bytes_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str bytes = str_of(cases[i].bytes);
        for (size_t first = 1; first <= bytes.len; first++) {
            struct reading r;
            begin(&r, true, cases[i].wants);
            read_in_pieces(&r, bytes, first, bytes.len);
            expect(&r, cases[i].body, cases[i].cut, cases[i].label, first);
            end(&r);
        }
        struct reading drip;
        begin(&drip, true, cases[i].wants);
        read_in_pieces(&drip, bytes, 1, 1);
        expect(&drip, cases[i].body, cases[i].cut, cases[i].label, 0);
        end(&drip);
    }
}

static void test_a_response_in_one_piece_is_not_copied(void **state)
{
    (void)state;
    struct reading r;
    struct str bytes = str_of(cases[0].bytes);
    begin(&r, true, 100);
    read_in_pieces(&r, bytes, bytes.len, 1);
    assert_null(r.kept);
    assert_null(r.keeper.spare);
    expect(&r, "hello world", false, "one piece", 0);
    end(&r);
}

static void test_who_wants_nothing_gets_nothing(void **state)
{
    (void)state;
    struct reading r;
    struct str bytes = str_of(cases[0].bytes);
    begin(&r, false, 0);
    read_in_pieces(&r, bytes, 30, 7);
    assert_null(r.kept);
    assert_null(r.result.head.ptr);
    assert_null(r.result.body.ptr);
    assert_int_equal(r.response.body_bytes, 11);
    end(&r);
}

static void test_a_coded_body_is_kept_decoded(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nX-Last: yes\r\n"
                               "Content-Length: %zu\r\n\r\n";
    char bytes[BUFFER_BYTES];
    unsigned char coded[64];
    uLongf length = sizeof coded;
    assert_int_equal(compress(coded, &length, (const unsigned char *)"hello world", 11), Z_OK);
    int n = snprintf(bytes, sizeof bytes, head, (size_t)length);
    memcpy(bytes + n, coded, length);
    struct str all = {bytes, (size_t)n + length};
    for (size_t first = 1; first <= all.len; first++) {
        struct reading r;
        begin(&r, true, 5);
        read_in_pieces(&r, all, first, 3);
        expect(&r, "hello", true, "coded", first);
        assert_int_equal(r.response.body_bytes, 11);
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wanted_is_there_however_the_bytes_come),
        cmocka_unit_test(test_a_response_in_one_piece_is_not_copied),
        cmocka_unit_test(test_who_wants_nothing_gets_nothing),
        cmocka_unit_test(test_a_coded_body_is_kept_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
