/* libcurl as a load generator uses it at its best: one multi handle on epoll, an easy handle for
 * each user that is used again, connections kept alive. */
#include "bench/engines/common.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct user {
    CURL *easy;
    uint64_t start_us;
    uint32_t index;
};

struct client {
    struct options options;
    struct run run;
    struct waiting waiting;
    struct user *users;
    CURLM *multi;
    uint64_t timer_us; /* when libcurl wants to be called; UINT64_MAX: not */
    int epoll_fd;
    char url[512];
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct client *c = context;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
        return 0;
    }
    if (what & CURL_POLL_IN)
        event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        event.events |= EPOLLOUT;
    if (epoll_ctl(c->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
    (void)curl_multi_assign(c->multi, fd, c); /* known from now on */
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *context)
{
    struct client *c = context;
    (void)multi;
    c->timer_us = ms < 0 ? UINT64_MAX : clock_mono_us() + (uint64_t)ms * 1000;
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

static void fire(struct client *c, struct user *u)
{
    u->start_us = clock_mono_us();
    if (curl_multi_add_handle(c->multi, u->easy) != CURLM_OK)
        die("curl_multi_add_handle");
}

static void collect(struct client *c)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(c->multi, &left))) {
        CURL *easy = message->easy_handle;
        bool ok = message->data.result == CURLE_OK;
        char *private;
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        struct user *u = &c->users[*(uint32_t *)(void *)private];
        uint64_t now_us = clock_mono_us();
        run_record(&c->run, ok && status == 200, now_us - u->start_us);
        curl_multi_remove_handle(c->multi, easy);
        if (c->options.wait_us)
            waiting_add(&c->waiting, u->index, now_us + c->options.wait_us);
        else
            fire(c, u);
    }
}

static void make_user(struct client *c, uint32_t index)
{
    struct user *u = &c->users[index];
    u->index = index;
    u->easy = curl_easy_init();
    if (!u->easy)
        die("curl_easy_init");
    curl_easy_setopt(u->easy, CURLOPT_URL, c->url);
    curl_easy_setopt(u->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(u->easy, CURLOPT_PRIVATE, &u->index);
    curl_easy_setopt(u->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(u->easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(u->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(u->easy, CURLOPT_BUFFERSIZE, 16384L);
    curl_easy_setopt(u->easy, CURLOPT_MAXAGE_CONN, 3600L);
    curl_easy_setopt(u->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
}

static void make_multi(struct client *c)
{
    c->multi = curl_multi_init();
    if (!c->multi)
        die("curl_multi_init");
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)c->options.connections + 16);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

static int timeout_ms(const struct client *c, uint64_t now_us)
{
    int ms = waiting_timeout_ms(&c->waiting, now_us, 100);
    if (c->timer_us == UINT64_MAX)
        return ms;
    uint64_t timer_ms = c->timer_us > now_us ? (c->timer_us - now_us + 999) / 1000 : 0;
    return timer_ms < (uint64_t)ms ? (int)timer_ms : ms;
}

static void turn(struct client *c, struct epoll_event *events)
{
    uint32_t user;
    int running;
    int n = epoll_wait(c->epoll_fd, events, EVENTS_A_TURN, timeout_ms(c, clock_mono_us()));
    for (int i = 0; i < n; i++) {
        uint32_t e = events[i].events;
        int what = (e & (EPOLLIN | EPOLLHUP | EPOLLERR) ? CURL_CSELECT_IN : 0) |
                   (e & EPOLLOUT ? CURL_CSELECT_OUT : 0);
        curl_multi_socket_action(c->multi, events[i].data.fd, what, &running);
    }
    if (clock_mono_us() >= c->timer_us) {
        c->timer_us = UINT64_MAX;
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    collect(c);
    while (waiting_take(&c->waiting, clock_mono_us(), &user))
        fire(c, &c->users[user]);
}

int main(int argc, char **argv)
{
    static struct epoll_event events[EVENTS_A_TURN];
    struct client c = {.options = read_options(argc, argv), .timer_us = UINT64_MAX};
    int n = snprintf(c.url, sizeof c.url, "%s://127.0.0.1:%u%s", c.options.tls ? "https" : "http",
                     (unsigned)c.options.port, c.options.path);
    errno = E2BIG;
    if (n < 0 || (size_t)n >= sizeof c.url || curl_global_init(CURL_GLOBAL_ALL) != 0)
        die("begin");
    c.epoll_fd = epoll_create1(0);
    c.users = calloc(c.options.connections, sizeof *c.users);
    if (c.epoll_fd < 0 || !c.users)
        die("begin");
    make_multi(&c);
    for (uint32_t i = 0; i < c.options.connections; i++)
        make_user(&c, i);
    run_begin(&c.run, &c.options);
    if (c.options.wait_us)
        waiting_begin(&c.waiting, &c.options, clock_mono_us());
    for (uint32_t i = 0; c.options.wait_us == 0 && i < c.options.connections; i++)
        fire(&c, &c.users[i]);
    while (!run_is_over(&c.run, clock_mono_us()))
        turn(&c, events);
    run_print(&c.run);
    return 0;
}
