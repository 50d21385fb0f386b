#include "test/unit/alloc.h"
#include "worker/engine/json_tape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A pointer of one or two parts: "a", "a b". */
static struct plan_pointer pointer(const char *text, struct str parts[static 2])
{
    struct plan_pointer p = {.parts = parts};
    struct str rest = str_of(text), part;
    while (text[0] && str_next(&rest, ' ', &part))
        parts[p.part_count++] = part;
    return p;
}

static const char document[] =
    "{\"ok\": true, \"n\": [10, 2.50, \"caf\\u00e9\", null], \"s\": \"plain\", \"o\": {\"k\": 1, "
    "\"k\": 2}, \"\\u0061b\": {}, \"0\": \"zero\"}";

static void test_values_are_found(void **state)
{
    static const struct {
        const char *pointer;
        enum plan_type type;
        const char *text;
    } cases[] = {
        {"ok", PLAN_TYPE_BOOLEAN, "true"}, {"n 0", PLAN_TYPE_NUMBER, "10"},
        {"n 1", PLAN_TYPE_NUMBER, "2.50"}, {"n 2", PLAN_TYPE_STRING, "caf\xC3\xA9"},
        {"n 3", PLAN_TYPE_NULL, "null"},   {"s", PLAN_TYPE_STRING, "plain"},
        {"o k", PLAN_TYPE_NUMBER, "2"},    {"o", PLAN_TYPE_OBJECT, "{\"k\": 1, \"k\": 2}"},
        {"ab", PLAN_TYPE_OBJECT, "{}"},    {"0", PLAN_TYPE_STRING, "zero"},
        {"", PLAN_TYPE_OBJECT, document},
    };
    struct json_tape tape = {0};
    struct buf scratch;
    (void)state;
    buf_init(&scratch, 100);
    assert_int_equal(json_tape_read(&tape, str_of(document)), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str parts[2], text;
        struct plan_pointer p = pointer(cases[i].pointer, parts);
        uint32_t at = json_tape_find(&tape, &p);
        print_message("%s\n", cases[i].pointer);
        assert_int_not_equal(at, JSON_TAPE_NONE);
        assert_int_equal(tape.values[at].type, cases[i].type);
        assert_int_equal(json_tape_text(&tape, at, &scratch, &text), 0);
        assert_true(str_eq(text, str_of(cases[i].text)));
    }
    buf_done(&scratch);
    json_tape_done(&tape);
}

static void test_what_is_not_there_is_not_found(void **state)
{
    static const char *const pointers[] = {"x", "n 4", "n 00", "n -", "n -1", "s 0", "o K", "ok x"};
    struct json_tape tape = {0};
    (void)state;
    assert_int_equal(json_tape_read(&tape, str_of(document)), 0);
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        struct str parts[2];
        struct plan_pointer p = pointer(pointers[i], parts);
        assert_int_equal(json_tape_find(&tape, &p), JSON_TAPE_NONE);
    }
    json_tape_done(&tape);
}

static void test_lengths(void **state)
{
    static const struct {
        const char *json;
        uint32_t length;
    } cases[] = {
        {"[]", 0}, {"{}", 0}, {"[1, [2, 3], {\"a\": [4]}]", 3}, {"{\"a\": [1, 2], \"b\": {}}", 2}};
    struct json_tape tape = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(json_tape_read(&tape, str_of(cases[i].json)), 0);
        assert_int_equal(json_tape_length(&tape, 0), cases[i].length);
    }
    json_tape_done(&tape);
}

static void test_what_is_no_json_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[1",
        "[1,]",
        "{\"a\":}",
        "{\"a\" 1}",
        "{1:2}",
        "[1 2]",
        "nul",
        "truex",
        "01",
        "1.",
        "-",
        "1e",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\n\"",
        "[}",
        "{]",
        "1 2",
        "\"\\udc00\"",
        "\"\xFF\"",
        "{\"a\": 1,}",
        "[,1]",
        "+1",
        ".5",
        "\"\\ud800\\u0041\"",
    };
    struct json_tape tape = {0};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("%s\n", texts[i]);
        assert_int_equal(json_tape_read(&tape, str_of(texts[i])), -EINVAL);
    }
    json_tape_done(&tape);
}

static void test_depth_needs_no_stack(void **state)
{
    enum { DEPTH = 200000 };
    struct json_tape tape = {0};
    char *text = malloc(2 * DEPTH);
    (void)state;
    assert_non_null(text);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    assert_int_equal(json_tape_read(&tape, (struct str){text, 2 * DEPTH}), 0);
    assert_int_equal(tape.count, DEPTH);
    json_tape_clear(&tape);
    assert_null(tape.values); /* not kept for the next body */
    free(text);
    json_tape_done(&tape);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        struct json_tape tape = {0};
        alloc_fail_at(n);
        int rc = json_tape_read(&tape, str_of(document));
        bool failed = alloc_failed();
        alloc_fail_at(0);
        json_tape_done(&tape);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_found),
        cmocka_unit_test(test_what_is_not_there_is_not_found),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_what_is_no_json_is_refused),
        cmocka_unit_test(test_depth_needs_no_stack),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
