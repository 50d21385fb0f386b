/* "extract": parts of a response that become variables. */
#include "worker/scenario/load.h"
#include "worker/scenario/pattern.h"

struct extract_draft {
    struct plan_extract extract;
    const struct node *what, *group, *fallback;
};

static int one_only(struct loader *l, const struct node *n, struct extract_draft *d)
{
    if (d->what)
        return load_fail(l, n, "a variable is extracted from one place, and this one has '%.*s'",
                         STR_ARG(d->what->key));
    d->what = n;
    return 0;
}

static int read_json(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    int rc = one_only(l, n, d);
    d->extract.kind = PLAN_EXTRACT_JSON;
    if (rc == 0 && n->kind != NODE_STRING)
        return load_fail(l, n, "must be a JSON Pointer in a string, not %s",
                         node_kind_name(n->kind));
    return rc ? rc : load_pointer(l, n, n->text, &d->extract.pointer);
}

static int read_regex(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    int rc = one_only(l, n, d);
    d->extract.kind = PLAN_EXTRACT_REGEX;
    if (rc == 0)
        rc = load_pattern(l, n, &d->extract.pattern);
    return rc ? rc : load_text(l, n, &d->extract.pattern_text);
}

static int read_header(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    int rc = one_only(l, n, d);
    d->extract.kind = PLAN_EXTRACT_HEADER;
    return rc ? rc : load_name(l, n, &d->extract.key);
}

static int read_cookie(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    int rc = one_only(l, n, d);
    d->extract.kind = PLAN_EXTRACT_COOKIE;
    return rc ? rc : load_name(l, n, &d->extract.key);
}

static int read_group(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    d->group = n;
    return load_whole(l, n, 0, PATTERN_MAX_GROUPS, &d->extract.group);
}

static int read_default(struct loader *l, const struct node *n, void *target)
{
    struct extract_draft *d = target;
    d->extract.has_default = true;
    return load_scalar(l, n, PLAN_INSERT_PLAIN, &d->extract.fallback, &d->extract.fallback_json);
}

static const struct load_key extract_keys[] = {
    {.name = "json", .read = read_json, .also = "jsonpath pointer path"},
    {.name = "regex", .read = read_regex, .also = "regexp pattern matches body"},
    {.name = "header", .read = read_header, .also = "headers"},
    {.name = "cookie", .read = read_cookie, .also = "cookies"},
    {.name = "group", .read = read_group},
    {.name = "default", .read = read_default, .also = "fallback else"},
};

/* Without "group" it is the first one, or the whole match when there is none. */
static int finish_group(struct loader *l, struct extract_draft *d)
{
    if (d->extract.kind != PLAN_EXTRACT_REGEX) {
        if (d->group)
            return load_fail(l, d->group, "stands beside 'regex' only");
        return 0;
    }
    uint32_t groups = pattern_group_count(d->extract.pattern);
    if (!d->group)
        d->extract.group = groups > 0 ? 1 : 0;
    else if (d->extract.group > groups)
        return load_fail(l, d->group, "the regular expression has %u group%s", groups,
                         groups == 1 ? "" : "s");
    return 0;
}

static int load_one(struct loader *l, const struct node *n, struct plan_extract *ret)
{
    struct extract_draft d = {0};
    int rc = load_target(l, n, &d.extract.variable);
    if (rc == 0 && n->kind == NODE_STRING)
        rc = read_json(l, n, &d); /* "/path" alone is a JSON Pointer */
    else if (rc == 0)
        rc = load_object(l, n, "an extraction", KEYS(extract_keys), &d);
    if (rc == 0 && !d.what)
        rc = load_fail(l, n, "says not from where: give it one of json, regex, header, cookie");
    if (rc == 0)
        rc = finish_group(l, &d);
    if (rc < 0)
        return rc;
    struct buf text;
    buf_init(&text, PLAN_MAX_NAME_BYTES * 2);
    rc = buf_printf(&text, "extraction failed: %.*s", STR_ARG(n->key));
    if (rc == 0)
        d.extract.failure = arena_copy(l->memory, buf_str(&text));
    buf_done(&text);
    *ret = d.extract;
    return rc == 0 && !d.extract.failure.ptr ? -ENOMEM : rc;
}

int load_extracts(struct loader *l, const struct node *n, const struct plan_extract **ret,
                  size_t *ret_count)
{
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of variables and places, not %s",
                         node_kind_name(n->kind));
    if (!n->first)
        return load_fail(l, n, "must not be empty");
    struct plan_extract *extracts = ARENA_ARRAY(l->memory, struct plan_extract, n->child_count);
    if (!extracts)
        return -ENOMEM;
    int rc = 0;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_one(l, one, &extracts[one->index]);
    *ret = extracts;
    *ret_count = n->child_count;
    return rc;
}
