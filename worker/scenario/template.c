/* "${name}" in a text. A text with variables becomes pieces: the literal text before each variable,
 * encoded as the place wants it, and the source of the value. "$${" stands for "${" itself; any
 * other '$' is nothing special. */
#include "worker/scenario/encode.h"
#include "worker/scenario/load.h"

#include "base/log.h"

#define MAX_TEXT_BYTES                                                                             \
    ((size_t)PLAN_MAX_FILE_BYTES * 6) /* JSON: a byte becomes "\u00xx" at most                     \
                                       */

struct text_part {
    size_t end; /* of the literal text before it */
    const struct plan_source *value;
    struct str written; /* between the braces */
    enum plan_insert insert;
};

void text_begin(struct text_builder *b, struct loader *l)
{
    *b = (struct text_builder){.l = l};
    buf_init(&b->literal, MAX_TEXT_BYTES);
}

void text_abort(struct text_builder *b)
{
    buf_done(&b->literal);
}

int text_add(struct text_builder *b, struct str bytes)
{
    return buf_add(&b->literal, bytes);
}

static int add_value(struct text_builder *b, const struct node *n, struct str expression,
                     enum plan_insert insert)
{
    if (b->count == b->room) {
        size_t room = b->room ? b->room * 2 : 8;
        struct text_part *parts = ARENA_ARRAY(&b->l->scratch, struct text_part, room);
        if (!parts)
            return -ENOMEM;
        if (b->count)
            memcpy(parts, b->parts, b->count * sizeof *parts);
        b->parts = parts;
        b->room = room;
    }
    struct text_part *part = &b->parts[b->count];
    int rc = load_source(b->l, n, expression, &part->value);
    if (rc < 0)
        return rc;
    part->end = b->literal.len;
    part->insert = insert;
    part->written = expression;
    b->count++;
    return 0;
}

static int add_literal(struct text_builder *b, struct str text, enum plan_insert insert)
{
    switch (insert) {
    case PLAN_INSERT_PLAIN:
        return buf_add(&b->literal, text);
    case PLAN_INSERT_JSON_TEXT:
    case PLAN_INSERT_JSON_VALUE:
        return encode_json(&b->literal, text);
    case PLAN_INSERT_FORM:
        return encode_form(&b->literal, text);
    case PLAN_INSERT_QUOTED:
        return encode_quoted(&b->literal, text);
    }
    return -EINVAL;
}

/* Take what comes before the next '$' that means something, and say what follows it. */
enum mark { MARK_END, MARK_ESCAPED, MARK_VALUE };

static enum mark next_mark(struct str rest, size_t *ret_at)
{
    for (size_t i = 0; i + 1 < rest.len; i++) {
        *ret_at = i;
        if (rest.ptr[i] != '$')
            continue;
        if (rest.ptr[i + 1] == '{')
            return MARK_VALUE;
        if (rest.ptr[i + 1] == '$' && i + 2 < rest.len && rest.ptr[i + 2] == '{')
            return MARK_ESCAPED;
    }
    *ret_at = rest.len;
    return MARK_END;
}

bool text_has_variables(struct str text)
{
    size_t at;
    for (;;) {
        enum mark mark = next_mark(text, &at);
        if (mark != MARK_ESCAPED)
            return mark == MARK_VALUE;
        text = str_sub(text, at + 3, text.len);
    }
}

int text_add_template(struct text_builder *b, const struct node *n, struct str text,
                      enum plan_insert insert)
{
    size_t at;
    for (;;) {
        enum mark mark = next_mark(text, &at);
        int rc = add_literal(b, str_sub(text, 0, at), insert);
        if (rc < 0 || mark == MARK_END)
            return rc;
        text = str_sub(text, at + (mark == MARK_ESCAPED ? 3 : 2), text.len);
        if (mark == MARK_ESCAPED) {
            rc = add_literal(b, STR("${"), insert);
        } else {
            size_t end = str_find(text, '}');
            if (end == text.len)
                return load_fail(
                    b->l, n, "has '${' without a '}'; write '$${' for the characters themselves");
            rc = add_value(b, n, str_sub(text, 0, end), insert);
            text = str_sub(text, end + 1, text.len);
        }
        if (rc < 0)
            return rc;
    }
}

static int write_shown(const struct text_builder *b, struct buf *out)
{
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->count; i++) {
        rc = buf_add(out, str_sub(buf_str(&b->literal), at, b->parts[i].end));
        if (rc == 0)
            rc = buf_printf(out, "${%.*s}", STR_ARG(b->parts[i].written));
        at = b->parts[i].end;
    }
    return rc ? rc : buf_add(out, str_sub(buf_str(&b->literal), at, b->literal.len));
}

static int make_pieces(struct text_builder *b, struct plan_text *ret)
{
    struct arena *memory = b->l->memory;
    struct str literal = arena_copy(memory, buf_str(&b->literal));
    struct plan_piece *pieces = ARENA_ARRAY(memory, struct plan_piece, b->count + 1);
    struct buf shown;
    if (!literal.ptr || !pieces)
        return -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct text_part *part = &b->parts[i];
        pieces[i] = (struct plan_piece){str_sub(literal, at, part->end), part->value, part->insert};
        at = part->end;
    }
    bool tail = at < literal.len;
    if (tail)
        pieces[b->count].before = str_sub(literal, at, literal.len);
    buf_init(&shown, MAX_TEXT_BYTES * 2);
    int rc = write_shown(b, &shown);
    if (rc == 0) {
        *ret = (struct plan_text){arena_copy(memory, buf_str(&shown)), pieces, b->count + tail};
        rc = ret->text.ptr ? 0 : -ENOMEM;
    }
    buf_done(&shown);
    return rc;
}

int text_end(struct text_builder *b, struct plan_text *ret)
{
    int rc = 0;
    *ret = (struct plan_text){0};
    if (b->count > 0) {
        rc = make_pieces(b, ret);
    } else {
        ret->text = arena_copy(b->l->memory, buf_str(&b->literal));
        rc = ret->text.ptr ? 0 : -ENOMEM;
    }
    text_abort(b);
    return rc;
}

/* --- nodes --- */

static int from_text(struct loader *l, const struct node *n, enum plan_insert insert,
                     struct plan_text *ret)
{
    struct text_builder b;
    text_begin(&b, l);
    int rc = text_add_template(&b, n, n->text, insert);
    if (rc == 0)
        return text_end(&b, ret);
    text_abort(&b);
    return rc;
}

int load_template(struct loader *l, const struct node *n, enum plan_insert insert,
                  struct plan_text *ret)
{
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %s", node_kind_name(n->kind));
    return from_text(l, n, insert, ret);
}

int load_scalar(struct loader *l, const struct node *n, enum plan_insert insert,
                struct plan_text *ret, bool *ret_json)
{
    if (n->kind != NODE_STRING && n->kind != NODE_NUMBER && n->kind != NODE_BOOL)
        return load_fail(l, n, "must be a string, a number or a boolean, not %s",
                         node_kind_name(n->kind));
    *ret_json = n->kind != NODE_STRING;
    return from_text(l, n, insert, ret);
}

int load_name_template(struct loader *l, const struct node *n, struct plan_text *ret)
{
    struct str plain;
    int rc = load_name(l, n, &plain);
    return rc ? rc : from_text(l, n, PLAN_INSERT_PLAIN, ret);
}
