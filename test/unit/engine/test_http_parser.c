#include "worker/engine/http_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum end { DONE, MORE, FAILED };

struct result {
    enum end end;
    enum http_failure failure;
    unsigned status;
    size_t body;
    bool keep_alive;
    size_t rest; /* bytes behind the response */
    bool close_ends;
};

static const struct {
    const char *label;
    const char *bytes;
    bool head; /* the request was a HEAD */
    struct result want;
} cases[] = {
    {"length",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
     false,
     {DONE, 0, 200, 5, true, 0, true}},
    {"no reason",
     "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
     false,
     {DONE, 0, 200, 0, true, 0, true}},
    {"bare line feeds",
     "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
     false,
     {DONE, 0, 200, 2, true, 0, true}},
    {"next response behind",
     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 2",
     false,
     {DONE, 0, 200, 2, true, 10, true}},
    {"chunked",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n "
     "world\r\n0\r\n\r\n",
     false,
     {DONE, 0, 200, 11, true, 0, true}},
    {"chunked, trailers",
     "HTTP/1.1 200 OK\r\ntransfer-encoding:Chunked\r\n\r\nA \r\n0123456789\r\n000\r\nX: y\r\nZ: "
     "w\r\n\r\nrest",
     false,
     {DONE, 0, 200, 10, true, 4, true}},
    {"a coding that nobody asked for",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"chunked twice",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"coding that does nothing",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, false, 0, true}},
    {"sixteen digits of a chunk's size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\nx\r\n0\r\n\r\n",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"seventeen digits of a chunk's size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\nx",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"chunk of 2^63 bytes",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\nx",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"HTTP/1.2",
     "HTTP/1.2 200 OK\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"read to close", "HTTP/1.1 200 OK\r\n\r\nsome body", false, {MORE, 0, 200, 9, false, 0, true}},
    {"1.0 closes",
     "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, false, 0, true}},
    {"1.0 keeps alive when it says so",
     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"connection: close",
     "HTTP/1.1 200 OK\r\nConnection: TE, close\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, false, 0, true}},
    {"HEAD with a length",
     "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
     true,
     {DONE, 0, 200, 0, true, 0, true}},
    {"HEAD chunked",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
     true,
     {DONE, 0, 200, 0, true, 0, true}},
    {"204", "HTTP/1.1 204 No Content\r\n\r\n", false, {DONE, 0, 204, 0, true, 0, true}},
    {"304 with a length",
     "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
     false,
     {DONE, 0, 304, 0, true, 0, true}},
    {"103 twice, 100, then 200",
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: "
     "9\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"101 that nobody asked for",
     "HTTP/1.1 101 Switching Protocols\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 101, 0, true, 0, false}},
    {"the same length twice",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"the same length in a list",
     "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"two lengths",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"negative length",
     "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"huge length",
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"length of 2^63",
     "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"empty length",
     "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"length and chunked: chunked, and not again",
     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: "
     "chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     false,
     {DONE, 0, 200, 1, false, 0, true}},
    {"folded header",
     "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\nx",
     false,
     {DONE, 0, 200, 1, true, 0, true}},
    {"folded length",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\nx",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"fold without a header",
     "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"blank before the colon",
     "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"no colon",
     "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"no name",
     "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"another protocol",
     "SSH-2.0-OpenSSH_9.2",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"two digits",
     "HTTP/1.1 20 OK\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"four digits",
     "HTTP/1.1 2000 OK\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"status 099",
     "HTTP/1.1 099 OK\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"HTTP/2 in a status line",
     "HTTP/2 200 OK\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 0, 0, false, 0, false}},
    {"chunk without a size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"chunk of a negative size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"chunk of a huge size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 0, true, 0, false}},
    {"chunk longer than its size",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n",
     false,
     {FAILED, HTTP_FAILURE_MALFORMED, 200, 1, true, 0, false}},
    {"cut in the head", "HTTP/1.1 200 OK\r\nContent-Le", false, {MORE, 0, 0, 0, false, 0, false}},
    {"cut in the body",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
     false,
     {MORE, 0, 200, 2, true, 0, false}},
    {"cut in a chunk",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
     false,
     {MORE, 0, 200, 2, true, 0, false}},
    {"nothing", "", false, {MORE, 0, 0, 0, false, 0, false}},
};

/* Feed bytes cut at the given places, each piece in memory of its own so that reading past its end
 * is seen, and collect what comes out. */
static struct result feed_with(struct http_parser_memo *memo, struct str bytes, bool head,
                               size_t cut1, size_t cut2)
{
    struct http_parser p;
    struct result got = {.end = MORE};
    bool seen_head = false;
    http_parser_init(&p);
    http_parser_begin(&p, head);
    p.memo = memo;
    size_t cuts[] = {0, cut1, cut2, bytes.len};
    for (int i = 0; i < 3; i++) {
        struct str piece = str_sub(bytes, cuts[i], cuts[i + 1]);
        char *copy = malloc(piece.len ? piece.len : 1);
        assert_non_null(copy);
        if (piece.len)
            memcpy(copy, piece.ptr, piece.len);
        struct str input = {copy, piece.len};
        enum http_parser_event event;
        while ((event = http_parser_next(&p, &input)) == HTTP_EVENT_HEAD ||
               event == HTTP_EVENT_BODY) {
            seen_head |= event == HTTP_EVENT_HEAD;
            if (event == HTTP_EVENT_BODY)
                got.body += p.body.len;
        }
        if (event == HTTP_EVENT_DONE) {
            got.end = DONE;
            got.rest = input.len + (bytes.len - cuts[i + 1]);
        }
        free(copy);
        if (event == HTTP_EVENT_FAILED) {
            got.end = FAILED;
            got.failure = p.failure;
        }
        if (event != HTTP_EVENT_MORE)
            break;
    }
    got.status = seen_head ? p.status : 0;
    got.keep_alive = seen_head && p.keep_alive;
    got.close_ends = http_parser_close(&p);
    http_parser_done(&p);
    return got;
}

static struct result feed(struct str bytes, bool head, size_t cut1, size_t cut2)
{
    return feed_with(NULL, bytes, head, cut1, cut2);
}

static void check(size_t i, struct result got, size_t cut1, size_t cut2)
{
    const struct result *want = &cases[i].want;
    /* a failure in the head leaves status and connection without meaning */
    bool met = got.end == want->end && got.failure == want->failure &&
               got.close_ends == want->close_ends && got.rest == want->rest &&
               (want->end == FAILED || (got.status == want->status && got.body == want->body &&
                                        got.keep_alive == want->keep_alive));
    if (!met)
        fail_msg("%s, cut at %zu and %zu: end %d, failure %d, status %u, body %zu, keep-alive %d, "
                 "rest %zu, close %d",
                 cases[i].label, cut1, cut2, got.end, got.failure, got.status, got.body,
                 got.keep_alive, got.rest, got.close_ends);
}

static void test_every_case_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str bytes = str_of(cases[i].bytes);
        for (size_t a = 0; a <= bytes.len; a++)
            for (size_t b = a; b <= bytes.len; b++)
                check(i, feed(bytes, cases[i].head, a, b), a, b);
    }
}

/* One memo for all, so that each head comes after others and after itself. */
static void test_a_remembered_head_changes_nothing(void **state)
{
    (void)state;
    struct http_parser_memo memo = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str bytes = str_of(cases[i].bytes);
        for (size_t cut = 0; cut <= bytes.len; cut++)
            check(i, feed_with(&memo, bytes, cases[i].head, cut, bytes.len), cut, bytes.len);
    }
}

static void test_a_remembered_head_is_given_as_it_came(void **state)
{
    (void)state;
    struct http_parser_memo memo = {0};
    const struct str bytes = STR("HTTP/1.0 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n");
    for (int time = 0; time < 2; time++) {
        struct http_parser p;
        struct str input = bytes;
        http_parser_init(&p);
        http_parser_begin(&p, false);
        p.memo = &memo;
        assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_HEAD);
        assert_ptr_equal(p.head.ptr, bytes.ptr + 17);
        assert_int_equal(p.head.len, bytes.len - 17);
        assert_int_equal(p.status, 200);
        assert_true(p.has_cookies);
        assert_false(p.has_coding || p.keep_alive);
        assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_DONE);
        http_parser_done(&p);
        assert_int_equal(memo.length, bytes.len);
    }
}

