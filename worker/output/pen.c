#include "worker/output/pen.h"

#include "base/num.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PRINTF_BYTES 1024 /* of one piece; foreign text goes through pen_str */

void pen_str(struct pen *p, struct str s)
{
    if (p->rc == 0)
        p->rc = buf_add(p->b, s);
}

void pen_text(struct pen *p, const char *c_string)
{
    pen_str(p, str_of(c_string));
}

void pen_printf(struct pen *p, const char *format, ...)
{
    char text[PRINTF_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text) {
        p->rc = p->rc == 0 ? -ERANGE : p->rc;
        return;
    }
    pen_str(p, (struct str){text, (size_t)n});
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0);
}

/* One control character or byte, in characters written. */
static size_t pen_escaped(struct pen *p, unsigned char c)
{
    const char *letter = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
    if (letter)
        pen_text(p, letter);
    else
        pen_printf(p, "\\x%02x", c);
    return letter ? 2 : 4;
}

void pen_blanks(struct pen *p, size_t count)
{
    for (; count > 0 && p->rc == 0; count--)
        pen_text(p, " ");
}

size_t pen_shown(struct pen *p, struct str s, size_t width)
{
    size_t used = 0;
    for (size_t at = 0, n; at < s.len && p->rc == 0; at += n) {
        uint32_t point;
        n = utf8_decode(str_sub(s, at, s.len), &point);
        if (n == 0) {
            used += pen_escaped(p, (unsigned char)s.ptr[at]);
            n = 1;
        } else if (is_control(point)) {
            used += pen_escaped(p, (unsigned char)point);
        } else {
            pen_str(p, str_sub(s, at, at + n));
            used++;
        }
    }
    if (used >= width)
        return used;
    pen_blanks(p, width - used);
    return width;
}

void pen_html(struct pen *p, struct str s)
{
    for (size_t at = 0, n; at < s.len && p->rc == 0; at += n) {
        uint32_t point;
        n = utf8_decode(str_sub(s, at, s.len), &point);
        bool bad = n == 0 || (is_control(point) && point != '\n' && point != '\t');
        n = n ? n : 1;
        if (bad)
            pen_text(p, "\xEF\xBF\xBD");
        else if (point == '&')
            pen_text(p, "&amp;");
        else if (point == '<')
            pen_text(p, "&lt;");
        else if (point == '>')
            pen_text(p, "&gt;");
        else if (point == '"')
            pen_text(p, "&quot;");
        else if (point == '\'')
            pen_text(p, "&#39;");
        else
            pen_str(p, str_sub(s, at, at + n));
    }
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void unit(struct pen *p, uint32_t u)
{
    pen_printf(p, "\\u%04x", u);
}

static void escaped(struct pen *p, uint32_t point)
{
    static const char named[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    const char *found = point ? memchr(named, (int)point, sizeof named - 1) : NULL;
    if (found && point < 0x80)
        pen_printf(p, "\\%c", letters[found - named]);
    else if (point >= 0x20 && point < 0x7F)
        pen_printf(p, "%c", (char)point);
    else if (point < 0x10000)
        unit(p, point);
    else {
        unit(p, 0xD800 + ((point - 0x10000) >> 10));
        unit(p, 0xDC00 + ((point - 0x10000) & 0x3FF));
    }
}

void pen_json(struct pen *p, struct str s)
{
    pen_text(p, "\"");
    for (size_t at = 0, n; at < s.len && p->rc == 0; at += n) {
        uint32_t point;
        n = utf8_decode(str_sub(s, at, s.len), &point);
        if (n == 0) {
            point = 0xFFFD;
            n = 1;
        }
        escaped(p, point);
    }
    pen_text(p, "\"");
}

/* --- numbers and times ----------------------------------------------------------------------- */

void pen_fixed(struct pen *p, double value, int decimals)
{
    char text[NUM_FIXED_BYTES];
    num_format_fixed(value, decimals, text);
    pen_text(p, text);
}

void pen_count(struct pen *p, uint64_t n)
{
    char digits[NUM_TEXT_BYTES];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n); /* at most 20 */
    for (int i = 0; i < len; i++)
        pen_printf(p, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

void pen_time(struct pen *p, double wall_s)
{
    time_t seconds = (time_t)wall_s;
    struct tm t;
    if (!gmtime_r(&seconds, &t)) {
        p->rc = p->rc == 0 ? -ERANGE : p->rc;
        return;
    }
    pen_printf(p, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
               t.tm_hour, t.tm_min, t.tm_sec);
}
