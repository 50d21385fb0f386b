/* On libzmq itself, not on czmq's zsock, zmonitor and zactor: those assert on what this process
 * must survive (no thread, no memory, a failed option), keep their context in a global, and install
 * signal handlers and an exit handler. The worker exhausts file descriptors on purpose at times;
 * libzmq answers that with errnos as long as its context exists already, so one context lives as
 * long as the link and only sockets are replaced.
 *
 * ZMQ_FD is edge-triggered and any call on the socket may swallow its edge. It is therefore not
 * given out: link_fd is an epoll set of the socket, its monitor, a clock tick, and an eventfd that
 * is kept readable while ZeroMQ says that a frame waits.
 *
 * Replacing the socket is the one way to begin anew, for the caller (link_reopen) and on the tick:
 * when ZeroMQ ended the session for good (it does after a protocol error), and when a name was
 * tried in vain a few times. The latter alternates between "IPv6 where there is" and IPv4 alone,
 * because ZeroMQ tries only the first address of a name that has both kinds. */
#include "proto/locust/link.h"

#include "base/clock.h"
#include "base/random.h"
#include "proto/locust/message.h"
#include "proto/locust/watch.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <zmq.h>

#define CLOSE_WAIT_MS   1000 /* for ZeroMQ's thread, which may be resolving a name */
#define TICK_S          1    /* how often an unconnected link looks at itself */
#define FAMILY_FAILURES 3    /* attempts in vain before the other kind of address is tried */
#define DROP_AT_ONCE    64   /* messages of a peer that is no ZeroMQ server, in one call */
#define HOST_PART_BYTES 128  /* of the identity */
#define ENDPOINT_BYTES  (LINK_MAX_HOST_BYTES + sizeof "tcp://[]:65535")

struct link {
    void *context;
    void *socket;  /* the DEALER; NULL when it could not be made, or was drained */
    void *monitor; /* a PAIR that hears what the DEALER's transport does */
    int epoll_fd;
    int waiting_fd; /* readable while a frame waits */
    int tick_fd;    /* runs while not connected */
    bool waiting_shown;
    bool ticking;
    bool drained;
    bool released;   /* ZeroMQ's threads have let go of the last socket that was closed */
    zmq_msg_t frame; /* what link_receive gave out */
    struct watch watch;
    bool dual_stack; /* the host can do IPv6, and its sockets do both */
    bool ipv4_only;  /* the present socket's choice */
    uint64_t opened_count;
    struct rng rng;
    char host_part[HOST_PART_BYTES];
    char node_id[MESSAGE_NODE_ID_BYTES];
    char endpoint[ENDPOINT_BYTES];
};

/* --- identity and address -------------------------------------------------------------------- */

/* The master takes what stands before the first '_' as this worker's machine, and decodes the
 * identity as UTF-8. */
static void name_host(char ret[static HOST_PART_BYTES])
{
    if (gethostname(ret, HOST_PART_BYTES) < 0 || !ret[0])
        (void)snprintf(ret, HOST_PART_BYTES, "worker"); /* fits */
    ret[HOST_PART_BYTES - 1] = '\0';
    for (char *c = ret; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= 'A' && *c <= 'Z') || *c == '.';
        if (!plain)
            *c = '-';
    }
}

/* uuid4().hex: 122 random bits, and the marks of version 4. */
static void take_identity(struct link *l)
{
    uint64_t high = (rng_u64(&l->rng) & ~UINT64_C(0xF000)) | UINT64_C(0x4000);
    uint64_t low = rng_u64(&l->rng) >> 2 | UINT64_C(1) << 63;
    (void)snprintf(l->node_id, sizeof l->node_id, "%s_%016" PRIx64 "%016" PRIx64, l->host_part,
                   high, low); /* fits: 127 + 1 + 32 */
}

static bool is_numeric(struct str host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    struct str bare = str_sub(host, 0, str_find(host, '%')); /* without a zone */
    if (bare.len >= sizeof text)
        return false;
    memcpy(text, bare.ptr, bare.len);
    text[bare.len] = '\0';
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Only what names and addresses are made of: ZeroMQ gives meaning to ';' and '*'. */
static bool is_host(struct str host)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:%";
    for (size_t i = 0; i < host.len; i++)
        if (!host.ptr[i] || !strchr(allowed, host.ptr[i]))
            return false;
    return host.len > 0 && host.len <= LINK_MAX_HOST_BYTES;
}

