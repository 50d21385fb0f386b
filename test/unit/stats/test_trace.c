/* The header of W3C Trace Context and the rows of traces.txt. */
#include "test/unit/alloc.h"
#include "worker/stats/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID     "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void test_a_drawn_header_is_one(void **state)
{
    (void)state;
    struct rng rng;
    char id[TRACE_ID_BYTES], line[TRACE_LINE_BYTES], last[TRACE_ID_BYTES] = "",
                                                     read[TRACE_ID_BYTES];
    rng_init(&rng, 1);
    for (int i = 0; i < 1000; i++) {
        trace_draw(&rng, id, line);
        assert_int_equal(strlen(line), sizeof "traceparent: " - 1 + 55);
        assert_int_equal(strlen(line) + 1, sizeof line);
        assert_memory_equal(line, "traceparent: 00-", 16);
        assert_memory_equal(line + 16, id, 32);
        assert_string_equal(line + sizeof line - 4, "-01");
        assert_true(trace_id_of(str_of(line + sizeof "traceparent: " - 1), read));
        assert_string_equal(read, id);
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof id);
    }
}

static void test_headers_of_others(void **state)
{
    static const struct {
        const char *value;
        bool taken;
    } cases[] = {
        {"00-" ID "-" PARENT "-01", true},
        {"00-" ID "-" PARENT "-00", true}, /* not sampled there: it has an id all the same */
        {"cc-" ID "-" PARENT "-01-what-comes", true},
        {"00-" ID "-" PARENT "-01-more", false},
        {"cc-" ID "-" PARENT "-01.more", false},
        {"ff-" ID "-" PARENT "-01", false},
        {"0g-" ID "-" PARENT "-01", false},
        {"00-" ID "-" PARENT "-0", false},
        {"00-" ID "-" PARENT "-0x", false},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", false},
        {"00-00000000000000000000000000000000-" PARENT "-01", false},
        {"00-" ID "-0000000000000000-01", false},
        {"00 " ID "-" PARENT "-01", false},
        {"00-" ID " " PARENT "-01", false},
        {"00-" ID "-" PARENT " 01", false},
        {"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[TRACE_ID_BYTES];
        if (trace_id_of(str_of(cases[i].value), id) != cases[i].taken)
            fail_msg("'%s'", cases[i].value);
        if (cases[i].taken)
            assert_string_equal(id, ID);
    }
}

static void test_rows(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    const struct trace_row plain = {.wall_s = 1735689599.9994,
                                    .name = STR("/items"),
                                    .duration_us = 12007,
                                    .id = ID,
                                    .error = STR("")};
    const struct trace_row strange = {.wall_s = 1735689599.9996,
                                      .name = STR("a\tb\nc\xff\x1b \xc3\xa9"),
                                      .duration_us = 999,
                                      .scheduled = true,
                                      .id = ID,
                                      .error = STR("HTTP status 404")};
    assert_int_equal(trace_row_add(&b, &plain), 0);
    assert_int_equal(trace_row_add(&b, &strange), 0);
    assert_string_equal(buf_c(&b),
                        "2024-12-31T23:59:59.999Z\t/items\t12.007\tsent\t" ID "\t\n"
                        "2025-01-01T00:00:00.000Z\ta\\x09b\\x0ac\\xff\\x1b \xc3\xa9\t0.999\t"
                        "scheduled_start\t" ID "\tHTTP status 404\n");
    buf_done(&b);
}

static void test_a_row_is_whole_or_not_there(void **state)
{
    (void)state;
    const struct trace_row row = {.name = STR("/items"), .id = ID, .error = STR("timed out")};
    struct buf b;
    buf_init(&b, 1000);
    assert_int_equal(trace_row_add(&b, &row), 0);
    size_t len = b.len;
    for (size_t more = 0; more < len; more++) {
        b.max = len + more;
        assert_int_equal(trace_row_add(&b, &row), -ERANGE);
        assert_int_equal(b.len, len);
        assert_int_equal(strlen(buf_c(&b)), len);
    }
    buf_done(&b);
    buf_init(&b, 1000);
    for (unsigned long n = 1;; n++) {
        alloc_fail_at(n);
        int rc = trace_row_add(&b, &row);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        if (!failed)
            break;
        assert_int_equal(rc, -ENOMEM);
        assert_int_equal(b.len, 0);
    }
    assert_int_equal(b.len, len);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_drawn_header_is_one),
        cmocka_unit_test(test_headers_of_others),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_row_is_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
