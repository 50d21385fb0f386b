/* One state machine, a byte a step, with a short cut through the inside of texts, where most bytes
 * are. Which kind of bracket is open at each depth is one bit. */
#include "facts/json_scan.h"

enum {
    STATE_VALUE,       /* a value must come */
    STATE_FIRST_VALUE, /* a value or ] */
    STATE_FIRST_KEY,   /* a key or } */
    STATE_KEY,         /* a key must come */
    STATE_COLON,       /* after a key */
    STATE_NEXT,        /* after a value: a comma or the end of what is open */
    STATE_TEXT,        /* within "…" */
    STATE_ESCAPE,      /* after a backslash */
    STATE_UNIT,        /* within \uXXXX */
    STATE_PAIR,        /* a first half was read: a backslash must follow */
    STATE_PAIR_U,      /* and then a u */
    STATE_WORD,        /* within true, false, null */
    STATE_MINUS,       /* numbers: after the sign */
    STATE_ZERO,        /* after a leading 0 */
    STATE_WHOLE,       /* within the digits before the point */
    STATE_POINT,       /* after the point */
    STATE_FRACTION,    /* within the digits behind it */
    STATE_E,           /* after e */
    STATE_E_SIGN,      /* after its sign */
    STATE_EXPONENT,    /* within its digits */
    STATE_END,         /* all is read; only white space may follow */
};

void json_scan_init(struct json_scan *s, json_scan_fn *fn, void *arg)
{
    *s = (struct json_scan){.fn = fn, .arg = arg, .state = STATE_VALUE};
}

static void keep(struct json_scan *s, const char *bytes, size_t n)
{
    size_t room = sizeof s->text - s->len;
    if (n > room) {
        s->cut = true;
        n = room;
    }
    memcpy(s->text + s->len, bytes, n);
    s->len += n;
}

static int emit(struct json_scan *s, enum json_event event)
{
    return s->fn(s->arg, event, (struct str){s->text, s->len}, s->cut);
}

static void begin_text(struct json_scan *s, bool is_key, int state)
{
    s->is_key = is_key;
    s->len = 0;
    s->cut = false;
    s->high = 0;
    s->state = state;
}

static void value_done(struct json_scan *s)
{
    s->state = s->depth ? STATE_NEXT : STATE_END;
}

static int open_bracket(struct json_scan *s, bool object)
{
    if (s->depth == JSON_SCAN_DEPTH_MAX)
        return -EPROTO;
    uint64_t bit = 1ull << (s->depth % 64);
    if (object)
        s->is_object[s->depth / 64] |= bit;
    else
        s->is_object[s->depth / 64] &= ~bit;
    s->depth++;
    s->state = object ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
    s->len = 0;
    return emit(s, object ? JSON_EVENT_OBJECT : JSON_EVENT_ARRAY);
}

static bool in_object(const struct json_scan *s)
{
    unsigned top = s->depth - 1;
    return s->is_object[top / 64] >> (top % 64) & 1;
}

static int close_bracket(struct json_scan *s, char c)
{
    if (in_object(s) != (c == '}'))
        return -EPROTO;
    s->depth--;
    value_done(s);
    s->len = 0;
    return emit(s, c == '}' ? JSON_EVENT_OBJECT_END : JSON_EVENT_ARRAY_END);
}

static int begin_value(struct json_scan *s, char c)
{
    static const struct {
        char first;
        const char *rest;
    } words[] = {{'t', "rue"}, {'f', "alse"}, {'n', "ull"}};
    if (c == '{' || c == '[')
        return open_bracket(s, c == '{');
    if (c == '"') {
        begin_text(s, false, STATE_TEXT);
        return 0;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        begin_text(s, false, c == '-' ? STATE_MINUS : c == '0' ? STATE_ZERO : STATE_WHOLE);
        keep(s, &c, 1);
        return 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].first == c) {
            s->word = words[i].rest;
            s->len = 0;
            s->state = STATE_WORD;
            return 0;
        }
    }
    return -EPROTO;
}

static int step_word(struct json_scan *s, char c)
{
    if (*s->word != c)
        return -EPROTO;
    s->word++;
    if (*s->word)
        return 0;
    value_done(s);
    /* the letter before the last tells them apart: tr(u)e, fal(s)e, nu(l)l */
    char before = s->word[-2];
    return emit(s, before == 'u'   ? JSON_EVENT_TRUE
                   : before == 's' ? JSON_EVENT_FALSE
                                   : JSON_EVENT_NULL);
}

static int step_escape(struct json_scan *s, char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
        s->unit = 0;
        s->unit_digits = 0;
        s->state = STATE_UNIT;
        return 0;
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return -EPROTO;
    keep(s, &to[found - from], 1);
    s->state = STATE_TEXT;
    return 0;
}

