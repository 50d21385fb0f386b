/* A quantity is digits, a point somewhere among them, and a power of ten or of two. A power of ten
 * only moves the point; a power of two multiplies. Digits may be any number, so no step holds them
 * all: what lies behind the point is folded in from its end. */
#include "facts/quantity.h"

#include "base/num.h"

#include <math.h>
#include <stdint.h>

#define NANO_DIGITS      9
#define GIB              ((unsigned __int128)1 << 30)
#define FAST_DIGITS      18 /* up to here Kubernetes works in int64 and needs no digit at all */
#define FAST_BINARY_BASE 15 /* the same for binary suffixes, less 3 digits for each 2^10 */

struct parts {
    bool negative;
    struct str whole;    /* digits before the point, without leading zeros */
    struct str fraction; /* digits behind it */
    bool has_digit;      /* leading zeros count */
    struct str suffix;
};

static size_t digits_from(struct str s, size_t at)
{
    while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9')
        at++;
    return at;
}

/* [sign] digits [. digits] letters [sign] digits; what the letters mean is judged later. */
static int split(struct str s, struct parts *ret)
{
    struct parts p = {0};
    size_t at = 0;
    if (s.len == 0)
        return -EINVAL;
    if (s.ptr[0] == '+' || s.ptr[0] == '-') {
        p.negative = s.ptr[0] == '-';
        at = 1;
    }
    size_t begin = at;
    while (at < s.len && s.ptr[at] == '0')
        at++;
    size_t end = digits_from(s, at);
    p.whole = str_sub(s, at, end);
    p.has_digit = end > begin;
    at = end;
    if (at < s.len && s.ptr[at] == '.') {
        end = digits_from(s, at + 1);
        p.fraction = str_sub(s, at + 1, end);
        p.has_digit |= p.fraction.len > 0;
        at = end;
    }
    p.suffix = str_sub(s, at, s.len);
    *ret = p;
    return 0;
}

/* -EINVAL for a suffix that is none. */
static int read_suffix(struct str suffix, int *ret_base, int32_t *ret_exponent)
{
    static const struct {
        struct str text;
        int base, exponent;
    } table[] = {
        {{"", 0}, 10, 0},   {{"n", 1}, 10, -9}, {{"u", 1}, 10, -6}, {{"m", 1}, 10, -3},
        {{"k", 1}, 10, 3},  {{"M", 1}, 10, 6},  {{"G", 1}, 10, 9},  {{"T", 1}, 10, 12},
        {{"P", 1}, 10, 15}, {{"E", 1}, 10, 18}, {{"Ki", 2}, 2, 10}, {{"Mi", 2}, 2, 20},
        {{"Gi", 2}, 2, 30}, {{"Ti", 2}, 2, 40}, {{"Pi", 2}, 2, 50}, {{"Ei", 2}, 2, 60},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (str_eq(suffix, table[i].text)) {
            *ret_base = table[i].base;
            *ret_exponent = table[i].exponent;
            return 0;
        }
    }
    int64_t exponent;
    if (suffix.len < 2 || (suffix.ptr[0] != 'e' && suffix.ptr[0] != 'E') ||
        num_parse_i64(str_sub(suffix, 1, suffix.len), INT64_MIN, INT64_MAX, &exponent) < 0)
        return -EINVAL;
    *ret_base = 10;
    *ret_exponent = (int32_t)(uint32_t)(uint64_t)exponent; /* cut to 32 bits as Kubernetes does */
    return 0;
}

static bool is_zero(struct str digits)
{
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] != '0')
            return false;
    }
    return true;
}

/* Kubernetes' short way (int64) reads no digits as zero; its long way refuses them. */
static bool goes_the_short_way(const struct parts *p, int base, int32_t exponent)
{
    int32_t whole = p->whole.len ? (int32_t)p->whole.len : 1;
    int32_t fraction = (int32_t)p->fraction.len;
    if (base == 2)
        return fraction == 0 && FAST_BINARY_BASE - whole - exponent * 3 / 10 - 1 >= 0;
    return FAST_DIGITS - whole - fraction >= 0 && (int64_t)exponent - fraction >= -NANO_DIGITS;
}

static int append_digit(__int128 *n, char digit)
{
    return __builtin_mul_overflow(*n, (__int128)10, n) ||
                   __builtin_add_overflow(*n, (__int128)(digit - '0'), n)
               ? -ERANGE
               : 0;
}

