#include "worker/engine/http.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Rows of the master are told apart by these texts. */
static void test_each_failure_has_a_text_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(http_failure_text(HTTP_FAILURE_NONE).len, 0);
    for (int i = HTTP_FAILURE_NONE + 1; i < HTTP_FAILURE_COUNT; i++) {
        struct str text = http_failure_text((enum http_failure)i);
        assert_true(text.len > 0);
        for (int j = 0; j < i; j++)
            assert_false(str_eq(text, http_failure_text((enum http_failure)j)));
    }
}

static void test_errnos(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum http_failure connecting, transfer;
    } cases[] = {
        {ECONNREFUSED, HTTP_FAILURE_REFUSED, HTTP_FAILURE_REFUSED},
        {ETIMEDOUT, HTTP_FAILURE_CONNECT_TIMEOUT, HTTP_FAILURE_TIMEOUT},
        {ECONNRESET, HTTP_FAILURE_RESET, HTTP_FAILURE_RESET},
        {EPIPE, HTTP_FAILURE_CLOSED, HTTP_FAILURE_CLOSED},
        {EMFILE, HTTP_FAILURE_NO_DESCRIPTORS, HTTP_FAILURE_NO_DESCRIPTORS},
        {EADDRNOTAVAIL, HTTP_FAILURE_NO_PORTS, HTTP_FAILURE_NO_PORTS},
        {ENOBUFS, HTTP_FAILURE_MEMORY, HTTP_FAILURE_MEMORY},
        {EHOSTUNREACH, HTTP_FAILURE_UNREACHABLE, HTTP_FAILURE_UNREACHABLE},
        {EBADMSG, HTTP_FAILURE_OTHER, HTTP_FAILURE_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", strerror(cases[i].error));
        assert_int_equal(http_failure_of_errno(cases[i].error), cases[i].connecting);
        assert_int_equal(http_transfer_failure(cases[i].error), cases[i].transfer);
    }
}

static void test_every_status_is_told(void **state)
{
    (void)state;
    for (unsigned status = 100; status <= 999; status++) {
        char want[32];
        (void)snprintf(want, sizeof want, "HTTP status %u", status);
        assert_true(str_eq(http_status_text(status), str_of(want)));
    }
    struct str malformed = http_failure_text(HTTP_FAILURE_MALFORMED);
    assert_true(str_eq(http_status_text(0), malformed));
    assert_true(str_eq(http_status_text(99), malformed));
    assert_true(str_eq(http_status_text(1000), malformed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_failure_has_a_text_of_its_own),
        cmocka_unit_test(test_errnos),
        cmocka_unit_test(test_every_status_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
