/* libyaml's events, one after the other, build the tree. Its own document tree was not taken: it
 * gives aliases by reference, while a node knows its parent, so they are copied here, and counted,
 * as a few lines of aliases of aliases can stand for billions of values. */
#include "worker/scenario/node_yaml.h"

#include "base/num.h"

#include <yaml.h>

struct anchor {
    struct anchor *next;
    struct str name;
    const struct node *node;
};

struct build {
    yaml_parser_t parser;
    struct str text;
    const char *source;
    struct arena *arena;
    struct err *err;
    struct anchor *anchors; /* the newest first */
    size_t count;           /* of nodes */
};

static uint32_t line_of(const yaml_event_t *event)
{
    return (uint32_t)event->start_mark.line + 1;
}

static int fail_at(struct build *b, uint32_t line, const char *why)
{
    return err_set(b->err, -EINVAL, "%s:%u: %s", b->source, line, why);
}

/* --- events --- */

/* The line of the text that a mark points into, and the first byte of the marked character. */
static struct str marked_line(const struct build *b, const yaml_mark_t *mark, char *ret_at)
{
    struct str rest = b->text, line = STR("");
    for (size_t i = 0; i <= mark->line && rest.ptr; i++) {
        if (!str_next(&rest, '\n', &line))
            return STR("");
    }
    size_t at = 0; /* columns are characters */
    for (size_t column = 0; at < line.len; at++) {
        if (((unsigned char)line.ptr[at] & 0xC0) != 0x80 && column++ == mark->column)
            break;
    }
    *ret_at = at < line.len ? line.ptr[at] : '\0';
    return line;
}

/* What to do about libyaml's words, for the mistakes that are made often. NULL: nothing is known.
 */
static const char *mend_of(const yaml_parser_t *p, struct str line, char at)
{
    struct str problem = str_of(p->problem), context = str_of(p->context ? p->context : "");
    if (str_starts(problem, STR("found character that cannot start any token")))
        return at == '\t' ? "a tab does not indent: use spaces"
                          : "a text that begins with this character needs quotes";
    if (str_starts(problem, STR("mapping values are not allowed")))
        return "a text with ': ' in it needs quotes; else look at the indentation";
    if (str_starts(context, STR("while parsing a flow")))
        return str_find_str(line, STR("${")) < line.len
                   ? "a text with ${\xE2\x80\xA6} inside of { } or [ ] needs quotes"
                   : "is a comma, a bracket or a quote missing?";
    if (str_starts(context, STR("while parsing a block")))
        return "look at the indentation of this line and at the quotes above";
    return NULL;
}

/* A byte that cannot be read has an offset, not a mark. */
static size_t line_of_offset(struct str text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        line += text.ptr[i] == '\n';
    return line;
}

static int tell_error(struct build *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR || !p->problem)
        return p->error == YAML_MEMORY_ERROR ? -ENOMEM : fail_at(b, 1, "not valid YAML");
    if (p->error == YAML_READER_ERROR)
        return err_set(b->err, -EINVAL, "%s:%zu: not valid YAML: %s", b->source,
                       line_of_offset(b->text, p->problem_offset), p->problem);
    if (p->context && str_eq(str_of(p->context), STR("while scanning a quoted scalar")) &&
        str_eq(str_of(p->problem), STR("found unexpected end of stream")))
        return fail_at(b, (uint32_t)p->context_mark.line + 1,
                       "not valid YAML: the quote that begins here has no end");
    char at = '\0';
    struct str line = marked_line(b, &p->problem_mark, &at);
    const char *mend = mend_of(p, line, at);
    return err_set(b->err, -EINVAL, "%s:%zu: not valid YAML: %s%s%s%s%s", b->source,
                   p->problem_mark.line + 1, p->context ? p->context : "", p->context ? ", " : "",
                   p->problem, mend ? ": " : "", mend ? mend : "");
}

static int next_event(struct build *b, yaml_event_t *ret)
{
    return yaml_parser_parse(&b->parser, ret) ? 0 : tell_error(b);
}

static struct node *new_node(struct build *b, uint32_t line)
{
    struct node *n = ARENA_NEW(b->arena, struct node);
    if (n)
        n->line = n->key_line = line;
    return n;
}

