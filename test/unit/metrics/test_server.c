#include "worker/metrics/server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* One request by hand; the answer up to the connection's end. */
static size_t ask(unsigned port, const char *request, char *ret, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    size_t used = 0;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    for (;;) {
        ssize_t n = recv(fd, ret + used, size - 1 - used, 0);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    ret[used] = '\0';
    close(fd);
    return used;
}

struct publisher {
    struct metrics_server *server;
    int stop_fd;
    unsigned pages;
};

/* What the runner does: answer each scrape with a page that tells its number. */
static void *publish(void *arg)
{
    struct publisher *p = arg;
    for (;;) {
        struct pollfd fds[] = {{metrics_fd(p->server), POLLIN, 0}, {p->stop_fd, POLLIN, 0}};
        enum metrics_format format;
        if (poll(fds, 2, -1) < 0 || fds[1].revents)
            return NULL;
        if (!metrics_wanted(p->server, &format))
            continue;
        struct buf page;
        buf_init(&page, 1000);
        if (buf_printf(&page, "page %u format %d\n", ++p->pages, (int)format) == 0)
            metrics_publish(p->server, format, &page);
        buf_done(&page);
    }
}

static void test_scrapes_get_fresh_pages(void **state)
{
    (void)state;
    char answer[4096];
    int stop[2];
    pthread_t thread;
    struct err err = {0};
    struct publisher p = {0};
    assert_int_equal(metrics_start("127.0.0.1", 0, &p.server, &err), 0);
    assert_int_equal(pipe(stop), 0);
    p.stop_fd = stop[0];
    assert_int_equal(pthread_create(&thread, NULL, publish, &p), 0);
    unsigned port = metrics_port(p.server);
    for (int i = 1; i <= 3; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, "page %d format 0", i);
        ask(port, "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof answer);
        assert_non_null(strstr(answer, " 200 "));
        assert_non_null(strstr(answer, want));
    }
    ask(port, "GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n", answer,
        sizeof answer);
    assert_non_null(strstr(answer, "format 1"));
    assert_non_null(strstr(answer, "application/openmetrics-text"));
    assert_int_equal(write(stop[1], "x", 1), 1);
    pthread_join(thread, NULL);
    metrics_stop(p.server);
    close(stop[0]);
    close(stop[1]);
}

static void test_other_paths_and_methods(void **state)
{
    (void)state;
    static const struct {
        const char *request, *status;
    } cases[] = {
        {"GET /healthz HTTP/1.0\r\n\r\n", " 200 "},
        {"GET /readyz HTTP/1.0\r\n\r\n", " 503 "},
        {"GET / HTTP/1.0\r\n\r\n", " 404 "},
        {"GET /metricsx HTTP/1.0\r\n\r\n", " 404 "},
        {"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", " 405 "},
        {"HEAD /healthz HTTP/1.0\r\n\r\n", " 200 "},
    };
    char answer[4096];
    struct metrics_server *s;
    struct err err = {0};
    assert_int_equal(metrics_start("127.0.0.1", 0, &s, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ask(metrics_port(s), cases[i].request, answer, sizeof answer);
        if (!strstr(answer, cases[i].status))
            fail_msg("%s gave %s", cases[i].request, answer);
    }
    metrics_set_ready(s, true);
    ask(metrics_port(s), "GET /readyz HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    metrics_stop(s);
}

/* Nobody answers: the scrape is told so after its wait, and nothing hangs. */
static void test_a_busy_runner_does_not_hang_a_scrape(void **state)
{
    (void)state;
    char answer[4096];
    struct metrics_server *s;
    struct err err = {0};
    assert_int_equal(metrics_start("127.0.0.1", 0, &s, &err), 0);
    ask(metrics_port(s), "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 503 "));
    metrics_stop(s);
}

static void test_random_bytes_do_no_harm(void **state)
{
    (void)state;
    char answer[4096];
    struct metrics_server *s;
    struct err err = {0};
    assert_int_equal(metrics_start("127.0.0.1", 0, &s, &err), 0);
    ask(metrics_port(s), "\x01\xff\x02 nonsense\r\n\r\n", answer, sizeof answer);
    ask(metrics_port(s), "GET /healthz HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    metrics_stop(s);
}

static void test_a_taken_port_is_one_clear_error(void **state)
{
    (void)state;
    struct metrics_server *s, *second;
    struct err err = {0};
    char want[64];
    assert_int_equal(metrics_start("127.0.0.1", 0, &s, &err), 0);
    (void)snprintf(want, sizeof want, "metrics port %u: Address already in use", metrics_port(s));
    assert_int_equal(metrics_start("127.0.0.1", metrics_port(s), &second, &err), -EADDRINUSE);
    assert_string_equal(err.text, want);
    err = (struct err){0};
    assert_int_equal(metrics_start("nonsense", 1, &second, &err), -EINVAL);
    metrics_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scrapes_get_fresh_pages),
        cmocka_unit_test(test_other_paths_and_methods),
        cmocka_unit_test(test_a_busy_runner_does_not_hang_a_scrape),
        cmocka_unit_test(test_random_bytes_do_no_harm),
        cmocka_unit_test(test_a_taken_port_is_one_clear_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