static int keep_point(struct json_scan *s, uint32_t point)
{
    char bytes[4];
    size_t n = 0;
    if (point < 0x80) {
        bytes[n++] = (char)point;
    } else if (point < 0x800) {
        bytes[n++] = (char)(0xc0 | point >> 6);
        bytes[n++] = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        bytes[n++] = (char)(0xe0 | point >> 12);
        bytes[n++] = (char)(0x80 | (point >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (point & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | point >> 18);
        bytes[n++] = (char)(0x80 | (point >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (point >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (point & 0x3f));
    }
    keep(s, bytes, n);
    s->state = STATE_TEXT;
    return 0;
}

static int step_unit(struct json_scan *s, char c)
{
    uint32_t digit;
    if (c >= '0' && c <= '9')
        digit = (uint32_t)(c - '0');
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        digit = (uint32_t)((c | 0x20) - 'a' + 10);
    else
        return -EPROTO;
    s->unit = s->unit << 4 | digit;
    if (++s->unit_digits < 4)
        return 0;
    bool is_low = s->unit >= 0xdc00 && s->unit <= 0xdfff;
    if (is_low != (s->high != 0)) /* half of a pair alone */
        return -EPROTO;
    if (is_low) {
        uint32_t point = 0x10000 + ((s->high - 0xd800) << 10) + (s->unit - 0xdc00);
        s->high = 0;
        return keep_point(s, point);
    }
    if (s->unit >= 0xd800 && s->unit <= 0xdbff) {
        s->high = s->unit;
        s->state = STATE_PAIR;
        return 0;
    }
    return keep_point(s, s->unit);
}

/* Where c may lead from within a number; -1 when it does not belong to it. */
static int number_next(int state, char c)
{
    bool digit = c >= '0' && c <= '9', e = c == 'e' || c == 'E';
    switch (state) {
    case STATE_MINUS:
        return c == '0' ? STATE_ZERO : digit ? STATE_WHOLE : -1;
    case STATE_ZERO:
        return c == '.' ? STATE_POINT : e ? STATE_E : -1;
    case STATE_WHOLE:
        return digit ? STATE_WHOLE : c == '.' ? STATE_POINT : e ? STATE_E : -1;
    case STATE_POINT:
        return digit ? STATE_FRACTION : -1;
    case STATE_FRACTION:
        return digit ? STATE_FRACTION : e ? STATE_E : -1;
    case STATE_E:
        return digit ? STATE_EXPONENT : c == '+' || c == '-' ? STATE_E_SIGN : -1;
    case STATE_E_SIGN:
    case STATE_EXPONENT:
        return digit ? STATE_EXPONENT : -1;
    default:
        return -1;
    }
}

static bool number_may_end(int state)
{
    return state == STATE_ZERO || state == STATE_WHOLE || state == STATE_FRACTION ||
           state == STATE_EXPONENT;
}

static int step_between(struct json_scan *s, char c)
{
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
        return 0;
    switch (s->state) {
    case STATE_VALUE:
        return begin_value(s, c);
    case STATE_FIRST_VALUE:
        return c == ']' ? close_bracket(s, c) : begin_value(s, c);
    case STATE_FIRST_KEY:
    case STATE_KEY:
        if (c == '}' && s->state == STATE_FIRST_KEY)
            return close_bracket(s, c);
        if (c != '"')
            return -EPROTO;
        begin_text(s, true, STATE_TEXT);
        return 0;
    case STATE_COLON:
        if (c != ':')
            return -EPROTO;
        s->state = STATE_VALUE;
        return 0;
    case STATE_NEXT:
        if (c != ',')
            return c == '}' || c == ']' ? close_bracket(s, c) : -EPROTO;
        s->state = in_object(s) ? STATE_KEY : STATE_VALUE;
        return 0;
    default: /* STATE_END */
        return -EPROTO;
    }
}

static int end_text(struct json_scan *s)
{
    if (s->is_key)
        s->state = STATE_COLON;
    else
        value_done(s);
    return emit(s, s->is_key ? JSON_EVENT_KEY : JSON_EVENT_TEXT);
}

static int step(struct json_scan *s, char c)
{
    switch (s->state) {
    case STATE_TEXT:
        if (c == '"')
            return end_text(s);
        if (c != '\\')
            return -EPROTO; /* a control character: the others were taken at once */
        s->state = STATE_ESCAPE;
        return 0;
    case STATE_ESCAPE:
        return step_escape(s, c);
    case STATE_UNIT:
        return step_unit(s, c);
    case STATE_PAIR:
    case STATE_PAIR_U:
        if (c != (s->state == STATE_PAIR ? '\\' : 'u'))
            return -EPROTO;
        s->unit = 0;
        s->unit_digits = 0;
        s->state = s->state == STATE_PAIR ? STATE_PAIR_U : STATE_UNIT;
        return 0;
    case STATE_WORD:
        return step_word(s, c);
    default:
        return step_between(s, c);
    }
}

/* A number ends at the first byte that is not of it. */
static int end_number(struct json_scan *s)
{
    if (!number_may_end(s->state))
        return -EPROTO;
    value_done(s);
    return emit(s, JSON_EVENT_NUMBER);
}

static bool in_number(const struct json_scan *s)
{
    return s->state >= STATE_MINUS && s->state <= STATE_EXPONENT;
}

/* The bytes of a text that need no look. */
static size_t plain_run(struct str bytes, size_t at)
{
    size_t begin = at;
    while (at < bytes.len && bytes.ptr[at] != '"' && bytes.ptr[at] != '\\' &&
           (unsigned char)bytes.ptr[at] >= ' ')
        at++;
    return at - begin;
}

int json_scan_feed(struct json_scan *s, struct str bytes)
{
    uint64_t before = s->offset;
    int rc = 0;
    size_t i = 0;
    while (rc == 0 && i < bytes.len) {
        if (s->state == STATE_TEXT) {
            size_t n = plain_run(bytes, i);
            keep(s, bytes.ptr + i, n);
            i += n;
            if (i == bytes.len)
                break;
        } else if (in_number(s)) {
            int next = number_next(s->state, bytes.ptr[i]);
            if (next >= 0) {
                keep(s, &bytes.ptr[i++], 1);
                s->state = next;
            } else {
                rc = end_number(s); /* and the byte is looked at again */
            }
            continue;
        }
        rc = step(s, bytes.ptr[i]);
        i += rc == 0;
    }
    s->offset = before + i;
    return rc;
}

int json_scan_end(struct json_scan *s)
{
    int rc = s->depth == 0 && in_number(s) ? end_number(s) : 0;
    return rc < 0 || s->state == STATE_END ? rc : -EPROTO;
}
