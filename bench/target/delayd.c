/* A server that knows how long each request was inside it, so that what a load generator reports
 * can be held against the truth. One thread, HTTP/1.1, no bodies in requests.
 *   delayd [-d DELAY_MS] [-b BODY_BYTES] [-f PERIOD_S,FREEZE_S]    prints its port on 127.0.0.1
 *   GET /          answered after the delay, counted from when it was read
 *   GET /_stats    JSON of the record, at once; not recorded itself, like the next
 *   GET /_reset    clears the record and starts the freezing: in the middle of each period the
 *                  server does nothing for so long, as one does in a collector's pause */
#include "base/clock.h"
#include "base/num.h"
#include "worker/stats/histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_A_TURN     512
#define MAX_DESCRIPTORS   65536
#define MAX_REQUEST_BYTES 2048
#define LONGEST_SLEEP_US  200000

/* All wait equally long: a ring holds them in the order in which they are due. One request is
 * under way on a connection, so that there are never more than descriptors. */
struct job {
    uint64_t begun_us;
    int fd;
    uint32_t serial;
};

struct connection {
    uint32_t serial; /* a descriptor's number is used again, this one is not */
    size_t length;
    char bytes[MAX_REQUEST_BYTES];
};

struct server {
    struct connection *connections[MAX_DESCRIPTORS];
    struct job ring[MAX_DESCRIPTORS];
    uint32_t first, count;
    uint32_t last_serial;
    struct histogram times;
    uint64_t longest_us;
    uint64_t freezes;
    uint64_t delay_us, period_us, freeze_us;
    uint64_t next_freeze_us;
    int epoll_fd, listen_fd;
    char *response;
    size_t response_length;
};

static void die(const char *text)
{
    (void)fprintf(stderr, "delayd: %s: %s\n", text, strerror(errno));
    exit(1);
}

/* Answers are small and one is under way: the socket always takes them whole. A client that is gone
 * shows when its connection is read. */
static void answer(struct server *s, int fd, uint64_t begun_us)
{
    (void)!write(fd, s->response, s->response_length);
    uint64_t time_us = clock_mono_us() - begun_us;
    if (histogram_add(&s->times, time_us, 1) < 0)
        die("histogram");
    if (time_us > s->longest_us)
        s->longest_us = time_us;
}

static void tell(const struct server *s, int fd)
{
    char body[256], all[512];
    uint64_t p50 = 0, p99 = 0;
    (void)histogram_percentile(&s->times, 0.5, &p50);
    (void)histogram_percentile(&s->times, 0.99, &p99);
    int n = snprintf(body, sizeof body,
                     "{\"requests\": %" PRIu64 ", \"p50_us\": %" PRIu64 ", \"p99_us\": %" PRIu64
                     ", \"longest_us\": %" PRIu64 ", \"freezes\": %" PRIu64 "}\n",
                     s->times.count, p50, p99, s->longest_us, s->freezes);
    n = snprintf(all, sizeof all, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, body);
    (void)!write(fd, all, (size_t)n);
}

static void reset(struct server *s, int fd)
{
    histogram_clear(&s->times);
    s->longest_us = s->freezes = 0;
    if (s->period_us)
        s->next_freeze_us = clock_mono_us() + s->period_us / 2;
    (void)!write(fd, s->response, s->response_length);
}

static void request(struct server *s, int fd, const char *path)
{
    uint64_t now_us = clock_mono_us();
    if (strncmp(path, "/_stats", 7) == 0)
        tell(s, fd);
    else if (strncmp(path, "/_reset", 7) == 0)
        reset(s, fd);
    else if (s->delay_us == 0)
        answer(s, fd, now_us);
    else if (s->count < MAX_DESCRIPTORS)
        s->ring[(s->first + s->count++) % MAX_DESCRIPTORS] =
            (struct job){now_us, fd, s->connections[fd]->serial};
}

static void answer_due(struct server *s)
{
    while (s->count > 0) {
        struct job job = s->ring[s->first];
        if (job.begun_us + s->delay_us > clock_mono_us())
            return;
        s->first = (s->first + 1) % MAX_DESCRIPTORS;
        s->count--;
        if (s->connections[job.fd] && s->connections[job.fd]->serial == job.serial)
            answer(s, job.fd, job.begun_us);
    }
}

