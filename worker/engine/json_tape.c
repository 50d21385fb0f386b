/* A check and an extraction want two or three values of a response. jansson's tree of all of them
 * costs twenty allocations for a small body, as much as the whole rest of a request; so bodies are
 * only scanned, and what has to be decoded (strings with escapes) goes to jansson. The tests hold
 * this reader against jansson: both take and refuse the same texts. */
#include "worker/engine/json_tape.h"

#include "base/num.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>

struct scan {
    struct json_tape *tape;
    const char *begin, *at, *end;
    uint32_t open;  /* the innermost list or object, or NONE; its next is the one around it */
    bool non_ascii; /* somewhere in a string */
};

/* What may come next. */
enum want { WANT_VALUE, WANT_FIRST_VALUE, WANT_KEY, WANT_FIRST_KEY, WANT_AFTER, WANT_NOTHING };

void json_tape_done(struct json_tape *t)
{
    free(t->values);
    *t = (struct json_tape){0};
}

void json_tape_clear(struct json_tape *t)
{
    if (t->room > JSON_TAPE_KEEP)
        json_tape_done(t);
    t->count = 0;
    t->text = (struct str){NULL, 0};
}

/* --- reading -------------------------------------------------------------------------------- */

static int grow(struct json_tape *t)
{
    uint32_t room = t->room ? t->room * 2 : 64;
    struct json_value *values = room > t->room ? realloc(t->values, room * sizeof *values) : NULL;
    if (!values)
        return -ENOMEM;
    t->values = values;
    t->room = room;
    return 0;
}

