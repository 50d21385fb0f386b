#include "worker/engine/resolver.h"

#include "base/buf.h"
#include "base/clock.h"
#include "worker/engine/timers.h"

#include <ares.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define TICK_US 100000 /* how often pending look-ups are checked for time-outs */

struct resolver_name {
    struct resolver *resolver;
    struct resolver_name *next;
    struct resolver_wait waiting; /* list head */
    bool looking;                 /* a look-up is under way */
    bool on_the_spot;             /* ... and is answered now, if the hosts file does */
    bool forever;                 /* an address in text form */
    bool failed;
    unsigned count;
    unsigned turn;
    unsigned port;
    uint64_t good_until_us; /* of the addresses, or of the failure */
    struct resolver_address addresses[RESOLVER_MAX_ADDRESSES];
    struct str zone;
    struct str host; /* NUL-terminated; both lie in text */
    char text[];
};

struct resolver_socket {
    struct loop_source source;
    struct resolver *resolver;
    ares_socket_t fd;
    struct resolver_socket *next;
};

struct resolver {
    ares_channel channel;
    bool channel_made;
    int epoll_fd;
    struct timers *timers;
    struct timer tick;
    unsigned looking;
    struct resolver_name *names;
    struct resolver_socket *sockets;
};

/* --- c-ares in the loop --------------------------------------------------------------------- */

static void socket_ready(struct loop_source *source, uint32_t events, uint64_t now_us)
{
    struct resolver_socket *s = (struct resolver_socket *)source;
    (void)now_us;
    ares_process_fd(s->resolver->channel,
                    events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? s->fd : ARES_SOCKET_BAD,
                    events & EPOLLOUT ? s->fd : ARES_SOCKET_BAD);
}

/* Sockets are kept by descriptor until the end: an event of this turn may still name one. */
static struct resolver_socket *socket_of(struct resolver *r, ares_socket_t fd)
{
    struct resolver_socket *s = r->sockets;
    while (s && s->fd != fd)
        s = s->next;
    if (!s && (s = calloc(1, sizeof *s))) {
        *s = (struct resolver_socket){{socket_ready}, r, fd, r->sockets};
        r->sockets = s;
    }
    return s;
}

static void on_socket(void *resolver, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = resolver;
    struct resolver_socket *s = socket_of(r, fd);
    struct epoll_event event = {.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u),
                                .data.ptr = s};
    if (!s || event.events == 0)
        (void)epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* may be out already */
    else if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        (void)epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, fd, &event); /* it is there */
}

static void tick(struct timer *t, void *context, uint64_t now_us)
{
    struct resolver *r = (struct resolver *)((char *)t - offsetof(struct resolver, tick));
    (void)context;
    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (r->looking > 0)
        timers_set(r->timers, t, now_us + TICK_US);
}

int resolver_new(int epoll_fd, struct timers *timers, struct resolver **ret)
{
    struct resolver *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->epoll_fd = epoll_fd;
    r->timers = timers;
    r->tick.fire = tick;
    struct ares_options options = {
        .timeout = RESOLVER_TIMEOUT_MS,
        .tries = 2,
        .sock_state_cb = on_socket,
        .sock_state_cb_data = r,
    };
    int rc = ares_init_options(&r->channel, &options,
                               ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (rc != ARES_SUCCESS) {
        free(r);
        return rc == ARES_ENOMEM ? -ENOMEM : -EIO;
    }
    r->channel_made = true;
    *ret = r;
    return 0;
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    if (r->channel_made)
        ares_destroy(r->channel); /* calls back what is pending, with ARES_EDESTRUCTION */
    timers_cancel(r->timers, &r->tick);
    while (r->sockets) {
        struct resolver_socket *s = r->sockets;
        r->sockets = s->next;
        free(s);
    }
    while (r->names) {
        struct resolver_name *n = r->names;
        r->names = n->next;
        free(n);
    }
    free(r);
}

/* --- names ---------------------------------------------------------------------------------- */

static void add_address(struct resolver_name *n, const void *address, socklen_t length)
{
    if (n->count == RESOLVER_MAX_ADDRESSES || length > sizeof n->addresses[0].storage)
        return;
    struct resolver_address *a = &n->addresses[n->count++];
    memcpy(&a->storage, address, length);
    a->length = length;
}

bool resolver_literal(struct str host, struct str zone, unsigned port, struct resolver_address *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host.ptr, &v4.sin_addr) == 1) {
        memcpy(&ret->storage, &v4, sizeof v4);
        ret->length = sizeof v4;
        return true;
    }
    if (inet_pton(AF_INET6, host.ptr, &v6.sin6_addr) != 1)
        return false;
    v6.sin6_scope_id = zone.len ? if_nametoindex(zone.ptr) : 0;
    memcpy(&ret->storage, &v6, sizeof v6);
    ret->length = sizeof v6;
    return true;
}

