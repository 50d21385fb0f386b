/* What "${name}" can mean. Declared variables and the columns of feeds are known before the steps
 * are read; variables that steps set or extract are found on the way, and may be used in a step
 * that stands before. So a use only notes the name, and the end tells what nobody defines. */
#include "worker/scenario/load.h"

#include "base/log.h"
#include "base/num.h"

/* --- names --- */

static const struct {
    const char *name;
    enum plan_source_kind kind;
} generators[] = {
    {"uuid", PLAN_SOURCE_UUID},       {"timestamp", PLAN_SOURCE_TIMESTAMP},
    {"counter", PLAN_SOURCE_COUNTER}, {"timestamp_ms", PLAN_SOURCE_TIMESTAMP_MS},
    {"user", PLAN_SOURCE_USER},       {"worker", PLAN_SOURCE_WORKER},
    {"random", PLAN_SOURCE_RANDOM},
};
#define GENERATORS (sizeof generators / sizeof *generators)

static size_t find_generator(struct str name)
{
    size_t i = 0;
    while (i < GENERATORS && !str_eq(name, str_of(generators[i].name)))
        i++;
    return i;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool load_is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!is_letter(c) && (i == 0 || !((c >= '0' && c <= '9') || c == '-' || c == '.')))
            return false;
    }
    return name.len > 0 && name.len <= PLAN_MAX_NAME_BYTES;
}

static int bad_name(struct loader *l, const struct node *n, struct str name)
{
    char quoted[LOG_QUOTED_BYTES];
    return load_fail(
        l, n, "%s is no name of a variable: letters, digits, '_', '-' and '.', a letter first",
        log_quote(name, quoted));
}

/* The entry of a name, made when it is new. */
static int intern(struct loader *l, struct str name, struct load_name **ret)
{
    struct load_scope *s = &l->scope;
    uint32_t index;
    bool is_new;
    s->names.arena = &l->scratch;
    int rc = names_add(&s->names, STR(""), name, &index, &is_new);
    if (rc < 0)
        return rc;
    if (s->names.count > s->known_room) {
        size_t room = s->known_room ? s->known_room * 2 : 16;
        struct load_name *known = ARENA_ARRAY(&l->scratch, struct load_name, room);
        if (!known)
            return -ENOMEM;
        if (s->known_room)
            memcpy(known, s->known, s->known_room * sizeof *known);
        s->known = known;
        s->known_room = room;
    }
    *ret = &s->known[index];
    if (is_new)
        (*ret)->variable.name = name;
    return 0;
}

/* Give a name that has no meaning yet the meaning of a variable. */
static void make_variable(struct loader *l, struct load_name *known)
{
    if (!known->used && !known->defined)
        known->index = (uint32_t)l->scope.variable_count++;
}

static bool is_column(const struct load_scope *s, struct str name)
{
    for (size_t i = 0; i < s->names.count; i++) {
        if (s->known[i].is_column && str_eq(s->names.items[i].name, name))
            return true;
    }
    return false;
}

static int check_new_name(struct loader *l, const struct node *n, struct str name)
{
    if (!load_is_name(name))
        return bad_name(l, n, name);
    if (find_generator(name) < GENERATORS && !is_column(&l->scope, name))
        return load_fail(l, n, "'%.*s' is the name of a generator and cannot be a variable's",
                         STR_ARG(name));
    return 0;
}

/* --- declared variables --- */

static int declare(struct loader *l, const struct node *n)
{
    struct load_name *known;
    int rc = check_new_name(l, n, n->key);
    if (rc == 0)
        rc = intern(l, n->key, &known);
    if (rc < 0)
        return rc;
    make_variable(l, known);
    known->defined = n;
    known->variable.outside = true;
    known->variable.required = n->kind == NODE_NULL;
    if (n->kind == NODE_NULL)
        return 0;
    if (n->kind == NODE_STRING && text_has_variables(n->text))
        return load_fail(l, n, "must not have variables itself; a step can 'set' it");
    struct plan_text text;
    rc = load_scalar(l, n, PLAN_INSERT_PLAIN, &text, &known->variable.initial_json);
    known->variable.initial = text.text;
    return rc;
}

int load_variables(struct loader *l, const struct node *n)
{
    int rc = 0;
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of names and values, not %s",
                         node_kind_name(n->kind));
    if (n->child_count > PLAN_MAX_VARIABLES)
        return load_fail(l, n, "must not have more than %d variables", PLAN_MAX_VARIABLES);
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_tolerate(l, declare(l, one));
    return rc;
}

