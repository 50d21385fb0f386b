#include "worker/engine/resolver.h"

#include "base/clock.h"
#include "test/unit/alloc.h"
#include "worker/engine/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DEADLINE_US 20000000 /* for what comes from the hosts file; far above what it takes */

/* A loop like a shard's. */
struct loop {
    int epoll_fd;
    struct timers timers;
    struct resolver *resolver;
};

static int set_up(void **state)
{
    static struct loop l;
    l.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timers_init(&l.timers, clock_mono_us());
    *state = &l;
    return l.epoll_fd < 0 ? -1 : resolver_new(l.epoll_fd, &l.timers, &l.resolver);
}

static int tear_down(void **state)
{
    struct loop *l = *state;
    resolver_free(l->resolver);
    return close(l->epoll_fd);
}

static void turn(struct loop *l)
{
    struct epoll_event events[8];
    int n = epoll_wait(l->epoll_fd, events, 8, 10);
    for (int i = 0; i < n; i++) {
        struct loop_source *source = events[i].data.ptr;
        source->ready(source, events[i].events, clock_mono_us());
    }
    timers_run(&l->timers, clock_mono_us(), NULL);
}

struct waiter {
    struct resolver_wait wait;
    unsigned told;
};

static void told(struct resolver_wait *wait, uint64_t now_us)
{
    (void)now_us;
    ((struct waiter *)wait)->told++;
}

/* Wait until the name has an answer; what resolver_want said at last. */
static int settle(struct loop *l, struct resolver_name *name, struct waiter *w)
{
    uint64_t end_us = clock_mono_us() + DEADLINE_US;
    int rc = resolver_want(l->resolver, name, &w->wait, clock_mono_us());
    if (rc != -EAGAIN)
        return rc;
    while (w->told == 0 && clock_mono_us() < end_us)
        turn(l);
    assert_int_equal(w->told, 1);
    return resolver_count(name) ? 0 : -ENOENT;
}

static struct resolver_name *name_of(struct loop *l, const char *host, const char *zone,
                                     unsigned port)
{
    struct resolver_name *name = resolver_name(l->resolver, str_of(host), str_of(zone), port);
    assert_non_null(name);
    return name;
}

static void test_an_ipv4_address_needs_no_look_up(void **state)
{
    struct loop *l = *state;
    struct waiter w = {.wait.ready = told};
    struct resolver_name *name = name_of(l, "127.0.0.3", NULL, 8080);
    assert_int_equal(resolver_want(l->resolver, name, &w.wait, 0), 0);
    assert_int_equal(resolver_count(name), 1);
    const struct resolver_address *a = resolver_at(name, 0);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->storage;
    assert_int_equal(a->length, sizeof *v4);
    assert_int_equal(v4->sin_family, AF_INET);
    assert_int_equal(ntohs(v4->sin_port), 8080);
    assert_int_equal(ntohl(v4->sin_addr.s_addr), 0x7f000003);
    assert_ptr_equal(resolver_at(name, 0), a);
}

static void test_an_ipv6_address_may_have_a_zone(void **state)
{
    struct loop *l = *state;
    struct waiter w = {.wait.ready = told};
    struct resolver_name *name = name_of(l, "fe80::1", "lo", 443);
    struct resolver_name *without = name_of(l, "fe80::1", NULL, 443);
    assert_int_equal(resolver_want(l->resolver, name, &w.wait, 0), 0);
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&resolver_at(name, 0)->storage;
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_int_equal(ntohs(v6->sin6_port), 443);
    assert_int_not_equal(v6->sin6_scope_id, 0);
    assert_ptr_not_equal(name, without);
    v6 = (const struct sockaddr_in6 *)&resolver_at(without, 0)->storage;
    assert_int_equal(v6->sin6_scope_id, 0);
}

static void test_literals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
    } texts[] = {
        {"127.0.0.1", true},  {"::1", true},          {"::ffff:1.2.3.4", true},
        {"localhost", false}, {"127.0.0.256", false}, {"127.1", false},
        {"", false},          {"[::1]", false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct resolver_address a;
        assert_int_equal(resolver_literal(str_of(texts[i].text), STR(""), 1, &a), texts[i].is);
    }
}

