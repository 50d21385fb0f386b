/* Checks and conditions. What is compared is a subject (a header, a value in the JSON body, …) and
 * a comparison: {"<": 5, "type": "number"}, or a plain value that it must equal. Each comparison
 * becomes one test of the plan, with the text that a failure of it is counted under: made here, of
 * the scenario's words only, so there are as many as the scenario has. */
#include "worker/scenario/load.h"
#include "worker/scenario/pattern.h"

#include "base/log.h"
#include "base/num.h"
#include "base/utf8.h"

#define SHOWN_OPERAND_BYTES 60
#define SHOWN_KEY_BYTES     60

struct comparison {
    struct loader *l;
    struct plan_test test; /* subject and what goes with it */
    struct test_list *list;
};

/* --- failure texts --- */

static const char *const operator_words[] = {
    [PLAN_EQUAL] = "==",        [PLAN_NOT_EQUAL] = "!=", [PLAN_LESS] = "<",
    [PLAN_AT_MOST] = "<=",      [PLAN_MORE] = ">",       [PLAN_AT_LEAST] = ">=",
    [PLAN_EXISTS] = "exists",   [PLAN_TYPE] = "type",    [PLAN_CONTAINS] = "contains",
    [PLAN_MATCHES] = "matches",
};

static const char *const type_words[] = {"null", "boolean", "number", "string", "array", "object"};

static int add_subject(struct buf *b, const struct plan_test *t)
{
    static const char *const words[] = {
        [PLAN_SUBJECT_STATUS] = "status", [PLAN_SUBJECT_HEADER] = "header",
        [PLAN_SUBJECT_BODY] = "body",     [PLAN_SUBJECT_JSON] = "json",
        [PLAN_SUBJECT_SIZE] = "size",     [PLAN_SUBJECT_TIME] = "time",
        [PLAN_SUBJECT_VALUE] = "",
    };
    struct str key = t->subject == PLAN_SUBJECT_JSON    ? t->pointer.text
                     : t->subject == PLAN_SUBJECT_VALUE ? t->source->name
                                                        : t->key;
    int rc = buf_add(b, str_of(words[t->subject]));
    if (rc == 0 && key.len)
        rc = buf_printf(b, "%s%.*s", t->subject == PLAN_SUBJECT_VALUE ? "" : " ",
                        STR_ARG(utf8_cut(key, SHOWN_KEY_BYTES)));
    return rc == 0 && t->of_length ? buf_add(b, STR(" length")) : rc;
}

static int add_operand(struct buf *b, const struct plan_test *t, struct str written)
{
    struct node text = {.kind = NODE_STRING, .text = utf8_cut(written, SHOWN_OPERAND_BYTES)};
    if (t->op == PLAN_EXISTS)
        return buf_add(b, t->truth ? STR("") : STR(" false"));
    if (t->op == PLAN_TYPE)
        return buf_printf(b, " %s", type_words[t->type]);
    int rc = buf_add_byte(b, ' ');
    if (rc == 0 && t->type != PLAN_TYPE_STRING)
        return buf_add(b, text.text);
    return rc ? rc : buf_printf(b, "\"%.*s\"", STR_ARG(text.text));
}

/* A control character in a regular expression would break the line. */
static void make_one_line(struct buf *b)
{
    for (size_t i = 0; i < b->len; i++) {
        if ((unsigned char)b->ptr[i] < 0x20 || b->ptr[i] == 0x7F)
            b->ptr[i] = ' ';
    }
}

static int add_test(struct comparison *c, struct plan_test *t, struct str written)
{
    struct test_list *list = c->list;
    struct buf text;
    buf_init(&text, 1024);
    int rc = buf_add(&text, STR("check failed: "));
    if (rc == 0)
        rc = add_subject(&text, t);
    if (rc == 0)
        rc = buf_printf(&text, " %s", operator_words[t->op]);
    if (rc == 0)
        rc = add_operand(&text, t, written);
    make_one_line(&text);
    if (rc == 0)
        t->failure = arena_copy(c->l->memory, buf_str(&text));
    buf_done(&text);
    if (rc < 0 || !t->failure.ptr)
        return rc < 0 ? rc : -ENOMEM;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 8;
        struct plan_test *items = ARENA_ARRAY(&c->l->scratch, struct plan_test, room);
        if (!items)
            return -ENOMEM;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = *t;
    return 0;
}

int test_list_keep(struct loader *l, const struct test_list *list, const struct plan_test **ret,
                   size_t *ret_count)
{
    *ret = NULL;
    *ret_count = list->count;
    if (list->count == 0)
        return 0;
    struct plan_test *tests = ARENA_ARRAY(l->memory, struct plan_test, list->count);
    if (!tests)
        return -ENOMEM;
    memcpy(tests, list->items, list->count * sizeof *tests);
    *ret = tests;
    return 0;
}

