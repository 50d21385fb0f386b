/* How near to the floor a client comes that does the least a load generator must: one prepared
 * request, the status and the length of each response, its time in a histogram, users who wait, and
 * TLS. It takes for granted what the bench's targets do: a head in one piece, with Content-Length.
 */
#include "bench/engines/common.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

struct user {
    int fd;
    SSL *ssl; /* NULL: plain */
    uint64_t start_us;
    uint64_t left; /* of the body */
    bool in_body;
    bool ok;
};

struct client {
    struct options options;
    struct run run;
    struct waiting waiting;
    struct user *users;
    int epoll_fd;
    size_t request_length;
    char request[1024];
    char buffer[65536];
};

static void fire(struct client *c, struct user *u, uint64_t now_us)
{
    u->start_us = now_us;
    u->in_body = false;
    int n = u->ssl ? SSL_write(u->ssl, c->request, (int)c->request_length)
                   : (int)write(u->fd, c->request, c->request_length);
    if (n != (int)c->request_length)
        die("send");
}

static uint64_t content_length(const char *head, const char *end)
{
    static const char name[] = "\r\ncontent-length:";
    for (const char *at = head; at < end; at++) {
        at = memchr(at, '\r', (size_t)(end - at));
        if (!at)
            break;
        if ((size_t)(end - at) > sizeof name && strncasecmp(at, name, sizeof name - 1) == 0) {
            uint64_t length = 0;
            for (at += sizeof name - 1; *at == ' '; at++)
                ;
            for (; *at >= '0' && *at <= '9'; at++)
                length = length * 10 + (uint64_t)(*at - '0');
            return length;
        }
    }
    errno = EPROTO;
    die("content-length");
}

/* Take in n bytes of the buffer; true when the response is whole. */
static bool take(struct client *c, struct user *u, size_t n)
{
    const char *at = c->buffer, *end = c->buffer + n;
    if (!u->in_body) {
        const char *blank = memmem(at, n, "\r\n\r\n", 4);
        errno = EPROTO;
        if (!blank)
            die("head");
        u->ok = memcmp(at, "HTTP/1.1 200", 12) == 0;
        u->left = content_length(at, blank + 2);
        u->in_body = true;
        at = blank + 4;
    }
    u->left -= (uint64_t)(end - at);
    return u->left == 0;
}

static void ready(struct client *c, uint32_t index)
{
    struct user *u = &c->users[index];
    for (;;) {
        ssize_t n = u->ssl ? SSL_read(u->ssl, c->buffer, sizeof c->buffer)
                           : read(u->fd, c->buffer, sizeof c->buffer);
        if (u->ssl && n <= 0 && SSL_get_error(u->ssl, (int)n) == SSL_ERROR_WANT_READ)
            return;
        if (n <= 0)
            die("receive");
        if (take(c, u, (size_t)n))
            break;
        if (!u->ssl)
            return;
    }
    uint64_t now_us = clock_mono_us();
    run_record(&c->run, u->ok, now_us - u->start_us);
    if (c->options.wait_us)
        waiting_add(&c->waiting, index, now_us + c->options.wait_us);
    else
        fire(c, u, now_us);
}

static void connect_user(struct client *c, uint32_t index, SSL_CTX *tls)
{
    struct user *u = &c->users[index];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    u->fd = open_socket(&c->options);
    if (tls) {
        u->ssl = SSL_new(tls);
        if (!u->ssl || fcntl(u->fd, F_SETFL, 0) < 0 || SSL_set_fd(u->ssl, u->fd) != 1 ||
            SSL_connect(u->ssl) != 1 || fcntl(u->fd, F_SETFL, O_NONBLOCK) < 0)
            die("handshake");
    }
    if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, u->fd, &event) < 0)
        die("epoll_ctl");
}

static void begin(struct client *c)
{
    uint64_t now_us = clock_mono_us();
    if (c->options.wait_us) {
        waiting_begin(&c->waiting, &c->options, now_us);
        return;
    }
    for (uint32_t i = 0; i < c->options.connections; i++)
        fire(c, &c->users[i], clock_mono_us());
}

int main(int argc, char **argv)
{
    static struct epoll_event events[EVENTS_A_TURN];
    static struct client c;
    uint32_t user;
    c.options = read_options(argc, argv);
    c.request_length = make_request(&c.options, c.request, sizeof c.request);
    c.users = calloc(c.options.connections, sizeof *c.users);
    c.epoll_fd = epoll_create1(0);
    SSL_CTX *tls = c.options.tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    if (!c.users || c.epoll_fd < 0 || (c.options.tls && !tls))
        die("begin");
    for (uint32_t i = 0; i < c.options.connections; i++)
        connect_user(&c, i, tls);
    run_begin(&c.run, &c.options);
    begin(&c);
    for (uint64_t now_us = clock_mono_us(); !run_is_over(&c.run, now_us);) {
        int timeout = waiting_timeout_ms(&c.waiting, now_us, 100);
        int n = epoll_wait(c.epoll_fd, events, EVENTS_A_TURN, timeout);
        for (int i = 0; i < n; i++)
            ready(&c, events[i].data.u32);
        now_us = clock_mono_us();
        while (waiting_take(&c.waiting, now_us, &user))
            fire(&c, &c.users[user], clock_mono_us());
    }
    run_print(&c.run);
    return 0;
}
