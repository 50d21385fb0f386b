#include "telemetry/answer.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SUCCESS(type, result)                                                                      \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" result "}}"

static const char matrix[] =
    SUCCESS("matrix", "[{\"metric\":{\"pod\":\"a\"},\"values\":[[1700000000,\"1.5\"],"
                      "[1700000010.5,\"NaN\"],[1700000020,\"+Inf\"],[1700000030,\"2e3\"]]},"
                      "{\"metric\":{\"pod\":\"b\"},\"values\":[[1700000000,\"-Inf\"]]}]");

static void test_matrix(void **state)
{
    (void)state;
    struct query_answer a;
    assert_int_equal(query_answer_parse(str_of(matrix), &a, NULL), 0);
    assert_int_equal(a.count, 2);
    assert_true(str_eq(query_answer_label(&a.series[0], "pod"), STR("a")));
    assert_int_equal(query_answer_label(&a.series[0], "node").len, 0);
    assert_int_equal(a.series[0].count, 2);
    assert_true(a.series[0].samples[1].wall_s == 1700000030);
    assert_true(a.series[0].samples[1].value == 2000);
    assert_int_equal(a.series[1].count, 0);
    assert_int_equal(a.dropped, 3);
    double *values;
    size_t count;
    assert_int_equal(query_answer_pool(&a, &values, &count), 0);
    assert_int_equal(count, 2);
    assert_true(values[0] == 1.5 && values[1] == 2000);
    free(values);
    query_answer_done(&a);
    query_answer_done(&a);
}

static void test_vector_scalar_and_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t series, samples, dropped;
    } cases[] = {
        {SUCCESS("vector", "[]"), 0, 0, 0},
        {SUCCESS("matrix", "[]"), 0, 0, 0},
        {SUCCESS("vector", "[{\"metric\":{},\"value\":[1,\"0\"]}]"), 1, 1, 0},
        {SUCCESS("vector", "[{\"metric\":{},\"value\":[1,\"NaN\"]}]"), 1, 0, 1},
        {SUCCESS("vector", "[{\"value\":[1,\"7\"]}]"), 1, 1, 0},
        {SUCCESS("scalar", "[1.5,\"3\"]"), 1, 1, 0},
        {SUCCESS("scalar", "[1.5,\"NaN\"]"), 1, 0, 1},
        /* each malformed sample goes alone */
        {SUCCESS("vector", "[7,{\"value\":null},{\"value\":[]},{\"value\":[1]},{\"value\":[1,2]},"
                           "{\"value\":[\"1\",\"2\"]},{\"metric\":4,\"value\":[1,\"2\"]}]"),
         5, 1, 6},
        {SUCCESS("matrix", "[{\"metric\":{},\"values\":[[1,\"1\"],null,[2,\"x\"],[3,\"3\"]]}]"), 1,
         2, 2},
        /* a native histogram has no value of this kind */
        {SUCCESS("vector", "[{\"metric\":{},\"histogram\":[1,{\"count\":\"1\"}]}]"), 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query_answer a;
        struct err err = {0};
        double *values;
        size_t count;
        if (query_answer_parse(str_of(cases[i].body), &a, &err) < 0)
            fail_msg("%s: %s", cases[i].body, err.text);
        assert_int_equal(query_answer_pool(&a, &values, &count), 0);
        if (a.count != cases[i].series || count != cases[i].samples ||
            a.dropped != cases[i].dropped)
            fail_msg("%s: %zu series, %zu samples, %zu dropped", cases[i].body, a.count, count,
                     a.dropped);
        free(values);
        query_answer_done(&a);
    }
}

static void test_refused_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *body, *reason;
    } cases[] = {
        {"", "an empty answer"},
        {" \n", "an empty answer"},
        {"<!DOCTYPE html><title>Log in</title>", "an HTML page instead of an answer to a query"},
        {"\n <html>", "an HTML page instead of an answer to a query"},
        {"{\"status\":\"success\",\"data\":{\"resu", "JSON that breaks off after 33 bytes"},
        {"up", "not JSON (line 1, column 2)"},
        {"[]", "JSON that is no answer to a query"},
        {"{}", "JSON that is no answer to a query"},
        {"{\"status\":7}", "JSON that is no answer to a query"},
        {"{\"status\":\"success\"}", "an answer without a result"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\"}}",
         "an answer without a result"},
        {SUCCESS("string", "[1,\"x\"]"), "a result of type 'string'"},
        {"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse\\nerror\"}",
         "'bad_data': 'parse\\nerror'"},
        {"{\"status\":\"error\"}", "'error': ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query_answer a;
        struct err err = {0};
        assert_int_equal(query_answer_parse(str_of(cases[i].body), &a, &err), -EPROTO);
        assert_string_equal(err.text, cases[i].reason);
        query_answer_done(&a);
    }
}

static void test_remarks_are_kept(void **state)
{
    (void)state;
    static const char body[] =
        "{\"status\":\"success\",\"warnings\":[\"one store is \\u0007 down\",3],"
        "\"infos\":[\"not a counter\"],\"data\":{\"resultType\":\"vector\",\"result\":[]}}";
    struct query_answer a;
    assert_int_equal(query_answer_parse(str_of(body), &a, NULL), 0);
    assert_string_equal(buf_c(&a.warnings), "'one store is \\x07 down'");
    assert_string_equal(buf_c(&a.infos), "'not a counter'");
    query_answer_done(&a);
}

static void test_limits(void **state)
{
    (void)state;
    struct query_answer a;
    struct err err = {0};
    struct buf b;
    buf_init(&b, ANSWER_BODY_BYTES + 1);
    assert_int_equal(buf_add(&b, STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\","
                                     "\"result\":[0")),
                     0);
    for (size_t i = 0; i < ANSWER_SERIES_MAX; i++)
        assert_int_equal(buf_add(&b, STR(",0")), 0);
    assert_int_equal(buf_add(&b, STR("]}}")), 0);
    assert_int_equal(query_answer_parse(buf_str(&b), &a, &err), -ERANGE);
    assert_string_equal(err.text, "100001 series, at most 100000 are taken");
    query_answer_done(&a);
    while (b.len <= ANSWER_BODY_BYTES)
        assert_int_equal(buf_add(&b, STR(" ")), 0);
    assert_int_equal(query_answer_parse(buf_str(&b), &a, NULL), -ERANGE);
    query_answer_done(&a);
    buf_done(&b);
}

static void test_error_bodies(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, ERR_TEXT_BYTES);
    assert_false(query_answer_add_error(&b, STR("404 page not found")));
    assert_false(query_answer_add_error(&b, (struct str){NULL, 0}));
    assert_false(query_answer_add_error(&b, STR("{\"status\":\"success\"}")));
    assert_int_equal(b.len, 0);
    assert_true(query_answer_add_error(
        &b, STR("{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"many to many\"}")));
    assert_string_equal(buf_c(&b), "'execution': 'many to many'");
    buf_done(&b);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free); /* jansson's allocations fail as well */
    for (unsigned long n = 1;; n++) {
        struct query_answer a;
        double *values = NULL;
        size_t count;
        alloc_fail_at(n);
        int rc = query_answer_parse(str_of(matrix), &a, NULL);
        if (rc == 0)
            rc = query_answer_pool(&a, &values, &count);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        free(values);
        query_answer_done(&a);
        if (!failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_not_equal(rc, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_vector_scalar_and_nothing),
        cmocka_unit_test(test_refused_in_one_line),
        cmocka_unit_test(test_remarks_are_kept),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_error_bodies),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
