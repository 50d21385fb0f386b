#include "worker/scenario/encode.h"

#include "base/utf8.h"

#define SHORTEST_HEX_ID 8

/* --- JSON --- */

static int add_point(struct buf *out, uint32_t point)
{
    switch (point) {
    case '"':
        return buf_add(out, STR("\\\""));
    case '\\':
        return buf_add(out, STR("\\\\"));
    case '\n':
        return buf_add(out, STR("\\n"));
    case '\r':
        return buf_add(out, STR("\\r"));
    case '\t':
        return buf_add(out, STR("\\t"));
    case '\f':
        return buf_add(out, STR("\\f"));
    case '\b':
        return buf_add(out, STR("\\b"));
    }
    if (point < 0x10000)
        return buf_printf(out, "\\u%04x", point);
    return buf_printf(out, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
                      0xDC00 + ((point - 0x10000) & 0x3FF));
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

int encode_json(struct buf *out, struct str text)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < text.len;) {
        size_t end = at;
        while (end < text.len && is_plain(text.ptr[end]))
            end++;
        rc = buf_add(out, str_sub(text, at, end));
        at = end;
        if (rc < 0 || at == text.len)
            break;
        uint32_t point = 0xFFFD;
        size_t n = utf8_decode(str_sub(text, at, text.len), &point);
        rc = add_point(out, n ? point : 0xFFFD);
        at += n ? n : 1;
    }
    return rc;
}

/* --- parts of multipart bodies --- */

int encode_quoted(struct buf *out, struct str text)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < text.len; i++) {
        char c = text.ptr[i];
        bool ends = c == '"' || c == '\n' || c == '\r';
        rc = ends ? buf_printf(out, "%%%02X", (unsigned)c) : buf_add_byte(out, c);
    }
    return rc;
}

/* --- forms --- */

static bool is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int encode_form(struct buf *out, struct str text)
{
    static const char digits[] = "0123456789ABCDEF";
    int rc = buf_reserve(out, text.len);
    for (size_t i = 0; rc == 0 && i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (is_unreserved((char)c))
            rc = buf_add_byte(out, (char)c);
        else if (c == ' ')
            rc = buf_add_byte(out, '+');
        else
            rc = buf_add(out, (struct str){(char[]){'%', digits[c >> 4], digits[c & 15]}, 3});
    }
    return rc;
}

/* --- names --- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* All digits; or hexadecimal digits and dashes, long enough, with a decimal digit among them: a
 * word like "facade" is none. */
static bool is_id(struct str segment)
{
    size_t decimal = 0, hex = 0, dashes = 0;
    for (size_t i = 0; i < segment.len; i++) {
        char c = segment.ptr[i];
        decimal += c >= '0' && c <= '9';
        hex += is_hex(c);
        dashes += c == '-';
    }
    if (decimal > 0 && decimal == segment.len)
        return true;
    return decimal > 0 && hex >= SHORTEST_HEX_ID && hex + dashes == segment.len;
}

int encode_folded(struct buf *out, struct str path)
{
    struct str rest = str_sub(path, 0, str_find(path, '?')), segment;
    int rc = 0;
    for (bool first = true; rc == 0 && str_next(&rest, '/', &segment); first = false) {
        if (!first)
            rc = buf_add_byte(out, '/');
        if (rc == 0)
            rc = buf_add(out, is_id(segment) ? STR(":id") : segment);
    }
    return rc;
}
