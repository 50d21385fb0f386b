#include "proto/locust/link.h"

#include "base/clock.h"
#include "test/unit/alloc.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
/* czmq's router plays the master; it also brings zmq.h */
#include <czmq.h>

#define DEADLINE_US 20000000u

/* --- a resolver of our own: libzmq resolves names through these two ------------------------------
 */

/* The build hides symbols; libzmq must find these. */
#pragma GCC visibility push(default)
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret);
void freeaddrinfo(struct addrinfo *info);
#pragma GCC visibility pop

static _Atomic(const char *) name_ipv4; /* the addresses of "master.test"; NULL: none */
static _Atomic(const char *) name_ipv6;
static _Atomic unsigned resolved_count;

static struct addrinfo *one_address(int family, const void *address)
{
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in6));
    if (!info)
        return NULL;
    info->ai_family = family;
    info->ai_socktype = SOCK_STREAM;
    info->ai_addr = (struct sockaddr *)(info + 1);
    if (family == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *)(info + 1);
        in->sin_family = AF_INET;
        memcpy(&in->sin_addr, address, sizeof in->sin_addr);
        info->ai_addrlen = sizeof *in;
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(info + 1);
        in6->sin6_family = AF_INET6;
        memcpy(&in6->sin6_addr, address, sizeof in6->sin6_addr);
        info->ai_addrlen = sizeof *in6;
    }
    return info;
}

/* As the real one does for AF_INET, and for AF_INET6 with AI_V4MAPPED. */
static struct addrinfo *resolve(const char *ipv4, const char *ipv6, int family)
{
    unsigned char address[16];
    char mapped[64];
    if (family == AF_INET)
        return ipv4 && inet_pton(AF_INET, ipv4, address) == 1 ? one_address(AF_INET, address)
                                                              : NULL;
    if (!ipv6) {
        (void)snprintf(mapped, sizeof mapped, "::ffff:%s", ipv4 ? ipv4 : "?");
        ipv6 = mapped;
    }
    return inet_pton(AF_INET6, ipv6, address) == 1 ? one_address(AF_INET6, address) : NULL;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    (void)service;
    bool ours = name && strcmp(name, "master.test") == 0;
    bool numeric6 = name && strchr(name, ':');
    if (ours)
        resolved_count++;
    *ret = resolve(ours ? name_ipv4 : name,
                   ours       ? name_ipv6
                   : numeric6 ? name
                              : NULL,
                   hints ? hints->ai_family : AF_INET);
    return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
    free(info);
}

/* --- helpers ------------------------------------------------------------------------------------
 */

static int set_up(void **state)
{
    (void)state;
    zsys_handler_set(NULL);
    return zsys_init() ? 0 : -1;
}

/* A router bound to a free port of address, or to the given one. */
static zsock_t *router(const char *address, unsigned *port)
{
    zsock_t *r = zsock_new(ZMQ_ROUTER);
    assert_non_null(r);
    zsock_set_rcvtimeo(r, (int)(DEADLINE_US / 1000));
    zsock_set_linger(r, 1000);
    int bound = *port ? zsock_bind(r, "tcp://%s:%u", address, *port)
                      : zsock_bind(r, "tcp://%s:![20000-30000]", address);
    assert_true(bound > 0);
    *port = (unsigned)bound;
    return r;
}

static struct link *new_link(const char *host, unsigned port)
{
    struct link *l;
    struct err err = {0};
    if (link_new(host, port, &l, &err) < 0)
        fail_msg("%s", err.text);
    return l;
}

static bool readable(struct link *l, int timeout_ms)
{
    struct pollfd fd = {.fd = link_fd(l), .events = POLLIN};
    return poll(&fd, 1, timeout_ms) == 1;
}

/* Serve the link's descriptor once, as a loop would; frames are dropped. */
static void serve(struct link *l)
{
    struct str frame;
    if (readable(l, 100))
        while (link_receive(l, &frame) != -EAGAIN)
            ;
}

static void wait_connected(struct link *l, bool connected)
{
    uint64_t until_us = clock_mono_us() + DEADLINE_US;
    while (link_connected(l) != connected) {
        serve(l);
        if (clock_mono_us() > until_us)
            fail_msg("still %s", link_status(l));
    }
}

static void wait_status(struct link *l, const char *status)
{
    uint64_t until_us = clock_mono_us() + DEADLINE_US;
    while (strcmp(link_status(l), status) != 0) {
        serve(l);
        if (clock_mono_us() > until_us)
            fail_msg("still %s", link_status(l));
    }
}

