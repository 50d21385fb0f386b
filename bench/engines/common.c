#include "bench/engines/common.h"

#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void die(const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", text, strerror(errno));
    exit(1);
}

static uint64_t number(const char *text, uint64_t max)
{
    uint64_t v;
    errno = EINVAL;
    if (num_parse_u64(str_of(text), max, &v) < 0)
        die(text);
    return v;
}

static double seconds(const char *text)
{
    double v;
    errno = EINVAL;
    if (num_parse_double(str_of(text), &v) < 0)
        die(text);
    return v;
}

struct options read_options(int argc, char **argv)
{
    struct options o = {.connections = 100, .path = "/", .seconds = 3};
    int c;
    while ((c = getopt(argc, argv, "c:p:u:t:n:W:T")) != -1) {
        switch (c) {
        case 'c':
            o.connections = (uint32_t)number(optarg, 1000000);
            break;
        case 'p':
            o.port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 'u':
            o.path = optarg;
            break;
        case 't':
            o.seconds = seconds(optarg);
            break;
        case 'n':
            o.requests = number(optarg, UINT64_MAX);
            break;
        case 'W':
            o.wait_us = number(optarg, 1000000) * 1000;
            break;
        case 'T':
            o.tls = true;
            break;
        default:
            exit(2);
        }
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        die("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        die("setrlimit");
    return o;
}

int open_socket(const struct options *o)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(o->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        die("socket option");
    return fd;
}

size_t make_request(const struct options *o, char *ret, size_t size)
{
    int n = snprintf(ret, size, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n\r\n",
                     o->path, (unsigned)o->port);
    errno = E2BIG;
    if (n < 0 || (size_t)n >= size)
        die("path");
    return (size_t)n;
}

void run_begin(struct run *r, const struct options *o)
{
    *r = (struct run){
        .end_us = clock_mono_us() + (uint64_t)(o->seconds * 1e6),
        .end_requests = o->requests ? o->requests : UINT64_MAX,
    };
}

void run_record(struct run *r, bool ok, uint64_t response_time_us)
{
    r->requests++;
    if (!ok)
        r->failures++;
    if (histogram_add(&r->times, response_time_us, 1) < 0)
        die("histogram");
}

void run_print(struct run *r)
{
    uint64_t p50, p99;
    (void)printf("{\"requests\": %" PRIu64 ", \"failures\": %" PRIu64, r->requests, r->failures);
    if (histogram_percentile(&r->times, 0.5, &p50) && histogram_percentile(&r->times, 0.99, &p99))
        (void)printf(", \"p50_us\": %" PRIu64 ", \"p99_us\": %" PRIu64, p50, p99);
    (void)printf("}\n");
    histogram_done(&r->times);
}

void waiting_begin(struct waiting *w, const struct options *o, uint64_t now_us)
{
    *w = (struct waiting){.size = o->connections};
    w->ring = calloc(w->size, sizeof *w->ring);
    if (!w->ring)
        die("waiting users");
    for (uint32_t i = 0; i < o->connections; i++)
        waiting_add(w, i, now_us + o->wait_us * i / o->connections);
}

void waiting_add(struct waiting *w, uint32_t user, uint64_t due_us)
{
    w->ring[(w->first + w->count++) % w->size] = (struct waiter){due_us, user};
}

bool waiting_take(struct waiting *w, uint64_t now_us, uint32_t *ret_user)
{
    if (w->count == 0 || w->ring[w->first].due_us > now_us)
        return false;
    *ret_user = w->ring[w->first].user;
    w->first = (w->first + 1) % w->size;
    w->count--;
    return true;
}

int waiting_timeout_ms(const struct waiting *w, uint64_t now_us, int limit_ms)
{
    if (w->count == 0)
        return limit_ms;
    uint64_t due_us = w->ring[w->first].due_us;
    uint64_t ms = due_us > now_us ? (due_us - now_us + 999) / 1000 : 0;
    return ms < (uint64_t)limit_ms ? (int)ms : limit_ms;
}
