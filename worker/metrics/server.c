#include "worker/metrics/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct metrics_server {
    struct MHD_Daemon *daemon;
    int wanted_fd;
    pthread_mutex_t lock;
    pthread_cond_t published;
    /* under the lock */
    struct buf pages[2]; /* by format: the last one there was */
    uint64_t versions[2];
    enum metrics_format wanted;
    bool ready;
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, struct str body,
                              const char *content_type)
{
    union {
        const char *in;
        void *out;
    } bytes = {body.len ? body.ptr : ""}; /* copied by libmicrohttpd, not changed */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, bytes.out, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    enum MHD_Result rc = MHD_add_response_header(response, "Content-Type", content_type);
    if (rc == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        rc = MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (rc == MHD_YES)
        rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text)
{
    return answer(connection, status, str_of(text), "text/plain; charset=utf-8");
}

/* Ring, and wait for a newer page; the lock is held. */
static void wait_for_page(struct metrics_server *s, enum metrics_format format)
{
    uint64_t before = s->versions[format], one = 1;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += METRICS_WAIT_MS / 1000;
    until.tv_nsec += (long)(METRICS_WAIT_MS % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    s->wanted = format;
    if (write(s->wanted_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is readable anyway, but the last page will do */
    while (s->versions[format] == before) {
        if (pthread_cond_timedwait(&s->published, &s->lock, &until) != 0)
            return;
    }
}

static enum MHD_Result answer_metrics(struct metrics_server *s, struct MHD_Connection *connection)
{
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    enum metrics_format format = metrics_accepted(str_of(accept));
    pthread_mutex_lock(&s->lock);
    wait_for_page(s, format);
    enum MHD_Result rc;
    if (s->versions[format] == 0)
        rc = answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no figures yet\n");
    else
        rc = answer(connection, MHD_HTTP_OK, buf_str(&s->pages[format]),
                    metrics_content_type(format));
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static enum MHD_Result answer_ready(struct metrics_server *s, struct MHD_Connection *connection)
{
    pthread_mutex_lock(&s->lock);
    bool ready = s->ready;
    pthread_mutex_unlock(&s->lock);
    return answer_text(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                       ready ? "ready\n" : "not ready\n");
}

static enum MHD_Result on_request(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    static int seen; /* its address marks the second call: libmicrohttpd calls once for the head */
    (void)version;
    (void)upload;
    if (!*state) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) { /* a body that nobody wants */
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    if (strcmp(url, "/metrics") == 0)
        return answer_metrics(server, connection);
    if (strcmp(url, "/healthz") == 0)
        return answer_text(connection, MHD_HTTP_OK, "ok\n");
    if (strcmp(url, "/readyz") == 0)
        return answer_ready(server, connection);
    return answer_text(connection, MHD_HTTP_NOT_FOUND, "/metrics, /healthz, /readyz\n");
}

/* libmicrohttpd would print to stderr by itself. */
static void quiet(void *unused, const char *format, va_list args)
{
    (void)unused;
    (void)format;
    (void)args;
}

static int resolve(const char *address, unsigned port, struct addrinfo **ret, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST};
    char service[8];
    (void)snprintf(service, sizeof service, "%u", port & 0xffff); /* at most five digits */
    int rc = getaddrinfo(address, service, &hints, ret);
    if (rc != 0)
        return err_set(err, -EINVAL, "metrics address '%s': not an IPv4 or IPv6 address", address);
    return 0;
}

static int listen_at(struct metrics_server *s, const char *address, unsigned port, struct err *err)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ERROR_LOG;
    struct addrinfo *at = NULL;
    bool all = !address || address[0] == '\0';
    if (!all) {
        int rc = resolve(address, port, &at, err);
        if (rc < 0)
            return rc;
    }
    errno = 0;
    for (int dual = all ? 1 : 0; dual >= 0 && !s->daemon; dual--) {
        bool ipv6 = dual || (at && at->ai_family == AF_INET6);
        s->daemon = MHD_start_daemon(
            flags | (dual ? MHD_USE_DUAL_STACK : 0u) | (ipv6 && !dual ? MHD_USE_IPv6 : 0u),
            (uint16_t)port, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
            MHD_OPTION_CONNECTION_LIMIT, METRICS_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
            METRICS_IDLE_S, at ? MHD_OPTION_SOCK_ADDR : MHD_OPTION_END, at ? at->ai_addr : NULL,
            MHD_OPTION_END);
    }
    int rc = s->daemon ? 0 : errno ? -errno : -EIO;
    if (at)
        freeaddrinfo(at);
    return rc < 0 ? err_set(err, rc, "metrics port %u: %s", port, strerror(-rc)) : 0;
}

int metrics_start(const char *address, unsigned port, struct metrics_server **ret, struct err *err)
{
    struct metrics_server *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    if (!s)
        return err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < 2; i++)
        buf_init(&s->pages[i], METRICS_MAX_BYTES);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->published, &attr);
    pthread_condattr_destroy(&attr);
    s->wanted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = s->wanted_fd < 0 ? err_set(err, -errno, "metrics: %s", strerror(errno))
                              : listen_at(s, address, port, err);
    if (rc < 0)
        metrics_stop(s);
    else
        *ret = s;
    return rc;
}

void metrics_stop(struct metrics_server *s)
{
    if (!s)
        return;
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    if (s->wanted_fd >= 0)
        (void)close(s->wanted_fd);
    pthread_cond_destroy(&s->published);
    pthread_mutex_destroy(&s->lock);
    for (int i = 0; i < 2; i++)
        buf_done(&s->pages[i]);
    free(s);
}

unsigned metrics_port(const struct metrics_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

int metrics_fd(const struct metrics_server *s)
{
    return s->wanted_fd;
}

bool metrics_wanted(struct metrics_server *s, enum metrics_format *ret)
{
    uint64_t count;
    if (read(s->wanted_fd, &count, sizeof count) < 0)
        return false;
    pthread_mutex_lock(&s->lock);
    *ret = s->wanted;
    pthread_mutex_unlock(&s->lock);
    return true;
}

void metrics_publish(struct metrics_server *s, enum metrics_format format, struct buf *page)
{
    pthread_mutex_lock(&s->lock);
    struct buf old = s->pages[format];
    s->pages[format] = *page;
    *page = old;
    s->versions[format]++;
    pthread_cond_broadcast(&s->published);
    pthread_mutex_unlock(&s->lock);
    buf_clear(page);
}

void metrics_set_ready(struct metrics_server *s, bool ready)
{
    pthread_mutex_lock(&s->lock);
    s->ready = ready;
    pthread_mutex_unlock(&s->lock);
}