static int count_node(struct build *b, uint32_t line)
{
    if (++b->count <= NODE_MAX_COUNT)
        return 0;
    return err_set(b->err, -EINVAL, "%s:%u: more than %d values", b->source, line, NODE_MAX_COUNT);
}

/* --- scalars --- */

static bool is_word(struct str s, const char *words)
{
    struct str rest = str_of(words), one;
    while (str_next(&rest, ' ', &one)) {
        if (str_eq(s, one))
            return true;
    }
    return false;
}

/* A number as JSON writes it, which is what goes into JSON bodies. */
static bool is_json_number(struct str s)
{
    double value;
    size_t i = s.len > 0 && s.ptr[0] == '-';
    if (i == s.len || s.ptr[i] < '0' || s.ptr[i] > '9')
        return false;
    if (s.ptr[i] == '0' && i + 1 < s.len && s.ptr[i + 1] >= '0' && s.ptr[i + 1] <= '9')
        return false;
    size_t point = str_find(s, '.');
    if (point + 1 == s.len ||
        (point + 1 < s.len && (s.ptr[point + 1] < '0' || s.ptr[point + 1] > '9')))
        return false;
    return num_parse_double(s, &value) == 0;
}

/* What some reader of YAML takes for a number and JSON does not: 010, +1, .5, 1., 0x1F, 1_000,
 * .inf. */
static bool is_doubtful_number(struct str s)
{
    size_t i = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'), digits = 0, others = 0;
    struct str rest = str_sub(s, i, s.len);
    if (is_word(rest, ".inf .Inf .INF") || is_word(s, ".nan .NaN .NAN"))
        return true;
    if (str_starts_nocase(rest, STR("0x")) || str_starts_nocase(rest, STR("0o")) ||
        str_starts_nocase(rest, STR("0b"))) {
        for (i = 2; i < rest.len; i++)
            others += !strchr("0123456789abcdefABCDEF_", rest.ptr[i]) || !rest.ptr[i];
        return rest.len > 2 && others == 0;
    }
    for (i = 0; i < rest.len; i++) {
        char c = rest.ptr[i];
        digits += c >= '0' && c <= '9';
        others += !(c >= '0' && c <= '9') && (c == '\0' || !strchr("._", c));
    }
    size_t points = 0;
    for (i = 0; i < rest.len; i++)
        points += rest.ptr[i] == '.';
    return digits > 0 && others == 0 && points <= 1 && (rest.ptr[0] != '_');
}

/* Digits with colons between them, which YAML 1.1 takes for a number to the base of sixty. */
static bool is_sexagesimal(struct str s)
{
    size_t colons = 0;
    for (size_t i = 0; i < s.len; i++) {
        bool colon = s.ptr[i] == ':' && i > 0 && i + 1 < s.len;
        colons += colon;
        if (!colon && (s.ptr[i] < '0' || s.ptr[i] > '9'))
            return false;
    }
    return colons > 0;
}

static int resolve_plain(struct build *b, struct node *n)
{
    struct str s = n->text;
    if (s.len == 0 || is_word(s, "null Null NULL ~")) {
        n->kind = NODE_NULL;
        n->text = STR("null");
    } else if (is_word(s, "true True TRUE false False FALSE")) {
        n->kind = NODE_BOOL;
        n->truth = s.ptr[0] == 't' || s.ptr[0] == 'T';
        n->text = n->truth ? STR("true") : STR("false");
    } else if (is_json_number(s)) {
        n->kind = NODE_NUMBER;
    } else if (is_word(s, "yes Yes YES on On ON no No NO off Off OFF y Y n N")) {
        return err_set(
            b->err, -EINVAL,
            "%s:%u: '%.*s' is true or false to some readers of YAML and a text to others: "
            "write true, false or \"%.*s\"",
            b->source, n->line, STR_ARG(s), STR_ARG(s));
    } else if (is_doubtful_number(s) || is_sexagesimal(s)) {
        return err_set(
            b->err, -EINVAL,
            "%s:%u: '%.*s' is not the same to all readers of YAML: write the number as in "
            "JSON, or \"%.*s\"",
            b->source, n->line, STR_ARG(str_sub(s, 0, 40)), STR_ARG(str_sub(s, 0, 40)));
    } else {
        n->kind = NODE_STRING;
    }
    return 0;
}

