#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define BAD "\xEF\xBF\xBD"

/* what CPython 3.11's bytes.decode("utf-8", "replace") makes of each, as bytes again */
static const struct {
    struct str bytes;
    struct str repaired;
} cases[] = {
    {{"", 0}, {"", 0}},
    {{"abc", 3}, {"abc", 3}},
    {{"\xC3\xA9", 2}, {"\xC3\xA9", 2}},
    {{"\xF0\x9F\x98\x80", 4}, {"\xF0\x9F\x98\x80", 4}},
    {{BAD "\0z", 5}, {BAD "\0z", 5}},
    {{"\xF4\x8F\xBF\xBF", 4}, {"\xF4\x8F\xBF\xBF", 4}},
    {{"a\xFFz", 3}, {"a" BAD "z", 5}},
    {{"\xC0\x80", 2}, {BAD BAD, 6}},                  /* overlong */
    {{"\xE0\x80\x80", 3}, {BAD BAD BAD, 9}},          /* overlong */
    {{"\xF0\x80\x80\x41", 4}, {BAD BAD BAD "A", 10}}, /* overlong */
    {{"\xED\xA0\x80", 3}, {BAD BAD BAD, 9}},          /* a surrogate */
    {{"\xF4\x90\x80\x80", 4}, {BAD BAD BAD BAD, 12}}, /* above U+10FFFF */
    {{"\xF0\x9F\x98", 3}, {BAD, 3}},                  /* cut: one for the whole part */
    {{"\xF0\x9F\x98x", 4}, {BAD "x", 4}},
    {{"\xE2\x82", 2}, {BAD, 3}},
    {{"\xE2\x82\xE2\x82\xAC", 5}, {BAD "\xE2\x82\xAC", 6}},
    {{"\xF1\x80\x80\xC3\xA9", 5}, {BAD "\xC3\xA9", 5}},
    {{"\x80\x80", 2}, {BAD BAD, 6}},
    {{"\xFE\xFF", 2}, {BAD BAD, 6}},
    {{"\xC3", 1}, {BAD, 3}},
    {{"\xC3(", 2}, {BAD "(", 4}},
};

static void test_repair_is_pythons(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        print_message("%zu\n", i);
        assert_int_equal(utf8_add_repaired(&b, cases[i].bytes), 0);
        assert_true(str_eq(buf_str(&b), cases[i].repaired));
        assert_true(utf8_valid(buf_str(&b)));
        assert_true(utf8_valid(cases[i].bytes) == str_eq(cases[i].bytes, cases[i].repaired));
        buf_done(&b);
    }
}

static void test_repair_stops_at_the_ceiling(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4);
    assert_int_equal(utf8_add_repaired(&b, STR("\xFF\xFF")), -ERANGE);
    assert_true(utf8_valid(buf_str(&b)));
    buf_done(&b);
}

/* Every code point goes out and comes back; nothing else is taken. */
static void test_points_round_trip(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4);
    for (uint32_t point = 0; point <= 0x110000; point++) {
        bool sound = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
        uint32_t back = 0;
        buf_clear(&b);
        int rc = utf8_add_point(&b, point);
        if (rc != (sound ? 0 : -EINVAL))
            fail_msg("U+%04X gives %d", point, rc);
        if (sound && (utf8_decode(buf_str(&b), &back) != b.len || back != point))
            fail_msg("U+%04X comes back as U+%04X", point, back);
    }
    buf_done(&b);
}

static void test_decode_lengths(void **state)
{
    (void)state;
    uint32_t point = 7;
    assert_int_equal(utf8_decode(STR("\xE2\x82\xACx"), &point), 3);
    assert_int_equal(point, 0x20AC);
    assert_int_equal(utf8_decode(STR(""), &point), 0);
    assert_int_equal(utf8_decode(STR("\xE2\x82"), &point), 0);
    assert_int_equal(point, 0x20AC);
}

static void test_cut_keeps_sequences_whole(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 8};
    struct str s = STR("a\xE2\x82\xAC\xF0\x9F\x98\x80");
    for (size_t max = 0; max < sizeof lengths / sizeof *lengths; max++)
        assert_int_equal(utf8_cut(s, max).len, lengths[max]);
    /* not UTF-8 at all: cut somewhere near, never beyond */
    assert_true(utf8_cut(STR("\x80\x80\x80\x80\x80\x80"), 5).len <= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repair_is_pythons),
        cmocka_unit_test(test_repair_stops_at_the_ceiling),
        cmocka_unit_test(test_points_round_trip),
        cmocka_unit_test(test_decode_lengths),
        cmocka_unit_test(test_cut_keeps_sequences_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
