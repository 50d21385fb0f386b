#include "worker/output/pen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Each test writes with a pen of its own. */
struct sheet {
    struct buf b;
    struct pen pen;
};

static struct sheet *sheet(size_t max_bytes)
{
    static struct sheet s;
    buf_done(&s.b);
    buf_init(&s.b, max_bytes);
    s.pen = (struct pen){&s.b, 0};
    return &s;
}

static void test_shown_text_commands_no_terminal(void **state)
{
    (void)state;
    static const struct {
        struct str text;
        size_t width;
        const char *shown;
        size_t characters;
    } cases[] = {
        {STR(""), 0, "", 0},
        {STR("ab"), 4, "ab  ", 4},
        {STR("abcde"), 4, "abcde", 5},
        {STR("\xC3\xA9"), 2, "\xC3\xA9 ", 2}, /* counted in characters, not in bytes */
        {STR("a\nb\r\t"), 0, "a\\nb\\r\\t", 8},
        {STR("\x1b[2J\0\x7f"), 0, "\\x1b[2J\\x00\\x7f", 15},
        {STR("\xC2\x9B"), 6, "\\x9b  ", 6}, /* CSI in one character */
        {STR("\xFF"), 0, "\\xff", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sheet *s = sheet(1000);
        assert_int_equal(pen_shown(&s->pen, cases[i].text, cases[i].width), cases[i].characters);
        assert_string_equal(buf_c(&s->b), cases[i].shown);
    }
}

static void test_html_is_escaped(void **state)
{
    (void)state;
    static const struct {
        struct str text;
        const char *html;
    } cases[] = {
        {STR("<b a='1' c=\"2\">&</b>"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;&lt;/b&gt;"},
        {STR("a\nb\tc"), "a\nb\tc"},
        {STR("\0\x1b\r\x7f\xFF\xC3"),
         "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {STR("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sheet *s = sheet(1000);
        pen_html(&s->pen, cases[i].text);
        assert_string_equal(buf_c(&s->b), cases[i].html);
    }
}

static void test_json_is_as_python_writes_it(void **state)
{
    (void)state;
    struct sheet *s = sheet(1000);
    pen_json(&s->pen, STR("a\"\\/\b\f\n\r\t\0\x7f\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82\xFF"));
    assert_string_equal(buf_c(&s->b), "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u007f"
                                      "\\u00e9\\u20ac\\ud83d\\ude42\\ufffd\"");
}

static void test_numbers(void **state)
{
    (void)state;
    struct sheet *s = sheet(1000);
    pen_count(&s->pen, 0);
    pen_text(&s->pen, " ");
    pen_count(&s->pen, 999);
    pen_text(&s->pen, " ");
    pen_count(&s->pen, 1234567);
    pen_text(&s->pen, " ");
    pen_count(&s->pen, UINT64_MAX);
    pen_text(&s->pen, " ");
    pen_fixed(&s->pen, 0.125, 2);
    pen_text(&s->pen, " ");
    pen_time(&s->pen, 1700000000.9);
    assert_int_equal(s->pen.rc, 0);
    assert_string_equal(buf_c(&s->b),
                        "0 999 1,234,567 18,446,744,073,709,551,615 0.12 2023-11-14T22:13:20Z");
}

static void test_the_first_failure_stays(void **state)
{
    (void)state;
    struct sheet *s = sheet(3);
    pen_text(&s->pen, "abc");
    assert_int_equal(s->pen.rc, 0);
    pen_text(&s->pen, "d");
    pen_text(&s->pen, "");
    assert_int_equal(s->pen.rc, -ERANGE);
    pen_time(&s->pen, 1e300);
    assert_int_equal(s->pen.rc, -ERANGE);
    assert_string_equal(buf_c(&s->b), "abc");
    (void)sheet(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown_text_commands_no_terminal),
        cmocka_unit_test(test_html_is_escaped),
        cmocka_unit_test(test_json_is_as_python_writes_it),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_the_first_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
