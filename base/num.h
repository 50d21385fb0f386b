/* Numbers from text and to text, in one place, free of the locale. Pure functions, any thread.
 * Rounding is Python's (half to even on the exact binary value), as Locust's figures are made. */
#ifndef CICADA_BASE_NUM_H
#define CICADA_BASE_NUM_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define NUM_TEXT_BYTES 32 /* enough for every text that num_format_* makes, with its NUL */

/* The whole text as a decimal number, digits only, at most max.
 * 0, -EINVAL (not digits, empty), -ERANGE (over max). */
MUST_USE int num_parse_u64(struct str text, uint64_t max, uint64_t *ret);

/* The same with an optional sign, within min..max. */
MUST_USE int num_parse_i64(struct str text, int64_t min, int64_t max, int64_t *ret);

/* The whole text as a finite decimal number: sign, digits, point, exponent; no hexadecimal, no
 * "inf" or "nan", no spaces. 0, -EINVAL, -ERANGE (overflows). */
MUST_USE int num_parse_double(struct str text, double *ret);

/* A time span as Locust's command line takes it: "20", "20s", "3m", "2h", "1h20m", "3h30m10s";
 * a plain number is seconds. 0, -EINVAL, -ERANGE.
 * Source: locust/util/timespan.py parse_timespan. */
MUST_USE int num_parse_timespan_s(struct str text, uint64_t *ret_s);

/* The shortest text that reads back as the same double, written as Python's repr() writes it:
 * "0.35", "12.0", "1e+16", "1e-05". NaN and infinities give "nan", "inf", "-inf". */
void num_format_repr(double value, char ret[static NUM_TEXT_BYTES]);

/* Python's f"{value:.{decimals}f}": the exact value rounded half to even; at most 17 decimals.
 * NaN and infinities as above. */
#define NUM_FIXED_BYTES 340
void num_format_fixed(double value, int decimals, char ret[static NUM_FIXED_BYTES]);

/* value rounded to so many digits behind the point (negative: tens, hundreds), as Python's
 * round(value, digits): correctly rounded on the exact value, ties to even. */
double num_round(double value, int digits);

/* n / unit rounded half to even, both taken exactly. unit > 0. */
static inline uint64_t num_div_half_even(uint64_t n, uint64_t unit)
{
    uint64_t q = n / unit, rest = n % unit, over = unit - rest;
    return q + (rest > over || (rest == over && (q & 1)));
}

#endif