/* The next message at the router: from whom, and its one frame. */
static void expect_at(zsock_t *r, struct str from, const char *text)
{
    zmsg_t *msg = zmsg_recv(r);
    assert_non_null(msg);
    assert_int_equal(zmsg_size(msg), 2);
    assert_int_equal(zframe_size(zmsg_first(msg)), from.len);
    assert_memory_equal(zframe_data(zmsg_first(msg)), from.ptr, from.len);
    assert_true(zframe_streq(zmsg_next(msg), text));
    zmsg_destroy(&msg);
}

static void send_to(zsock_t *r, struct str whom, const char *text)
{
    zframe_t *to = zframe_new(whom.ptr, whom.len);
    zframe_t *frame = zframe_new(text, strlen(text));
    assert_int_equal(zframe_send(&to, r, ZFRAME_MORE), 0);
    assert_int_equal(zframe_send(&frame, r, 0), 0);
}

static void expect_frame(struct link *l, const char *text)
{
    struct str frame;
    int rc;
    assert_true(readable(l, (int)(DEADLINE_US / 1000)));
    while ((rc = link_receive(l, &frame)) == -EAGAIN)
        assert_true(readable(l, (int)(DEADLINE_US / 1000)));
    assert_int_equal(rc, 0);
    assert_true(str_eq(frame, str_of(text)));
}

/* --- tests --------------------------------------------------------------------------------------
 */

static void test_what_is_no_host_or_port_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        unsigned port;
    } cases[] = {{NULL, 5557},  {"", 5557},        {"[]", 5557},  {"a b", 5557}, {"*", 5557},
                 {"a;b", 5557}, {"tcp://a", 5557}, {"a/b", 5557}, {"master", 0}, {"master", 65536}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct link *l;
        struct err err = {0};
        assert_int_equal(link_new(cases[i].host, cases[i].port, &l, &err), -EINVAL);
        assert_true(err.text[0]);
    }
    char longest[LINK_MAX_HOST_BYTES + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct link *l;
    assert_int_equal(link_new(longest, 5557, &l, NULL), -EINVAL);
    longest[LINK_MAX_HOST_BYTES] = '\0';
    link_free(new_link(longest, 65535));
    link_free(NULL);
}

static void test_link_new_survives_a_failing_allocation(void **state)
{
    (void)state;
    struct link *l;
    alloc_fail_at(1);
    assert_int_equal(link_new("127.0.0.1", 5557, &l, NULL), -ENOMEM);
    alloc_fail_at(0);
}

/* hostname_uuid4hex, nothing before the only '_' that a master could take for another machine. */
static void test_identities_are_locusts_and_fresh(void **state)
{
    (void)state;
    struct link *l = new_link("127.0.0.1", 1);
    char first[256], second[256];
    struct str id = link_node_id(l);
    size_t at = str_find(id, '_');
    assert_int_equal(id.len - at, 33);
    assert_int_equal(id.ptr[at + 13], '4');
    assert_non_null(strchr("89ab", id.ptr[at + 17]));
    assert_int_equal(strspn(id.ptr + at + 1, "0123456789abcdef"), 32);
    (void)snprintf(first, sizeof first, "%.*s", STR_ARG(id));
    assert_int_equal(link_reopen(l, true, NULL), 0);
    assert_string_equal(link_node_id(l).ptr, first);
    assert_int_equal(link_reopen(l, false, NULL), 0);
    (void)snprintf(second, sizeof second, "%.*s", STR_ARG(link_node_id(l)));
    assert_string_not_equal(second, first);
    assert_memory_equal(second, first, at + 1);
    link_free(l);
}

static void test_the_descriptor_stays_readable_while_a_frame_waits(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    struct link *l = new_link("127.0.0.1", port);
    int fd = link_fd(l);
    struct str frame;
    wait_connected(l, true);
    assert_int_equal(link_send(l, STR("hello")), 0);
    expect_at(r, link_node_id(l), "hello");
    send_to(r, link_node_id(l), "one");
    send_to(r, link_node_id(l), "two");
    expect_frame(l, "one");
    expect_frame(l, "two");
    assert_int_equal(link_receive(l, &frame), -EAGAIN);
    assert_false(readable(l, 0));
    /* ZeroMQ's own descriptor may lose its edge to each of these */
    send_to(r, link_node_id(l), "three");
    assert_true(readable(l, (int)(DEADLINE_US / 1000)));
    for (int i = 0; i < 100; i++)
        assert_int_equal(link_send(l, STR("again")), 0);
    assert_true(link_connected(l));
    assert_string_equal(link_status(l), "connected");
    assert_true(readable(l, 0));
    expect_frame(l, "three");
    assert_int_equal(link_reopen(l, false, NULL), 0);
    assert_int_equal(link_fd(l), fd);
    link_free(l);
    zsock_destroy(&r);
}

