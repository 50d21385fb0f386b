/* Against a small server on 127.0.0.1 that gives one prepared answer a connection. */
#include "proto/http/http.h"

#include "test/unit/alloc.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SEEN_BYTES 8192

struct server {
    int fd, stop_fd;
    unsigned port;
    pthread_t thread;
    struct str answer;     /* ptr NULL: read and stay silent until the end */
    char seen[SEEN_BYTES]; /* the last request, read after server_done */
    unsigned connections;
};

/* Until the blank line and as many body bytes as Content-Length names; false at the end. */
static bool read_request(struct server *s, int fd)
{
    size_t len = 0;
    for (;;) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 || (fds[1].revents && !fds[0].revents))
            return false;
        ssize_t n = read(fd, s->seen + len, sizeof s->seen - len - 1);
        if (n <= 0)
            return false;
        len += (size_t)n;
        s->seen[len] = '\0';
        char *end = strstr(s->seen, "\r\n\r\n");
        if (!end)
            continue;
        char *length = strstr(s->seen, "Content-Length: ");
        size_t body = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
        if (len >= (size_t)(end + 4 - s->seen) + body)
            return true;
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (;;) {
        struct pollfd fds[] = {{.fd = s->fd, .events = POLLIN},
                               {.fd = s->stop_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 || !fds[0].revents)
            return NULL;
        int fd = accept(s->fd, NULL, NULL);
        s->connections++;
        if (read_request(s, fd) && s->answer.ptr)
            (void)!send(fd, s->answer.ptr, s->answer.len, MSG_NOSIGNAL);
        if (!s->answer.ptr) { /* hang until the test is over */
            struct pollfd stop = {.fd = s->stop_fd, .events = POLLIN};
            (void)poll(&stop, 1, -1);
        }
        close(fd);
    }
}

static void server_start(struct server *s, const char *answer)
{
    *s = (struct server){.answer = {answer, answer ? strlen(answer) : 0}};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&address, &len), 0);
    s->port = ntohs(address.sin_port);
    s->stop_fd = eventfd(0, 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_done(struct server *s)
{
    assert_int_equal(eventfd_write(s->stop_fd, 1), 0);
    pthread_join(s->thread, NULL);
    close(s->fd);
    close(s->stop_fd);
}

static char *url_of(const struct server *s, const char *rest)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u%s", s->port, rest);
    return url;
}

static struct http_query request_to(const char *url)
{
    return (struct http_query){.url = url, .timeout_ms = 20000, .max_bytes = 1u << 20};
}

/* One request to a server that gives this answer. */
static void ask(const char *answer, struct http_query request, struct http_answer *ret)
{
    struct server s;
    server_start(&s, answer);
    request.url = url_of(&s, "/x?secret=1");
    assert_int_equal(http_fetch(&request, 1, -1, ret), 0);
    server_done(&s);
}

