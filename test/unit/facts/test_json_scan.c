#include "base/buf.h"
#include "facts/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The events as a line: {k"a" t"x" n"1" + - 0 [ ] } */
static int write_event(void *arg, enum json_event event, struct str text, bool cut)
{
    static const char *const marks[] = {"{", "}", "[", "]", "k", "t", "n", "+", "-", "0"};
    struct buf *b = arg;
    int rc = buf_add(b, str_of(marks[event]));
    bool has_text =
        event == JSON_EVENT_KEY || event == JSON_EVENT_TEXT || event == JSON_EVENT_NUMBER;
    if (rc == 0 && has_text)
        rc = buf_printf(b, "(%.*s%s)", STR_ARG(text), cut ? "…" : "");
    return rc;
}

/* Feed in chunks of so many bytes. */
static int scan(struct str text, size_t step, struct buf *ret)
{
    struct json_scan s;
    int rc = 0;
    buf_clear(ret);
    json_scan_init(&s, write_event, ret);
    for (size_t at = 0; rc == 0 && at < text.len; at += step)
        rc = json_scan_feed(&s, str_sub(text, at, at + step));
    return rc == 0 ? json_scan_end(&s) : rc;
}

static void test_any_split_gives_the_same_events(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"{}", "{}"},
        {" [ ] \n", "[]"},
        {"12", "n(12)"},
        {"-0.5e+10 ", "n(-0.5e+10)"},
        {"[0,-0,1.5,2E3,0e0]", "[n(0)n(-0)n(1.5)n(2E3)n(0e0)]"},
        {"[true,false,null]", "[+-0]"},
        {"{\"a\":{\"b\":[1,{\"c\":\"d\"}]},\"e\":\"\"}", "{k(a){k(b)[n(1){k(c)t(d)}]}k(e)t()}"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\"",
         "t(\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80)"},
        {"\t{\r\n\"k\" :\t1 , \"l\":2}\n", "{k(k)n(1)k(l)n(2)}"},
        {"\"\xc3\xa9\xff\"", "t(\xc3\xa9\xff)"},
    };
    struct buf events;
    buf_init(&events, 10000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = str_of(cases[i].text);
        for (size_t step = 1; step <= text.len; step++) {
            assert_int_equal(scan(text, step, &events), 0);
            assert_string_equal(buf_c(&events), cases[i].events);
        }
    }
    buf_done(&events);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        " ",
                                        "{",
                                        "[1",
                                        "}",
                                        "[}",
                                        "{]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "[1,]",
                                        "[,1]",
                                        "{1:2}",
                                        "01",
                                        "1.",
                                        ".5",
                                        "+1",
                                        "-",
                                        "1e",
                                        "1e+",
                                        "--1",
                                        "tru",
                                        "trux",
                                        "nulll",
                                        "\"",
                                        "\"\n\"",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"\\ud800\"",
                                        "\"\\udc00\"",
                                        "\"\\ud800\\u0041\"",
                                        "\"\\ud800x\"",
                                        "\"\\ud800\\n\"",
                                        "{} {}",
                                        "1 2",
                                        "<html>",
                                        "{'a':1}",
                                        "[1 2]",
                                        "{\"a\" 1}",
                                        "NaN",
                                        "\xef\xbb\xbf{}",
                                        "\"\\",
                                        "[1]]",
                                        "{\"a\":1 \"b\":2}"};
    struct buf events;
    buf_init(&events, 10000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = str_of(cases[i]);
        for (size_t step = 1; step <= text.len + 1; step++) {
            int rc = scan(text, step, &events);
            if (rc != -EPROTO)
                print_message("%s\n", cases[i]);
            assert_int_equal(rc, -EPROTO);
        }
    }
    assert_int_equal(scan((struct str){"[\0]", 3}, 3, &events), -EPROTO);
    buf_done(&events);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    struct buf text, events;
    buf_init(&text, 10000);
    buf_init(&events, 10000);
    for (int i = 0; i < JSON_SCAN_DEPTH_MAX; i++)
        assert_int_equal(buf_add(&text, i % 3 ? STR("[") : STR("{\"a\":")), 0);
    size_t open = text.len;
    assert_int_equal(buf_add_byte(&text, '1'), 0);
    for (int i = JSON_SCAN_DEPTH_MAX; i-- > 0;)
        assert_int_equal(buf_add_byte(&text, i % 3 ? ']' : '}'), 0);
    assert_int_equal(scan(buf_str(&text), 7, &events), 0);
    text.len = open;
    assert_int_equal(buf_add_byte(&text, '['), 0);
    assert_int_equal(scan(buf_str(&text), 7, &events), -EPROTO);
    buf_done(&text);
    buf_done(&events);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    struct buf text, events;
    buf_init(&text, 10000);
    buf_init(&events, 10000);
    assert_int_equal(buf_add_byte(&text, '"'), 0);
    for (int i = 0; i < JSON_SCAN_TEXT_BYTES; i++)
        assert_int_equal(buf_add_byte(&text, 'x'), 0);
    assert_int_equal(buf_add_byte(&text, '"'), 0);
    assert_int_equal(scan(buf_str(&text), 100, &events), 0);
    assert_int_equal(events.len, JSON_SCAN_TEXT_BYTES + 3); /* t(x…x) */
    text.ptr[text.len - 1] = 'x';
    assert_int_equal(buf_add_byte(&text, '"'), 0);
    assert_int_equal(scan(buf_str(&text), 100, &events), 0);
    assert_non_null(strstr(buf_c(&events), "x…)"));
    buf_done(&text);
    buf_done(&events);
}

static int refuse_text(void *arg, enum json_event event, struct str text, bool cut)
{
    (void)arg;
    (void)text;
    (void)cut;
    return event == JSON_EVENT_TEXT ? -ENOMEM : 0;
}

static void test_the_callback_ends_it(void **state)
{
    (void)state;
    struct json_scan s;
    json_scan_init(&s, refuse_text, NULL);
    assert_int_equal(json_scan_feed(&s, STR("[1,\"a\",2]")), -ENOMEM);
    assert_int_equal(s.offset, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split_gives_the_same_events),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_the_callback_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