/* --- comparisons --- */

static bool is_number_subject(const struct plan_test *t)
{
    return t->of_length || t->subject == PLAN_SUBJECT_STATUS || t->subject == PLAN_SUBJECT_SIZE ||
           t->subject == PLAN_SUBJECT_TIME;
}

static int bad_operand(struct loader *l, const struct node *n, const char *what)
{
    return load_fail(l, n, "must be %s, not %s", what, node_kind_name(n->kind));
}

/* What a subject is compared with. */
static int read_operand(struct comparison *c, const struct node *n, enum plan_operator op)
{
    struct plan_test t = c->test;
    struct loader *l = c->l;
    bool ordered = op != PLAN_EQUAL && op != PLAN_NOT_EQUAL;
    int rc = 0;
    t.op = op;
    switch (n->kind) {
    case NODE_NUMBER:
        t.type = PLAN_TYPE_NUMBER;
        if (num_parse_double(n->text, &t.number) < 0)
            return load_fail(l, n, "is a number that is too large");
        t.operand.text = arena_copy(l->memory, n->text);
        break;
    case NODE_STRING:
        t.type = PLAN_TYPE_STRING;
        if (is_number_subject(&t) && !text_has_variables(n->text))
            return bad_operand(l, n, "a number");
        rc = load_template(l, n, PLAN_INSERT_PLAIN, &t.operand);
        break;
    case NODE_BOOL:
    case NODE_NULL:
        t.type = n->kind == NODE_BOOL ? PLAN_TYPE_BOOLEAN : PLAN_TYPE_NULL;
        if (ordered || is_number_subject(&t))
            return bad_operand(l, n, is_number_subject(&t) ? "a number" : "a number or a string");
        if (n->kind == NODE_NULL && t.subject != PLAN_SUBJECT_JSON)
            return load_fail(l, n, "must not be null; write {\"exists\": false}");
        t.truth = n->truth;
        t.operand.text = arena_copy(l->memory, n->text);
        break;
    case NODE_LIST:
    case NODE_OBJECT:
        return bad_operand(l, n, "a number, a string, true, false or null");
    }
    if (rc == 0 && !t.operand.text.ptr)
        rc = -ENOMEM;
    return rc ? rc : add_test(c, &t, n->text);
}

static int read_equal(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_EQUAL);
}

static int read_not_equal(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_NOT_EQUAL);
}

static int read_less(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_LESS);
}

static int read_at_most(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_AT_MOST);
}

static int read_more(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_MORE);
}

static int read_at_least(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    return read_operand(target, n, PLAN_AT_LEAST);
}

static int read_exists(struct loader *l, const struct node *n, void *target)
{
    struct comparison *c = target;
    struct plan_test t = c->test;
    t.op = PLAN_EXISTS;
    int rc = load_bool(l, n, &t.truth);
    return rc ? rc : add_test(c, &t, n->text);
}

static int read_type(struct loader *l, const struct node *n, void *target)
{
    struct comparison *c = target;
    struct plan_test t = c->test;
    size_t word;
    t.op = PLAN_TYPE;
    int rc = load_word(l, n, type_words, sizeof type_words / sizeof *type_words, &word);
    if (rc < 0)
        return rc;
    t.type = (enum plan_type)word;
    return add_test(c, &t, n->text);
}

static int read_contains(struct loader *l, const struct node *n, void *target)
{
    struct comparison *c = target;
    struct plan_test t = c->test;
    t.op = PLAN_CONTAINS;
    t.type = PLAN_TYPE_STRING;
    int rc = load_template(l, n, PLAN_INSERT_PLAIN, &t.operand);
    return rc ? rc : add_test(c, &t, n->text);
}

static int read_matches(struct loader *l, const struct node *n, void *target)
{
    struct comparison *c = target;
    struct plan_test t = c->test;
    t.op = PLAN_MATCHES;
    t.type = PLAN_TYPE_STRING;
    int rc = load_pattern(l, n, &t.pattern);
    if (rc == 0)
        rc = load_text(l, n, &t.operand.text);
    return rc ? rc : add_test(c, &t, n->text);
}

static int read_length(struct loader *l, const struct node *n, void *target);

#define EQUALITY                                                                                   \
    {.name = "==", .read = read_equal, .also = "= eq equals equal is"},                            \
    {                                                                                              \
        .name = "!=", .read = read_not_equal, .also = "<> ne not"                                  \
    }
#define ORDER                                                                                      \
    {.name = "<", .read = read_less, .also = "lt less below"},                                     \
        {.name = "<=", .read = read_at_most, .also = "le max =<"},                                 \
        {.name = ">", .read = read_more, .also = "gt greater more above"},                         \
    {                                                                                              \
        .name = ">=", .read = read_at_least, .also = "ge min =>"                                   \
    }
