#include "worker/engine/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_user_is_small(void **state)
{
    (void)state;
    assert_in_range(sizeof(struct user), 1, USER_MAX_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_user_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