static void test_nothing_is_queued_without_a_connection(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    zsock_destroy(&r); /* the port is free, most likely */
    struct link *l = new_link("127.0.0.1", port);
    assert_int_equal(link_send(l, STR("lost")), -EAGAIN);
    wait_status(l, "connection refused");
    assert_int_equal(link_send(l, STR("lost")), -EAGAIN);
    r = router("127.0.0.1", &port);
    wait_connected(l, true);
    assert_int_equal(link_send(l, STR("first")), 0);
    expect_at(r, link_node_id(l), "first");
    zsock_destroy(&r);
    wait_connected(l, false);
    assert_int_equal(link_send(l, STR("lost")), -EAGAIN);
    r = router("127.0.0.1", &port);
    wait_connected(l, true);
    assert_int_equal(link_send(l, STR("second")), 0);
    expect_at(r, link_node_id(l), "second");
    link_free(l);
    zsock_destroy(&r);
}

static void test_a_name_is_resolved_again_on_each_try(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    struct link *l = new_link("master.test", port);
    wait_status(l, "name not found, or no route to it");
    name_ipv4 = "127.0.0.1";
    wait_connected(l, true);
    unsigned before = resolved_count;
    zsock_t *moved = router("127.0.0.2", &port);
    name_ipv4 = "127.0.0.2";
    zsock_destroy(&r);
    wait_connected(l, false);
    wait_connected(l, true);
    assert_true(resolved_count > before);
    assert_int_equal(link_send(l, STR("here")), 0);
    expect_at(moved, link_node_id(l), "here");
    link_free(l);
    zsock_destroy(&moved);
    name_ipv4 = NULL;
}

/* ZeroMQ tries the IPv6 address of such a name and no other. */
static void test_a_name_whose_ipv6_address_is_dead_is_reached_by_ipv4(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    name_ipv4 = "127.0.0.1";
    name_ipv6 = "::1";
    struct link *l = new_link("master.test", port);
    wait_connected(l, true);
    link_free(l);
    zsock_destroy(&r);
    name_ipv4 = name_ipv6 = NULL;
}

static void test_no_descriptors_left_is_an_error_and_passes(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    struct link *l = new_link("127.0.0.1", port);
    wait_connected(l, true);
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct err err = {0};
    int rc = link_reopen(l, false, &err);
    struct str frame;
    int sent = link_send(l, STR("x")), received = link_receive(l, &frame);
    bool connected = link_connected(l);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, -EMFILE);
    assert_int_equal(err.code, -EMFILE);
    assert_int_equal(sent, -EAGAIN);
    assert_int_equal(received, -EAGAIN);
    assert_false(connected);
    wait_connected(l, true); /* by itself, on its tick */
    link_free(l);
    zsock_destroy(&r);
}

static void test_drain_hands_over_what_is_queued(void **state)
{
    (void)state;
    unsigned port = 0;
    zsock_t *r = router("127.0.0.1", &port);
    struct link *l = new_link("127.0.0.1", port);
    struct str frame;
    char text[16];
    wait_connected(l, true);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        assert_int_equal(link_send(l, str_of(text)), 0);
    }
    link_drain(l, 5000);
    assert_int_equal(link_send(l, STR("late")), -EAGAIN);
    assert_int_equal(link_receive(l, &frame), -EAGAIN);
    assert_false(link_connected(l));
    for (int i = 0; i < 500; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        expect_at(r, link_node_id(l), text);
    }
    link_free(l);
    zsock_destroy(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_host_or_port_is_refused),
        cmocka_unit_test(test_link_new_survives_a_failing_allocation),
        cmocka_unit_test(test_identities_are_locusts_and_fresh),
        cmocka_unit_test(test_the_descriptor_stays_readable_while_a_frame_waits),
        cmocka_unit_test(test_nothing_is_queued_without_a_connection),
        cmocka_unit_test(test_a_name_is_resolved_again_on_each_try),
        cmocka_unit_test(test_a_name_whose_ipv6_address_is_dead_is_reached_by_ipv4),
        cmocka_unit_test(test_no_descriptors_left_is_an_error_and_passes),
        cmocka_unit_test(test_drain_hands_over_what_is_queued),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
