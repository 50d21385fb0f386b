#include "base/log.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Each test logs into a file of its own. */
struct sink {
    char path[32];
    struct buf text;
};

static int open_sink(void **state)
{
    struct sink *s = calloc(1, sizeof *s);
    *state = s;
    if (!s)
        return -1;
    buf_init(&s->text, 1 << 20);
    (void)snprintf(s->path, sizeof s->path, "/tmp/cicada-log-XXXXXX"); /* fits */
    int fd = mkstemp(s->path);
    return fd < 0 || close(fd) < 0 || log_open(LOG_INFO, s->path, NULL) < 0 ? -1 : 0;
}

static int close_sink(void **state)
{
    struct sink *s = *state;
    log_close();
    int rc = unlink(s->path);
    buf_done(&s->text);
    free(s);
    return rc;
}

static const char *sink_text(struct sink *s)
{
    assert_int_equal(buf_read_file(&s->text, s->path, NULL), 0);
    return buf_c(&s->text);
}

static void test_level_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum log_level level;
    } cases[] = {{"DEBUG", LOG_DEBUG},
                 {"info", LOG_INFO},
                 {"Warning", LOG_WARNING},
                 {"ERROR", LOG_ERROR},
                 {"CRITICAL", LOG_CRITICAL}};
    enum log_level level = LOG_INFO;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(log_level_parse(str_of(cases[i].name), &level));
        assert_int_equal(level, cases[i].level);
    }
    assert_false(log_level_parse(STR("WARN"), &level));
    assert_false(log_level_parse(STR(""), &level));
}

/* [2026-08-22 12:00:00,123] host/INFO/cicada: text */
static void test_line_has_locusts_layout(void **state)
{
    log_info("hello %d", 1);
    const char *text = sink_text(*state);
    static const char layout[] = "[dddd-dd-dd dd:dd:dd,ddd] ";
    for (size_t i = 0; i < sizeof layout - 1; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        assert_true(layout[i] == 'd' ? digit : text[i] == layout[i]);
    }
    assert_non_null(strstr(text, "/INFO/cicada: hello 1\n"));
    assert_int_equal(strlen(strchr(text, '\n')), 1);
}

static void test_level_holds_back(void **state)
{
    log_debug("a");
    assert_string_equal(sink_text(*state), "");
    assert_false(log_enabled(LOG_DEBUG));
    assert_true(log_enabled(LOG_CRITICAL));
    log_warning("b");
    log_error("c");
    assert_non_null(strstr(sink_text(*state), "/WARNING/cicada: b\n"));
    assert_non_null(strstr(sink_text(*state), "/ERROR/cicada: c\n"));
}

