#include "base/str.h"

#include <stdint.h>

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Eight letters at once: bit 7 of each byte tells whether it is from 'A' to 'Z', and becomes the
 * bit that makes it small. */
static uint64_t lower_8(uint64_t bytes)
{
    const uint64_t each = 0x0101010101010101u;
    uint64_t low = bytes & 0x7f * each;
    uint64_t from_a = low + (0x80 - 'A') * each;
    uint64_t behind_z = low + (0x7f - 'Z') * each;
    uint64_t capitals = (from_a ^ behind_z) & ~bytes & 0x80 * each;
    return bytes | capitals >> 2;
}

static bool eq_nocase_8(const char *a, const char *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y || lower_8(x) == lower_8(y);
}

/* Header names are compared for each request, so it matters. */
bool str_eq_nocase(struct str a, struct str b)
{
    size_t i = 0;
    if (a.len != b.len)
        return false;
    for (; a.len - i >= 8; i += 8) {
        if (!eq_nocase_8(a.ptr + i, b.ptr + i))
            return false;
    }
    if (a.len >= 8) /* what is left, with some of what was looked at */
        return eq_nocase_8(a.ptr + a.len - 8, b.ptr + a.len - 8);
    for (; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool str_starts_nocase(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq_nocase(str_sub(s, 0, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, s.len), suffix);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool str_is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

size_t str_find_str(struct str s, struct str needle)
{
    if (needle.len == 0)
        return 0;
    const char *at = s.len ? memmem(s.ptr, s.len, needle.ptr, needle.len) : NULL;
    return at ? (size_t)(at - s.ptr) : s.len;
}

bool str_next(struct str *rest, char separator, struct str *ret_part)
{
    if (!rest->ptr)
        return false;
    size_t at = str_find(*rest, separator);
    *ret_part = str_sub(*rest, 0, at);
    if (at == rest->len)
        *rest = (struct str){NULL, 0};
    else
        *rest = str_sub(*rest, at + 1, rest->len);
    return true;
}

size_t str_hash(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++) {
        h ^= (unsigned char)s.ptr[i];
        h *= 0x100000001b3u;
    }
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ (h >> 29));
}
