#include "base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* repr() and round() of CPython 3.11 */
static void test_repr_is_pythons(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {12.25, "12.25"},
        {0.35, "0.35"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100000.0, "100000.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {9007199254740993.0, "9007199254740992.0"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {1.25e-7, "1.25e-07"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-2.5, "-2.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[NUM_TEXT_BYTES];
        num_format_repr(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_round_is_pythons(void **state)
{
    (void)state;
    static const struct {
        double value;
        int digits;
        double want;
    } cases[] = {
        {0.5, 0, 0},      {1.5, 0, 2},      {2.5, 0, 2},
        {2.675, 2, 2.67}, {1.005, 2, 1.0},  {0.125, 2, 0.12},
        {105, -1, 100},   {115, -1, 120},   {995, -1, 1000},
        {1450, -2, 1400}, {1550, -2, 1600}, {-2.5, 0, -2},
        {-105, -1, -100}, {99.5, 0, 100},   {12345.678, -2, 12300},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(num_round(cases[i].value, cases[i].digits) == cases[i].want);
}

static void test_integers(void **state)
{
    (void)state;
    uint64_t u;
    int64_t i;
    assert_int_equal(num_parse_u64(STR("18446744073709551615"), UINT64_MAX, &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(num_parse_u64(STR("18446744073709551616"), UINT64_MAX, &u), -ERANGE);
    assert_int_equal(num_parse_u64(STR("11"), 10, &u), -ERANGE);
    assert_int_equal(num_parse_u64(STR(""), 10, &u), -EINVAL);
    assert_int_equal(num_parse_u64(STR("+1"), 10, &u), -EINVAL);
    assert_int_equal(num_parse_u64(STR("1 "), 10, &u), -EINVAL);
    assert_int_equal(num_parse_i64(STR("-9223372036854775808"), INT64_MIN, INT64_MAX, &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(num_parse_i64(STR("9223372036854775808"), INT64_MIN, INT64_MAX, &i), -ERANGE);
    assert_int_equal(num_parse_i64(STR("+7"), 0, 9, &i), 0);
    assert_true(i == 7);
    assert_int_equal(num_parse_i64(STR("-"), -9, 9, &i), -EINVAL);
}

static void test_doubles(void **state)
{
    (void)state;
    static const char *const refused[] = {"",    ".",   "e5", "1e", "0x10",
                                          "nan", "inf", " 1", "1 ", "1,5"};
    double v;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(num_parse_double(str_of(refused[i]), &v), -EINVAL);
    assert_int_equal(num_parse_double(STR("1e999"), &v), -ERANGE);
    assert_int_equal(num_parse_double(STR("-.5e1"), &v), 0);
    assert_true(v == -5.0);
    assert_int_equal(num_parse_double(STR("5."), &v), 0);
    assert_true(v == 5.0);
}

static void test_timespans_are_locusts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t seconds;
    } good[] = {{"20", 20},   {"20s", 20},     {"3m", 180},
                {"2h", 7200}, {"1h20m", 4800}, {"3h30m10s", 12610}};
    static const char *const bad[] = {"", "s", "10x", "1m1h", "-5", "1.5", "10s10s", "h"};
    uint64_t s;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(num_parse_timespan_s(str_of(good[i].text), &s), 0);
        assert_true(s == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(num_parse_timespan_s(str_of(bad[i]), &s) < 0);
}

static void test_division_rounds_half_to_even(void **state)
{
    (void)state;
    assert_true(num_div_half_even(400, 1000) == 0);
    assert_true(num_div_half_even(500, 1000) == 0);
    assert_true(num_div_half_even(1500, 1000) == 2);
    assert_true(num_div_half_even(99500, 1000) == 100);
    assert_true(num_div_half_even(2501, 1000) == 3);
    assert_true(num_div_half_even(UINT64_MAX, 1) == UINT64_MAX);
}

static void test_fixed_is_pythons(void **state)
{
    (void)state;
    static const struct {
        double value;
        int decimals;
        const char *text;
    } cases[] = {{0, 2, "0.00"},     {0.125, 2, "0.12"},
                 {2.675, 2, "2.67"}, {1e22, 0, "10000000000000000000000"},
                 {-1.5, 1, "-1.5"},  {1.0 / 3, 6, "0.333333"}};
    char text[NUM_FIXED_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        num_format_fixed(cases[i].value, cases[i].decimals, text);
        assert_string_equal(text, cases[i].text);
    }
    num_format_fixed(1.7976931348623157e308, 17, text);
    assert_int_equal(strlen(text), 309 + 1 + 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repr_is_pythons),
        cmocka_unit_test(test_round_is_pythons),
        cmocka_unit_test(test_fixed_is_pythons),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_timespans_are_locusts),
        cmocka_unit_test(test_division_rounds_half_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
