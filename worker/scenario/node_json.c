/* jansson forgets where a value stood: it tells a line for syntax errors only. So it is asked first
 * whether the text is valid JSON and valid UTF-8, and then a scanner steps over the text, which it
 * may trust, to note where each value begins. The scanner decodes nothing itself: a string with
 * escapes goes to jansson again, a number stays text until somebody reads it.
 *
 * libyaml, which the YAML form of scenarios needs anyway and which marks every node, reads nearly
 * all JSON. It was not taken for JSON because of the rest: it refuses surrogate pairs
 * ("\ud83d\ude00"), keys longer than 1,024 bytes and a tab before the first brace, and takes much
 * that is no JSON. */
#include "worker/scenario/node_json.h"

#include "base/log.h"
#include "base/utf8.h"

#include <jansson.h>

struct scan {
    const char *at, *end;
    uint32_t line;
    const char *source;
    struct arena *arena;
    struct err *err;
};

/* --- is it JSON? --- */

/* An upper bound of the values in the text, before anything is allocated for them: each value but
 * the first follows an opening bracket, a comma or a colon outside of strings. */
static size_t count_values(struct str text)
{
    size_t count = 1;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '[' || c == '{'))
            count++;
    }
    return count;
}

/* jansson's words, which quote the text: valid UTF-8, in one line. What does not begin as a list or
 * an object is most likely YAML under another name. */
static int tell_syntax_error(const json_error_t *e, struct str text, const char *source,
                             struct err *err)
{
    struct buf words;
    buf_init(&words, sizeof e->text * 4);
    int rc = utf8_add_repaired(&words, str_of(e->text));
    for (size_t i = 0; i < words.len; i++) {
        if ((unsigned char)words.ptr[i] < 0x20 || words.ptr[i] == 0x7F)
            words.ptr[i] = ' ';
    }
    const char first = str_trim(text).ptr[0];
    const char *mend = first == '{' || first == '[' || str_ends(str_of(source), STR(".json"))
                           ? ""
                           : " (the name of a file in YAML ends in .yaml or .yml)";
    if (rc == 0)
        rc = err_set(err, -EINVAL, "%s:%d: not valid JSON: %s%s", source, e->line > 0 ? e->line : 1,
                     buf_c(&words), mend);
    buf_done(&words);
    return rc;
}

static int validate(struct str text, const char *source, struct err *err)
{
    if (str_trim(text).len == 0)
        return err_set(err, -EINVAL, "%s:1: the file is empty", source);
    if (count_values(text) > NODE_MAX_COUNT)
        return err_set(err, -EINVAL, "%s:1: more than %d values", source, NODE_MAX_COUNT);
    json_error_t e;
    /* as doubles, integers of any length are valid; they are read from the text in any case */
    json_t *value = json_loadb(text.ptr, text.len,
                               JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    if (value) {
        json_decref(value);
        return 0;
    }
    if (json_error_code(&e) == json_error_out_of_memory)
        return -ENOMEM;
    return tell_syntax_error(&e, text, source, err);
}

/* --- the scanner --- */

static char peek(const struct scan *s)
{
    return s->at < s->end ? *s->at : '\0';
}

static void skip_space(struct scan *s)
{
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\n')
            s->line++;
        else if (*s->at != ' ' && *s->at != '\t' && *s->at != '\r')
            return;
    }
}

/* A comma or colon, and the space around it. */
static void skip_mark(struct scan *s)
{
    skip_space(s);
    if (peek(s) == ',' || peek(s) == ':')
        s->at++;
    skip_space(s);
}

static int decode_string(struct scan *s, struct str quoted, struct str *ret)
{
    json_t *value = json_loadb(quoted.ptr, quoted.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!value) /* it was valid a moment ago */
        return -ENOMEM;
    *ret = arena_copy(s->arena, (struct str){json_string_value(value), json_string_length(value)});
    json_decref(value);
    return ret->ptr ? 0 : -ENOMEM;
}

static int scan_string(struct scan *s, struct str *ret)
{
    const char *begin = s->at++;
    bool escapes = false;
    while (s->at < s->end && *s->at != '"') {
        if (*s->at == '\\') {
            escapes = true;
            s->at++;
        }
        s->at++;
    }
    if (s->at >= s->end)
        return -EINVAL;
    s->at++;
    struct str quoted = {begin, (size_t)(s->at - begin)};
    if (escapes)
        return decode_string(s, quoted, ret);
    *ret = (struct str){begin + 1, quoted.len - 2};
    return 0;
}

static int scan_word(struct scan *s, struct node *n)
{
    const char *begin = s->at;
    while (s->at < s->end && !strchr(" \t\r\n,]}", *s->at))
        s->at++;
    n->text = (struct str){begin, (size_t)(s->at - begin)};
    n->truth = *begin == 't';
    n->kind = *begin == 'n' ? NODE_NULL : *begin == 't' || *begin == 'f' ? NODE_BOOL : NODE_NUMBER;
    return n->text.len ? 0 : -EINVAL;
}

static int scan_value(struct scan *s, struct node *n, unsigned depth);

static int scan_children(struct scan *s, struct node *n, unsigned depth)
{
    if (depth == NODE_MAX_DEPTH)
        return node_fail(n, s->source, s->err, "nested deeper than %d levels", NODE_MAX_DEPTH);
    n->kind = peek(s) == '[' ? NODE_LIST : NODE_OBJECT;
    const char close = n->kind == NODE_LIST ? ']' : '}';
    s->at++;
    for (skip_space(s); peek(s) != close; skip_mark(s)) {
        struct node *child = ARENA_NEW(s->arena, struct node);
        if (!child)
            return -ENOMEM;
        child->key_line = s->line;
        if (n->kind == NODE_OBJECT) {
            int rc = peek(s) == '"' ? scan_string(s, &child->key) : -EINVAL;
            if (rc < 0)
                return rc;
            skip_mark(s);
        }
        node_append(n, child);
        int rc = scan_value(s, child, depth + 1);
        if (rc < 0)
            return rc;
    }
    s->at++;
    return n->kind == NODE_OBJECT ? node_refuse_duplicates(n, s->arena, s->source, s->err) : 0;
}

static int scan_value(struct scan *s, struct node *n, unsigned depth)
{
    n->line = s->line;
    switch (peek(s)) {
    case '{':
    case '[':
        return scan_children(s, n, depth);
    case '"':
        n->kind = NODE_STRING;
        return scan_string(s, &n->text);
    case '\0':
        return -EINVAL;
    default:
        return scan_word(s, n);
    }
}

int node_from_json(struct str text, const char *source, struct arena *arena,
                   const struct node **ret, struct err *err)
{
    const struct str byte_order_mark = STR("\xEF\xBB\xBF"); /* some editors put one */
    if (str_starts(text, byte_order_mark))
        text = str_sub(text, byte_order_mark.len, text.len);
    struct node *root = ARENA_NEW(arena, struct node);
    int rc = root ? validate(text, source, err) : -ENOMEM;
    if (rc == 0) {
        struct scan s = {text.ptr, text.ptr + text.len, 1, source, arena, err};
        skip_space(&s);
        root->key_line = s.line;
        rc = scan_value(&s, root, 0);
    }
    if (rc < 0)
        return err_set(err, rc, "%s: %s", source,
                       rc == -ENOMEM ? "out of memory" : "cannot be read");
    *ret = root;
    return 0;
}
