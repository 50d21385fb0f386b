#include "worker/engine/user.h"

#include "worker/engine/http_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_user_is_small(void **state)
{
    (void)state;
    assert_in_range(sizeof(struct user), 1, USER_MAX_BYTES);
}

/* Of a scenario user who waits with its connection open; the kernel's socket apart. */
#define WAITING_USER_MAX_BYTES 1024
#define HEAP_OVERHEAD_BYTES    16 /* of each allocation */

static void test_a_waiting_user_with_its_connection_is_small(void **state)
{
    (void)state;
    size_t bytes = sizeof(struct user) + http_fast_client_bytes + http_fast_connection_bytes;
    assert_in_range(bytes + 3 * HEAP_OVERHEAD_BYTES, 1, WAITING_USER_MAX_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_user_is_small),
        cmocka_unit_test(test_a_waiting_user_with_its_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
