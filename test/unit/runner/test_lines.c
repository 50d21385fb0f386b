#include "worker/runner/lines.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_the_last_lines_are_kept_in_order(void **state)
{
    (void)state;
    struct lines l = {0};
    struct str views[LINES_KEPT];
    assert_int_equal(lines_views(&l, views), 0);
    log_tap_on();
    for (int i = 0; i < 100; i++) {
        log_info("line %d.", i);
        if (i % 10 == 9)
            lines_take(&l);
    }
    assert_true(l.news);
    assert_int_equal(lines_views(&l, views), LINES_KEPT);
    for (size_t i = 0; i < LINES_KEPT; i++) {
        char text[32];
        snprintf(text, sizeof text, "line %zu.", 100 - LINES_KEPT + i);
        assert_true(str_ends(views[i], str_of(text)));
    }
    l.news = false;
    lines_take(&l);
    assert_false(l.news);
    lines_done(&l);
    lines_done(&l);
    log_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_lines_are_kept_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
