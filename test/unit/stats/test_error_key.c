#include "worker/stats/error_key.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* StatsError.create_key of Locust 2.47.0 */
static void test_keys_are_locusts(void **state)
{
    (void)state;
    static const struct {
        const char *method, *name;
        struct str text;
        const char *key;
    } cases[] = {
        {"GET", "/a", STR("HTTP 500"),
         "f36815a2ebd748d44d0445e3b93def367b65cc746157dd755e3224456e85f609"},
        {"", "", STR("it's"), "747f223717ce256e9fcb1e5502ebe032dc4c7f1fdd9eaee2fd9da8ea29d3f0fa"},
        {"GET", "/\xC3\xA9", STR("a \"b\" 'c'\\\n\0\xE2\x80\x8B\xF3\xA0\x80\x81\xC3\xA9"),
         "bf24c3da38110ceae43415ac02ae7a7c660262ece07cd0c5db64c2e4640a6f1a"},
        {"GET", "/a", STR("<x.Y object at 0x7f01> and 0x7f01"),
         "ad8596abc09b760307e2bfe651c1bb84d0515fb240d6dfcea1f06492d1fd5309"},
        /* what a Python worker makes of CatchResponseError("HTTP 500") */
        {"GET", "/a", STR("CatchResponseError('HTTP 500')"),
         "fde29c28f9efb2d9413c12e2241fbfe4a3153d2422fb95a13353359b4a1badb0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[ERROR_KEY_BYTES];
        assert_int_equal(
            error_key(str_of(cases[i].method), str_of(cases[i].name), cases[i].text, key), 0);
        assert_string_equal(key, cases[i].key);
    }
}

static void test_addresses_are_folded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "plain"},
        {"", ""},
        {"<a object at 0x12>", "<a object at 0x....>"},
        {"<a object at 0x12> 0x12, 0x123", "<a object at 0x....> 0x...., 0x....3"},
        {"<a object at 0x12> <b object at 0x34>", "<a object at 0x....> <b object at 0x34>"},
        {"<a object at 0x12", "<a object at 0x12"},
        {"<a object at 0x> 0x99", "<a object at 0x....> 0x....99"},
        {"object at 0", "object at 0"},
        {"<a object at 0x....>", "<a object at 0x....>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf once, twice;
        buf_init(&once, 1000);
        buf_init(&twice, 1000);
        assert_int_equal(error_text_add(&once, str_of(cases[i].text)), 0);
        assert_string_equal(buf_c(&once), cases[i].want);
        assert_int_equal(error_text_add(&twice, buf_str(&once)), 0);
        assert_string_equal(buf_c(&twice), cases[i].want);
        buf_done(&twice);
        buf_done(&once);
    }
}

static void test_without_memory_there_is_no_key(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        char key[ERROR_KEY_BYTES] = "untouched";
        alloc_fail_at(n);
        int rc = error_key(STR("GET"), STR("/a"), STR("<a object at 0x12>"), key);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (!failed)
            break;
        assert_string_equal(key, "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_locusts),
        cmocka_unit_test(test_addresses_are_folded),
        cmocka_unit_test(test_without_memory_there_is_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
