#include "worker/scenario/load.h"
#include "worker/scenario/url.h"

#include "base/log.h"
#include "base/num.h"

#include <math.h>

#define SHOWN_BYTES 40 /* of a refused value */

/* How a refused value is shown: a number as it is written, else its kind. */
static struct str shown(const struct node *n)
{
    if (n->kind != NODE_NUMBER)
        return str_of(node_kind_name(n->kind));
    return str_sub(n->text, 0, SHOWN_BYTES); /* digits: nothing is cut apart */
}

static int copy(struct loader *l, struct str text, struct str *ret)
{
    *ret = arena_copy(l->memory, text);
    return ret->ptr ? 0 : -ENOMEM;
}

int load_bool(struct loader *l, const struct node *n, bool *ret)
{
    if (n->kind != NODE_BOOL)
        return load_fail(l, n, "must be true or false, not %.*s", STR_ARG(shown(n)));
    *ret = n->truth;
    return 0;
}

int load_whole(struct loader *l, const struct node *n, uint32_t min, uint32_t max, uint32_t *ret)
{
    int64_t value;
    if (n->kind != NODE_NUMBER || num_parse_i64(n->text, min, max, &value) < 0)
        return load_fail(l, n, "must be a whole number from %u to %u, not %.*s", min, max,
                         STR_ARG(shown(n)));
    *ret = (uint32_t)value;
    return 0;
}

int load_number(struct loader *l, const struct node *n, double min, double max, double *ret)
{
    double value = 0;
    bool fits = n->kind == NODE_NUMBER && num_parse_double(n->text, &value) == 0 && value >= min &&
                value <= max;
    if (!fits)
        return load_fail(l, n, "must be a number from %.10g to %.10g, not %.*s", min, max,
                         STR_ARG(shown(n)));
    *ret = value;
    return 0;
}

int load_seconds(struct loader *l, const struct node *n, double min_s, double max_s,
                 uint64_t *ret_us)
{
    double seconds;
    int rc = load_number(l, n, min_s, max_s, &seconds);
    if (rc == 0)
        *ret_us = (uint64_t)llround(seconds * 1e6);
    return rc;
}

static int need_string(struct loader *l, const struct node *n)
{
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %.*s", STR_ARG(shown(n)));
    return 0;
}

int load_text(struct loader *l, const struct node *n, struct str *ret)
{
    int rc = need_string(l, n);
    return rc ? rc : copy(l, n->text, ret);
}

int load_name(struct loader *l, const struct node *n, struct str *ret)
{
    int rc = need_string(l, n);
    if (rc < 0)
        return rc;
    if (n->text.len == 0)
        return load_fail(l, n, "must not be empty");
    if (n->text.len > PLAN_MAX_NAME_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PLAN_MAX_NAME_BYTES);
    for (size_t i = 0; i < n->text.len; i++) {
        if ((unsigned char)n->text.ptr[i] < 0x20 || n->text.ptr[i] == 0x7F)
            return load_fail(l, n, "must not have control characters");
    }
    return copy(l, n->text, ret);
}

int load_list(struct loader *l, const struct node *n, size_t max, const char *what)
{
    if (n->kind != NODE_LIST)
        return load_fail(l, n, "must be a list of %s, not %.*s", what, STR_ARG(shown(n)));
    if (n->child_count == 0)
        return load_fail(l, n, "must not be empty");
    if (n->child_count > max)
        return load_fail(l, n, "must not have more than %zu %s, has %u", max, what, n->child_count);
    return 0;
}

int load_host(struct loader *l, const struct node *n, struct str *ret)
{
    int rc = need_string(l, n);
    if (rc < 0)
        return rc;
    struct url parts;
    struct err why = {0};
    char quoted[LOG_QUOTED_BYTES];
    if (url_parse_host(n->text, &parts, &why) < 0) {
        struct str host = n->text;
        size_t at = str_find(host, '@'); /* user and password are not shown */
        bool hidden = at < host.len;
        return load_fail(l, n, "%s %s", hidden ? "the host" : log_quote(host, quoted), why.text);
    }
    return copy(l, n->text, ret);
}