static bool is_tag(const yaml_char_t *tag, const char *name)
{
    return tag && str_eq(str_of((const char *)tag), str_of(name));
}

static int refuse_tag(struct build *b, const yaml_event_t *event)
{
    return fail_at(b, line_of(event), "has a tag ('!…'), which has no meaning here");
}

static int set_scalar(struct build *b, const yaml_event_t *event, struct node *n)
{
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    n->text = arena_copy(b->arena, text);
    if (!n->text.ptr)
        return -ENOMEM;
    n->kind = NODE_STRING;
    if (is_tag(event->data.scalar.tag, YAML_STR_TAG))
        return 0;
    if (event->data.scalar.tag)
        return refuse_tag(b, event);
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? resolve_plain(b, n) : 0;
}

/* --- anchors --- */

static int keep_anchor(struct build *b, const yaml_char_t *name, const struct node *n)
{
    if (!name)
        return 0;
    struct anchor *a = ARENA_NEW(b->arena, struct anchor);
    if (!a)
        return -ENOMEM;
    *a = (struct anchor){b->anchors, arena_copy(b->arena, str_of((const char *)name)), n};
    b->anchors = a;
    return a->name.ptr ? 0 : -ENOMEM;
}

static int copy_children(struct build *b, const struct node *from, struct node *to, unsigned depth)
{
    for (const struct node *child = from->first; child; child = child->next) {
        struct node *copy = new_node(b, child->line);
        if (!copy)
            return -ENOMEM;
        int rc = count_node(b, child->line);
        if (rc == 0 && depth + 1 > NODE_MAX_DEPTH)
            rc = node_fail(to, b->source, b->err, "nested deeper than %d levels", NODE_MAX_DEPTH);
        if (rc < 0)
            return rc;
        copy->kind = child->kind;
        copy->truth = child->truth;
        copy->key_line = child->key_line;
        copy->key = child->key;
        copy->text = child->text;
        node_append(to, copy);
        rc = copy_children(b, child, copy, depth + 1);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int set_alias(struct build *b, const yaml_event_t *event, struct node *n, unsigned depth)
{
    struct str name = str_of((const char *)event->data.alias.anchor);
    const struct anchor *a = b->anchors;
    while (a && !str_eq(a->name, name))
        a = a->next;
    if (!a) /* unknown, or the alias stands inside what it names */
        return err_set(b->err, -EINVAL, "%s:%u: the alias '*%.*s' names no value before it",
                       b->source, line_of(event), STR_ARG(str_sub(name, 0, 40)));
    n->kind = a->node->kind;
    n->truth = a->node->truth;
    n->text = a->node->text;
    return copy_children(b, a->node, n, depth);
}

/* --- values --- */

static int set_value(struct build *b, const yaml_event_t *event, struct node *n, unsigned depth);

static int read_key(struct build *b, const yaml_event_t *event, struct str *ret)
{
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(b, line_of(event), "a key must be a text");
    if (event->data.scalar.tag && !is_tag(event->data.scalar.tag, YAML_STR_TAG))
        return refuse_tag(b, event);
    *ret = arena_copy(
        b->arena, (struct str){(const char *)event->data.scalar.value, event->data.scalar.length});
    if (!ret->ptr)
        return -ENOMEM;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(*ret, STR("<<")))
        return fail_at(b, line_of(event),
                       "merge keys ('<<') are not known here: use an alias for a "
                       "whole value");
    return 0;
}

/* One child of a list or an object whose first event is given; for an object that is its key. */
static int add_child(struct build *b, const yaml_event_t *first, struct node *n, unsigned depth)
{
    struct node *child = new_node(b, line_of(first));
    if (!child)
        return -ENOMEM;
    if (n->kind == NODE_LIST) {
        node_append(n, child);
        return set_value(b, first, child, depth);
    }
    yaml_event_t value;
    int rc = read_key(b, first, &child->key);
    if (rc == 0)
        rc = next_event(b, &value);
    if (rc < 0)
        return rc;
    child->line = line_of(&value);
    node_append(n, child);
    rc = set_value(b, &value, child, depth);
    yaml_event_delete(&value);
    return rc;
}

static int set_children(struct build *b, const yaml_event_t *begin, struct node *n, unsigned depth)
{
    bool list = begin->type == YAML_SEQUENCE_START_EVENT;
    const yaml_event_type_t end = list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT;
    const yaml_char_t *tag = list ? begin->data.sequence_start.tag : begin->data.mapping_start.tag;
    if (tag)
        return refuse_tag(b, begin);
    n->kind = list ? NODE_LIST : NODE_OBJECT;
    if (depth == NODE_MAX_DEPTH)
        return node_fail(n, b->source, b->err, "nested deeper than %d levels", NODE_MAX_DEPTH);
    for (bool more = true; more;) {
        yaml_event_t event;
        int rc = next_event(b, &event);
        if (rc < 0)
            return rc;
        more = event.type != end;
        if (more)
            rc = add_child(b, &event, n, depth + 1);
        yaml_event_delete(&event);
        if (rc < 0)
            return rc;
    }
    int rc = keep_anchor(
        b, list ? begin->data.sequence_start.anchor : begin->data.mapping_start.anchor, n);
    if (rc < 0 || list)
        return rc;
    return node_refuse_duplicates(n, b->arena, b->source, b->err);
}

static int set_value(struct build *b, const yaml_event_t *event, struct node *n, unsigned depth)
{
    int rc = count_node(b, line_of(event));
    if (rc < 0)
        return rc;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        rc = set_scalar(b, event, n);
        return rc ? rc : keep_anchor(b, event->data.scalar.anchor, n);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return set_children(b, event, n, depth);
    case YAML_ALIAS_EVENT:
        return set_alias(b, event, n, depth);
    default:
        return fail_at(b, line_of(event), "a value is missing");
    }
}