static int set_endpoint(struct link *l, const char *given, unsigned port, struct err *err)
{
    struct str host = str_of(given);
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = str_sub(host, 1, host.len - 1);
    if (!is_host(host))
        return err_set(err, -EINVAL, "master host is not a name or an address");
    if (port == 0 || port > 65535)
        return err_set(err, -EINVAL, "master port must be 1 to 65535, not %u", port);
    bool brackets = str_find(host, ':') < host.len;
    (void)snprintf(l->endpoint, sizeof l->endpoint, brackets ? "tcp://[%.*s]:%u" : "tcp://%.*s:%u",
                   STR_ARG(host), port); /* fits: is_host bounds it */
    watch_init(&l->watch, is_numeric(host));
    return 0;
}

/* As Python's socket.has_dualstack_ipv6(), which Locust asks. */
static bool has_dual_stack(void)
{
    int off = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool both = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    (void)close(fd); /* never used */
    return both;
}

/* --- the file descriptor that callers wait for ----------------------------------------------- */

static int watch_fd(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int socket_fd(void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) < 0 ? -errno : fd;
}

static int watch_socket(struct link *l, void *socket)
{
    int fd = socket_fd(socket);
    return fd < 0 ? fd : watch_fd(l->epoll_fd, fd);
}

static void unwatch_socket(struct link *l, void *socket)
{
    int fd = socket_fd(socket);
    if (fd >= 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* absent in a half-built link */
}

/* Ask ZeroMQ whether a frame waits, which also settles its own signals, and show the answer. */
static void show_waiting(struct link *l)
{
    int events = 0;
    size_t size = sizeof events;
    uint64_t value = 1;
    if (l->socket && zmq_getsockopt(l->socket, ZMQ_EVENTS, &events, &size) < 0)
        events = 0;
    bool waits = events & ZMQ_POLLIN;
    if (waits == l->waiting_shown)
        return;
    ssize_t n = waits ? write(l->waiting_fd, &value, sizeof value)
                      : read(l->waiting_fd, &value, sizeof value);
    if (n == sizeof value)
        l->waiting_shown = waits;
}

static void set_ticking(struct link *l, bool on)
{
    struct itimerspec spec = {0};
    if (on == l->ticking)
        return;
    if (on)
        spec.it_value.tv_sec = spec.it_interval.tv_sec = TICK_S;
    if (timerfd_settime(l->tick_fd, 0, &spec, NULL) == 0)
        l->ticking = on;
}

/* --- opening and closing the socket ---------------------------------------------------------- */

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int set_options(struct link *l)
{
    const struct {
        int option;
        int value;
    } options[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_IMMEDIATE, 1}, /* no queue but that of a standing connection */
        {ZMQ_SNDHWM, LINK_SEND_QUEUE},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 30},
        {ZMQ_RECONNECT_IVL, 250}, /* ms; the wait is this to MAX, and up to this more by chance */
        {ZMQ_RECONNECT_IVL_MAX, 750},
        {ZMQ_CONNECT_TIMEOUT, 5000}, /* else the kernel's two minutes at an address that moved */
        {ZMQ_HANDSHAKE_IVL, 5000},
        {ZMQ_IPV6, l->dual_stack && !l->ipv4_only},
    };
    int64_t max_bytes = MESSAGE_MAX_BYTES;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int rc = set_int(l->socket, options[i].option, options[i].value);
        if (rc < 0)
            return rc;
    }
    if (zmq_setsockopt(l->socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) < 0 ||
        zmq_setsockopt(l->socket, ZMQ_ROUTING_ID, l->node_id, strlen(l->node_id)) < 0)
        return -errno;
    return 0;
}

/* The monitor's queue has no limit: ZeroMQ's thread would block on a full one. */
static int open_monitor(struct link *l)
{
    char address[64];
    (void)snprintf(address, sizeof address, "inproc://monitor-%" PRIu64,
                   l->opened_count); /* fits */
    if (zmq_socket_monitor(l->socket, address, ZMQ_EVENT_ALL) < 0)
        return -errno;
    l->monitor = zmq_socket(l->context, ZMQ_PAIR);
    if (!l->monitor)
        return -errno;
    int rc = set_int(l->monitor, ZMQ_LINGER, 0);
    if (rc == 0)
        rc = set_int(l->monitor, ZMQ_RCVHWM, 0);
    if (rc == 0 && zmq_connect(l->monitor, address) < 0)
        rc = -errno;
    return rc < 0 ? rc : watch_socket(l, l->monitor);
}

static void close_monitor(struct link *l)
{
    if (!l->monitor)
        return;
    unwatch_socket(l, l->monitor);
    (void)zmq_close(l->monitor); /* can only fail for a socket that is none */
    l->monitor = NULL;
}