static void test_the_hosts_file_knows_localhost(void **state)
{
    struct loop *l = *state;
    struct waiter w = {.wait.ready = told};
    struct resolver_name *name = name_of(l, "localhost", NULL, 81);
    assert_int_equal(settle(l, name, &w), 0);
    bool found = false;
    for (unsigned i = 0; i < resolver_count(name); i++) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&resolver_at(name, i)->storage;
        found |= v4->sin_family == AF_INET && ntohl(v4->sin_addr.s_addr) == INADDR_LOOPBACK &&
                 ntohs(v4->sin_port) == 81;
    }
    assert_true(found);
    /* known now, and for all who ask, in any case */
    assert_ptr_equal(name_of(l, "LocalHost", NULL, 81), name);
    assert_ptr_not_equal(name_of(l, "localhost", NULL, 82), name);
    assert_int_equal(resolver_want(l->resolver, name, &w.wait, clock_mono_us()), 0);
}

static void test_a_known_name_is_renewed(void **state)
{
    struct loop *l = *state;
    struct waiter w = {.wait.ready = told}, later = {.wait.ready = told};
    struct resolver_name *name = name_of(l, "localhost", NULL, 83);
    assert_int_equal(settle(l, name, &w), 0);
    uint64_t after_us = clock_mono_us() + (RESOLVER_LONGEST_TTL_S + 1) * UINT64_C(1000000);
    int rc = resolver_want(l->resolver, name, &later.wait, after_us);
    assert_true(rc == 0 || rc == -EAGAIN); /* a hosts file is read on the spot */
    resolver_forget(&later.wait);
    assert_true(resolver_count(name) > 0);
}

static void test_a_name_that_cannot_be_fails(void **state)
{
    struct loop *l = *state;
    char label[80];
    memset(label, 'x', sizeof label);
    (void)snprintf(label + 64, sizeof label - 64, ".example"); /* labels have 63 bytes at most */
    const char *names[] = {"no..name", label};
    for (size_t i = 0; i < 2; i++) {
        struct waiter w = {.wait.ready = told}, again = {.wait.ready = told};
        struct resolver_name *name = name_of(l, names[i], NULL, 80);
        assert_int_equal(settle(l, name, &w), -ENOENT);
        assert_int_equal(resolver_count(name), 0);
        assert_null(resolver_at(name, 0));
        /* and is not asked for again at once */
        assert_int_equal(resolver_want(l->resolver, name, &again.wait, clock_mono_us()), -ENOENT);
        assert_int_equal(again.told, 0);
    }
}

static void test_who_is_forgotten_is_not_told(void **state)
{
    struct loop *l = *state;
    struct waiter w[3] = {{.wait.ready = told}, {.wait.ready = told}, {.wait.ready = told}};
    struct resolver_name *name = name_of(l, "somewhere.test", NULL, 80);
    int rc[3];
    for (int i = 0; i < 3; i++)
        rc[i] = resolver_want(l->resolver, name, &w[i].wait, clock_mono_us());
    for (int i = 0; i < 3; i++)
        assert_true(rc[i] == -EAGAIN || rc[i] == -ENOENT); /* without a name server: at once */
    resolver_forget(&w[1].wait);
    resolver_forget(&w[1].wait); /* twice is nothing */
    assert_null(w[1].wait.next);
    turn(l);
    assert_int_equal(w[1].told, 0);
    /* those that still wait when the resolver ends are not told either: see tear_down */
}

static void test_without_memory_nothing_leaks(void **state)
{
    struct loop *l = *state;
    int rc;
    unsigned long n = 0;
    do {
        struct resolver *r = NULL;
        struct resolver_name *name = NULL;
        alloc_fail_at(++n);
        rc = resolver_new(l->epoll_fd, &l->timers, &r);
        if (rc == 0)
            name = resolver_name(r, STR("127.0.0.1"), STR(""), 80);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(failed, rc == -ENOMEM || !name);
        resolver_free(r);
        rc = failed ? -ENOMEM : rc;
    } while (rc != 0);
    assert_true(n > 2);
}

int main(void)
{
#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_LOOP(test_an_ipv4_address_needs_no_look_up),
        WITH_LOOP(test_an_ipv6_address_may_have_a_zone),
        cmocka_unit_test(test_literals),
        WITH_LOOP(test_the_hosts_file_knows_localhost),
        WITH_LOOP(test_a_known_name_is_renewed),
        WITH_LOOP(test_a_name_that_cannot_be_fails),
        WITH_LOOP(test_who_is_forgotten_is_not_told),
        WITH_LOOP(test_without_memory_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