static void test_nul_in_the_head_is_refused(void **state)
{
    (void)state;
    struct str bytes[] = {STR("HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n"),
                          STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\0b\r\n\r\n")};
    for (size_t i = 0; i < 2; i++)
        for (size_t cut = 0; cut <= bytes[i].len; cut++)
            assert_int_equal(feed(bytes[i], false, cut, cut).failure, HTTP_FAILURE_MALFORMED);
}

static void test_headers_can_be_read_from_the_head(void **state)
{
    (void)state;
    struct http_parser p;
    struct str input = STR("HTTP/1.1 302 Found\r\nLocation:  /there \r\nX-Fold: a\r\n "
                           "b\r\nEmpty:\r\nContent-Length: 0\r\n\r\n");
    static const char *const want[][2] = {
        {"Location", "/there"}, {"X-Fold", "a"}, {"Empty", ""}, {"Content-Length", "0"}};
    http_parser_init(&p);
    http_parser_begin(&p, false);
    assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_HEAD);
    struct str rest = p.head, name, value;
    for (int i = 0; i < 4; i++) {
        assert_true(http_parser_header(&rest, &name, &value));
        assert_true(str_eq(name, str_of(want[i][0])));
        assert_true(str_eq(value, str_of(want[i][1])));
    }
    assert_false(http_parser_header(&rest, &name, &value));
    assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_DONE);
    http_parser_done(&p);
}