static void test_one_line_whatever_is_in_it(void **state)
{
    char long_text[2 * LOG_LINE_BYTES];
    memset(long_text, '\n', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    log_info("%s", long_text);
    log_info("a\r\n\x1b[31m\xFF\xC3\xA9");
    const char *text = sink_text(*state), *second = strchr(text, '\n') + 1;
    assert_true(second - text <= LOG_LINE_BYTES);
    assert_non_null(strstr(second, ": a\\r\\n\\x1b[31m\\xff\xC3\xA9\n"));
    assert_int_equal(strlen(strchr(second, '\n')), 1);
}

static void test_file_that_cannot_be_opened(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(log_open(LOG_INFO, "/nonexistent/log", &err), -ENOENT);
    assert_string_equal(err.text, "log file /nonexistent/log: No such file or directory");
}

static void test_quote(void **state)
{
    (void)state;
    char ret[LOG_QUOTED_BYTES];
    static const struct {
        struct str text;
        const char *quoted;
    } cases[] = {
        {{"", 0}, "''"},
        {{NULL, 0}, "''"},
        {{"a b", 3}, "'a b'"},
        {{"\0\n\t\r\x7F", 5}, "'\\x00\\n\\t\\r\\x7f'"},
        {{"\xC3\xA9\xC3", 3}, "'\xC3\xA9\\xc3'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(log_quote(cases[i].text, ret), cases[i].quoted);
}

/* The worst texts fit, are cut between characters, and say that they are cut. */
static void test_quote_cuts(void **state)
{
    (void)state;
    static const char *const fills[] = {"a",    "\n",           "\x01",
                                        "\xFF", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        for (size_t len = LOG_QUOTE_BYTES - 4; len < LOG_QUOTE_BYTES + 5; len++) {
            char text[LOG_QUOTE_BYTES + 8], ret[LOG_QUOTED_BYTES];
            size_t step = strlen(fills[i]);
            for (size_t at = 0; at < len; at++)
                text[at] = fills[i][at % step];
            assert_true(log_quote((struct str){text, len}, ret) == ret);
            assert_true(strlen(ret) < sizeof ret);
            assert_true(utf8_valid(str_of(ret)));
            assert_int_equal(str_ends(str_of(ret), STR("\xE2\x80\xA6'")), len > LOG_QUOTE_BYTES);
        }
    }
}

static void test_tap_keeps_the_last_lines(void **state)
{
    (void)state;
    char line[LOG_LINE_BYTES];
    log_info("before");
    log_tap_on();
    assert_false(log_tap_take(line));
    log_info("one");
    log_debug("too quiet");
    assert_true(log_tap_take(line));
    assert_true(str_ends(str_of(line), STR("/INFO/cicada: one")));
    for (int i = 0; i < 3 * LOG_TAP_LINES / 2; i++)
        log_info("line %d", i);
    for (int i = LOG_TAP_LINES / 2; i < 3 * LOG_TAP_LINES / 2; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, ": line %d", i);
        assert_true(log_tap_take(line));
        assert_true(str_ends(str_of(line), str_of(want)));
    }
    assert_false(log_tap_take(line));
    log_info("left behind"); /* freed by log_close */
}

static void test_due_once_a_second(void **state)
{
    (void)state;
    uint64_t at = 0, skipped = 0, told = 99;
    assert_true(log_due(&at, 5000000, &skipped, &told));
    assert_int_equal(told, 0);
    assert_false(log_due(&at, 5000001, &skipped, &told));
    assert_false(log_due(&at, 5999999, &skipped, &told));
    assert_true(log_due(&at, 6000000, &skipped, &told));
    assert_int_equal(told, 2);
    assert_true(log_due(&at, 9000000, &skipped, &told));
    assert_int_equal(told, 0);
    uint64_t fresh = 0;
    assert_true(log_due(&fresh, 0, &skipped, &told)); /* at the clock's very start too */
    assert_false(log_due(&fresh, 1, &skipped, &told));
}

static void test_tee_gets_every_line_too(void **state)
{
    struct sink *s = *state;
    char path[] = "/tmp/cicada-tee-XXXXXX";
    struct buf text;
    int fd = mkstemp(path);
    buf_init(&text, 1 << 20);
    assert_true(fd >= 0 && close(fd) == 0);
    log_info("before");
    assert_int_equal(log_tee_open(path, NULL), 0);
    log_info("between");
    assert_int_equal(log_tee_close(), 0);
    log_info("behind");
    assert_int_equal(buf_read_file(&text, path, NULL), 0);
    assert_non_null(strstr(buf_c(&text), "cicada: between\n"));
    assert_null(strstr(buf_c(&text), "before"));
    assert_null(strstr(buf_c(&text), "behind"));
    assert_non_null(strstr(sink_text(s), "cicada: between\n"));
    buf_done(&text);
    assert_int_equal(unlink(path), 0);
}

static void test_tee_tells_of_a_full_disk(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(log_tee_open("/dev/full", NULL), 0);
    log_info("lost");
    assert_int_equal(log_tee_close(), -ENOSPC);
    assert_int_equal(log_tee_open("/nonexistent/x", &err), -ENOENT);
    assert_string_equal(err.text, "log file /nonexistent/x: No such file or directory");
}

/* What goes to stderr while the test's own is kept aside. */
static void test_footer_stays_below_the_lines(void **state)
{
    (void)state;
    char path[] = "/tmp/cicada-footer-XXXXXX";
    struct buf text;
    int fd = mkstemp(path), kept = dup(STDERR_FILENO);
    buf_init(&text, 1 << 20);
    log_close();
    assert_true(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    log_footer(STR("one\ntwo"));
    log_info("line");
    log_footer(STR("three"));
    log_footer((struct str){NULL, 0});
    log_footer((struct str){NULL, 0});
    assert_true(dup2(kept, STDERR_FILENO) >= 0 && close(kept) == 0 && close(fd) == 0);
    assert_int_equal(buf_read_file(&text, path, NULL), 0);
    const char *at = buf_c(&text);
#define BEGIN "\033[?2026h\033[?7l\r"
#define END   "\033[J\033[?7h\033[?2026l"
    static const char first[] = BEGIN "one\033[K\ntwo\033[K" END BEGIN "\033[1A\033[?7h[";
    static const char rest[] = "cicada: line\033[K\n\033[?7lone\033[K\ntwo\033[K" END BEGIN
                               "\033[1Athree\033[K" END BEGIN END;
    assert_memory_equal(at, first, strlen(first));
    assert_non_null(strstr(at, "cicada: "));
    assert_string_equal(strstr(at, "cicada: "), rest);
    buf_done(&text);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_names),
        cmocka_unit_test_setup_teardown(test_line_has_locusts_layout, open_sink, close_sink),
        cmocka_unit_test_setup_teardown(test_level_holds_back, open_sink, close_sink),
        cmocka_unit_test_setup_teardown(test_one_line_whatever_is_in_it, open_sink, close_sink),
        cmocka_unit_test_setup_teardown(test_file_that_cannot_be_opened, open_sink, close_sink),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_quote_cuts),
        cmocka_unit_test_setup_teardown(test_tap_keeps_the_last_lines, open_sink, close_sink),
        cmocka_unit_test(test_due_once_a_second),
        cmocka_unit_test_setup_teardown(test_tee_gets_every_line_too, open_sink, close_sink),
        cmocka_unit_test_setup_teardown(test_tee_tells_of_a_full_disk, open_sink, close_sink),
        cmocka_unit_test(test_footer_stays_below_the_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