static void accept_all(struct server *s)
{
    int fd, one = 1;
    while ((fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct connection *c = fd < MAX_DESCRIPTORS ? malloc(sizeof *c) : NULL;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (!c || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
            epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
            die("connection");
        c->serial = ++s->last_serial;
        c->length = 0;
        s->connections[fd] = c;
    }
}

static void receive(struct server *s, int fd)
{
    struct connection *c = s->connections[fd];
    ssize_t n = read(fd, c->bytes + c->length, sizeof c->bytes - c->length);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) { /* closed, or a request that is too long */
        (void)close(fd);
        free(c);
        s->connections[fd] = NULL;
        return;
    }
    c->length += (size_t)n;
    char *end;
    while ((end = memmem(c->bytes, c->length, "\r\n\r\n", 4))) {
        const char *space = memchr(c->bytes, ' ', (size_t)(end - c->bytes));
        size_t used = (size_t)(end + 4 - c->bytes);
        request(s, fd, space ? space + 1 : "");
        memmove(c->bytes, c->bytes + used, c->length - used);
        c->length -= used;
    }
}

static void freeze_when_due(struct server *s)
{
    if (clock_mono_us() < s->next_freeze_us)
        return;
    (void)usleep((useconds_t)s->freeze_us);
    s->next_freeze_us += s->period_us;
    s->freezes++;
}

static struct timespec until_next(const struct server *s)
{
    uint64_t now_us = clock_mono_us(), wake_us = now_us + LONGEST_SLEEP_US;
    if (s->count > 0 && s->ring[s->first].begun_us + s->delay_us < wake_us)
        wake_us = s->ring[s->first].begun_us + s->delay_us;
    if (s->next_freeze_us < wake_us)
        wake_us = s->next_freeze_us;
    uint64_t us = wake_us > now_us ? wake_us - now_us : 0;
    return (struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
}

static void serve(struct server *s)
{
    struct epoll_event events[EVENTS_A_TURN];
    for (;;) {
        freeze_when_due(s);
        answer_due(s);
        struct timespec timeout = until_next(s);
        int n = epoll_pwait2(s->epoll_fd, events, EVENTS_A_TURN, &timeout, NULL);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == s->listen_fd)
                accept_all(s);
            else
                receive(s, events[i].data.fd);
        }
    }
}

static uint16_t listen_anywhere(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN};
    socklen_t length = sizeof at;
    s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    s->epoll_fd = epoll_create1(0);
    event.data.fd = s->listen_fd;
    if (s->listen_fd < 0 || s->epoll_fd < 0 ||
        bind(s->listen_fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(s->listen_fd, 4096) < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&at, &length) < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &event) < 0)
        die("listen");
    return ntohs(at.sin_port);
}

static uint64_t micro(struct str text, double unit)
{
    double v;
    errno = EINVAL;
    if (num_parse_double(text, &v) < 0 || v < 0 || v > 1e6)
        die("not a number");
    return (uint64_t)(v * unit);
}

static void make_response(struct server *s, size_t body_bytes)
{
    char head[256];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nServer: delayd\r\nContent-Type: text/plain\r\n"
                     "Content-Length: %zu\r\nConnection: keep-alive\r\n\r\n",
                     body_bytes);
    s->response_length = (size_t)n + body_bytes;
    s->response = malloc(s->response_length);
    if (!s->response)
        die("response");
    memcpy(s->response, head, (size_t)n);
    memset(s->response + n, 'x', body_bytes);
}

static void read_options(struct server *s, int argc, char **argv)
{
    size_t body_bytes = 100;
    int c;
    while ((c = getopt(argc, argv, "d:b:f:")) != -1) {
        struct str text = str_of(optarg), part;
        switch (c) {
        case 'd':
            s->delay_us = micro(text, 1e3);
            break;
        case 'b':
            body_bytes = micro(text, 1);
            break;
        case 'f':
            s->period_us = str_next(&text, ',', &part) ? micro(part, 1e6) : 0;
            s->freeze_us = micro(text, 1e6);
            break;
        default:
            exit(2);
        }
    }
    make_response(s, body_bytes);
}

int main(int argc, char **argv)
{
    static struct server s = {.next_freeze_us = UINT64_MAX};
    struct rlimit limit;
    read_options(&s, argc, argv);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    (void)printf("%u\n", (unsigned)listen_anywhere(&s));
    (void)fflush(stdout);
    serve(&s);
    return 0;
}
