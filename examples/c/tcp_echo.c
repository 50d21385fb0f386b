/* A protocol of one's own: lines over TCP, on a connection that the user keeps. The socket does not
 * block; where it would, cicada_wait_fd lets the other users have the thread.
 *
 *     cc -shared -fPIC -o tcp_echo.so tcp_echo.c $(pkg-config --cflags cicada)
 *     cicada --worker -f tcp_echo.so
 *
 * The server's port comes by ECHO_PORT, or by a custom argument --echo-port of the master. */
#define _GNU_SOURCE
#include <cicada.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_S 5.0

struct client {
    int fd; /* -1: not connected */
    unsigned sent;
};

static double ms_since(uint64_t begin_us)
{
    return (double)(cicada_clock_us() - begin_us) / 1e3;
}

static unsigned short port_of(struct cicada_user *user)
{
    const char *text = cicada_variable(user, "echo_port");
    if (!text || !*text)
        text = getenv("ECHO_PORT");
    return text ? (unsigned short)strtoul(text, NULL, 10) : 7;
}

/* NULL, or why it failed. The text of CICADA_STOPPED is never counted. */
static const char *wait_for(struct cicada_user *user, int fd, short events)
{
    int came = cicada_wait_fd(user, fd, events, TIMEOUT_S);
    if (came == CICADA_TIMEOUT)
        return "timed out";
    return came == CICADA_STOPPED ? "stopped" : came < 0 ? strerror(errno) : NULL;
}

static const char *connect_to(struct cicada_user *user, struct client *me)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port_of(user))};
    const char *error = NULL;
    int result = 0;
    socklen_t size = sizeof result;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    me->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (me->fd < 0)
        return strerror(errno);
    if (connect(me->fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        if (errno != EINPROGRESS)
            return strerror(errno);
        error = wait_for(user, me->fd, POLLOUT);
        if (!error && (getsockopt(me->fd, SOL_SOCKET, SO_ERROR, &result, &size) < 0 || result))
            error = strerror(result ? result : errno);
    }
    return error;
}

static const char *send_all(struct cicada_user *user, int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            const char *error = wait_for(user, fd, POLLOUT);
            if (error)
                return error;
        } else {
            return strerror(errno);
        }
    }
    return NULL;
}

/* A line that ends in '\n'; *length is what came. */
static const char *receive_line(struct cicada_user *user, int fd, char *line, size_t size,
                                size_t *length)
{
    for (*length = 0; *length == 0 || line[*length - 1] != '\n';) {
        ssize_t n = *length < size ? recv(fd, line + *length, size - *length, 0) : 0;
        if (n == 0)
            return *length < size ? "connection closed" : "line too long";
        if (n > 0) {
            *length += (size_t)n;
        } else if (errno == EAGAIN) {
            const char *error = wait_for(user, fd, POLLIN);
            if (error)
                return error;
        } else {
            return strerror(errno);
        }
    }
    return NULL;
}

static void hang_up(struct client *me)
{
    if (me->fd >= 0)
        (void)close(me->fd);
    me->fd = -1;
}

/* Count what was done since begin_us; a user that is stopped in the midst of it counts nothing. */
static int count(struct cicada_user *user, const char *name, uint64_t begin_us, size_t length,
                 const char *error)
{
    if (!error)
        cicada_record_success(user, "TCP", name, ms_since(begin_us), length);
    else if (strcmp(error, "stopped") != 0)
        cicada_record_failure(user, "TCP", name, ms_since(begin_us), length, error);
    return error ? -1 : 0;
}

static void on_start(struct cicada_user *user)
{
    struct client *me = calloc(1, sizeof *me);
    if (me)
        me->fd = -1;
    else
        cicada_stop_user(user);
    cicada_set_data(user, me);
}

static void on_stop(struct cicada_user *user)
{
    struct client *me = cicada_data(user);
    if (me)
        hang_up(me);
    free(me);
}

static void echo(struct cicada_user *user)
{
    struct client *me = cicada_data(user);
    char line[64], back[64];
    size_t length = 0;
    uint64_t begin_us = cicada_clock_us();
    const char *error;
    if (me->fd < 0 && count(user, "connect", begin_us, 0, connect_to(user, me)) < 0) {
        hang_up(me);
        return;
    }
    int n = snprintf(line, sizeof line, "hello %llu %u\n",
                     (unsigned long long)cicada_user_number(user), me->sent++);
    begin_us = cicada_clock_us();
    error = send_all(user, me->fd, line, (size_t)n);
    if (!error)
        error = receive_line(user, me->fd, back, sizeof back, &length);
    if (!error && (length != (size_t)n || memcmp(line, back, length) != 0))
        error = "another line came back";
    if (count(user, "echo", begin_us, length, error) < 0)
        hang_up(me);
}

static const struct cicada_task tasks[] = {{.name = "echo", .run = echo}, {.name = NULL}};

static const struct cicada_user_class users[] = {
    {
        .name = "Echo",
        .wait_time = {CICADA_WAIT_BETWEEN, 0.01, 0.05},
        .on_start = on_start,
        .on_stop = on_stop,
        .tasks = tasks,
    },
    {.name = NULL},
};

CICADA_TEST = {CICADA_TEST_HEAD, .users = users};
