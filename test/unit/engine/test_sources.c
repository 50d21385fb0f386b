#include "worker/engine/sources.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct str mixed[] = {STR("127.0.0.2"), STR("::1"), STR("127.0.0.3")};

/* The last byte of the address that a socket gets. */
static unsigned bound_to(struct sources *s)
{
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(sources_bind(s, fd, AF_INET), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(at.sin_port, 0); /* chosen at connect */
    (void)close(fd);
    return ntohl(at.sin_addr.s_addr) & 0xff;
}

static void test_those_of_the_family_take_turns(void **state)
{
    struct sources s;
    (void)state;
    assert_int_equal(sources_init(&s, mixed, 3), 0);
    assert_int_equal(bound_to(&s), 2);
    assert_int_equal(bound_to(&s), 3);
    assert_int_equal(bound_to(&s), 2);
    sources_done(&s);
    sources_done(&s);
}

static void test_none_of_the_family_is_left_to_the_kernel(void **state)
{
    struct sources s;
    (void)state;
    assert_int_equal(sources_init(&s, NULL, 0), 0);
    assert_int_equal(bound_to(&s), 0);
    assert_int_equal(sources_init(&s, mixed + 1, 1), 0);
    assert_int_equal(bound_to(&s), 0);
    sources_done(&s);
}

static void test_an_address_of_another_machine(void **state)
{
    const struct str texts[] = {STR("127.0.0.1"), STR("192.0.2.1")};
    struct err err = {0};
    struct sources s;
    (void)state;
    assert_int_equal(sources_check(texts, 1, &err), 0);
    assert_int_equal(sources_check(texts, 2, &err), -EINVAL);
    assert_string_equal(err.text, "--source-address: this machine has no address 192.0.2.1");
    assert_int_equal(sources_init(&s, texts + 1, 1), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(sources_bind(&s, fd, AF_INET), ENODEV);
    (void)close(fd);
    sources_done(&s);
}

static void test_what_is_no_address(void **state)
{
    const struct str texts[] = {STR("127.0.0.1"), STR("nowhere")};
    struct err err = {0};
    struct sources s;
    (void)state;
    assert_int_equal(sources_init(&s, texts, 2), -EINVAL);
    assert_null(s.items);
    assert_int_equal(sources_check(texts, 2, &err), -EINVAL);
}

static void test_without_memory(void **state)
{
    struct sources s;
    (void)state;
    alloc_fail_at(1);
    assert_int_equal(sources_init(&s, mixed, 3), -ENOMEM);
    alloc_fail_at(0);
    sources_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_of_the_family_take_turns),
        cmocka_unit_test(test_none_of_the_family_is_left_to_the_kernel),
        cmocka_unit_test(test_an_address_of_another_machine),
        cmocka_unit_test(test_what_is_no_address),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
