/* One line after another, without copying. The rules are those of the regular expression in
 * ConfigArgParse's DefaultConfigFileParser (1.7.1), its odd corners included: a comment needs a
 * blank before it, and a value that is nothing but "" counts as given for "key=" yet as true for
 * "key ". A generated test compares the two. */
#include "worker/cli/config.h"

#include "base/log.h"
#include "base/num.h"

#include <jansson.h>
#include <stdio.h>

void config_reader_init(struct config_reader *r, struct str text, bool toml)
{
    *r = (struct config_reader){.rest = text, .toml = toml, .inside = !toml};
}

/* Python's str.strip() and \s, for ASCII */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static bool is_one_of(char c, struct str set)
{
    return str_find(set, c) < set.len;
}

static struct str strip_left(struct str s)
{
    while (s.len > 0 && is_blank(s.ptr[0]))
        s = str_sub(s, 1, s.len);
    return s;
}

static struct str strip(struct str s)
{
    s = strip_left(s);
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* A line ends in LF, CR or both, as in Python's universal newlines. */
static struct str take_line(struct str *rest)
{
    size_t end = 0;
    while (end < rest->len && rest->ptr[end] != '\n' && rest->ptr[end] != '\r')
        end++;
    struct str line = str_sub(*rest, 0, end);
    bool both = end + 1 < rest->len && rest->ptr[end] == '\r' && rest->ptr[end + 1] == '\n';
    *rest = str_sub(*rest, end + 1 + both, rest->len);
    return line;
}

/* Nothing more than a comment, which a blank must precede? */
static bool is_tail(struct str s)
{
    struct str text = strip_left(s);
    return text.len == 0 || (text.len < s.len && (text.ptr[0] == '#' || text.ptr[0] == ';'));
}

/* 'value' or "value" with a tail behind; the nearest closing quote that leaves one counts. */
static bool unquote(struct str s, struct str *ret)
{
    if (s.ptr[0] != '"' && s.ptr[0] != '\'')
        return false;
    for (size_t end = 2; end < s.len; end++) {
        if (s.ptr[end] == s.ptr[0] && is_tail(str_sub(s, end + 1, s.len))) {
            *ret = str_sub(s, 1, end);
            return true;
        }
    }
    if (s.len > 1 && s.ptr[1] == s.ptr[0] && is_tail(str_sub(s, 2, s.len))) {
        *ret = str_sub(s, 1, 1);
        return true;
    }
    return false;
}

/* s begins with something that is not blank */
static struct str without_comment(struct str s)
{
    for (size_t end = 1; end < s.len; end++) {
        if (is_tail(str_sub(s, end, s.len)))
            return str_sub(s, 0, end);
    }
    return s;
}

static bool split(struct str line, struct config_item *ret)
{
    size_t end = 0;
    while (end < line.len && !is_blank(line.ptr[end]) && !is_one_of(line.ptr[end], STR(":=;#")))
        end++;
    struct str after = str_sub(line, end, line.len), value = strip_left(after);
    if (end == 0)
        return false;
    ret->key = str_sub(line, 0, end);
    ret->value = STR("true");
    if (after.len == 0)
        return true;
    bool sign = value.ptr[0] == ':' || value.ptr[0] == '=';
    if (!sign && value.len == after.len)
        return false; /* "key#": a comment needs a blank */
    char separator = sign ? value.ptr[0] : after.ptr[after.len - value.len - 1];
    if (sign)
        value = strip_left(str_sub(value, 1, value.len));
    if (value.len > 0 && !unquote(value, &value))
        value = without_comment(value);
    if (value.len > 0 || separator != ' ')
        ret->value = value;
    return true;
}

/* Sections matter in TOML only. */
static void enter_section(struct config_reader *r, struct str line)
{
    struct str name = strip(str_sub(line, 1, str_find(line, ']')));
    if (r->toml)
        r->inside = str_eq(name, STR("tool.locust"));
}

bool config_next(struct config_reader *r, struct config_item *ret, struct err *err)
{
    while (r->rest.len > 0) {
        struct str line = strip(take_line(&r->rest));
        r->line++;
        if (line.len > 0 && line.ptr[0] == '[')
            enter_section(r, line);
        if (!r->inside || line.len == 0 || is_one_of(line.ptr[0], STR("#;[")) ||
            str_starts(line, STR("---")))
            continue;
        if (!split(line, ret)) {
            char quoted[LOG_QUOTED_BYTES];
            err_set(err, -EINVAL, "neither 'key = value' nor a comment: %s",
                    log_quote(line, quoted));
            return false;
        }
        if (r->toml && ret->value.len > 0 && ret->value.ptr[0] == '[' &&
            ret->value.ptr[ret->value.len - 1] != ']') {
            err_set(err, -EINVAL, "a list must be written on one line");
            return false;
        }
        return true;
    }
    return false;
}

static int add_json(const json_t *value, int (*add)(void *context, struct str element),
                    void *context)
{
    char text[NUM_TEXT_BYTES];
    if (json_is_string(value))
        return add(context, (struct str){json_string_value(value), json_string_length(value)});
    if (json_is_boolean(value))
        return add(context, json_is_true(value) ? STR("True") : STR("False"));
    if (json_is_real(value)) {
        num_format_repr(json_real_value(value), text);
        return add(context, str_of(text));
    }
    if (!json_is_integer(value))
        return -EINVAL;
    (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(value)); /* fits */
    return add(context, str_of(text));
}

int config_list(struct str text, int (*add)(void *context, struct str element), void *context)
{
    if (text.len < 2 || text.ptr[0] != '[' || text.ptr[text.len - 1] != ']')
        return -ENOENT;
    json_auto_t *list = json_loadb(text.ptr, text.len, 0, NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = add_json(json_array_get(list, i), add, context);
    if (list)
        return rc;
    struct str rest = str_sub(text, 1, text.len - 1), element;
    while (rc == 0 && str_next(&rest, ',', &element))
        rc = add(context, strip(element));
    return rc;
}