#define TEXTS                                                                                      \
    {.name = "contains", .read = read_contains, .also = "includes has"},                           \
    {                                                                                              \
        .name = "matches", .read = read_matches, .also = "regex match"                             \
    }

static const struct load_key number_keys[] = {EQUALITY, ORDER};
static const struct load_key body_keys[] = {EQUALITY, TEXTS};
static const struct load_key text_keys[] = {
    EQUALITY,
    ORDER,
    TEXTS,
    {.name = "exists", .read = read_exists, .also = "present"},
    {.name = "length", .read = read_length, .also = "len"},
};
static const struct load_key json_keys[] = {
    EQUALITY,
    ORDER,
    TEXTS,
    {.name = "exists", .read = read_exists, .also = "present"},
    {.name = "type", .read = read_type, .also = "kind"},
    {.name = "length", .read = read_length, .also = "len size count"},
};

static int read_length(struct loader *l, const struct node *n, void *target)
{
    struct comparison of = *(struct comparison *)target;
    of.test.of_length = true;
    if (n->kind == NODE_OBJECT)
        return load_object(l, n, "a comparison of numbers", KEYS(number_keys), &of);
    return read_operand(&of, n, PLAN_EQUAL);
}

int load_tests(struct loader *l, const struct node *n, const struct plan_test *like,
               struct test_list *list)
{
    struct comparison c = {l, *like, list};
    if (list->count >= PLAN_MAX_TESTS)
        return load_fail(l, n, "is one comparison too many: there can be %d", PLAN_MAX_TESTS);
    if (n->kind != NODE_OBJECT)
        return read_operand(&c, n, PLAN_EQUAL);
    if (!n->first)
        return load_fail(l, n, "must not be empty");
    switch (like->subject) {
    case PLAN_SUBJECT_STATUS:
    case PLAN_SUBJECT_SIZE:
    case PLAN_SUBJECT_TIME:
        return load_object(l, n, "a comparison of numbers", KEYS(number_keys), &c);
    case PLAN_SUBJECT_BODY:
        return load_object(l, n, "a comparison of the body", KEYS(body_keys), &c);
    case PLAN_SUBJECT_JSON:
        return load_object(l, n, "a comparison", KEYS(json_keys), &c);
    case PLAN_SUBJECT_HEADER:
    case PLAN_SUBJECT_VALUE:
        return load_object(l, n, "a comparison", KEYS(text_keys), &c);
    }
    return -EINVAL;
}

/* --- check --- */

struct check_draft {
    struct test_list *list;
    const struct node *statuses; /* plain ones */
};

static int read_status(struct loader *l, const struct node *n, void *target)
{
    struct check_draft *d = target;
    const struct plan_test like = {.subject = PLAN_SUBJECT_STATUS};
    if (n->kind == NODE_OBJECT)
        return load_tests(l, n, &like, d->list);
    if (d->statuses)
        return load_fail(l, n, "the status is given twice");
    d->statuses = n;
    return 0;
}

static int read_size(struct loader *l, const struct node *n, void *target)
{
    const struct plan_test like = {.subject = PLAN_SUBJECT_SIZE};
    return load_tests(l, n, &like, ((struct check_draft *)target)->list);
}

static int read_time(struct loader *l, const struct node *n, void *target)
{
    const struct plan_test like = {.subject = PLAN_SUBJECT_TIME};
    return load_tests(l, n, &like, ((struct check_draft *)target)->list);
}

static int read_body_check(struct loader *l, const struct node *n, void *target)
{
    const struct plan_test like = {.subject = PLAN_SUBJECT_BODY};
    return load_tests(l, n, &like, ((struct check_draft *)target)->list);
}

static int need_object(struct loader *l, const struct node *n, const char *of)
{
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of %s, not %s", of, node_kind_name(n->kind));
    return n->first ? 0 : load_fail(l, n, "must not be empty");
}

static int read_headers_check(struct loader *l, const struct node *n, void *target)
{
    int rc = need_object(l, n, "header names and comparisons");
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        struct plan_test like = {.subject = PLAN_SUBJECT_HEADER};
        like.key = arena_copy(l->memory, one->key);
        rc = like.key.ptr ? load_tests(l, one, &like, ((struct check_draft *)target)->list)
                          : -ENOMEM;
    }
    return rc;
}

static int read_json_check(struct loader *l, const struct node *n, void *target)
{
    int rc = need_object(l, n, "JSON Pointers and comparisons");
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        struct plan_test like = {.subject = PLAN_SUBJECT_JSON};
        rc = load_pointer(l, one, one->key, &like.pointer);
        if (rc == 0)
            rc = load_tests(l, one, &like, ((struct check_draft *)target)->list);
    }
    return rc;
}

