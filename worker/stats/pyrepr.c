#include "worker/stats/pyrepr.h"

#include "base/utf8.h"

#define REPLACEMENT 0xFFFD

static const uint32_t turns[] = {
#include "worker/stats/printable.inc"
};

bool pyrepr_printable(uint32_t point)
{
    size_t low = 0, high = sizeof turns / sizeof *turns;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (turns[middle] <= point)
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2 == 1;
}

static int add_point(struct buf *b, uint32_t point, char quote)
{
    if (point == '\\' || point == (unsigned char)quote)
        return buf_printf(b, "\\%c", (int)point);
    if (point == '\n')
        return buf_add(b, STR("\\n"));
    if (point == '\r')
        return buf_add(b, STR("\\r"));
    if (point == '\t')
        return buf_add(b, STR("\\t"));
    if (pyrepr_printable(point))
        return utf8_add_point(b, point);
    if (point <= 0xFF)
        return buf_printf(b, "\\x%02x", point);
    return point <= 0xFFFF ? buf_printf(b, "\\u%04x", point) : buf_printf(b, "\\U%08x", point);
}

int pyrepr_add(struct buf *b, struct str text)
{
    bool single = str_find(text, '\'') < text.len, twofold = str_find(text, '"') < text.len;
    char quote = single && !twofold ? '"' : '\'';
    size_t before = b->len;
    int rc = buf_add_byte(b, quote);
    for (size_t at = 0; rc == 0 && at < text.len;) {
        uint32_t point = REPLACEMENT;
        size_t n = utf8_decode(str_sub(text, at, text.len), &point);
        rc = add_point(b, point, quote);
        at += n ? n : 1;
    }
    if (rc == 0)
        rc = buf_add_byte(b, quote);
    if (rc < 0 && b->ptr) {
        b->len = before;
        b->ptr[before] = '\0';
    }
    return rc;
}