/* whole.fraction * 10^exponent in nano-units: the digits up to the moved point, plus one when any
 * of the rest is not zero. */
static int scale_by_ten(const struct parts *p, int32_t exponent, __int128 *ret)
{
    int64_t scale = (int64_t)exponent - (int64_t)p->fraction.len;
    if (scale <= INT32_MIN) /* Kubernetes' 32-bit scale wraps round to a huge number here */
        return -ERANGE;
    size_t count = p->whole.len + p->fraction.len;
    int64_t point = (int64_t)p->whole.len + exponent + NANO_DIGITS;
    __int128 n = 0;
    bool rest = false;
    for (size_t i = 0; i < count; i++) {
        char digit = i < p->whole.len ? p->whole.ptr[i] : p->fraction.ptr[i - p->whole.len];
        if ((int64_t)i >= point)
            rest |= digit != '0';
        else if (append_digit(&n, digit) < 0)
            return -ERANGE;
    }
    for (int64_t i = (int64_t)count; i < point; i++) { /* not zero, so it overflows soon */
        if (append_digit(&n, '0') < 0)
            return -ERANGE;
    }
    if (__builtin_add_overflow(n, (__int128)rest, &n))
        return -ERANGE;
    *ret = n;
    return 0;
}

/* whole.fraction * 2^exponent in nano-units, rounded up, at most 2^63-1 units. */
static void scale_by_two(const struct parts *p, int32_t exponent, __int128 *ret)
{
    const __int128 unit = 1000000000, max = (__int128)INT64_MAX * unit;
    const __int128 factor = ((__int128)1 << exponent) * unit; /* below 2^90 */
    __int128 n = 0, below = 0;
    bool rest = false;
    /* floor((digit + 0.rest) * factor / 10) needs only the floor of what follows it */
    for (size_t i = p->fraction.len; i > 0; i--) {
        __int128 sum = (p->fraction.ptr[i - 1] - '0') * factor + below;
        rest |= sum % 10 != 0;
        below = sum / 10;
    }
    for (size_t i = 0; i < p->whole.len; i++) {
        if (append_digit(&n, p->whole.ptr[i]) < 0) {
            *ret = max;
            return;
        }
    }
    if (__builtin_mul_overflow(n, factor, &n) || __builtin_add_overflow(n, below + rest, &n) ||
        n > max)
        n = max;
    *ret = n;
}

int quantity_parse(struct str text, struct quantity *ret)
{
    struct parts p;
    int base;
    int32_t exponent;
    int rc = split(text, &p);
    if (rc == 0)
        rc = read_suffix(p.suffix, &base, &exponent);
    if (rc < 0)
        return rc;
    if (!p.has_digit && !goes_the_short_way(&p, base, exponent))
        return -EINVAL;
    __int128 n = 0;
    if (is_zero(p.whole) && is_zero(p.fraction))
        n = 0;
    else if (base == 2)
        scale_by_two(&p, exponent, &n);
    else
        rc = scale_by_ten(&p, exponent, &n);
    if (rc == 0)
        ret->nano = p.negative ? -n : n;
    return rc;
}

int quantity_add(struct quantity *sum, struct quantity more)
{
    __int128 n;
    if (__builtin_add_overflow(sum->nano, more.nano, &n))
        return -ERANGE;
    sum->nano = n;
    return 0;
}

/* The double nearest to n / divisor: a quotient of at least 55 bits whose last bit also stands for
 * all that was cut off, which the one conversion then rounds half to even. divisor < 2^61. */
static double divide(__int128 n, unsigned __int128 divisor)
{
    unsigned __int128 rest = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;
    if (rest == 0)
        return 0;
    int shift = 0;
    while (rest / divisor < (1ull << 55)) { /* rest stays below 2^117 */
        rest <<= 1;
        shift++;
    }
    unsigned __int128 quotient = rest / divisor;
    bool cut = rest % divisor != 0;
    while (quotient > UINT64_MAX) {
        cut |= quotient & 1;
        quotient >>= 1;
        shift--;
    }
    double value = ldexp((double)((uint64_t)quotient | cut), -shift);
    return n < 0 ? -value : value;
}

double quantity_units(struct quantity q)
{
    return divide(q.nano, 1000000000);
}

double quantity_gib(struct quantity q)
{
    return divide(q.nano, 1000000000 * GIB);
}
