#include "base/num.h"

#include <ctype.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DOUBLE_TEXT_MAX 512 /* digits of a number in a file; longer is not one */

int num_parse_u64(struct str text, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    if (text.len == 0)
        return -EINVAL;
    bool over = false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -EINVAL;
        over |= __builtin_mul_overflow(v, (uint64_t)10, &v);
        over |= __builtin_add_overflow(v, (uint64_t)(text.ptr[i] - '0'), &v);
    }
    if (over || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

int num_parse_i64(struct str text, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    bool sign = negative || (text.len > 0 && text.ptr[0] == '+');
    uint64_t magnitude;
    int rc = num_parse_u64(str_sub(text, sign, text.len), (uint64_t)INT64_MAX + 1, &magnitude);
    if (rc < 0)
        return rc;
    if (!negative && magnitude > (uint64_t)INT64_MAX)
        return -ERANGE;
    int64_t v = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

/* digits [. digits] [e sign digits], with at least one digit before the exponent */
static bool is_decimal(struct str s)
{
    size_t i = 0, digits = 0;
    if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
        i++;
    for (; i < s.len && isdigit((unsigned char)s.ptr[i]); i++)
        digits++;
    if (i < s.len && s.ptr[i] == '.')
        i++;
    for (; i < s.len && isdigit((unsigned char)s.ptr[i]); i++)
        digits++;
    if (digits == 0)
        return false;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
            i++;
        digits = 0;
        for (; i < s.len && isdigit((unsigned char)s.ptr[i]); i++)
            digits++;
        if (digits == 0)
            return false;
    }
    return i == s.len;
}

/* strtod reads the point of the current locale; a program that links the library may have set one
 */
static void to_local_point(char *text)
{
    char *point = strchr(text, '.');
    const char *local = localeconv()->decimal_point;
    if (point && local[0] != '\0' && local[1] == '\0')
        *point = local[0];
}

static void from_local_point(char *text)
{
    const char *local = localeconv()->decimal_point;
    char *point = local[0] != '\0' ? strchr(text, local[0]) : NULL;
    if (point)
        *point = '.';
}

int num_parse_double(struct str text, double *ret)
{
    char copy[DOUBLE_TEXT_MAX];
    if (text.len >= sizeof copy || !is_decimal(text))
        return -EINVAL;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    to_local_point(copy);
    double v = strtod(copy, NULL);
    if (!isfinite(v))
        return -ERANGE;
    *ret = v;
    return 0;
}

int num_parse_timespan_s(struct str text, uint64_t *ret_s)
{
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = {{'h', 3600}, {'m', 60}, {'s', 1}};
    uint64_t total = 0, n;
    if (num_parse_u64(text, UINT32_MAX, &n) == 0) {
        *ret_s = n;
        return 0;
    }
    if (text.len == 0)
        return -EINVAL;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t at = str_find(text, units[u].unit);
        if (at == text.len)
            continue;
        int rc = num_parse_u64(str_sub(text, 0, at), UINT32_MAX, &n);
        if (rc < 0)
            return rc;
        if (__builtin_mul_overflow(n, units[u].seconds, &n) ||
            __builtin_add_overflow(total, n, &total))
            return -ERANGE;
        text = str_sub(text, at + 1, text.len);
    }
    if (text.len > 0)
        return -EINVAL;
    *ret_s = total;
    return 0;
}

void num_format_repr(double value, char ret[static NUM_TEXT_BYTES])
{
    if (!isfinite(value)) {
        (void)snprintf(ret, NUM_TEXT_BYTES, "%s",
                       isnan(value) ? "nan"
                       : value < 0  ? "-inf"
                                    : "inf");
        return;
    }
    char text[NUM_TEXT_BYTES];
    for (int digits = 1; digits <= DBL_DECIMAL_DIG; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, value); /* at most 24 characters */
        if (strtod(text, NULL) == value)
            break;
    }
    from_local_point(text);
    /* text is d[.ddd]e+XX: lay the digits out as repr() does */
    char digits[NUM_TEXT_BYTES];
    size_t n = 0;
    const char *p = text;
    bool negative = *p == '-';
    for (p += negative; *p != 'e'; p++) {
        if (*p != '.')
            digits[n++] = *p;
    }
    int64_t exponent = 0;
    if (num_parse_i64(str_of(p + 1), -400, 400, &exponent) < 0)
        exponent = 0;              /* cannot be: printf wrote it */
    int point = (int)exponent + 1; /* digits before the point */
    const char *sign = negative ? "-" : "";
    if (point > 16 || point < -3) {
        (void)snprintf(ret, NUM_TEXT_BYTES, "%s%c%s%.*se%c%02d", sign, digits[0], n > 1 ? "." : "",
                       (int)n - 1, digits + 1, exponent < 0 ? '-' : '+', abs((int)exponent));
    } else if (point <= 0) {
        (void)snprintf(ret, NUM_TEXT_BYTES, "%s0.%.*s%.*s", sign, -point, "000", (int)n, digits);
    } else if ((int)n <= point) {
        (void)snprintf(ret, NUM_TEXT_BYTES, "%s%.*s%.*s.0", sign, (int)n, digits, point - (int)n,
                       "0000000000000000");
    } else {
        (void)snprintf(ret, NUM_TEXT_BYTES, "%s%.*s.%.*s", sign, point, digits, (int)n - point,
                       digits + point);
    }
}

void num_format_fixed(double value, int decimals, char ret[static NUM_FIXED_BYTES])
{
    if (!isfinite(value)) {
        num_format_repr(value, ret);
        return;
    }
    (void)snprintf(ret, NUM_FIXED_BYTES, "%.*f", decimals, value); /* 309 digits, sign and point */
    from_local_point(ret);
}

double num_round(double value, int digits)
{
    if (!isfinite(value) || digits > 22)
        return value;
    if (digits < -308)
        return copysign(0.0, value);
    char text[DOUBLE_TEXT_MAX];
    if (digits >= 0) {
        /* printf rounds the exact binary value, half to even, to so many decimals */
        (void)snprintf(text, sizeof text, "%.*f", digits, value); /* at most 309 + 23 characters */
        return strtod(text, NULL);
    }
    double unit = 1;
    for (int i = 0; i < -digits; i++)
        unit *= 10;
    /* the tie is judged on exact values: fmod is exact, a quotient is not */
    double rest = fmod(fabs(value), unit), half = unit / 2;
    double down = (fabs(value) - rest) / unit;
    double nearest = rest > half || (rest == half && fmod(down, 2) != 0) ? down + 1 : down;
    return copysign(nearest * unit, value);
}