static inline int add_value(struct scan *s, enum plan_type type, const char *from, const char *to)
{
    struct json_tape *t = s->tape;
    if (__builtin_expect(t->count == t->room, 0) && grow(t) < 0)
        return -ENOMEM;
    struct json_value *v = &t->values[t->count++];
    *v = (struct json_value){.at = (uint32_t)(from - s->begin),
                             .len = (uint32_t)(to - from),
                             .next = t->count,
                             .type = (uint8_t)type};
    return 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* "\uXXXX" at *at: its code unit, or -1. */
static int code_unit(const char *at, const char *end)
{
    int unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The length of the escape at `at`, 0 for none that is valid. */
static size_t escape_length(const char *at, const char *end)
{
    if (end - at < 2)
        return 0;
    if (at[1] != 'u')
        return strchr("\"\\/bfnrt", at[1]) && at[1] ? 2 : 0;
    int unit = code_unit(at, end);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return 0;
    if (unit < 0xD800 || unit > 0xDFFF)
        return 6;
    int low = code_unit(at + 6, end);
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

/* Bytes that mean themselves inside a string and are ASCII: most of them. */
static inline bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

static int read_string(struct scan *s)
{
    const char *from = s->at + 1, *p = from, *end = s->end;
    bool escaped = false;
    for (;;) {
        while (p < end && is_plain(*p))
            p++;
        if (p == end)
            return -EINVAL;
        if (*p == '"')
            break;
        size_t n = *p == '\\' ? escape_length(p, end) : (unsigned char)*p >= 0x80;
        if (n == 0)
            return -EINVAL;
        escaped |= *p == '\\';
        s->non_ascii |= *p != '\\';
        p += n;
    }
    s->at = p + 1;
    int rc = add_value(s, PLAN_TYPE_STRING, from, p);
    if (rc == 0)
        s->tape->values[s->tape->count - 1].escaped = escaped;
    return rc;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static int read_number(struct scan *s)
{
    const char *p = s->at, *end = s->end, *digits;
    p += *p == '-';
    digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return -EINVAL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return -EINVAL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return -EINVAL;
    }
    int rc = add_value(s, PLAN_TYPE_NUMBER, s->at, p);
    s->at = p;
    return rc;
}

static int read_word(struct scan *s, struct str word, enum plan_type type, bool truth)
{
    if ((size_t)(s->end - s->at) < word.len || memcmp(s->at, word.ptr, word.len) != 0)
        return -EINVAL;
    int rc = add_value(s, type, s->at, s->at + word.len);
    if (rc == 0)
        s->tape->values[s->tape->count - 1].truth = truth;
    s->at += word.len;
    return rc;
}

static int open_container(struct scan *s, enum want *want)
{
    bool object = *s->at == '{';
    uint32_t index = s->tape->count;
    int rc = add_value(s, object ? PLAN_TYPE_OBJECT : PLAN_TYPE_ARRAY, s->at, s->at);
    if (rc < 0)
        return rc;
    s->tape->values[index].next = s->open;
    s->open = index;
    s->at++;
    *want = object ? WANT_FIRST_KEY : WANT_FIRST_VALUE;
    return 0;
}

static int close_container(struct scan *s, enum want *want)
{
    struct json_value *v = &s->tape->values[s->open];
    if (*s->at != (v->type == PLAN_TYPE_OBJECT ? '}' : ']'))
        return -EINVAL;
    s->at++;
    s->open = v->next;
    v->next = s->tape->count;
    v->len = (uint32_t)(s->at - s->begin) - v->at;
    *want = WANT_AFTER;
    return 0;
}

static inline void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static int read_value(struct scan *s, enum want *want)
{
    *want = WANT_AFTER;
    switch (*s->at) {
    case '{':
    case '[':
        return open_container(s, want);
    case '"':
        return read_string(s);
    case 't':
        return read_word(s, STR("true"), PLAN_TYPE_BOOLEAN, true);
    case 'f':
        return read_word(s, STR("false"), PLAN_TYPE_BOOLEAN, false);
    case 'n':
        return read_word(s, STR("null"), PLAN_TYPE_NULL, false);
    default:
        return read_number(s);
    }
}

static int read_key(struct scan *s, enum want *want)
{
    int rc = *s->at == '"' ? read_string(s) : -EINVAL;
    skip_space(s);
    if (rc == 0 && (s->at == s->end || *s->at != ':'))
        rc = -EINVAL;
    s->at++;
    *want = WANT_VALUE;
    return rc;
}

static int after_value(struct scan *s, enum want *want)
{
    if (*s->at != ',')
        return close_container(s, want);
    *want = s->tape->values[s->open].type == PLAN_TYPE_OBJECT ? WANT_KEY : WANT_VALUE;
    s->at++;
    return 0;
}

/* The next token. */
static int read_next(struct scan *s, enum want *want)
{
    switch (*want) {
    case WANT_FIRST_VALUE:
        if (*s->at == ']')
            return close_container(s, want);
        return read_value(s, want);
    case WANT_VALUE:
        return read_value(s, want);
    case WANT_FIRST_KEY:
        if (*s->at == '}')
            return close_container(s, want);
        return read_key(s, want);
    case WANT_KEY:
        return read_key(s, want);
    case WANT_AFTER:
        return after_value(s, want);
    case WANT_NOTHING:
        break;
    }
    return -EINVAL;
}

int json_tape_read(struct json_tape *t, struct str text)
{
    struct scan s = {.tape = t, .begin = text.ptr, .at = text.ptr, .open = JSON_TAPE_NONE};
    enum want want = WANT_VALUE;
    if (text.len == 0 || text.len > JSON_TAPE_MAX_TEXT)
        return -EINVAL;
    s.end = text.ptr + text.len;
    t->count = 0;
    t->text = text;
    for (;;) {
        if (want == WANT_AFTER && s.open == JSON_TAPE_NONE)
            want = WANT_NOTHING;
        skip_space(&s);
        if (s.at == s.end)
            break;
        int rc = read_next(&s, &want);
        if (rc < 0)
            return rc;
    }
    if (want != WANT_NOTHING || (s.non_ascii && !utf8_valid(text)))
        return -EINVAL;
    return 0;
}

/* --- looking up ----------------------------------------------------------------------------- */

static struct str written(const struct json_tape *t, const struct json_value *v)
{
    return str_sub(t->text, v->at, (size_t)v->at + v->len);
}

/* A string with its quotes through jansson. */
static int decode(const struct json_tape *t, const struct json_value *v, struct buf *out)
{
    json_t *value = json_loadb(t->text.ptr + v->at - 1, (size_t)v->len + 2,
                               JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!value) /* it is valid */
        return -ENOMEM;
    buf_clear(out);
    int rc = buf_add(out, (struct str){json_string_value(value), json_string_length(value)});
    json_decref(value);
    return rc;
}

static bool key_is(const struct json_tape *t, const struct json_value *key, struct str name)
{
    struct buf decoded;
    if (!key->escaped)
        return str_eq(written(t, key), name);
    buf_init(&decoded, key->len);
    bool equal = decode(t, key, &decoded) == 0 && str_eq(buf_str(&decoded), name);
    buf_done(&decoded);
    return equal;
}

static uint32_t find_key(const struct json_tape *t, uint32_t object, struct str name)
{
    uint32_t found = JSON_TAPE_NONE, end = t->values[object].next;
    for (uint32_t key = object + 1; key < end; key = t->values[key + 1].next) {
        if (key_is(t, &t->values[key], name))
            found = key + 1;
    }
    return found;
}

/* "0", "17": no sign, no leading zero. */
static uint32_t find_index(const struct json_tape *t, uint32_t array, struct str part)
{
    uint64_t wanted;
    uint32_t end = t->values[array].next, at = array + 1;
    if (num_parse_u64(part, UINT32_MAX, &wanted) < 0 || (part.len > 1 && part.ptr[0] == '0'))
        return JSON_TAPE_NONE;
    for (; at < end && wanted > 0; wanted--)
        at = t->values[at].next;
    return at < end ? at : JSON_TAPE_NONE;
}

uint32_t json_tape_find(const struct json_tape *t, const struct plan_pointer *pointer)
{
    uint32_t at = t->count > 0 ? 0 : JSON_TAPE_NONE;
    for (size_t i = 0; i < pointer->part_count && at != JSON_TAPE_NONE; i++) {
        if (t->values[at].type == PLAN_TYPE_OBJECT)
            at = find_key(t, at, pointer->parts[i]);
        else if (t->values[at].type == PLAN_TYPE_ARRAY)
            at = find_index(t, at, pointer->parts[i]);
        else
            at = JSON_TAPE_NONE;
    }
    return at;
}

uint32_t json_tape_length(const struct json_tape *t, uint32_t index)
{
    uint32_t n = 0, end = t->values[index].next;
    for (uint32_t at = index + 1; at < end; at = t->values[at].next)
        n++;
    return t->values[index].type == PLAN_TYPE_OBJECT ? n / 2 : n;
}

int json_tape_text(const struct json_tape *t, uint32_t index, struct buf *scratch, struct str *ret)
{
    const struct json_value *v = &t->values[index];
    if (v->type == PLAN_TYPE_STRING && v->escaped) {
        int rc = decode(t, v, scratch);
        *ret = buf_str(scratch);
        return rc;
    }
    *ret = written(t, v);
    return 0;
}