static struct resolver_name *make_name(struct resolver *r, struct str host, struct str zone,
                                       unsigned port)
{
    struct resolver_name *n = calloc(1, sizeof *n + host.len + zone.len + 2);
    if (!n)
        return NULL;
    memcpy(n->text, host.ptr, host.len);
    if (zone.len)
        memcpy(n->text + host.len + 1, zone.ptr, zone.len);
    n->resolver = r;
    n->host = (struct str){n->text, host.len};
    n->zone = (struct str){n->text + host.len + 1, zone.len};
    n->port = port;
    n->waiting.next = n->waiting.prev = &n->waiting;
    n->next = r->names;
    r->names = n;
    n->forever = resolver_literal(n->host, n->zone, n->port, &n->addresses[0]);
    n->count = n->forever;
    return n;
}

struct resolver_name *resolver_name(struct resolver *r, struct str host, struct str zone,
                                    unsigned port)
{
    for (struct resolver_name *n = r->names; n; n = n->next) {
        if (n->port == port && str_eq_nocase(n->host, host) && str_eq(n->zone, zone))
            return n;
    }
    return make_name(r, host, zone, port);
}

static void take_answer(struct resolver_name *n, const struct ares_addrinfo *info, uint64_t now_us)
{
    uint64_t zero_s = n->on_the_spot ? RESOLVER_HOSTS_TTL_S : RESOLVER_ZERO_TTL_S;
    uint64_t ttl_s = RESOLVER_LONGEST_TTL_S;
    n->count = 0;
    for (const struct ares_addrinfo_node *a = info->nodes; a; a = a->ai_next) {
        add_address(n, a->ai_addr, a->ai_addrlen);
        uint64_t own_s = a->ai_ttl > 0 ? (uint64_t)a->ai_ttl : zero_s;
        ttl_s = own_s < ttl_s ? own_s : ttl_s;
    }
    n->failed = n->count == 0;
    n->good_until_us = now_us + (n->failed ? RESOLVER_FAILED_US : ttl_s * 1000000);
}

static void tell_waiting(struct resolver_name *n, uint64_t now_us)
{
    /* those there now: one that is told may wait again for another look-up */
    struct resolver_wait list = n->waiting;
    if (list.next == &n->waiting)
        return;
    list.next->prev = list.prev->next = &list;
    n->waiting.next = n->waiting.prev = &n->waiting;
    while (list.next != &list) {
        struct resolver_wait *w = list.next;
        resolver_forget(w);
        w->ready(w, now_us);
    }
}

static void on_answer(void *name, int status, int timeouts, struct ares_addrinfo *info)
{
    struct resolver_name *n = name;
    uint64_t now_us = clock_mono_us();
    (void)timeouts;
    n->looking = false;
    n->resolver->looking--;
    if (status == ARES_SUCCESS && info) {
        take_answer(n, info, now_us);
    } else { /* an old answer that cannot be renewed is better than none */
        n->failed = n->count == 0;
        n->good_until_us = now_us + RESOLVER_FAILED_US;
    }
    if (info)
        ares_freeaddrinfo(info);
    if (status != ARES_EDESTRUCTION)
        tell_waiting(n, now_us);
}

static void look_up(struct resolver *r, struct resolver_name *n, uint64_t now_us)
{
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    (void)snprintf(port, sizeof port, "%u", n->port & 0xffff); /* at most five digits */
    n->looking = true;
    r->looking++;
    if (!timer_is_set(&r->tick))
        timers_set(r->timers, &r->tick, now_us + TICK_US);
    n->on_the_spot = true;
    ares_getaddrinfo(r->channel, n->host.ptr, port, &hints, on_answer, n);
    n->on_the_spot = false;
}

int resolver_want(struct resolver *r, struct resolver_name *n, struct resolver_wait *wait,
                  uint64_t now_us)
{
    if (n->forever)
        return 0;
    if (!n->looking && now_us >= n->good_until_us)
        look_up(r, n, now_us); /* may be answered on the spot, from the hosts file */
    if (!n->looking)
        return n->failed ? -ENOENT : 0;
    wait->prev = n->waiting.prev;
    wait->next = &n->waiting;
    n->waiting.prev->next = wait;
    n->waiting.prev = wait;
    return -EAGAIN;
}

void resolver_forget(struct resolver_wait *wait)
{
    if (!wait->next)
        return;
    wait->prev->next = wait->next;
    wait->next->prev = wait->prev;
    wait->next = wait->prev = NULL;
}

unsigned resolver_count(const struct resolver_name *n)
{
    return n->count;
}

unsigned resolver_turn(struct resolver_name *n)
{
    return n->count ? n->turn++ % n->count : 0;
}

const struct resolver_address *resolver_at(const struct resolver_name *n, unsigned turn)
{
    return n->count ? &n->addresses[turn % n->count] : NULL;
}