static const struct load_key check_keys[] = {
    {.name = "status", .read = read_status, .also = "code status_code expect"},
    {.name = "headers", .read = read_headers_check, .also = "header"},
    {.name = "body", .read = read_body_check, .also = "text content"},
    {.name = "json", .read = read_json_check, .also = "jsonpath pointer"},
    {.name = "size", .read = read_size, .also = "bytes content_length"},
    {.name = "time", .read = read_time, .also = "response_time elapsed duration"},
};

int load_checks(struct loader *l, const struct node *n, struct test_list *list,
                const struct node **ret_statuses)
{
    struct check_draft d = {.list = list};
    int rc = 0;
    if (n->kind == NODE_LIST) {
        rc = load_list(l, n, PLAN_MAX_TESTS, "checks");
        for (const struct node *one = n->first; rc == 0 && one; one = one->next)
            rc = load_object(l, one, "a check", KEYS(check_keys), &d);
    } else {
        rc = load_object(l, n, "a check", KEYS(check_keys), &d);
        if (rc == 0 && !n->first)
            rc = load_fail(l, n, "must not be empty");
    }
    *ret_statuses = d.statuses;
    return rc;
}

/* --- conditions --- */

int load_condition(struct loader *l, const struct node *n, struct test_list *list)
{
    int rc = need_object(l, n, "variables and comparisons, such as {\"status\": \"done\"}");
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        struct plan_test like = {.subject = PLAN_SUBJECT_VALUE};
        rc = load_source(l, one, one->key, &like.source);
        if (rc == 0)
            rc = load_tests(l, one, &like, list);
    }
    return rc;
}

/* --- pointers and patterns --- */

static int decode_part(struct loader *l, const struct node *n, struct str part, struct str *ret)
{
    char *out = ARENA_ARRAY(l->memory, char, part.len + 1);
    size_t used = 0;
    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];
        if (c == '~') {
            char which = i + 1 < part.len ? part.ptr[++i] : '\0';
            if (which != '0' && which != '1')
                return load_fail(l, n, "has a '~' in its JSON Pointer that is neither ~0 nor ~1");
            c = which == '0' ? '~' : '/';
        }
        out[used++] = c;
    }
    *ret = (struct str){out, used};
    return 0;
}

int load_pointer(struct loader *l, const struct node *n, struct str text, struct plan_pointer *ret)
{
    char quoted[LOG_QUOTED_BYTES];
    size_t count = 0;
    if (text.len > PLAN_MAX_NAME_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PLAN_MAX_NAME_BYTES);
    if (text.len > 0 && text.ptr[0] != '/')
        return load_fail(l, n, "%s is no JSON Pointer: it begins with '/', as \"/items/0/id\"",
                         log_quote(text, quoted));
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '/';
    struct str *parts = ARENA_ARRAY(l->memory, struct str, count + 1);
    ret->text = arena_copy(l->memory, text);
    if (!parts || !ret->text.ptr)
        return -ENOMEM;
    struct str rest = str_sub(text, 1, text.len), part;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count && str_next(&rest, '/', &part); i++)
        rc = decode_part(l, n, part, &parts[i]);
    ret->parts = parts;
    ret->part_count = count;
    return rc;
}

/* Has it "${name}" and not "\${name}"? Other dollars before braces can be meant. */
static bool has_variable(struct str pattern)
{
    for (size_t at; (at = str_find_str(pattern, STR("${"))) < pattern.len;) {
        bool escaped = at > 0 && pattern.ptr[at - 1] == '\\';
        pattern = str_sub(pattern, at + 2, pattern.len);
        size_t end = str_find(pattern, '}');
        if (!escaped && end < pattern.len && load_is_name(str_sub(pattern, 0, end)))
            return true;
    }
    return false;
}

int load_pattern(struct loader *l, const struct node *n, const struct pattern **ret)
{
    struct err why = {0};
    struct pattern *pattern;
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a regular expression in a string, not %s",
                         node_kind_name(n->kind));
    if (n->text.len > PATTERN_MAX_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PATTERN_MAX_BYTES);
    if (has_variable(n->text))
        return load_fail(l, n,
                         "a regular expression cannot have variables; write '\\$' for the "
                         "character itself");
    int rc = pattern_new(n->text, &pattern, &why);
    if (rc == -EINVAL)
        return load_fail(l, n, "is no regular expression: %s", why.text);
    if (rc < 0)
        return rc;
    struct load_pattern *link = ARENA_NEW(l->memory, struct load_pattern);
    if (!link) {
        pattern_free(pattern);
        return -ENOMEM;
    }
    *link = (struct load_pattern){*l->patterns, pattern};
    *l->patterns = link;
    *ret = pattern;
    return 0;
}