/* --- feeds --- */

static int add_columns(struct loader *l, const struct node *n, uint32_t feed)
{
    const struct plan_feed *f = &l->scope.feeds[feed];
    for (uint32_t i = 0; i < f->column_count; i++) {
        struct load_name *known;
        struct str name = f->columns[i];
        if (!load_is_name(name)) /* a column that nobody can name is no harm */
            continue;
        int rc = intern(l, name, &known);
        if (rc < 0)
            return rc;
        if (known->defined)
            return load_fail(l, n, "its column '%.*s' has the name of another %s", STR_ARG(name),
                             known->is_column ? "column" : "variable");
        known->is_column = true;
        known->index = feed;
        known->column = i;
        known->defined = n;
    }
    return 0;
}

int load_feeds(struct loader *l, const struct node *n)
{
    int rc = load_list(l, n, PLAN_MAX_FEEDS, "feeds");
    if (rc < 0)
        return rc;
    l->scope.feeds = ARENA_ARRAY(l->memory, struct plan_feed, n->child_count);
    if (!l->scope.feeds)
        return -ENOMEM;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        rc = load_feed(l, one, &l->scope.feeds[l->scope.feed_count]);
        l->scope.feed_lost |= rc < 0;
        if (rc == 0)
            rc = add_columns(l, one, (uint32_t)l->scope.feed_count++);
        rc = load_tolerate(l, rc);
    }
    return rc;
}

/* --- uses --- */

int load_target(struct loader *l, const struct node *n, uint32_t *ret_variable)
{
    struct load_name *known;
    int rc = check_new_name(l, n, n->key);
    if (rc == 0)
        rc = intern(l, n->key, &known);
    if (rc < 0)
        return rc;
    if (known->is_column)
        return load_fail(l, n, "'%.*s' is a column of a feed and cannot be set", STR_ARG(n->key));
    make_variable(l, known);
    if (!known->defined)
        known->defined = n;
    *ret_variable = known->index;
    if (l->scope.variable_count > PLAN_MAX_VARIABLES)
        return load_fail(l, n, "is one variable too many: there can be %d", PLAN_MAX_VARIABLES);
    return 0;
}

static int read_random(struct loader *l, const struct node *n, struct str arguments,
                       struct plan_source *source)
{
    struct str low = str_sub(arguments, 0, str_find(arguments, ','));
    struct str high = str_sub(arguments, low.len + 1, arguments.len);
    if (num_parse_i64(str_trim(low), INT64_MIN / 4, INT64_MAX / 4, &source->min) < 0 ||
        num_parse_i64(str_trim(high), INT64_MIN / 4, INT64_MAX / 4, &source->max) < 0)
        return load_fail(l, n, "${random} needs two whole numbers: ${random(1, 10)}");
    if (source->min > source->max)
        return load_fail(l, n, "${random}: the first number must not be larger than the second");
    return 0;
}

static int read_generator(struct loader *l, const struct node *n, size_t generator,
                          struct str arguments, struct plan_source *source)
{
    source->kind = generators[generator].kind;
    if (source->kind == PLAN_SOURCE_RANDOM)
        return read_random(l, n, arguments, source);
    if (arguments.ptr)
        return load_fail(l, n, "${%s} has no arguments", generators[generator].name);
    return 0;
}

/* A variable or a column. */
static int read_known(struct loader *l, const struct node *n, struct str name,
                      struct plan_source *source)
{
    struct load_name *known;
    int rc = intern(l, name, &known);
    if (rc < 0)
        return rc;
    if (known->is_column) {
        source->kind = PLAN_SOURCE_COLUMN;
        source->column = known->column;
    } else {
        make_variable(l, known);
    }
    source->index = known->index;
    if (!known->used)
        known->used = n;
    return 0;
}