static void test_cookies_and_codings_are_noted(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool cookies, coding;
    } heads[] = {
        {"HTTP/1.1 204 x\r\nServer: x\r\nSet-Cookiee: a\r\nSet-Cooki: a\r\n\r\n", false, false},
        {"HTTP/1.1 204 x\r\nset-COOKIE:a=1\r\nServer: x\r\n\r\n", true, false},
        {"HTTP/1.1 204 x\r\nX: y\r\n Set-Cookie: a\r\ncontent-Encoding: gzip\r\n\r\n", false, true},
        {"HTTP/1.1 204 x\r\nContent-Encoding: gzip\r\nConnection: close\r\nSet-Cookie: a\r\n\r\n",
         true, true},
        {"HTTP/1.1 103 x\r\nSet-Cookie: a\r\nContent-Encoding: gzip\r\n\r\n"
         "HTTP/1.1 204 x\r\n\r\n",
         false, false},
        {"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSet-Cookie: a\r\n\r\n", false,
         false},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct http_parser p;
        struct str input = str_of(heads[i].bytes);
        http_parser_init(&p);
        http_parser_begin(&p, false);
        assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_HEAD);
        assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_DONE);
        assert_int_equal(p.has_cookies, heads[i].cookies);
        assert_int_equal(p.has_coding, heads[i].coding);
        http_parser_done(&p);
    }
}

static enum http_parser_event pour(struct http_parser *p, const char *text, unsigned times)
{
    enum http_parser_event event = HTTP_EVENT_MORE;
    for (unsigned i = 0; i < times && event == HTTP_EVENT_MORE; i++) {
        struct str input = str_of(text);
        event = http_parser_next(p, &input);
    }
    return event;
}

