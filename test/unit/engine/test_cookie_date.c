#include "worker/engine/cookie_date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Seconds from Python's datetime. */
static const struct {
    const char *text;
    double want;
} dates[] = {
    {"Wed, 09 Jun 2021 10:18:14 GMT", 1623233894},
    {"Wednesday, 09-Jun-21 10:18:14 GMT", 1623233894},
    {"Wed Jun  9 10:18:14 2021", 1623233894},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Thu, 01-Jan-1970 00:00:00 GMT", 0},
    {"31 Dec 1969 23:59:59", -1},
    {"1 jan 1601 0:0:0", -11644473600},
    {"31 Dec 9999 23:59:59", 253402300799},
    {"29 Feb 2000 00:00:00", 951782400},
    {"29 Feb 2400 12:00:00", 13574606400},
    {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
    {"01 Jan 69 00:00:00", 3124224000},   /* two digits: 1970 to 2069 */
    {"1 1 jan 70 00:00:00 1", 0},         /* the second "1" is nothing that is missing */
    {"2003 2 january 3:4:5", 1041476645}, /* four digits are no day */
    {"3:4:5/2/JANUARYXYZ/2003abc", 1041476645},
    {"03:04:05Z 2 Jan 2003", 1041476645},
    {"2nd Jan 2003 03:04:05 PST", 1041476645}, /* zones are not looked at */
    {"GMT 03:04:05; Jan, 2 [2003]", 1041476645},
};

static const char *const no_dates[] = {
    "",
    "0",
    "-1",
    "tomorrow",
    "Wed, 09 Jun 2021",
    "09 2021 10:18:14",
    "Jun 2021 10:18:14",
    "09 Jun 10:18:14",
    "Wed, 09 Jun 2021 10:18 GMT",
    "Wed, 09 Jun 2021 24:00:00 GMT",
    "Wed, 09 Jun 2021 10:60:00 GMT",
    "Wed, 09 Jun 2021 10:00:60 GMT",
    "Wed, 09 Jun 2021 010:18:14 GMT",
    "Wed, 32 Jun 2021 10:18:14 GMT",
    "Wed, 00 Jun 2021 10:18:14 GMT",
    "31 Jun 2021 10:18:14",
    "29 Feb 2001 00:00:00",
    "29 Feb 1900 00:00:00",
    "09 Jun 1600 10:18:14",
    "09 Jun 20210 10:18:14",
    "09 Jun 1 10:18:14",
    "09 Foo 2021 10:18:14",
};

static void test_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        double got = 0.5;
        if (!cookie_date_parse(str_of(dates[i].text), &got) || got != dates[i].want)
            fail_msg("%s: %.1f, want %.1f", dates[i].text, got, dates[i].want);
    }
}

static void test_no_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof no_dates / sizeof *no_dates; i++) {
        double got = 0.5;
        if (cookie_date_parse(str_of(no_dates[i]), &got) || got != 0.5)
            fail_msg("'%s' is taken for %.1f", no_dates[i], got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_no_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