int load_source(struct loader *l, const struct node *n, struct str expression,
                const struct plan_source **ret)
{
    struct str name = str_trim(str_sub(expression, 0, str_find(expression, '(')));
    struct str arguments = {NULL, 0};
    struct str whole = str_trim(expression);
    if (name.len < whole.len) {
        if (!str_ends(whole, STR(")")))
            return load_fail(l, n, "has a '(' without ')' in '${%.*s}'", STR_ARG(whole));
        size_t open = str_find(whole, '(');
        arguments = str_sub(whole, open + 1, whole.len - 1);
    }
    if (!load_is_name(name))
        return bad_name(l, n, name);
    struct plan_source *source = ARENA_NEW(l->memory, struct plan_source);
    if (!source)
        return -ENOMEM;
    /* a file's columns are named by others: they win */
    size_t generator = is_column(&l->scope, name) ? GENERATORS : find_generator(name);
    int rc;
    if (generator < GENERATORS)
        rc = read_generator(l, n, generator, arguments, source);
    else if (arguments.ptr)
        rc = load_fail(l, n,
                       "'%.*s' is no generator; there are uuid, random(1, 10), timestamp, "
                       "timestamp_ms, counter, user, worker",
                       STR_ARG(name));
    else
        rc = read_known(l, n, name, source);
    if (rc < 0)
        return rc;
    l->has_values = true;
    source->name = arena_copy(l->memory, name);
    *ret = source;
    return source->name.ptr ? 0 : -ENOMEM;
}

/* --- the end --- */

static int refuse_unknown(struct loader *l, const struct load_name *name)
{
    const struct load_scope *s = &l->scope;
    size_t n = 0;
    struct load_key *words = ARENA_ARRAY(&l->scratch, struct load_key, s->names.count + GENERATORS);
    if (!words)
        return -ENOMEM;
    for (size_t i = 0; i < s->names.count; i++) {
        struct str word = s->names.items[i].name;
        if (s->known[i].defined && !(word = arena_copy(&l->scratch, word)).ptr)
            return -ENOMEM;
        if (s->known[i].defined)
            words[n++] = (struct load_key){.name = word.ptr};
    }
    for (size_t i = 0; i < GENERATORS; i++)
        words[n++] = (struct load_key){.name = generators[i].name};
    const char *meant = load_nearest(name->variable.name, words, n);
    if (meant)
        return load_fail(l, name->used, "'%.*s' is no variable; did you mean '%s'?",
                         STR_ARG(name->variable.name), meant);
    return load_fail(l, name->used,
                     "'%.*s' is no variable: no step sets or extracts it, no feed has it, and "
                     "'variables' does not either",
                     STR_ARG(name->variable.name));
}

/* After a mistake some definitions were not read, of which those who use them are not to blame:
 * whatever the file sets or extracts somewhere counts as defined. */
static int forgive_mentioned(struct loader *l, const struct node *n)
{
    int rc = 0;
    bool defines = n->kind == NODE_OBJECT && n->key.ptr &&
                   (str_eq(n->key, STR("extract")) || str_eq(n->key, STR("set")));
    for (const struct node *child = n->first; rc == 0 && child; child = child->next) {
        struct load_name *known;
        if (defines)
            rc = intern(l, child->key, &known);
        if (defines && rc == 0)
            known->mentioned = true;
        if (rc == 0)
            rc = forgive_mentioned(l, child);
    }
    return rc;
}

/* The uses of a faulty scenario, of which there is no plan. */
static int tell_unknown(struct loader *l, const struct node *root)
{
    int rc = l->scope.feed_lost ? 0 : forgive_mentioned(l, root);
    for (size_t i = 0; rc == 0 && !l->scope.feed_lost && i < l->scope.names.count; i++) {
        const struct load_name *known = &l->scope.known[i];
        if (known->used && !known->defined && !known->mentioned)
            rc = load_tolerate(l, refuse_unknown(l, known));
    }
    return rc;
}

int load_scope_end(struct loader *l, const struct node *root, struct plan *p)
{
    struct load_scope *s = &l->scope;
    if (l->faulty)
        return tell_unknown(l, root);
    struct plan_variable *variables =
        ARENA_ARRAY(l->memory, struct plan_variable, s->variable_count);
    if (!variables && s->variable_count)
        return -ENOMEM;
    for (size_t i = 0; i < s->names.count; i++) {
        struct load_name *known = &s->known[i];
        int rc = known->defined ? 0 : load_tolerate(l, refuse_unknown(l, known));
        if (rc < 0)
            return rc;
        if (known->is_column)
            continue;
        known->variable.name = arena_copy(l->memory, known->variable.name);
        if (!known->variable.name.ptr)
            return -ENOMEM;
        variables[known->index] = known->variable;
    }
    p->variables = variables;
    p->variable_count = s->variable_count;
    p->feeds = s->feeds;
    p->feed_count = s->feed_count;
    return 0;
}