/* The next thing the transport did; false when there is none. */
static bool next_event(struct link *l, unsigned *ret_event, unsigned *ret_value)
{
    unsigned char bytes[6] = {0}; /* 16 bits of event, 32 of value; then a frame: the address */
    zmq_msg_t part;
    bool found = false;
    int more = 0;
    zmq_msg_init(&part);
    do {
        if (zmq_msg_recv(&part, l->monitor, ZMQ_DONTWAIT) < 0)
            break;
        if (!found && zmq_msg_size(&part) >= sizeof bytes)
            memcpy(bytes, zmq_msg_data(&part), sizeof bytes);
        found = true;
        more = zmq_msg_more(&part);
    } while (more);
    zmq_msg_close(&part);
    uint16_t event;
    uint32_t value;
    memcpy(&event, bytes, sizeof event);
    memcpy(&value, bytes + sizeof event, sizeof value);
    *ret_event = event;
    *ret_value = value;
    return found;
}

/* Wait until ZeroMQ's threads have let go of the closed socket: its monitor's last event. */
static bool wait_closed(struct link *l, int timeout_ms)
{
    uint64_t until_us = clock_mono_us() + (uint64_t)timeout_ms * 1000;
    if (!l->monitor)
        return true; /* was never connected */
    for (;;) {
        unsigned event, value;
        while (next_event(l, &event, &value))
            if (event == ZMQ_EVENT_MONITOR_STOPPED)
                return true;
        uint64_t now_us = clock_mono_us();
        if (now_us >= until_us)
            return false;
        zmq_pollitem_t item = {.socket = l->monitor, .events = ZMQ_POLLIN};
        (void)zmq_poll(&item, 1, (long)((until_us - now_us + 999) / 1000)); /* read above */
    }
}

static void close_socket(struct link *l, int linger_ms, int wait_ms)
{
    if (l->socket) {
        (void)set_int(l->socket, ZMQ_LINGER, linger_ms); /* then it is 0, as it was set */
        unwatch_socket(l, l->socket);
        (void)zmq_close(l->socket); /* can only fail for a socket that is none */
        l->socket = NULL;
        l->released = wait_closed(l, wait_ms);
    }
    close_monitor(l);
    l->watch.connected = false;
}

static int open_socket(struct link *l)
{
    l->opened_count++;
    watch_init(&l->watch, l->watch.numeric_host);
    l->socket = zmq_socket(l->context, ZMQ_DEALER);
    int rc = l->socket ? set_options(l) : -errno;
    if (rc == 0)
        rc = open_monitor(l);
    if (rc == 0)
        rc = watch_socket(l, l->socket);
    if (rc == 0 && zmq_connect(l->socket, l->endpoint) < 0)
        rc = -errno;
    if (rc < 0) {
        close_socket(l, 0, CLOSE_WAIT_MS);
        l->watch.status = "no socket could be made";
    }
    set_ticking(l, true);
    return rc;
}

/* --- following the transport ----------------------------------------------------------------- */

static void hear(struct link *l)
{
    unsigned event, value;
    while (l->monitor && next_event(l, &event, &value))
        watch_event(&l->watch, event, value, clock_mono_us());
    set_ticking(l, !l->watch.connected && !l->drained);
}

/* On the tick of an unconnected link: does ZeroMQ still try, and does it try the right way? */
static void look_after(struct link *l)
{
    uint64_t ticks;
    if (read(l->tick_fd, &ticks, sizeof ticks) != sizeof ticks)
        return;
    hear(l);
    bool other_family =
        l->dual_stack && !l->watch.numeric_host && l->watch.failures >= FAMILY_FAILURES;
    if (l->watch.connected || l->drained || (l->socket && !l->watch.gave_up && !other_family))
        return;
    const char *status = l->watch.status;
    if (other_family)
        l->ipv4_only = !l->ipv4_only;
    close_socket(l, 0, 0);        /* no connection stands that would have to go first */
    if (open_socket(l) == 0)      /* else the next tick tries again */
        l->watch.status = status; /* until there is something newer to say */
}

/* --- the link -------------------------------------------------------------------------------- */

static int build(struct link *l, struct err *err)
{
    l->context = zmq_ctx_new();
    if (!l->context)
        return err_set(err, -errno, "ZeroMQ: %s", zmq_strerror(errno));
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->waiting_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->epoll_fd < 0 || l->waiting_fd < 0 || l->tick_fd < 0)
        return err_set(err, -errno, "link: %s", strerror(errno));
    int rc = watch_fd(l->epoll_fd, l->waiting_fd);
    if (rc == 0)
        rc = watch_fd(l->epoll_fd, l->tick_fd);
    if (rc == 0)
        rc = open_socket(l);
    return rc < 0 ? err_set(err, rc, "ZeroMQ: %s", zmq_strerror(-rc)) : 0;
}

