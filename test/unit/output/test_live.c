#include "worker/output/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct stats *many_names(unsigned count)
{
    struct stats *s;
    char name[32];
    uint32_t slot;
    assert_int_equal(stats_new((struct stats_limits){0, 0}, 1000, &s), 0);
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "/%03u", i); /* fits */
        assert_int_equal(stats_slot(s, STR("GET"), str_of(name), &slot), 0);
        for (unsigned n = 0; n <= i; n++)
            stats_record(s, slot, &(struct stats_sample){1000 * (i + 1), 0, 1001});
        stats_record_error(s, slot, str_of(name), 1001);
    }
    return s;
}

static unsigned lines_of(const char *text)
{
    unsigned lines = *text != '\0';
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void test_it_is_lower_than_the_screen(void **state)
{
    (void)state;
    static const unsigned heights[] = {0, 1, 2, 3, 5, 8, 9, 10, 15, 24, 80};
    static const unsigned names[] = {0, 1, 11, 12, 13, 200};
    struct history_point point = {.wall_s = 1001, .user_count = 3, .target = 10};
    struct history history = {&point, 1, 1};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct stats *s = many_names(names[n]);
        struct report now = {.stats = s, .history = &history, .start_s = 1000, .now_s = 1002};
        for (size_t i = 0; i < sizeof heights / sizeof *heights; i++) {
            struct buf b;
            buf_init(&b, 1 << 20);
            struct pen pen = {&b, 0};
            live_text(&pen, &now, (struct live_screen){heights[i], 80, false});
            assert_int_equal(pen.rc, 0);
            assert_true(lines_of(buf_c(&b)) < heights[i] || b.len == 0);
            assert_null(strchr(buf_c(&b), '\033'));
            buf_done(&b);
        }
        stats_free(s);
    }
}

static void test_it_says_how_the_run_stands(void **state)
{
    (void)state;
    struct history_point point = {.wall_s = 1030,
                                  .user_count = 30,
                                  .target = 1000,
                                  .rps = measure_of(12.34),
                                  .p50_ms = measure_of(1.234),
                                  .p99_ms = measure_of(123.4),
                                  .cpu_pct = 55};
    struct history history = {&point, 1, 1};
    struct stats *s = many_names(2);
    struct report now = {
        .stats = s,
        .history = &history,
        .start_s = 1000,
        .now_s = 1030,
        .phase = REPORT_SPAWNING,
        .run_time_s = measure_of(90),
    };
    static const char expected[] =
        "\n"
        "Spawning  00:30 of 01:30  ████████░░░░░░░░░░░░░░░░  01:00 left\n"
        "Users 30 of 1,000   Requests 3  12.3/s   Failures 2  66.67 %\n"
        "Last second  p50 1.23 ms  p95 –  p99 123 ms   CPU 55.0 %   █\n"
        "Type    Name                   # reqs  # fails     p50     p95     p99    req/s\n"
        "GET     /001                        2        1     2.0     2.0     2.0      0.0\n"
        "GET     /000                        1        1     1.0     1.0     1.0      0.0\n"
        "       1 GET /000: /000\n"
        "       1 GET /001: /001";
    struct buf b;
    buf_init(&b, 1 << 20);
    struct pen pen = {&b, 0};
    live_text(&pen, &now, (struct live_screen){24, 80, false});
    assert_string_equal(buf_c(&b), expected);
    buf_done(&b);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_lower_than_the_screen),
        cmocka_unit_test(test_it_says_how_the_run_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
