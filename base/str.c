#include "base/str.h"

#include <stdint.h>

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (a.ptr[i] != b.ptr[i] && lower(a.ptr[i]) != lower(b.ptr[i])) /* mostly they are equal */
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

struct str str_sub(struct str s, size_t begin, size_t end)
{
    if (end > s.len)
        end = s.len;
    if (begin > end)
        begin = end;
    return (struct str){s.ptr ? s.ptr + begin : NULL, end - begin};
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

size_t str_find(struct str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return at ? (size_t)(at - s.ptr) : s.len;
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