int link_new(const char *host, unsigned port, struct link **ret, struct err *err)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, -ENOMEM, "link: out of memory");
    l->epoll_fd = l->waiting_fd = l->tick_fd = -1;
    l->released = true;
    zmq_msg_init(&l->frame);
    rng_init(&l->rng, rng_seed_from_system());
    name_host(l->host_part);
    take_identity(l);
    l->dual_stack = has_dual_stack();
    int rc = set_endpoint(l, host, port, err);
    if (rc == 0)
        rc = build(l, err);
    if (rc < 0) {
        link_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* nothing was written that could be lost */
}

/* Ending the context waits for ZeroMQ's threads. When those do not come back in time (a resolver
 * may hang for a minute) the context is left to them, and to the end of the process. */
void link_free(struct link *l)
{
    if (!l)
        return;
    close_socket(l, 0, CLOSE_WAIT_MS);
    zmq_msg_close(&l->frame);
    if (l->context && l->released)
        (void)zmq_ctx_term(l->context); /* EINTR: the process ends anyway */
    close_fd(l->tick_fd);
    close_fd(l->waiting_fd);
    close_fd(l->epoll_fd);
    free(l);
}

struct str link_node_id(const struct link *l)
{
    return str_of(l->node_id);
}

int link_fd(const struct link *l)
{
    return l->epoll_fd;
}

/* The master's ROUTER forgets an identity only when its own thread has looked twice after the end
 * of the connection, and ignores for good who comes back sooner. Hence the tick's pause before the
 * same identity returns. */
int link_reopen(struct link *l, bool keep_identity, struct err *err)
{
    int rc = 0;
    close_socket(l, 0, CLOSE_WAIT_MS); /* later than that: the new one is tried all the same */
    if (keep_identity) {
        watch_init(&l->watch, l->watch.numeric_host);
        set_ticking(l, false); /* a whole tick from now */
        set_ticking(l, true);
    } else {
        take_identity(l);
        rc = open_socket(l);
    }
    show_waiting(l);
    return rc < 0 ? err_set(err, rc, "ZeroMQ: %s", zmq_strerror(-rc)) : 0;
}

/* ZeroMQ would take a frame for a connection that it reported lost a moment ago, and drop it. */
int link_send(struct link *l, struct str frame)
{
    if (!link_connected(l))
        return -EAGAIN;
    int rc = zmq_send(l->socket, frame.ptr, frame.len, ZMQ_DONTWAIT) < 0 ? -errno : 0;
    show_waiting(l);
    return rc == -EINTR ? -EAGAIN : rc;
}

/* 0 with one whole message in l->frame; several frames are taken together and dropped. */
static int take_message(struct link *l)
{
    if (zmq_msg_recv(&l->frame, l->socket, ZMQ_DONTWAIT) < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    bool single = !zmq_msg_more(&l->frame);
    while (zmq_msg_more(&l->frame))
        if (zmq_msg_recv(&l->frame, l->socket, ZMQ_DONTWAIT) < 0)
            break;
    return single ? 0 : -EPROTO;
}

/* ZeroMQ takes any bytes for its oldest protocol, which has no handshake, and hands them on. The
 * monitor tells of a handshake before the first message that follows it can be read. */
static int receive(struct link *l)
{
    for (int i = 0; i < DROP_AT_ONCE; i++) {
        int rc = l->socket ? take_message(l) : -EAGAIN;
        hear(l);
        if (l->watch.greeted || (rc < 0 && rc != -EPROTO))
            return rc;
    }
    return -EAGAIN; /* link_fd stays readable */
}

int link_receive(struct link *l, struct str *ret_frame)
{
    look_after(l);
    int rc = receive(l);
    show_waiting(l);
    if (rc == 0)
        *ret_frame = (struct str){zmq_msg_data(&l->frame), zmq_msg_size(&l->frame)};
    return rc;
}

const char *link_status(struct link *l)
{
    hear(l);
    show_waiting(l);
    return l->watch.status;
}

bool link_connected(struct link *l)
{
    hear(l);
    show_waiting(l);
    return l->watch.connected;
}

void link_drain(struct link *l, int timeout_ms)
{
    l->drained = true;
    close_socket(l, timeout_ms, timeout_ms); /* what is left then is lost */
    l->watch.status = "closed";
    set_ticking(l, false);
    show_waiting(l);
}