/* --- the document --- */

/* Pass over an event that must be of this type. *ret_found tells whether it was. */
static int expect_event(struct build *b, yaml_event_type_t type, bool *ret_found)
{
    yaml_event_t event;
    int rc = next_event(b, &event);
    if (rc < 0)
        return rc;
    *ret_found = event.type == type;
    yaml_event_delete(&event);
    return 0;
}

static int read_document(struct build *b, struct node *root)
{
    bool found;
    yaml_event_t event;
    int rc = expect_event(b, YAML_STREAM_START_EVENT, &found);
    if (rc == 0)
        rc = expect_event(b, YAML_DOCUMENT_START_EVENT, &found);
    if (rc == 0 && !found)
        return fail_at(b, 1, "the file is empty");
    if (rc == 0)
        rc = next_event(b, &event);
    if (rc < 0)
        return rc;
    root->line = root->key_line = line_of(&event);
    rc = set_value(b, &event, root, 0);
    yaml_event_delete(&event);
    if (rc == 0)
        rc = expect_event(b, YAML_DOCUMENT_END_EVENT, &found);
    if (rc == 0)
        rc = expect_event(b, YAML_STREAM_END_EVENT, &found);
    if (rc == 0 && !found)
        return fail_at(b, (uint32_t)b->parser.mark.line + 1,
                       "a second document begins here; a scenario is one");
    return rc;
}

int node_from_yaml(struct str text, const char *source, struct arena *arena,
                   const struct node **ret, struct err *err)
{
    const struct str byte_order_mark = STR("\xEF\xBB\xBF"); /* some editors put one */
    if (str_starts(text, byte_order_mark))
        text = str_sub(text, byte_order_mark.len, text.len);
    if (!text.ptr)
        text = STR(""); /* libyaml ends the process for NULL */
    struct build b = {.text = text, .source = source, .arena = arena, .err = err};
    struct node *root = ARENA_NEW(arena, struct node);
    if (!root || !yaml_parser_initialize(&b.parser))
        return err_set(err, -ENOMEM, "%s: out of memory", source);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.ptr, text.len);
    int rc = read_document(&b, root);
    yaml_parser_delete(&b.parser);
    if (rc < 0)
        return err_set(err, rc, "%s: %s", source,
                       rc == -ENOMEM ? "out of memory" : "cannot be read");
    *ret = root;
    return 0;
}