static void test_endless_heads_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *label, *begin, *again;
        enum http_failure failure;
    } floods[] = {
        {"headers", "HTTP/1.1 200 OK\r\n", "X-Header: 0123456789012345678901234567890123456789\r\n",
         HTTP_FAILURE_HEADERS_TOO_LARGE},
        {"one header", "HTTP/1.1 200 OK\r\nX: ",
         "01234567890123456789012345678901234567890123456789", HTTP_FAILURE_HEADERS_TOO_LARGE},
        {"one trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
         "012345678901234567890123456789", HTTP_FAILURE_HEADERS_TOO_LARGE},
        {"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
         "X-Trailer: 012345678901234567890123456789\r\n", HTTP_FAILURE_HEADERS_TOO_LARGE},
        {"interim", "", "HTTP/1.1 100 Continue\r\n\r\n", HTTP_FAILURE_MALFORMED},
        {"chunk extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", HTTP_FAILURE_MALFORMED},
        {"zeros of a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "0000000000000000000000000000000000000000000", HTTP_FAILURE_MALFORMED},
    };
    for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
        struct http_parser p;
        http_parser_init(&p);
        http_parser_begin(&p, false);
        struct str begin = str_of(floods[i].begin);
        enum http_parser_event event = http_parser_next(&p, &begin);
        if (event == HTTP_EVENT_HEAD)
            event = http_parser_next(&p, &begin);
        assert_int_equal(event, HTTP_EVENT_MORE);
        assert_int_equal(pour(&p, floods[i].again, 100000), HTTP_EVENT_FAILED);
        assert_int_equal(p.failure, floods[i].failure);
        http_parser_done(&p);
    }
}

static void test_a_body_may_be_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        uint64_t ahead;
    } heads[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh", 4},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nh", 0},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nh", UINT64_MAX},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh", 0},
        {"HTTP/1.1 200 OK\r\nContent-Le", 0},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct http_parser p;
        struct str input = str_of(heads[i].bytes);
        http_parser_init(&p);
        http_parser_begin(&p, false);
        assert_int_equal(http_parser_body_ahead(&p), 0);
        while (input.len > 0)
            (void)http_parser_next(&p, &input); /* told by what is ahead */
        assert_int_equal(http_parser_body_ahead(&p), heads[i].ahead);
        if (heads[i].ahead == 4) {
            http_parser_skip(&p, 3);
            assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_MORE);
            http_parser_skip(&p, 1);
            assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_DONE);
        }
        http_parser_done(&p);
    }
}

static void test_untouched_until_the_first_byte(void **state)
{
    (void)state;
    struct http_parser p;
    struct str input = STR("H");
    http_parser_init(&p);
    http_parser_begin(&p, false);
    assert_true(http_parser_untouched(&p));
    assert_int_equal(http_parser_next(&p, &input), HTTP_EVENT_MORE);
    assert_false(http_parser_untouched(&p));
    http_parser_done(&p);
}

static void test_a_head_begins_behind_interim_ones_too(void **state)
{
    (void)state;
    struct http_parser p;
    struct str first = STR("HTTP/1.1 103\r\n"), end = STR("\r\n");
    struct str last = STR("HTTP/1.1 200\r\nContent-Length: 9\r\n\r\n");
    http_parser_init(&p);
    http_parser_begin(&p, false);
    assert_true(http_parser_at_head(&p));
    assert_int_equal(http_parser_next(&p, &first), HTTP_EVENT_MORE);
    assert_false(http_parser_at_head(&p));
    assert_int_equal(http_parser_next(&p, &end), HTTP_EVENT_MORE);
    assert_true(http_parser_at_head(&p));
    assert_int_equal(http_parser_next(&p, &last), HTTP_EVENT_HEAD);
    assert_false(http_parser_at_head(&p));
    http_parser_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case_at_every_split),
        cmocka_unit_test(test_a_remembered_head_changes_nothing),
        cmocka_unit_test(test_a_remembered_head_is_given_as_it_came),
        cmocka_unit_test(test_nul_in_the_head_is_refused),
        cmocka_unit_test(test_headers_can_be_read_from_the_head),
        cmocka_unit_test(test_cookies_and_codings_are_noted),
        cmocka_unit_test(test_endless_heads_are_bounded),
        cmocka_unit_test(test_a_body_may_be_passed_over),
        cmocka_unit_test(test_untouched_until_the_first_byte),
        cmocka_unit_test(test_a_head_begins_behind_interim_ones_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