static void test_a_whole_answer(void **state)
{
    (void)state;
    struct http_answer a;
    ask("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        request_to(NULL), &a);
    assert_true(http_answer_ok(&a));
    assert_int_equal(a.status, 200);
    assert_string_equal(a.error, "");
    assert_string_equal(a.content_type, "application/json");
    assert_string_equal(buf_c(&a.body), "{}");
    http_answer_done(&a);
}

static void test_what_is_sent(void **state)
{
    (void)state;
    struct server s;
    struct http_answer a;
    const char *headers[] = {"X-Scope: a", "Accept: application/json"};
    server_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    struct http_query r = request_to(url_of(&s, "/base/q?x=1"));
    r.headers = headers;
    r.header_count = 2;
    r.bearer_token = "t0ken";
    r.body = STR("query=up");
    assert_int_equal(http_fetch(&r, 1, -1, &a), 0);
    server_done(&s);
    assert_true(http_answer_ok(&a));
    assert_non_null(strstr(s.seen, "POST /base/q?x=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(s.seen, "\r\nX-Scope: a\r\n"));
    assert_non_null(strstr(s.seen, "\r\nAuthorization: Bearer t0ken\r\n"));
    assert_non_null(strstr(s.seen, "\r\nAccept-Encoding: gzip\r\n"));
    assert_non_null(strstr(s.seen, "\r\nUser-Agent: cicada/"));
    assert_non_null(strstr(s.seen, "\r\n\r\nquery=up"));
    assert_null(strstr(s.seen, "Expect"));
    http_answer_done(&a);
}

static void test_basic_auth(void **state)
{
    (void)state;
    struct server s;
    struct http_answer a;
    server_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    struct http_query r = request_to(url_of(&s, "/"));
    r.username = "user";
    r.password = "pass";
    assert_int_equal(http_fetch(&r, 1, -1, &a), 0);
    server_done(&s);
    assert_non_null(strstr(s.seen, "\r\nAuthorization: Basic dXNlcjpwYXNz\r\n"));
    http_answer_done(&a);
}

static void test_faults_have_fixed_texts(void **state)
{
    (void)state;
    static const struct {
        const char *label, *answer;
        int code;
        const char *error;
    } cases[] = {
        {"forbidden", "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope", 0, "HTTP 403"},
        {"redirect",
         "HTTP/1.1 302 Found\r\nLocation: https://u:p@login.example/in?next=1\r\n"
         "Content-Length: 0\r\n\r\n",
         0, "HTTP 302, redirect to https://login.example/in"},
        {"relative redirect",
         "HTTP/1.1 301 Moved\r\nLocation: //other.example/a#b\r\nContent-Length: 0\r\n\r\n", 0,
         "HTTP 301, redirect to http://other.example/a"},
        {"no answer", "", -ECONNRESET, "connection closed without an answer"},
        {"short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", -ECONNRESET,
         "answer cut short"},
        {"short chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
         -ECONNRESET, "answer cut short"},
        {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", -EPROTO, "not an HTTP answer"},
        {"not gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
         -EPROTO, "body is not what its content encoding says"},
        {"too large", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n123456", -ERANGE,
         "answer larger than 5 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_answer a;
        struct http_query r = request_to(NULL);
        r.max_bytes = 5;
        ask(cases[i].answer, r, &a);
        print_message("%s: %s\n", cases[i].label, a.error);
        assert_int_equal(a.code, cases[i].code);
        assert_string_equal(a.error, cases[i].error);
        assert_false(http_answer_ok(&a));
        http_answer_done(&a);
    }
}

static void test_refused_and_unknown(void **state)
{
    (void)state;
    struct server s;
    server_start(&s, "");
    server_done(&s); /* its port is free now */
    struct http_query requests[] = {
        request_to(url_of(&s, "/")),       request_to("http://name.invalid/"),
        request_to("ftp://127.0.0.1/"),    request_to("127.0.0.1:80"),
        request_to("http://127.0.0.1:1/"), request_to(""),
    };
    requests[4].bearer_token = "a\r\nX-Other: b";
    static const struct {
        int code;
        const char *error;
    } want[] = {
        {-ECONNREFUSED, "connection refused"},
        {-ENOENT, "name not found"},
        {-EINVAL, "malformed URL"},
        {-EINVAL, "malformed URL"},
        {-EINVAL, "a header or a token holds a line break"},
        {-EINVAL, "malformed URL"},
    };
    struct http_answer answers[6];
    assert_int_equal(http_fetch(requests, 6, -1, answers), 0);
    for (size_t i = 0; i < 6; i++) {
        print_message("%zu: %s\n", i, answers[i].error);
        assert_int_equal(answers[i].code, want[i].code);
        assert_string_equal(answers[i].error, want[i].error);
        http_answer_done(&answers[i]);
    }
}

static void test_a_silent_server_costs_its_timeout_alone(void **state)
{
    (void)state;
    struct server silent, good;
    struct http_answer a[2];
    server_start(&silent, NULL);
    server_start(&good, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    char silent_url[64];
    (void)snprintf(silent_url, sizeof silent_url, "http://127.0.0.1:%u/", silent.port);
    struct http_query r[] = {request_to(silent_url), request_to(url_of(&good, "/"))};
    r[0].timeout_ms = 1000;
    assert_int_equal(http_fetch(r, 2, -1, a), 0);
    assert_int_equal(a[0].code, -ETIMEDOUT);
    assert_string_equal(a[0].error, "timed out after 1 s");
    assert_true(http_answer_ok(&a[1]));
    http_answer_done(&a[0]);
    http_answer_done(&a[1]);
    r[0].timeout_ms = 50;
    assert_int_equal(http_fetch(r, 1, -1, a), 0);
    assert_string_equal(a[0].error, "timed out after 50 ms");
    http_answer_done(&a[0]);
    server_done(&silent);
    server_done(&good);
}

static void test_a_readable_descriptor_ends_all(void **state)
{
    (void)state;
    struct server silent;
    struct http_answer a[2];
    server_start(&silent, NULL);
    struct http_query r[] = {request_to(url_of(&silent, "/")), request_to(url_of(&silent, "/"))};
    int fd = eventfd(1, 0);
    assert_int_equal(http_fetch(r, 2, fd, a), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a[i].code, -ECANCELED);
        assert_string_equal(a[i].error, "cancelled");
        http_answer_done(&a[i]);
    }
    close(fd);
    server_done(&silent);
}

static void test_https_to_a_plain_server(void **state)
{
    (void)state;
    struct server s;
    struct http_answer a;
    char url[64];
    server_start(&s, "");
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u/", s.port);
    struct http_query r = request_to(url);
    r.timeout_ms = 500; /* the server waits for a request's end, which does not come */
    assert_int_equal(http_fetch(&r, 1, -1, &a), 0);
    server_done(&s);
    assert_int_equal(a.code, -ETIMEDOUT);
    http_answer_done(&a);
    r.tls.ca.file = "/nonexistent/ca.crt";
    server_start(&s, "");
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u/", s.port);
    assert_int_equal(http_fetch(&r, 1, -1, &a), 0);
    server_done(&s);
    assert_int_equal(a.code, -EKEYREJECTED);
    assert_string_equal(a.error, "TLS: the CA certificates cannot be read");
    http_answer_done(&a);
}

static int collect(void *arg, struct str bytes)
{
    return buf_add(arg, bytes);
}

static int refuse(void *arg, struct str bytes)
{
    (void)arg;
    (void)bytes;
    return -EPROTO;
}

static void test_the_sink_takes_good_bodies_only(void **state)
{
    (void)state;
    struct http_answer a;
    struct buf got;
    buf_init(&got, 100);
    struct http_query r = request_to(NULL);
    r.sink = collect;
    r.sink_arg = &got;
    ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", r, &a);
    assert_true(http_answer_ok(&a));
    assert_string_equal(buf_c(&got), "hello");
    assert_int_equal(a.body.len, 0);
    http_answer_done(&a);

    buf_clear(&got);
    ask("HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nhello", r, &a);
    assert_string_equal(buf_c(&got), "");
    assert_string_equal(buf_c(&a.body), "hello");
    http_answer_done(&a);

    r.max_bytes = 4;
    ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", r, &a);
    assert_int_equal(a.code, -ERANGE);
    assert_string_equal(a.error, "answer larger than 4 bytes");
    http_answer_done(&a);

    r.max_bytes = 100;
    r.sink = refuse;
    ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", r, &a);
    assert_int_equal(a.code, -EPROTO);
    assert_string_equal(a.error, "answer refused");
    http_answer_done(&a);
    buf_done(&got);
}

static void test_an_errors_page_is_cut(void **state)
{
    (void)state;
    size_t size = HTTP_ERROR_BODY_BYTES * 2;
    struct buf answer;
    struct http_answer a;
    buf_init(&answer, size * 2);
    assert_int_equal(buf_printf(&answer, "HTTP/1.1 503 x\r\nContent-Length: %zu\r\n\r\n", size), 0);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(buf_add_byte(&answer, 'x'), 0);
    ask(buf_c(&answer), request_to(NULL), &a);
    assert_int_equal(a.code, 0);
    assert_string_equal(a.error, "HTTP 503");
    assert_int_equal(a.body.len, HTTP_ERROR_BODY_BYTES);
    http_answer_done(&a);
    buf_done(&answer);
}

static void test_redirects_are_followed_on_demand(void **state)
{
    (void)state;
    struct server target, first;
    struct http_answer a;
    server_start(&target, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    char answer[256];
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/\r\n"
                   "Content-Length: 0\r\n\r\n",
                   target.port);
    server_start(&first, answer);
    struct http_query r = request_to(url_of(&first, "/"));
    r.follow_redirects = true;
    r.bearer_token = "t0ken";
    assert_int_equal(http_fetch(&r, 1, -1, &a), 0);
    server_done(&first);
    server_done(&target);
    assert_true(http_answer_ok(&a));
    assert_non_null(strstr(first.seen, "t0ken"));
    assert_null(strstr(target.seen, "t0ken")); /* another port is another server */
    http_answer_done(&a);
}

static void test_escape(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    assert_int_equal(http_escape(&b, STR("ate.dev/worker-pool in (a,b)\n\xc3\xa9~_")), 0);
    assert_string_equal(buf_c(&b), "ate.dev%2Fworker-pool%20in%20%28a%2Cb%29%0A%C3%A9~_");
    buf_done(&b);
}

static void test_shown_urls_hold_no_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown; /* NULL: refused */
    } cases[] = {
        {"http://u:p@h:9090/base/?token=x#f", "http://h:9090/base/"},
        {"https://[::1]:6443", "https://[::1]:6443/"},
        {"prometheus:9090", NULL},
        {"ftp://h/", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        int rc = http_url_shown(&b, cases[i].url);
        assert_int_equal(rc, cases[i].shown ? 0 : -EINVAL);
        assert_string_equal(buf_c(&b), cases[i].shown ? cases[i].shown : "");
        buf_done(&b);
    }
}

static void test_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct http_answer a;
        struct http_query r = request_to("http://127.0.0.1:1/");
        r.bearer_token = "t";
        alloc_fail_at(n);
        int rc = http_fetch(&r, 1, -1, &a);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_int_equal(a.code, failed ? -ENOMEM : -ECONNREFUSED);
        assert_string_equal(a.error, failed ? "out of memory" : "connection refused");
        http_answer_done(&a);
    }
}

static int init_curl(void **state)
{
    (void)state;
    /* the tests talk to this machine only */
    return setenv("no_proxy", "*", 1) || curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int done_curl(void **state)
{
    (void)state;
    curl_global_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_answer),
        cmocka_unit_test(test_what_is_sent),
        cmocka_unit_test(test_basic_auth),
        cmocka_unit_test(test_faults_have_fixed_texts),
        cmocka_unit_test(test_refused_and_unknown),
        cmocka_unit_test(test_a_silent_server_costs_its_timeout_alone),
        cmocka_unit_test(test_a_readable_descriptor_ends_all),
        cmocka_unit_test(test_https_to_a_plain_server),
        cmocka_unit_test(test_the_sink_takes_good_bodies_only),
        cmocka_unit_test(test_an_errors_page_is_cut),
        cmocka_unit_test(test_redirects_are_followed_on_demand),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_shown_urls_hold_no_secrets),
        cmocka_unit_test(test_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, init_curl, done_curl);
}
