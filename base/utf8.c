#include "base/utf8.h"

#define REPLACEMENT STR("\xEF\xBF\xBD")

struct lead {
    size_t length;     /* 0: begins nothing */
    unsigned char low; /* range of the second byte */
    unsigned char high;
};

/* Table 3-7 of the Unicode standard: the second byte's range keeps out overlong forms, surrogates
 * and what lies above U+10FFFF. */
static struct lead lead_of(unsigned char c)
{
    if (c < 0x80)
        return (struct lead){1, 0, 0};
    if (c >= 0xC2 && c <= 0xDF)
        return (struct lead){2, 0x80, 0xBF};
    if (c == 0xE0)
        return (struct lead){3, 0xA0, 0xBF};
    if (c == 0xED)
        return (struct lead){3, 0x80, 0x9F};
    if (c >= 0xE1 && c <= 0xEF)
        return (struct lead){3, 0x80, 0xBF};
    if (c == 0xF0)
        return (struct lead){4, 0x90, 0xBF};
    if (c >= 0xF1 && c <= 0xF3)
        return (struct lead){4, 0x80, 0xBF};
    if (c == 0xF4)
        return (struct lead){4, 0x80, 0x8F};
    return (struct lead){0, 0, 0};
}

/* How many bytes at the start of s fit a sequence; *ret_whole tells whether it is complete. */
static size_t sequence(struct str s, bool *ret_whole)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    struct lead lead = lead_of(p[0]);
    size_t n = 1;
    *ret_whole = lead.length == 1;
    if (lead.length < 2)
        return 1;
    while (n < lead.length && n < s.len) {
        unsigned char low = n == 1 ? lead.low : 0x80, high = n == 1 ? lead.high : 0xBF;
        if (p[n] < low || p[n] > high)
            return n;
        n++;
    }
    *ret_whole = n == lead.length;
    return n;
}

size_t utf8_decode(struct str s, uint32_t *ret_point)
{
    bool whole = false;
    size_t n = s.len ? sequence(s, &whole) : 0;
    if (!whole)
        return 0;
    const unsigned char *p = (const unsigned char *)s.ptr;
    uint32_t point = n == 1 ? p[0] : p[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        point = point << 6 | (p[i] & 0x3Fu);
    *ret_point = point;
    return n;
}

bool utf8_valid(struct str s)
{
    for (size_t at = 0; at < s.len;) {
        bool whole;
        at += sequence(str_sub(s, at, s.len), &whole);
        if (!whole)
            return false;
    }
    return true;
}

int utf8_add_repaired(struct buf *b, struct str s)
{
    for (size_t at = 0; at < s.len;) {
        bool whole;
        size_t n = sequence(str_sub(s, at, s.len), &whole);
        int rc = buf_add(b, whole ? str_sub(s, at, at + n) : REPLACEMENT);
        if (rc < 0)
            return rc;
        at += n;
    }
    return 0;
}

int utf8_add_point(struct buf *b, uint32_t point)
{
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return -EINVAL;
    char bytes[4];
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char mark[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3F));
    bytes[0] = (char)(mark[n] | point);
    return buf_add(b, (struct str){bytes, n});
}

struct str utf8_cut(struct str s, size_t max_bytes)
{
    if (s.len <= max_bytes)
        return s;
    size_t end = max_bytes;
    while (end > 0 && max_bytes - end < 3 && ((unsigned char)s.ptr[end] & 0xC0) == 0x80)
        end--;
    return str_sub(s, 0, end);
}
