/* The values are those of ParseQuantity in k8s.io/apimachinery v0.34.4. */
#include "facts/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define NANO 1000000000

static void test_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        __int128 nano;
    } cases[] = {
        {"0", 0},
        {"1", NANO},
        {"3920m", (__int128)3920 * 1000000},
        {"13591700Ki", (__int128)13591700 * 1024 * NANO},
        {"1e3", (__int128)1000 * NANO},
        {"1E3", (__int128)1000 * NANO},
        {"1E", (__int128)1000000000000000000 * NANO},
        {"12Ki", (__int128)12 * 1024 * NANO},
        {"1.5Gi", (__int128)1536 * 1024 * 1024 * NANO},
        {"0.5", NANO / 2},
        {".5", NANO / 2},
        {"5.", (__int128)5 * NANO},
        {"+1", NANO},
        {"-1", -NANO},
        {"100k", (__int128)100000 * NANO},
        {"129e6", (__int128)129000000 * NANO},
        {"1e-3", NANO / 1000},
        {"1E+3", (__int128)1000 * NANO},
        {"100u", 100000},
        {"100n", 100},
        {"12n", 12},
        {"5u", 5000},
        {"2E", (__int128)2000000000000000000 * NANO},
        {"1M", (__int128)1000000 * NANO},
        {"1G", (__int128)1000000000 * NANO},
        {"1T", (__int128)1000000000000 * NANO},
        {"1P", (__int128)1000000000000000 * NANO},
        {"1Pi", ((__int128)1 << 50) * NANO},
        {"000.500", NANO / 2},
        /* finer than nano: away from zero */
        {"0.1n", 1},
        {"-0.1n", -1},
        {"1.5n", 2},
        {"1e-30", 1},
        {"0e-30", 0},
        {"0.0000000001Ki", 103},
        {"1.0000000000000000000000000000000000000001Ki", (__int128)1024 * NANO + 1},
        /* binary ones end at 2^63-1 units */
        {"8Ei", (__int128)INT64_MAX * NANO},
        {"-9Ei", -(__int128)INT64_MAX * NANO},
        {"9223372036854775807Ki", (__int128)INT64_MAX * NANO},
        {"99999999999999999999999999999999999999999999Ki", (__int128)INT64_MAX * NANO},
        {"7Ei", (__int128)7 * ((__int128)1 << 60) * NANO},
        /* decimal ones do not */
        {"9223372036854775808", ((__int128)1 << 63) * NANO},
        /* without a digit, the short way of its parser says 0 */
        {"+", 0},
        {".", 0},
        {"m", 0},
        {"Ki", 0},
        {"e5", 0},
        /* exponents are cut to 32 bits */
        {"1e4294967296", NANO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct quantity q;
        int rc = quantity_parse(str_of(cases[i].text), &q);
        if (rc != 0 || q.nano != cases[i].nano)
            print_message("%s\n", cases[i].text);
        assert_int_equal(rc, 0);
        assert_true(q.nano == cases[i].nano);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "1e",
                                        "100K",
                                        "12ki",
                                        "1 Gi",
                                        "0x10",
                                        "NaN",
                                        "1.2.3",
                                        " 1",
                                        "1 ",
                                        "1ee3",
                                        "1KiKi",
                                        "1i",
                                        "1Kib",
                                        "e",
                                        "++1",
                                        "+-1",
                                        "Pi",
                                        "Ei",
                                        "e-10",
                                        "1,5",
                                        "1e1.5",
                                        "1m5",
                                        "1+5",
                                        "-.e-10",
                                        "inf",
                                        "1_0",
                                        "1E+",
                                        "1e9223372036854775808"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct quantity q;
        int rc = quantity_parse(str_of(cases[i]), &q);
        if (rc != -EINVAL)
            print_message("%s\n", cases[i]);
        assert_int_equal(rc, -EINVAL);
    }
    struct quantity q;
    assert_int_equal(quantity_parse((struct str){"1\0", 2}, &q), -EINVAL);
}

static void test_too_large_is_said(void **state)
{
    (void)state;
    static const char *const cases[] = {"1e30", "170141183460469231731687303716", "1e2000000000",
                                        "1000000000000E"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct quantity q;
        assert_int_equal(quantity_parse(str_of(cases[i]), &q), -ERANGE);
    }
    struct quantity sum, more;
    assert_int_equal(quantity_parse(STR("1e29"), &sum), 0);
    more = sum;
    assert_int_equal(quantity_add(&sum, more), -ERANGE);
    assert_true(sum.nano == more.nano);
}

static double sum_of(const char *text, unsigned times, double (*convert)(struct quantity))
{
    struct quantity sum = {0}, q;
    assert_int_equal(quantity_parse(str_of(text), &q), 0);
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(quantity_add(&sum, q), 0);
    return convert(sum);
}

static void test_conversions_round_once(void **state)
{
    (void)state;
    assert_true(sum_of("3920m", 1, quantity_units) == 3.92);
    assert_true(sum_of("3920m", 5000, quantity_units) == 19600.0);
    assert_true(sum_of("100m", 3, quantity_units) == 0.3); /* 0.1 + 0.1 + 0.1 is not */
    assert_true(sum_of("13591700Ki", 1, quantity_gib) == 13591700.0 / 1048576);
    assert_true(sum_of("1.5Gi", 1, quantity_gib) == 1.5);
    assert_true(sum_of("1n", 1, quantity_units) == 1e-9);
    assert_true(sum_of("-2500m", 1, quantity_units) == -2.5);
    assert_true(sum_of("0", 1, quantity_gib) == 0);
    /* halfway between two doubles, and a nano above */
    assert_true(sum_of("9007199254740993", 1, quantity_units) == 9007199254740992.0);
    assert_true(sum_of("9007199254740993.000000001", 1, quantity_units) == 9007199254740994.0);
    assert_true(sum_of("1e29", 1, quantity_units) == 1e29);
    assert_true(sum_of("1n", 1, quantity_gib) == 1e-9 / 1073741824);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_large_is_said),
        cmocka_unit_test(test_conversions_round_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
