#include "worker/locustfile/script.h"

#include "base/num.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_BYTES    ((size_t)PLAN_MAX_FILE_BYTES * 12) /* a body, each byte of it as "\udcxx" */
#define COMMENT_BYTES 4096

void script_put(struct script *s, const char *text)
{
    if (s->rc == 0)
        s->rc = buf_add(s->out, str_of(text));
}

static void put(struct script *s, struct str text)
{
    if (s->rc == 0)
        s->rc = buf_add(s->out, text);
}

/* vprintf into memory of its own: nothing that is printed so is long. */
__attribute__((format(printf, 2, 0))) static void
put_formatted(struct script *s, const char *format, va_list arguments)
{
    char *text = NULL;
    if (s->rc != 0)
        return;
    int n = vasprintf(&text, format, arguments);
    s->rc = n < 0 ? -ENOMEM : buf_add(s->out, (struct str){text, (size_t)n});
    if (n >= 0)
        free(text);
}

void script_printf(struct script *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_formatted(s, format, arguments);
    va_end(arguments);
}

/* --- literals ------------------------------------------------------------------------------- */

static void put_point(struct script *s, uint32_t point)
{
    if (point == '"' || point == '\\')
        script_printf(s, "\\%c", (int)point);
    else if (point == '\n')
        script_put(s, "\\n");
    else if (point == '\r')
        script_put(s, "\\r");
    else if (point == '\t')
        script_put(s, "\\t");
    else if (point < 0x20 || point == 0x7F)
        script_printf(s, "\\x%02x", point);
    else if (point < 0x10000)
        script_printf(s, "\\u%04x", point);
    else
        script_printf(s, "\\U%08x", point);
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* The inside of a literal. */
static void put_escaped(struct script *s, struct str text)
{
    for (size_t at = 0; s->rc == 0 && at < text.len;) {
        size_t end = at;
        while (end < text.len && is_plain(text.ptr[end]))
            end++;
        put(s, str_sub(text, at, end));
        at = end;
        if (at == text.len)
            break;
        uint32_t point;
        size_t n = utf8_decode(str_sub(text, at, text.len), &point);
        put_point(s, n ? point : 0xDC00u + (unsigned char)text.ptr[at]);
        at += n ? n : 1;
    }
}

/* JSON is full of quotes: a text that has some and none of the other kind is put into those. */
static char quote_for(struct str text)
{
    return str_find(text, '"') < text.len && str_find(text, '\'') == text.len ? '\'' : '"';
}

static void put_quoted(struct script *s, struct str text, char quote)
{
    script_printf(s, "%c", quote);
    while (s->rc == 0 && quote == '\'' && text.len) {
        size_t end = str_find(text, '"');
        put_escaped(s, str_sub(text, 0, end));
        if (end < text.len)
            script_put(s, "\"");
        text = str_sub(text, end + 1, text.len);
    }
    put_escaped(s, text);
    script_printf(s, "%c", quote);
}

void script_string(struct script *s, struct str text)
{
    put_quoted(s, text, quote_for(text));
}

void script_pattern(struct script *s, struct str text)
{
    char quote = quote_for(text);
    bool raw = str_find(text, '\\') < text.len && str_find(text, quote) == text.len &&
               text.ptr[text.len - 1] != '\\';
    for (size_t i = 0; i < text.len; i++)
        raw = raw && text.ptr[i] >= 0x20 && text.ptr[i] < 0x7F;
    if (raw)
        script_printf(s, "r%c%.*s%c", quote, STR_ARG(text), quote);
    else
        script_string(s, text);
}

/* --- texts with variables ------------------------------------------------------------------- */

static int add_literal(struct buf *b, struct str text)
{
    int rc = 0;
    while (rc == 0 && text.len) {
        size_t at = str_find_str(text, STR("${"));
        rc = buf_add(b, str_sub(text, 0, at));
        if (rc == 0 && at < text.len)
            rc = buf_add(b, STR("$${"));
        text = str_sub(text, at < text.len ? at + 2 : at, text.len);
    }
    return rc;
}

static int add_value(struct buf *b, const struct plan_piece *piece)
{
    static const char *const how[] = {
        [PLAN_INSERT_PLAIN] = "",
        [PLAN_INSERT_JSON_TEXT] = "|json",
        [PLAN_INSERT_JSON_VALUE] = "|value",
        [PLAN_INSERT_FORM] = "|form",
        [PLAN_INSERT_QUOTED] = "|quoted",
    };
    const struct plan_source *value = piece->value;
    if (value->kind == PLAN_SOURCE_RANDOM)
        return buf_printf(b, "${random(%lld, %lld)%s}", (long long)value->min,
                          (long long)value->max, how[piece->insert]);
    return buf_printf(b, "${%.*s%s}", STR_ARG(value->name), how[piece->insert]);
}

void script_template(struct script *s, const struct plan_text *text)
{
    struct buf whole;
    buf_init(&whole, CALL_BYTES);
    int rc = text->piece_count ? 0 : add_literal(&whole, text->text);
    for (size_t i = 0; rc == 0 && i < text->piece_count; i++) {
        rc = add_literal(&whole, text->pieces[i].before);
        if (rc == 0 && text->pieces[i].value)
            rc = add_value(&whole, &text->pieces[i]);
    }
    if (s->rc == 0)
        s->rc = rc;
    script_string(s, buf_str(&whole));
    buf_done(&whole);
}

/* --- numbers -------------------------------------------------------------------------------- */

void script_seconds(struct script *s, uint64_t us)
{
    char number[NUM_TEXT_BYTES];
    if (us % 1000000 == 0) {
        script_printf(s, "%llu", (unsigned long long)(us / 1000000));
        return;
    }
    num_format_repr((double)us / 1e6, number);
    script_put(s, number);
}

void script_number(struct script *s, struct str json)
{
    uint64_t whole;
    bool plain = num_parse_u64(json, UINT64_MAX, &whole) == 0;
    if (str_eq(json, STR("true")) || str_eq(json, STR("false")))
        script_put(s, json.len == 4 ? "True" : "False");
    else
        script_printf(s, plain ? "%.*s" : "Number(\"%.*s\")", STR_ARG(json));
}

/* --- comments ------------------------------------------------------------------------------- */

void script_comment(struct script *s, unsigned indent, const char *format, ...)
{
    struct buf text;
    buf_init(&text, COMMENT_BYTES);
    struct script line = {.out = &text};
    va_list arguments;
    va_start(arguments, format);
    put_formatted(&line, format, arguments);
    va_end(arguments);
    script_printf(s, "%*s# ", (int)indent, "");
    put_escaped(s, buf_str(&text));
    script_put(s, "\n");
    if (line.rc == -ENOMEM)
        s->rc = line.rc; /* one that is too long is left out */
    buf_done(&text);
}

/* --- calls ---------------------------------------------------------------------------------- */

void script_call_begin(struct script_call *c)
{
    *c = (struct script_call){.count = 0};
    buf_init(&c->text, CALL_BYTES);
}

struct script *script_argument(struct script_call *c, const char *name)
{
    c->writer.out = &c->text; /* not at the beginning: the caller may have copied the struct */
    if (c->count > 0 && c->writer.rc == 0)
        c->writer.rc = buf_add_byte(&c->text, '\0');
    c->count++;
    if (name)
        script_printf(&c->writer, "%s=", name);
    return &c->writer;
}

/* An argument may be of several lines. */
static void put_indented(struct script *s, struct str text, unsigned indent)
{
    struct str line;
    for (bool first = true; str_next(&text, '\n', &line); first = false) {
        if (!first)
            script_printf(s, "\n%*s", (int)indent, "");
        put(s, line);
    }
}

void script_call_end(struct script_call *c, struct script *s, unsigned indent, const char *what,
                     const char *end)
{
    struct str all = buf_str(&c->text), argument;
    size_t width = indent + str_of(what).len + all.len + c->count + 2;
    bool many = str_find(all, '\n') < all.len || (c->count > 1 && width > SCRIPT_WIDTH);
    if (s->rc == 0)
        s->rc = c->writer.rc;
    script_printf(s, "%*s%s(", (int)indent, "", what);
    for (size_t i = 0; i < c->count && str_next(&all, '\0', &argument); i++) {
        if (many)
            script_printf(s, "\n%*s", (int)indent + 4, "");
        put_indented(s, argument, indent + 4);
        script_put(s, many ? "," : i + 1 < c->count ? ", " : "");
    }
    if (many)
        script_printf(s, "\n%*s", (int)indent, "");
    script_printf(s, ")%s\n", end);
    buf_done(&c->text);
}
